/** Rows of history: messages, their expiry, and conversations as memories. */
import { and, asc, count, desc, eq, gt, isNull, lt, type SQL, sql } from 'drizzle-orm'
import type { Database } from './client'
import { areOf, type Of } from './conversations'
import { conversationModels, conversations, messages, type turns as Turns, turns } from './schema'

// =============================================================================
// Rows of history. Every write is idempotent, because the outbox of a history collection may send it twice.

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

// =============================================================================
// The queries of the sweep of expired history. Each is bounded and uses an index.

export interface ExpiryRule {
  id: string
  /** seconds */
  ttl: number
}

export interface ExpiredMessage {
  historyId: string
  documentId: string
}

/**
 * A page of the models with expired messages, deleted models included, by id. One query finds the few with work among
 * any number of models.
 * @param now unix seconds
 */
export const expiryRules = (db: Database, now: number, after: string, limit: number): Promise<ExpiryRule[]> =>
  db
    .select({ id: conversationModels.id, ttl: conversationModels.ttl })
    .from(conversationModels)
    .where(
      and(
        gt(conversationModels.id, after),
        sql`EXISTS (SELECT 1 FROM ${messages} WHERE ${messages.modelId} = ${conversationModels.id}
          AND ${messages.timestamp} < ${now} - ${conversationModels.ttl})`,
      ),
    )
    .orderBy(asc(conversationModels.id))
    .limit(limit)

/** A model's messages from before a time (unix seconds), oldest first. */
export const expiredMessages = (
  db: Database,
  modelId: string,
  before: number,
  limit: number,
): Promise<ExpiredMessage[]> =>
  db
    .select({ historyId: messages.historyId, documentId: messages.documentId })
    .from(messages)
    .where(and(eq(messages.modelId, modelId), lt(messages.timestamp, before)))
    .orderBy(asc(messages.timestamp))
    .limit(limit)

/** How long messages of a deleted model may still arrive: from running turns, and after an outage of D1. */
const ON_THEIR_WAY_S = 86_400

/** Deletes the rows of models that were deleted a while ago and have no messages left. @param now unix seconds */
export async function forgetDeletedModels(db: Database, now: number): Promise<void> {
  await db
    .delete(conversationModels)
    .where(
      and(
        lt(conversationModels.deletedAt, now - ON_THEIR_WAY_S),
        sql`NOT EXISTS (SELECT 1 FROM ${messages} WHERE ${messages.modelId} = ${conversationModels.id})`,
      ),
    )
}

// =============================================================================
// Conversations as OpenSearch's memories: numbered pages, and the details of messages.

export type MessageTurn = Pick<
  typeof Turns.$inferSelect,
  'conversationId' | 'turn' | 'question' | 'answer' | 'createdAt'
> & {
  /** JSON of MessageDetails; null: none */
  more: string | null
  /** JSON, in the order in which they were added; null: none */
  traces: string | null
}

interface Page {
  limit: number
  offset: number
  /** milliseconds */
  now: number
}

/** @param by the column that the list is ordered by, latest first */
export const pageOfConversations = (
  db: Database,
  whose: Of,
  by: 'createdAt' | 'updatedAt',
  { limit, offset, now }: Page,
) =>
  db
    .select()
    .from(conversations)
    .where(
      and(
        areOf(whose),
        // The plus stops SQLite from using this column's index. With that index it would sort all rows for one page.
        sql`+${conversations.expiresAt} > ${now}`,
      ),
    )
    .orderBy(desc(conversations[by]), desc(sql`rowid`))
    .limit(limit)
    .offset(offset)

const MESSAGE = {
  conversationId: turns.conversationId,
  turn: turns.turn,
  question: turns.question,
  answer: turns.answer,
  createdAt: turns.createdAt,
  more: sql<string | null>`json_extract(${turns.trace}, '$.message')`,
  traces: sql<string | null>`json_extract(${turns.trace}, '$.traces')`,
}

