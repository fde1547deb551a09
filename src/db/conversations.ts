/** Rows of conversations and of their messages: filtered, listed, owned, marked as erased, expired. */
import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import { all, allOf, batch, columnOf, type Database, first, insert, isIn, run, select, sets } from './client'
import { conversationModels, conversations, erasures, messages, type RowOf, type turns } from './schema'

// =============================================================================
// Filters for the list of conversations, besides the owner.

export interface ConversationFilter {
  /** one of its answers has this rating */
  rating?: 'up' | 'down' | undefined
  /** count only this giver's ratings; absent: everybody's */
  giver?: string | undefined
  /** one of its answers cites nothing */
  unanswered?: boolean | undefined
  /** one of its turns failed */
  failed?: boolean | undefined
  /** last used at this moment or later, in milliseconds */
  from?: number | undefined
  /** last used before this moment, in milliseconds */
  to?: number | undefined
  /** words of one of its questions and its answer */
  words?: SearchedWords | undefined
}

interface SearchedWords {
  /** words that a question or its answer has to contain, or begin with */
  words: string[]
  /**
   * runs of text in a script without spaces. The index treats such a run as one word, so these may occur anywhere
   * inside it
   */
  parts: string[]
}

/**
 * A search looks at this many matching turns, the latest ones. Without a limit, a common word would match every turn.
 * In 100,000 turns, a rare word takes 0.2 ms and one with 5,000 matches 30 ms. Reading all texts takes 400 ms and as
 * many rows as there are.
 */
const MOST_MATCHES = 5_000
/** A search for parts of words reads the texts of this many turns, the latest ones. Each takes 4 microseconds. */
const MOST_READ = 20_000

const filteredBy = ({
  rating,
  giver,
  unanswered,
  failed,
  from,
  to,
  words,
}: ConversationFilter): (Sql | undefined)[] => [
  from === undefined ? undefined : sql`updated_at >= ${from}`,
  to === undefined ? undefined : sql`updated_at < ${to}`,
  rating &&
    sql`id IN (SELECT conversation_id FROM feedback WHERE rating = ${rating}
      ${giver === undefined ? empty : sql`AND giver = ${giver}`})`,
  // Word these two conditions exactly as the partial indexes do, or SQLite does not use those. An answer with `parts` called tools.
  unanswered
    ? sql`EXISTS (SELECT 1 FROM turns WHERE turns.conversation_id = conversations.id
        AND citations = '[]' AND timings <> '{}' AND replaced_by IS NULL AND parts IS NULL)`
    : undefined,
  failed ? sql`failed_at IS NOT NULL` : undefined,
  words && sql`id IN (SELECT conversation_id FROM turns WHERE ${matching(words)} replaced_by IS NULL)`,
]

/** Row ids of turns grow with time, so the highest ones are the latest. @returns conditions, with an `AND` after each */
function matching({ words, parts }: SearchedWords): Sql {
  const query = words.map((word) => `"${word}"*`).join(' ')
  const ofWords = sql`turns.rowid IN (SELECT rowid FROM turns_text WHERE turns_text MATCH ${query}
    ORDER BY rowid DESC LIMIT ${MOST_MATCHES}) AND`
  const ofLatest = sql`turns.rowid IN (SELECT rowid FROM turns ORDER BY rowid DESC LIMIT ${MOST_READ}) AND`
  return join(
    [
      words.length === 0 ? empty : ofWords,
      parts.length === 0 ? empty : ofLatest,
      ...parts.map((part) => sql`instr(question || char(10) || answer, ${part}) > 0 AND`),
    ],
    ' ',
  )
}

// =============================================================================
// Rows of conversations, for listing and ownership.
//
// A conversation gets `expires_at` 0 if its messages were deleted through its history collection, or if it
// cannot be deleted completely now. From then on nobody finds it, and the sweep erases the rest.

export type ConversationRow = RowOf<typeof conversations>

/** Where a page of conversations ended. */
export interface PageEnd {
  updatedAt: number
  id: string
}

/**
 * Conversations that have not expired, most recently used first.
 * @param owner undefined: any @param userId undefined: any @param proof undefined: any @param now milliseconds
 */
export const listConversationRows = (
  db: Database,
  { owner, userId, proof, after, limit, now, filter = {} }: ConversationQuery,
): Promise<ConversationRow[]> => {
  const conditions = allOf(
    ...areOf({ owner, userId, proof }),
    ...filteredBy(filter),
    isAlive(now),
    after && sql`(updated_at, id) < (${after.updatedAt}, ${after.id})`,
  )
  // Few rows match these filters, and each filter has an index. So stop SQLite from walking all conversations.
  const order = raw(filter.words || filter.rating ? '+updated_at' : 'updated_at')
  return all(
    db,
    sql`${select(conversations)} WHERE ${conditions} ORDER BY ${order} DESC, id DESC LIMIT ${limit}`,
  )
}

