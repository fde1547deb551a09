/** Rows of history. Every write is idempotent, because the outbox of a history collection may send it twice. */
import { type SQL, sql } from 'drizzle-orm'
import type { Database } from './client'
import { conversations, messages, turns } from './schema'

export type MessageRow = typeof messages.$inferSelect

/** Changes to the messages of one history. */
export interface MessageChanges {
  /** at most about 1 MB of text. They go as one JSON parameter, because D1 binds at most 100 */
  rows: Omit<MessageRow, 'historyId'>[]
  /** ids of documents that were deleted */
  removed: string[]
  /** ids of replaced documents. Their conversation updates the records of their turns */
  replaced?: string[]
}

/**
 * Writes and removes messages of one history in one transaction. SQLite needs a WHERE between SELECT and ON CONFLICT:
 * otherwise it parses ON as part of a join.
 */
export async function syncMessages(
  db: Database,
  historyId: string,
  { rows, removed, replaced = [] }: MessageChanges,
): Promise<void> {
  const incoming = sql`
    SELECT ${historyId}, value->>'documentId', value->>'conversationId', value->>'modelId', value->>'role',
      value->>'message', value->>'timestamp'
    FROM json_each(${JSON.stringify(rows)}) WHERE true`
  const excluded = (column: string) => sql.raw(`excluded.${column}`)
  const write = db
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
    })
  // Most writes remove nothing, and a turn waits for this one.
  if (removed.length + replaced.length === 0) return void (await write)
  const going = named(historyId, removed)
  await db.batch([
    write,
    ...(replaced.length > 0 ? [db.delete(messages).where(named(historyId, replaced))] : []),
    ...(removed.length > 0
      ? [withoutTraces(db, going), withoutVersions(db, going), ...removal(db, going)]
      : []),
  ])
}

/** Selects messages by their documents' ids. */
const named = (historyId: string, documentIds: string[]): SQL =>
  sql`${messages.historyId} = ${historyId} AND ${messages.documentId} IN
    (SELECT value FROM json_each(${JSON.stringify(documentIds)}))`

/**
 * Removes messages and the records of their turns, which quote them. A conversation without messages gets
 * `expires_at` 0, which hides it until the sweep erases it.
 *
 * Messages identify their turn only by its second. Another turn in the same second loses its record too, which is the
 * safe mistake.
 */
function removal(db: Database, going: SQL) {
  const concerned = sql`SELECT ${messages.conversationId} FROM ${messages} WHERE ${going}`
  return [
    db.delete(turns).where(
      sql`(${turns.conversationId}, ${turns.createdAt} / 1000) IN
          (SELECT ${messages.conversationId}, ${messages.timestamp} FROM ${messages} WHERE ${going})`,
    ),
    db
      .update(conversations)
      .set({ expiresAt: 0 })
      .where(
        sql`${conversations.id} IN (${concerned}) AND NOT EXISTS (SELECT 1 FROM ${messages}
          WHERE ${messages.conversationId} = ${conversations.id} AND NOT (${going}))`,
      ),
    db.delete(messages).where(going),
  ] as const
}

/**
 * When messages are deleted on purpose, the traces and suggestions of later turns are removed too, since they may
 * quote them.
 */
const withoutTraces = (db: Database, going: SQL) =>
  db
    .update(turns)
    .set({ trace: NO_TRACE, followups: NO_FOLLOWUPS })
    .where(
      sql`${turns.conversationId} IN (SELECT ${messages.conversationId} FROM ${messages} WHERE ${going})`,
    )

/** Nor do versions stay that others replaced: the question that was deleted may be one of them in other words. */
const withoutVersions = (db: Database, going: SQL) =>
  db.delete(turns).where(
    sql`${turns.replacedBy} IS NOT NULL
      AND ${turns.conversationId} IN (SELECT ${messages.conversationId} FROM ${messages} WHERE ${going})`,
  )

/** Stands in for a trace that was removed. */
export const NO_TRACE = JSON.stringify({ question: '', searches: [], calls: [], shortened: true })
const NO_FOLLOWUPS = '[]'

/** Messages that one step removes. D1 runs one query at a time, so a long one delays everybody. */
export const HISTORY_STEP = 500

/** Removes some messages of a deleted history collection. @returns how many; fewer than a step at the end */
export async function deleteSomeOfHistory(db: Database, historyId: string): Promise<number> {
  const some = sql`SELECT some.document_id FROM ${messages} some WHERE some.history_id = ${historyId}
    ORDER BY some.document_id LIMIT ${HISTORY_STEP}`
  const going = sql`${messages.historyId} = ${historyId} AND ${messages.documentId} IN (${some})`
  const [, , removed] = await db.batch(removal(db, going))
  return removed.meta.changes
}

/** Removes expired messages, by their documents' ids. */
export async function deleteMessages(db: Database, historyId: string, documentIds: string[]): Promise<void> {
  await db.batch(removal(db, named(historyId, documentIds)))
}
