/**
 * Rows of finished turns, written once each together with what they add: the conversation's row and the day's
 * usage.
 */
import { and, asc, desc, eq, gt, lt, lte, sql } from 'drizzle-orm'
import type { Database } from './client'
import { conversations, turns, usage } from './schema'

export type TurnRow = typeof turns.$inferSelect

export interface TurnRecord {
  /** the conversation; how many turns it has is counted here */
  conversation: Omit<typeof conversations.$inferSelect, 'turns'>
  turn: TurnRow
  usage: Omit<typeof usage.$inferSelect, 'turns'>
}

/**
 * Writes a turn down, as one transaction. May be repeated: a turn that is there already adds nothing.
 *
 * The usage is counted by the statement that follows the turn's insertion, if and only if that one inserted.
 */
export async function recordTurn(
  db: Database,
  { conversation, turn, usage: spent }: TurnRecord,
): Promise<void> {
  const { id, expiresAt, updatedAt, ...begun } = conversation
  const many = sql`(SELECT count(*) FROM ${turns} WHERE ${turns.conversationId} = ${id})`
  await db.batch([
    db.insert(turns).values(turn).onConflictDoNothing(),
    db
      .insert(usage)
      .select(
        sql`SELECT ${spent.day}, ${spent.owner}, ${spent.modelId}, 1, ${spent.inputTokens}, ${spent.outputTokens}
          WHERE changes() = 1`,
      )
      .onConflictDoUpdate({
        target: [usage.day, usage.owner, usage.modelId],
        set: {
          turns: sql`${usage.turns} + 1`,
          inputTokens: sql`${usage.inputTokens} + excluded.input_tokens`,
          outputTokens: sql`${usage.outputTokens} + excluded.output_tokens`,
        },
      }),
    db
      .insert(conversations)
      .values({ id, ...begun, turns: many, updatedAt, expiresAt })
      .onConflictDoUpdate({
        target: conversations.id,
        set: {
          turns: many,
          modelId: begun.modelId,
          updatedAt: sql`max(${conversations.updatedAt}, excluded.updated_at)`,
          expiresAt: sql`max(${conversations.expiresAt}, excluded.expires_at)`,
        },
      }),
  ])
}

/**
 * Some turns of a conversation that have not expired, the latest first.
 * @param before a turn's number: only earlier ones @param now milliseconds
 */
export const latestTurns = (
  db: Database,
  conversationId: string,
  { before, limit, now }: { before?: number; limit: number; now: number },
): Promise<TurnRow[]> =>
  db
    .select()
    .from(turns)
    .where(
      and(
        eq(turns.conversationId, conversationId),
        gt(turns.expiresAt, now),
        before === undefined ? undefined : lt(turns.turn, before),
      ),
    )
    .orderBy(desc(turns.turn))
    .limit(limit)

/** One turn that has not expired. @param now milliseconds */
export async function findTurn(
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<TurnRow | undefined> {
  const [row] = await db
    .select()
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn), gt(turns.expiresAt, now)))
  return row
}

/** Deletes some turns that have expired, the oldest first. @returns how many */
export async function deleteExpiredTurns(db: Database, now: number, limit: number): Promise<number> {
  const expired = db
    .select({ conversationId: turns.conversationId, turn: turns.turn })
    .from(turns)
    .where(lte(turns.expiresAt, now))
    .orderBy(asc(turns.expiresAt))
    .limit(limit)
  const { meta } = await db.delete(turns).where(sql`(${turns.conversationId}, ${turns.turn}) IN ${expired}`)
  return meta.changes
}