/** Turns of a conversation by their numbers. @param order of the numbers */
export const pageOfTurns = (
  db: Database,
  conversationId: string,
  order: 'asc' | 'desc',
  { limit, offset, now }: Page,
) =>
  db
    .select(MESSAGE)
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), gt(turns.expiresAt, now), isNull(turns.replacedBy)))
    .orderBy(order === 'asc' ? asc(turns.turn) : desc(turns.turn))
    .limit(limit)
    .offset(offset)

export async function findMessageTurn(
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<MessageTurn | undefined> {
  const [row] = await db
    .select(MESSAGE)
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn), gt(turns.expiresAt, now)))
  return row
}

/**
 * The first messages of a client's transcript, from before the first turn. Oldest first,
 * timestamps in seconds.
 */
export const messagesBeforeTurns = (db: Database, conversationId: string, most: number) => {
  const begun = sql`(SELECT ${turns.createdAt} / 1000 FROM ${turns} WHERE ${turns.conversationId} = ${conversationId}
    ORDER BY ${turns.turn} LIMIT 1)`
  return db
    .select({ role: messages.role, message: messages.message, timestamp: messages.timestamp })
    .from(messages)
    .where(and(eq(messages.conversationId, conversationId), lt(messages.timestamp, begun)))
    .orderBy(asc(messages.timestamp), asc(sql`rowid`))
    .limit(most)
}

/** How many turns a conversation has that have not expired. */
export async function countTurns(db: Database, conversationId: string, now: number): Promise<number> {
  const [row] = await db
    .select({ many: count() })
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), gt(turns.expiresAt, now), isNull(turns.replacedBy)))
  return row!.many
}

/** Merges a patch into a conversation's details, key by key. @returns the new JSON */
export async function mergeDetails(
  db: Database,
  id: string,
  patch: unknown,
  title: string | undefined,
  now: number,
) {
  const [row] = await db
    .update(conversations)
    .set({
      details: sql`json_set(json_patch(coalesce(${conversations.details}, '{}'), ${JSON.stringify(patch)}), '$.version',
        coalesce(json_extract(${conversations.details}, '$.version'), 1) + 1)`,
      updatedAt: now,
      // The latest name wins, whoever set it.
      ...(title !== undefined && { title, name: null }),
    })
    .where(eq(conversations.id, id))
    .returning({ details: conversations.details })
  return row?.details ?? '{}'
}

/** Merges a patch into the details of a turn's message, key by key. @returns the new version */
export async function mergeMessage(
  db: Database,
  conversationId: string,
  turn: number,
  patch: unknown,
  answer: string | undefined,
): Promise<number> {
  const message = sql`json_patch(coalesce(json_extract(${turns.trace}, '$.message'), '{}'), ${JSON.stringify(patch)})`
  const version = sql`coalesce(json_extract(${turns.trace}, '$.message.version'), 1) + 1`
  const [row] = await db
    .update(turns)
    .set({
      trace: sql`json_set(${turns.trace}, '$.message', json(json_set(${message}, '$.version', ${version})))`,
      // Citations point to places in the old text.
      ...(answer !== undefined && { answer, citations: '[]' }),
    })
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn)))
    .returning({ version: sql<number>`json_extract(${turns.trace}, '$.message.version')` })
  return row?.version ?? 1
}

/** Adds a trace to a turn's message, in one statement. @returns its place; undefined if there is no such turn */
export async function addTrace(
  db: Database,
  conversationId: string,
  turn: number,
  trace: unknown,
): Promise<number | undefined> {
  const list = sql`coalesce(json_extract(${turns.trace}, '$.traces'), json('[]'))`
  const [row] = await db
    .update(turns)
    .set({
      trace: sql`json_set(${turns.trace}, '$.traces', json_insert(${list}, '$[#]', json(${JSON.stringify(trace)})))`,
    })
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn)))
    .returning({ many: sql<number>`json_array_length(${turns.trace}, '$.traces')` })
  return row === undefined ? undefined : row.many - 1
}

/** Whether there is any conversation, or any turn, of any owner. */
export async function isAny(db: Database, what: 'conversation' | 'turn'): Promise<boolean> {
  const table = what === 'turn' ? turns : conversations
  return (await db.select({ one: sql`1` }).from(table).limit(1)).length > 0
}
