/** Rows of conversations: filtered, listed, owned, and marked as erased. */
import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import { all, allOf, batch, type Database, first, insert, isIn, run, select, sets } from './client'
import { conversations, erasures, type RowOf } from './schema'

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
  // Word these two conditions exactly as the partial indexes do, or SQLite does not use those.
  unanswered
    ? sql`EXISTS (SELECT 1 FROM turns WHERE turns.conversation_id = conversations.id
        AND citations = '[]' AND timings <> '{}' AND replaced_by IS NULL)`
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
// A conversation gets `expires_at` 0 if its messages were deleted through its history collection (messages.ts), or if it
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
  await run(db, sql`UPDATE conversations SET expires_at = 0 WHERE id = ${id}`)
}

/** Removes the rows of a conversation and its turns. Its history collection removes the messages. */
export async function deleteConversationRows(db: Database, id: string): Promise<void> {
  await batch(db, [
    sql`DELETE FROM turns WHERE conversation_id = ${id}`,
    sql`DELETE FROM conversations WHERE id = ${id}`,
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
