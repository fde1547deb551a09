/**
 * Rows of conversations: what there is to list, and whose it is.
 *
 * A conversation whose messages were deleted through its history collection gets `expires_at` 0 (messages.ts), and so
 * does one that cannot be deleted whole now: from then on it is not found, and the sweep erases what is left of it.
 */
import { and, asc, between, desc, eq, gt, sql } from 'drizzle-orm'
import type { Database } from './client'
import { type ConversationFilter, filteredBy } from './conversation-filter'
import { erasureSince, marksFor } from './erasures'
import { conversations, messages, turns } from './schema'

export type ConversationRow = typeof conversations.$inferSelect

/** Where a page of conversations ended. */
export interface PageEnd {
  updatedAt: number
  id: string
}

/**
 * Conversations that have not expired, the last used first.
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
        // The plus keeps SQLite from the index of this column, or it would sort all there is for one page.
        sql`+${conversations.expiresAt} > ${now}`,
        after && sql`(${conversations.updatedAt}, ${conversations.id}) < (${after.updatedAt}, ${after.id})`,
      ),
    )
    .orderBy(
      // Few rows fit these filters, and each index on it leads to them. So SQLite is kept from walking all conversations.
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

/** SQLite uses an index with a condition of its own only for a query that states the same condition. */
export const areOf = ({ owner, userId, proof }: Of) =>
  and(
    owner === undefined ? undefined : eq(conversations.owner, owner),
    userId === undefined ? undefined : eq(conversations.userId, userId),
    userId ? sql`${conversations.userId} <> ''` : undefined,
    proof === undefined ? undefined : eq(conversations.proof, proof),
    proof === undefined ? undefined : sql`${conversations.proof} <> ''`,
  )

export interface ConversationQuery extends Of {
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
  /** 1 where messages of its id have come in since, as when a backup is put back */
  refilled: number
}

/** Some conversations whose messages somebody has deleted, in the order of their ids. */
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

/** A conversation as its object tells of it; how many turns it has is counted here. */
export type ConversationEntry = Omit<ConversationRow, 'turns' | 'proof' | 'name' | 'details' | 'failedAt'> & {
  proof?: string
  details?: string
  /** absent: leaves what is known */
  failedAt?: number
}

/** Writes a conversation's row, or what has changed in it: a part of the transactions that tell of it. */
export function upsertConversation(db: Database, conversation: ConversationEntry) {
  const { id, expiresAt } = conversation
  const many = sql`(SELECT count(*) FROM ${turns} WHERE ${turns.conversationId} = ${id})`
  const same = sql`${conversations.createdAt} = excluded.created_at`
  return db
    .insert(conversations)
    .values({ ...conversation, turns: many })
    .onConflictDoUpdate({
      target: conversations.id,
      set: {
        ...conversation,
        turns: many,
        // An id that begins anew has no name and no failure yet.
        failedAt: sql`CASE WHEN ${same} THEN max(coalesce(${conversations.failedAt}, excluded.failed_at),
          coalesce(excluded.failed_at, ${conversations.failedAt})) ELSE excluded.failed_at END`,
        name: sql`CASE WHEN ${same} THEN ${conversations.name} END`,
        // What an earlier version began without a proof, and a migration knows to be proven, stays so.
        proof: sql`CASE WHEN ${same} THEN max(${conversations.proof}, excluded.proof) ELSE excluded.proof END`,
        updatedAt: sql`CASE WHEN ${same} THEN max(${conversations.updatedAt}, excluded.updated_at)
          ELSE excluded.updated_at END`,
        // One that is about to be erased stays so, whatever arrives late.
        expiresAt: sql`CASE WHEN ${same} AND ${conversations.expiresAt} = 0 THEN 0
          WHEN ${same} THEN max(${conversations.expiresAt}, ${expiresAt}) ELSE ${expiresAt} END`,
      },
    })
}

/** Gives a conversation a title of its own, which its turns do not change. A memory has it in what it says of itself. */
export async function nameConversation(db: Database, id: string, name: string): Promise<void> {
  const details = sql`CASE WHEN ${conversations.details} IS NOT NULL THEN json_set(${conversations.details}, '$.name', ${name}) END`
  await db.update(conversations).set({ name, details }).where(eq(conversations.id, id))
}

/**
 * Writes down that a conversation has begun. May be repeated.
 * @returns whether it has to go: its user's conversations were erased since (erasures.ts)
 */
export async function recordBeginning(db: Database, conversation: ConversationEntry): Promise<boolean> {
  const marks = await marksFor(conversation)
  const [erasures] = await db.batch([
    erasureSince(db, conversation.createdAt, marks),
    upsertConversation(db, conversation),
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

/** Has a conversation not found any more, until its rows can be removed. */
export async function hideConversation(db: Database, id: string): Promise<void> {
  await db.update(conversations).set({ expiresAt: 0 }).where(eq(conversations.id, id))
}

/** Removes a conversation's row and those of its turns. Its messages are its history collection's to remove. */
export async function deleteConversationRows(db: Database, id: string): Promise<void> {
  await db.batch([
    db.delete(turns).where(eq(turns.conversationId, id)),
    db.delete(conversations).where(eq(conversations.id, id)),
  ])
}

/** Deletes some conversations that have expired: their objects forget them by themselves. @returns how many */
export async function deleteExpiredConversations(db: Database, now: number, limit: number): Promise<number> {
  const expired = db
    .select({ id: conversations.id })
    .from(conversations)
    .where(between(conversations.expiresAt, 1, now))
    .limit(limit)
  const { meta } = await db.delete(conversations).where(sql`${conversations.id} IN ${expired}`)
  return meta.changes
}
