/** Rows of conversations: filtered, listed, owned, and marked as erased. */
import { and, asc, between, desc, eq, gt, gte, inArray, lt, ne, type SQL, sql } from 'drizzle-orm'
import type { Database } from './client'
import { conversations, erasures, feedback, messages, turns } from './schema'

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

function filteredBy(filter: ConversationFilter): SQL | undefined {
  const { rating, giver, unanswered, failed, from, to, words } = filter
  return and(
    from === undefined ? undefined : gte(conversations.updatedAt, from),
    to === undefined ? undefined : lt(conversations.updatedAt, to),
    rating && sql`${conversations.id} IN ${rated(rating, giver)}`,
    // Word these two conditions exactly as the partial indexes do, or SQLite does not use those.
    unanswered
      ? sql`EXISTS (SELECT 1 FROM ${turns} WHERE ${turns.conversationId} = ${conversations.id}
          AND citations = '[]' AND timings <> '{}' AND replaced_by IS NULL)`
      : undefined,
    failed ? sql`failed_at IS NOT NULL` : undefined,
    words &&
      sql`${conversations.id} IN (SELECT ${turns.conversationId} FROM ${turns}
        WHERE ${matching(words)} AND replaced_by IS NULL)`,
  )
}

const rated = (rating: 'up' | 'down', giver: string | undefined): SQL =>
  sql`(SELECT ${feedback.conversationId} FROM ${feedback}
    WHERE ${and(eq(feedback.rating, rating), giver === undefined ? undefined : eq(feedback.giver, giver))})`

/** Row ids of turns grow with time, so the highest ones are the latest. */
function matching({ words, parts }: SearchedWords): SQL | undefined {
  const query = words.map((word) => `"${word}"*`).join(' ')
  return and(
    words.length === 0
      ? undefined
      : sql`turns.rowid IN (SELECT rowid FROM turns_text WHERE turns_text MATCH ${query}
          ORDER BY rowid DESC LIMIT ${MOST_MATCHES})`,
    parts.length === 0
      ? undefined
      : sql`turns.rowid IN (SELECT rowid FROM turns ORDER BY rowid DESC LIMIT ${MOST_READ})`,
    ...parts.map((part) => sql`instr(${turns.question} || char(10) || ${turns.answer}, ${part}) > 0`),
  )
}

// =============================================================================
// Rows of conversations, for listing and ownership.
//
// A conversation gets `expires_at` 0 if its messages were deleted through its history collection (messages.ts), or if it
// cannot be deleted completely now. From then on nobody finds it, and the sweep erases the rest.

export type ConversationRow = typeof conversations.$inferSelect

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
) =>
  db
    .select()
    .from(conversations)
    .where(
      and(
        areOf({ owner, userId, proof }),
        filteredBy(filter),
        // The plus stops SQLite from using this column's index. With that index it would sort all rows for one page.
        sql`+${conversations.expiresAt} > ${now}`,
        after && sql`(${conversations.updatedAt}, ${conversations.id}) < (${after.updatedAt}, ${after.id})`,
      ),
    )
    .orderBy(
      // Few rows match these filters, and each filter has an index. So stop SQLite from walking all conversations.
      filter.words || filter.rating ? desc(sql`+${conversations.updatedAt}`) : desc(conversations.updatedAt),
      desc(conversations.id),
    )
    .limit(limit)

/** Whose conversations; absent: any. */
export interface Of {
  owner?: string | undefined
  userId?: string | undefined
  proof?: string | undefined
}

/** SQLite uses a partial index only for a query that repeats the index's condition. */
export const areOf = ({ owner, userId, proof }: Of) =>
  and(
    owner === undefined ? undefined : eq(conversations.owner, owner),
    userId === undefined ? undefined : eq(conversations.userId, userId),
    userId ? sql`${conversations.userId} <> ''` : undefined,
    proof === undefined ? undefined : eq(conversations.proof, proof),
    proof === undefined ? undefined : sql`${conversations.proof} <> ''`,
  )

interface ConversationQuery extends Of {
  after?: PageEnd
  limit: number
  now: number
  filter?: ConversationFilter
}

/** A conversation that has not expired. @param now milliseconds */
export async function findConversationRow(
  db: Database,
  id: string,
  now: number,
): Promise<ConversationRow | undefined> {
  const [row] = await db
    .select()
    .from(conversations)
    .where(and(eq(conversations.id, id), gt(conversations.expiresAt, now)))
  return row
}

