/** Rows of history: messages, their expiry, and conversations as memories. */
import sql, { empty, raw, type Sql } from 'sql-template-tag'
import { all, allOf, batch, columnOf, type Database, first, isIn, run, select, sets } from './client'
import { areOf, type ConversationRow, isAlive, type Of } from './conversations'
import { conversationModels, conversations, messages, type RowOf, type turns } from './schema'

// =============================================================================
// Rows of history. Every write is idempotent, because the outbox of a history collection may send it twice.

export type MessageRow = RowOf<typeof messages>

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
  const write = sql`
    INSERT INTO messages (history_id, document_id, conversation_id, model_id, role, message, timestamp)
    SELECT ${historyId}, value->>'documentId', value->>'conversationId', value->>'modelId', value->>'role',
      value->>'message', value->>'timestamp'
    FROM json_each(${JSON.stringify(rows)}) WHERE true
    ON CONFLICT (history_id, document_id) DO UPDATE SET conversation_id = excluded.conversation_id,
      model_id = excluded.model_id, role = excluded.role, message = excluded.message, timestamp = excluded.timestamp`
  // Most writes remove nothing, and a turn waits for this one.
  if (removed.length + replaced.length === 0) return void (await run(db, write))
  const going = named(historyId, removed)
  await batch(db, [
    write,
    ...(replaced.length > 0 ? [sql`DELETE FROM messages WHERE ${named(historyId, replaced)}`] : []),
    ...(removed.length > 0 ? [withoutTraces(going), withoutVersions(going), ...removal(going)] : []),
  ])
}

/** Selects messages by their documents' ids. */
const named = (historyId: string, documentIds: string[]): Sql =>
  sql`messages.history_id = ${historyId} AND ${isIn('messages.document_id', documentIds)}`

/**
 * Removes messages and the records of their turns, which quote them. A conversation without messages gets
 * `expires_at` 0, which hides it until the sweep erases it.
 *
 * Messages identify their turn only by its second. Another turn in the same second loses its record too, which is the
 * safe mistake.
 */
const removal = (going: Sql): Sql[] => [
  sql`DELETE FROM turns WHERE (conversation_id, created_at / 1000) IN
    (SELECT conversation_id, timestamp FROM messages WHERE ${going})`,
  sql`UPDATE conversations SET expires_at = 0 WHERE id IN ${conversationsOf(going)}
    AND NOT EXISTS (SELECT 1 FROM messages WHERE conversation_id = conversations.id AND NOT (${going}))`,
  sql`DELETE FROM messages WHERE ${going}`,
]

const conversationsOf = (going: Sql): Sql => sql`(SELECT conversation_id FROM messages WHERE ${going})`

/**
 * When messages are deleted on purpose, the traces and suggestions of later turns are removed too, since they may
 * quote them.
 */
const withoutTraces = (going: Sql): Sql =>
  sql`UPDATE turns SET trace = ${NO_TRACE}, followups = '[]' WHERE conversation_id IN ${conversationsOf(going)}`

/** Nor do versions stay that others replaced: the question that was deleted may be one of them in other words. */
const withoutVersions = (going: Sql): Sql =>
  sql`DELETE FROM turns WHERE replaced_by IS NOT NULL AND conversation_id IN ${conversationsOf(going)}`

/** Stands in for a trace that was removed. */
export const NO_TRACE = JSON.stringify({ question: '', searches: [], calls: [], shortened: true })

/** Messages that one step removes. D1 runs one query at a time, so a long one delays everybody. */
export const HISTORY_STEP = 500

/** Removes some messages of a deleted history collection. @returns how many; fewer than a step at the end */
export async function deleteSomeOfHistory(db: Database, historyId: string): Promise<number> {
  const some = sql`SELECT some.document_id FROM messages some WHERE some.history_id = ${historyId}
    ORDER BY some.document_id LIMIT ${HISTORY_STEP}`
  const going = sql`messages.history_id = ${historyId} AND messages.document_id IN (${some})`
  const [, , removed] = await batch(db, removal(going))
  return removed!.meta.changes
}

/** Removes expired messages, by their documents' ids. */
export async function deleteMessages(db: Database, historyId: string, documentIds: string[]): Promise<void> {
  await batch(db, removal(named(historyId, documentIds)))
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
  all(
    db,
    sql`${select(conversationModels, 'id', 'ttl')} WHERE id > ${after}
      AND EXISTS (SELECT 1 FROM messages WHERE model_id = conversation_models.id AND timestamp < ${now} - ttl)
      ORDER BY id LIMIT ${limit}`,
  )

/** A model's messages from before a time (unix seconds), oldest first. */
export const expiredMessages = (
  db: Database,
  modelId: string,
  before: number,
  limit: number,
): Promise<ExpiredMessage[]> =>
  all(
    db,
    sql`${select(messages, 'historyId', 'documentId')} WHERE model_id = ${modelId} AND timestamp < ${before}
      ORDER BY timestamp LIMIT ${limit}`,
  )

/** How long messages of a deleted model may still arrive: from running turns, and after an outage of D1. */
const ON_THEIR_WAY_S = 86_400

/** Deletes the rows of models that were deleted a while ago and have no messages left. @param now unix seconds */
export async function forgetDeletedModels(db: Database, now: number): Promise<void> {
  await run(
    db,
    sql`DELETE FROM conversation_models WHERE deleted_at < ${now - ON_THEIR_WAY_S}
      AND NOT EXISTS (SELECT 1 FROM messages WHERE model_id = conversation_models.id)`,
  )
}

// =============================================================================
// Conversations as OpenSearch's memories: numbered pages, and the details of messages.

export type MessageTurn = Pick<
  RowOf<typeof turns>,
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
): Promise<ConversationRow[]> =>
  all(
    db,
    sql`${select(conversations)} WHERE ${allOf(...areOf(whose), isAlive(now))}
      ORDER BY ${raw(columnOf(by))} DESC, rowid DESC LIMIT ${limit} OFFSET ${offset}`,
  )

