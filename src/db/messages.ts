/** Rows of history. Every write is idempotent: the outbox of a history collection may send it twice. */
import { and, eq, sql } from 'drizzle-orm'
import type { Database } from './client'
import { messages } from './schema'

export type MessageRow = typeof messages.$inferSelect

/**
 * Writes and removes messages of one history, as one transaction.
 * SQLite wants a WHERE between a SELECT and ON CONFLICT, or it would read the ON as a join's.
 * @param rows at most about 1 MB of text: they travel as one JSON parameter (D1 binds 100 at most)
 */
export async function syncMessages(
  db: Database,
  historyId: string,
  rows: Omit<MessageRow, 'historyId'>[],
  removedIds: string[],
): Promise<void> {
  const incoming = sql`
    SELECT ${historyId}, value->>'documentId', value->>'conversationId', value->>'modelId', value->>'role',
      value->>'message', value->>'timestamp'
    FROM json_each(${JSON.stringify(rows)}) WHERE true`
  const excluded = (column: string) => sql.raw(`excluded.${column}`)
  await db.batch([
    db
      .insert(messages)
      .select(incoming)
      .onConflictDoUpdate({
        target: [messages.historyId, messages.documentId],
        set: {
          conversationId: excluded('conversation_id'),
          modelId: excluded('model_id'),
          role: excluded('role'),
          message: excluded('message'),
          timestamp: excluded('timestamp'),
        },
      }),
    removal(db, historyId, removedIds),
  ])
}

const removal = (db: Database, historyId: string, documentIds: string[]) =>
  db
    .delete(messages)
    .where(
      and(
        eq(messages.historyId, historyId),
        sql`${messages.documentId} IN (SELECT value FROM json_each(${JSON.stringify(documentIds)}))`,
      ),
    )

/** Removes every message of a history: its collection is gone. */
export async function deleteHistory(db: Database, historyId: string): Promise<void> {
  await db.delete(messages).where(eq(messages.historyId, historyId))
}

/** Removes messages by their documents' ids. */
export async function deleteMessages(db: Database, historyId: string, documentIds: string[]): Promise<void> {
  await removal(db, historyId, documentIds)
}