/** Some conversations of a user, expired or not. @param of.owner undefined: whatever key began them */
export const conversationsOfUser = (
  db: Database,
  { owner, userId, proof }: Of,
  limit: number,
): Promise<Pick<ConversationRow, 'id' | 'historyId'>[]> =>
  db
    .select({ id: conversations.id, historyId: conversations.historyId })
    .from(conversations)
    .where(areOf({ owner, userId, proof }))
    .limit(limit)

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
  db
    .select({
      id: conversations.id,
      historyId: conversations.historyId,
      refilled: sql<number>`EXISTS (SELECT 1 FROM ${messages} WHERE ${messages.conversationId} = ${conversations.id})`,
    })
    .from(conversations)
    .where(and(eq(conversations.expiresAt, 0), gt(conversations.id, after)))
    .orderBy(asc(conversations.id))
    .limit(limit)

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
export function upsertConversation(db: Database, conversation: ConversationEntry) {
  const { id, createdAt, historyId, modelId, title, details, expiresAt } = conversation
  const many = sql`(SELECT count(*) FROM ${turns} WHERE ${turns.conversationId} = ${id} AND ${turns.replacedBy} IS NULL)`
  return [
    db.delete(conversations).where(and(eq(conversations.id, id), ne(conversations.createdAt, createdAt))),
    db
      .insert(conversations)
      .values({ ...conversation, turns: many })
      .onConflictDoUpdate({
        target: conversations.id,
        set: {
          historyId,
          modelId,
          title,
          ...(details !== undefined && { details }),
          turns: many,
          ...(conversation.failedAt !== undefined && {
            failedAt: sql`max(coalesce(${conversations.failedAt}, 0), excluded.failed_at)`,
          }),
          // A migration may have marked a conversation of an earlier version as proven. Keep that mark.
          ...(conversation.proof && { proof: sql`max(${conversations.proof}, excluded.proof)` }),
          updatedAt: sql`max(${conversations.updatedAt}, excluded.updated_at)`,
          // If it is about to be erased, a late write does not change that.
          expiresAt: sql`CASE WHEN ${conversations.expiresAt} = 0 THEN 0
            ELSE max(${conversations.expiresAt}, ${expiresAt}) END`,
        },
      }),
  ] as const
}

/** Gives a conversation a title that its turns do not change. A memory has it in its details too. */
export async function nameConversation(db: Database, id: string, name: string): Promise<void> {
  const details = sql`CASE WHEN ${conversations.details} IS NOT NULL THEN json_set(${conversations.details}, '$.name', ${name}) END`
  await db.update(conversations).set({ name, details }).where(eq(conversations.id, id))
}

/**
 * Records that a conversation has begun. May be repeated.
 * @returns whether it must be erased because its user's conversations were, after it began
 */
export async function recordBeginning(db: Database, conversation: ConversationEntry): Promise<boolean> {
  const marks = await marksFor(conversation)
  const [erasures] = await db.batch([
    erasureSince(db, conversation.createdAt, marks),
    ...upsertConversation(db, conversation),
  ])
  return erasures.length > 0
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
  await db
    .update(conversations)
    .set({ failedAt: sql`max(coalesce(${conversations.failedAt}, 0), ${failedAt})` })
    .where(and(eq(conversations.id, id), eq(conversations.createdAt, createdAt)))
}

/** Hides a conversation until its rows can be removed. */
export async function hideConversation(db: Database, id: string): Promise<void> {
  await db.update(conversations).set({ expiresAt: 0 }).where(eq(conversations.id, id))
}

/** Removes the rows of a conversation and its turns. Its history collection removes the messages. */
export async function deleteConversationRows(db: Database, id: string): Promise<void> {
  await db.batch([
    db.delete(turns).where(eq(turns.conversationId, id)),
    db.delete(conversations).where(eq(conversations.id, id)),
  ])
}

/** Deletes some expired conversations. Their objects expire by their own alarms. @returns how many */
export async function deleteExpiredConversations(db: Database, now: number, limit: number): Promise<number> {
  const expired = db
    .select({ id: conversations.id })
    .from(conversations)
    .where(between(conversations.expiresAt, 1, now))
    .limit(limit)
  const { meta } = await db.delete(conversations).where(sql`${conversations.id} IN ${expired}`)
  return meta.changes
}

// =============================================================================
// Marks that a user's conversations were erased, for conversations that D1 does not know of yet. When D1 learns of
// one, it reports the mark, and the conversation is erased too. A deletion leaves the mark first and looks for
// conversations afterwards, so each of them is either found or finds the mark.
//
// A mark contains a digest of the user's name, not the name.

/** How long a record may take to reach D1 and still find the mark, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

type Row = typeof conversations.$inferSelect

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
  await db
    .insert(erasures)
    .values({ id: await markId(erased), at: now })
    .onConflictDoUpdate({ target: erasures.id, set: { at: sql`max(${erasures.at}, excluded.at)` } })
}

/** Ids of the marks that concern a conversation. */
export const marksFor = ({
  userId,
  owner,
  proof,
}: Pick<Row, 'userId' | 'owner'> & { proof?: string }): Promise<string[]> =>
  Promise.all([
    markId({ userId }),
    markId({ userId, owner }),
    ...(proof ? [markId({ userId, owner, proof })] : []),
  ])

/**
 * Whether a conversation has to be erased. Belongs in the transaction that writes it. @param marks ids from
 * `marksFor`
 */
export const erasureSince = (db: Database, createdAt: number, marks: string[]) =>
  db
    .select({ id: erasures.id })
    .from(erasures)
    .where(and(inArray(erasures.id, marks), gte(erasures.at, createdAt)))

/** Deletes some marks that are too old to concern any record. @param now milliseconds @returns how many */
export async function deleteOldMarks(db: Database, now: number, limit: number): Promise<number> {
  const old = db
    .select({ id: erasures.id })
    .from(erasures)
    .where(lt(erasures.at, now - KEPT_MS))
    .limit(limit)
  const { meta } = await db.delete(erasures).where(inArray(erasures.id, old))
  return meta.changes
}