const MESSAGES =
  raw(`SELECT conversation_id AS conversationId, turn, question, answer, created_at AS createdAt,
  json_extract(trace, '$.message') AS more, json_extract(trace, '$.traces') AS traces FROM turns`)

/** Turns of a conversation by their numbers. @param order of the numbers */
export const pageOfTurns = (
  db: Database,
  conversationId: string,
  order: 'asc' | 'desc',
  { limit, offset, now }: Page,
): Promise<MessageTurn[]> =>
  all(
    db,
    sql`${MESSAGES} WHERE ${areListed(conversationId, now)}
      ORDER BY turn ${raw(order)} LIMIT ${limit} OFFSET ${offset}`,
  )

/** The turns of a conversation that have not expired, without versions that others replaced. */
const areListed = (conversationId: string, now: number): Sql =>
  sql`conversation_id = ${conversationId} AND expires_at > ${now} AND replaced_by IS NULL`

export const findMessageTurn = (
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<MessageTurn | undefined> =>
  first(
    db,
    sql`${MESSAGES} WHERE conversation_id = ${conversationId} AND turn = ${turn} AND expires_at > ${now}`,
  )

/**
 * The first messages of a client's transcript, from before the first turn. Oldest first,
 * timestamps in seconds.
 */
export const messagesBeforeTurns = (
  db: Database,
  conversationId: string,
  most: number,
): Promise<Pick<MessageRow, 'role' | 'message' | 'timestamp'>[]> =>
  all(
    db,
    sql`${select(messages, 'role', 'message', 'timestamp')} WHERE conversation_id = ${conversationId}
      AND timestamp < (SELECT created_at / 1000 FROM turns WHERE conversation_id = ${conversationId}
        ORDER BY turn LIMIT 1)
      ORDER BY timestamp, rowid LIMIT ${most}`,
  )

/** How many turns a conversation has that have not expired. */
export async function countTurns(db: Database, conversationId: string, now: number): Promise<number> {
  const row = await first<{ many: number }>(
    db,
    sql`SELECT count(*) AS many FROM turns WHERE ${areListed(conversationId, now)}`,
  )
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
  const changes = sets<typeof conversations>({
    details: sql`json_set(json_patch(coalesce(details, '{}'), ${JSON.stringify(patch)}), '$.version',
      coalesce(json_extract(details, '$.version'), 1) + 1)`,
    updatedAt: now,
    // The latest name wins, whoever set it.
    ...(title !== undefined && { title, name: null }),
  })
  const row = await first<{ details: string }>(
    db,
    sql`UPDATE conversations SET ${changes} WHERE id = ${id} RETURNING details`,
  )
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
  const message = sql`json_patch(coalesce(json_extract(trace, '$.message'), '{}'), ${JSON.stringify(patch)})`
  const version = sql`coalesce(json_extract(trace, '$.message.version'), 1) + 1`
  const row = await first<{ version: number }>(
    db,
    // Citations point to places in the old text.
    sql`UPDATE turns SET trace = json_set(trace, '$.message', json(json_set(${message}, '$.version', ${version})))
      ${answer === undefined ? empty : sql`, answer = ${answer}, citations = '[]'`}
      WHERE conversation_id = ${conversationId} AND turn = ${turn}
      RETURNING json_extract(trace, '$.message.version') AS version`,
  )
  return row?.version ?? 1
}

/** Adds a trace to a turn's message, in one statement. @returns its place; undefined if there is no such turn */
export async function addTrace(
  db: Database,
  conversationId: string,
  turn: number,
  trace: unknown,
): Promise<number | undefined> {
  const row = await first<{ many: number }>(
    db,
    sql`UPDATE turns SET trace = json_set(trace, '$.traces', json_insert(
        coalesce(json_extract(trace, '$.traces'), json('[]')), '$[#]', json(${JSON.stringify(trace)})))
      WHERE conversation_id = ${conversationId} AND turn = ${turn}
      RETURNING json_array_length(trace, '$.traces') AS many`,
  )
  return row === undefined ? undefined : row.many - 1
}

/** Whether there is any conversation, or any turn, of any owner. */
export const isAny = async (db: Database, what: 'conversation' | 'turn'): Promise<boolean> =>
  (await first(db, raw(`SELECT 1 FROM ${what}s LIMIT 1`))) !== undefined