/**
 * Conversations that have not expired. The plus stops SQLite from using this column's index. With that index it would sort all rows
 * for one page.
 */
export const isAlive = (now: number): Sql => sql`+expires_at > ${now}`

/** Whose conversations; absent: any. */
export interface Of {
  owner?: string | undefined
  userId?: string | undefined
  proof?: string | undefined
}

/** SQLite uses a partial index only for a query that repeats the index's condition. */
export const areOf = ({ owner, userId, proof }: Of): (Sql | undefined)[] => [
  owner === undefined ? undefined : sql`owner = ${owner}`,
  userId === undefined ? undefined : sql`user_id = ${userId}`,
  userId ? sql`user_id <> ''` : undefined,
  proof === undefined ? undefined : sql`proof = ${proof} AND proof <> ''`,
]

interface ConversationQuery extends Of {
  after?: PageEnd
  limit: number
  now: number
  filter?: ConversationFilter
}

/** A conversation that has not expired. @param now milliseconds */
export const findConversationRow = (
  db: Database,
  id: string,
  now: number,
): Promise<ConversationRow | undefined> =>
  first(db, sql`${select(conversations)} WHERE id = ${id} AND expires_at > ${now}`)

/** Some conversations of a user, expired or not. @param of.owner undefined: whatever key began them */
export const conversationsOfUser = (
  db: Database,
  whose: Of,
  limit: number,
): Promise<Pick<ConversationRow, 'id' | 'historyId'>[]> =>
  all(
    db,
    sql`${select(conversations, 'id', 'historyId')} WHERE ${allOf(sql`true`, ...areOf(whose))} LIMIT ${limit}`,
  )

export interface EmptiedConversation extends Pick<ConversationRow, 'id' | 'historyId'> {
  /** 1 if messages with its id have arrived since, for example from a restored backup */
  refilled: number
}

/** Some conversations whose messages somebody has deleted, by id. */
export const emptiedConversations = (
  db: Database,
  after: string,
  limit: number,
): Promise<EmptiedConversation[]> =>
  all(
    db,
    sql`SELECT id, history_id AS historyId,
      EXISTS (SELECT 1 FROM messages WHERE messages.conversation_id = conversations.id) AS refilled
      FROM conversations WHERE expires_at = 0 AND id > ${after} ORDER BY id LIMIT ${limit}`,
  )

/** A conversation as its object reports it. Its turns are counted here. */
export type ConversationEntry = Omit<ConversationRow, 'turns' | 'proof' | 'name' | 'details' | 'failedAt'> & {
  proof?: string
  details?: string
  /** absent: the stored value stays */
  failedAt?: number
}

/**
 * Inserts or updates a conversation's row, as a part of a transaction.
 *
 * The row of an earlier conversation with this id goes first. So the update needs to set only what a turn changes: SQLite
 * writes every index with a column that is set, even to the value that it has, and each is billed as a row.
 */
export function upsertConversation(conversation: ConversationEntry): Sql[] {
  const { id, createdAt, historyId, modelId, title, details, failedAt, proof, expiresAt } = conversation
  const turns = sql`(SELECT count(*) FROM turns WHERE conversation_id = ${id} AND replaced_by IS NULL)`
  const changes = sets<typeof conversations>({
    historyId,
    modelId,
    title,
    details,
    turns,
    failedAt: failedAt === undefined ? undefined : failedSince(failedAt),
    // A migration may have marked a conversation of an earlier version as proven. Keep that mark.
    proof: proof ? sql`max(proof, excluded.proof)` : undefined,
    updatedAt: sql`max(updated_at, excluded.updated_at)`,
    // If it is about to be erased, a late write does not change that.
    expiresAt: sql`CASE WHEN expires_at = 0 THEN 0 ELSE max(expires_at, ${expiresAt}) END`,
  })
  return [
    sql`DELETE FROM conversations WHERE id = ${id} AND created_at <> ${createdAt}`,
    sql`${insert(conversations, { ...conversation, turns })} ON CONFLICT (id) DO UPDATE SET ${changes}`,
  ]
}

const failedSince = (at: number): Sql => sql`max(coalesce(failed_at, 0), ${at})`

/** Gives a conversation a title that its turns do not change. A memory has it in its details too. */
export async function nameConversation(db: Database, id: string, name: string): Promise<void> {
  await run(
    db,
    sql`UPDATE conversations SET name = ${name},
      details = CASE WHEN details IS NOT NULL THEN json_set(details, '$.name', ${name}) END WHERE id = ${id}`,
  )
}

