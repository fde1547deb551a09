/** Rows of history. Every write is idempotent: the outbox of a history collection may send it twice. */
import { and, eq, sql } from 'drizzle-orm'
import type { Database } from './client'
import { messages } from './schema'

export type MessageRow = typeof messages.$inferSelect

/**
 * Writes and removes messages of one history, as one transaction.
 * @param rows at most about 1 MB of text: they travel as one JSON parameter (D1 binds 100 at most)
 */
export async function syncMessages(
  db: Database,
  historyId: string,
  rows: Omit<MessageRow, 'historyId'>[],
  removedIds: string[],
): Promise<void> {
  await db.batch([
    db.run(sql`
      INSERT OR REPLACE INTO ${messages}
        (history_id, document_id, conversation_id, model_id, role, message, timestamp)
      SELECT ${historyId}, value->>'documentId', value->>'conversationId', value->>'modelId', value->>'role',
        value->>'message', value->>'timestamp'
      FROM json_each(${JSON.stringify(rows)})`),
    db.run(sql`
      DELETE FROM ${messages} WHERE history_id = ${historyId}
        AND document_id IN (SELECT value FROM json_each(${JSON.stringify(removedIds)}))`),
  ])
}

/** Removes every message of a history: its collection is gone. */
export async function deleteHistory(db: Database, historyId: string): Promise<void> {
  await db.delete(messages).where(eq(messages.historyId, historyId))
}

/** Removes messages by their documents' ids. */
export async function deleteMessages(db: Database, historyId: string, documentIds: string[]): Promise<void> {
  await db
    .delete(messages)
    .where(
      and(
        eq(messages.historyId, historyId),
        sql`${messages.documentId} IN (SELECT value FROM json_each(${JSON.stringify(documentIds)}))`,
      ),
    )
}