/**
 * Records that a conversation has begun. May be repeated.
 * @returns whether it must be erased because its user's conversations were, after it began
 */
export async function recordBeginning(db: Database, conversation: ConversationEntry): Promise<boolean> {
  const marks = await marksFor(conversation)
  const [erased] = await batch(db, [
    erasureSince(conversation.createdAt, marks),
    ...upsertConversation(conversation),
  ])
  return erased!.results.length > 0
}

/** A conversation with a turn that failed. Both times are in milliseconds since 1970. */
export interface FailedConversation {
  id: string
  /** tells it from an earlier conversation of this id, which was deleted */
  createdAt: number
  failedAt: number
}

/** Records that a turn failed, in a conversation that D1 already has. May be repeated. */
export async function recordFailure(
  db: Database,
  { id, createdAt, failedAt }: FailedConversation,
): Promise<void> {
  await run(
    db,
    sql`UPDATE conversations SET failed_at = ${failedSince(failedAt)} WHERE id = ${id} AND created_at = ${createdAt}`,
  )
}

/** Hides a conversation until its rows can be removed. */
export async function hideConversation(db: Database, id: string): Promise<void> {
  await batch(db, [
    sql`UPDATE conversations SET expires_at = 0 WHERE id = ${id}`,
    sql`DELETE FROM deliveries WHERE conversation_id = ${id}`,
  ])
}

/** Removes the rows of a conversation and its turns. Its history collection removes the messages. */
export async function deleteConversationRows(db: Database, id: string): Promise<void> {
  await batch(db, [
    sql`DELETE FROM turns WHERE conversation_id = ${id}`,
    sql`DELETE FROM conversations WHERE id = ${id}`,
    sql`DELETE FROM deliveries WHERE conversation_id = ${id}`,
  ])
}

/** Deletes some expired conversations. Their objects expire by their own alarms. @returns how many */
export const deleteExpiredConversations = (db: Database, now: number, limit: number): Promise<number> =>
  run(
    db,
    sql`DELETE FROM conversations WHERE id IN
      (SELECT id FROM conversations WHERE expires_at BETWEEN 1 AND ${now} LIMIT ${limit})`,
  )

// =============================================================================
// Marks that a user's conversations were erased, for conversations that D1 does not know of yet. When D1 learns of
// one, it reports the mark, and the conversation is erased too. A deletion leaves the mark first and looks for
// conversations afterwards, so each of them is either found or finds the mark.
//
// A mark contains a digest of the user's name, not the name.

/** How long a record may take to reach D1 and still find the mark, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

/**
 * Whose conversations were erased: a user's, with one key or any key, and only those that the user is proven to own.
 */
interface Erased {
  userId?: string | undefined
  owner?: string | undefined
  proof?: string | undefined
}

const encoder = new TextEncoder()

async function markId({ userId, owner, proof }: Erased): Promise<string> {
  const parts = [userId ?? null, owner ?? null, ...(proof ? [proof] : [])]
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(JSON.stringify(parts)))
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
}

/** Leaves a mark, and replaces an earlier one. @param now milliseconds */
export async function markErased(db: Database, erased: Erased, now: number): Promise<void> {
  const mark = insert(erasures, { id: await markId(erased), at: now })
  await run(db, sql`${mark} ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)`)
}

/** Ids of the marks that concern a conversation. */
export const marksFor = ({
  userId,
  owner,
  proof,
}: Pick<ConversationRow, 'userId' | 'owner'> & { proof?: string }): Promise<string[]> =>
  Promise.all([
    markId({ userId }),
    markId({ userId, owner }),
    ...(proof ? [markId({ userId, owner, proof })] : []),
  ])

/**
 * Whether a conversation has to be erased. Belongs in the transaction that writes it. @param marks ids from
 * `marksFor`
 */
export const erasureSince = (createdAt: number, marks: string[]): Sql =>
  sql`SELECT id FROM erasures WHERE ${isIn('id', marks)} AND at >= ${createdAt}`

/** Deletes some marks that are too old to concern any record. @param now milliseconds @returns how many */
export const deleteOldMarks = (db: Database, now: number, limit: number): Promise<number> =>
  run(
    db,
    sql`DELETE FROM erasures WHERE id IN (SELECT id FROM erasures WHERE at < ${now - KEPT_MS} LIMIT ${limit})`,
  )

// =============================================================================
// Rows of history. Every write is idempotent, because the outbox of a history collection may send it twice.

export type MessageRow = RowOf<typeof messages>

/** Changes to the messages of one history. */
interface MessageChanges {
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

interface ExpiredMessage {
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
  'conversationId' | 'turn' | 'question' | 'answer' | 'parts' | 'createdAt'
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
  raw(`SELECT conversation_id AS conversationId, turn, question, answer, parts, created_at AS createdAt,
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
