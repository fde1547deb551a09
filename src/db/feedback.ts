/** People's feedback on answers. The triggers of migration 0010 delete a row together with its turn. */
import { and, eq, sql } from 'drizzle-orm'
import type { Database } from './client'
import { feedback, turns } from './schema'

export type FeedbackRow = typeof feedback.$inferSelect

export type NewFeedback = Omit<FeedbackRow, 'createdAt' | 'updatedAt'>

/** The most rows for one turn. Anybody with a page's key can make up visitors, so there has to be a limit. */
export const MOST_GIVERS = 100

type Place = Pick<FeedbackRow, 'conversationId' | 'turn'>

const ofGiver = ({ conversationId, turn }: Place, giver: string) =>
  and(eq(feedback.conversationId, conversationId), eq(feedback.turn, turn), eq(feedback.giver, giver))

/**
 * Stores a giver's feedback on a turn and replaces their earlier one. This is one statement, so that no row remains
 * if the turn is deleted at the same time.
 * @param now milliseconds
 * @returns the row; undefined if there is no such turn, or MOST_GIVERS others have given feedback
 */
export async function putFeedback(
  db: Database,
  given: NewFeedback,
  now: number,
): Promise<FeedbackRow | undefined> {
  const { conversationId, turn, giver, rating, score, comment, reasons } = given
  const others = sql`(SELECT count(*) FROM ${feedback} WHERE ${feedback.conversationId} = ${conversationId}
    AND ${feedback.turn} = ${turn} AND ${feedback.giver} <> ${giver})`
  const [row] = await db
    .insert(feedback)
    .select(
      sql`SELECT ${turns.conversationId}, ${turns.turn}, ${giver}, ${rating}, ${score}, ${comment}, ${reasons}, ${now}, ${now}
        FROM ${turns} WHERE ${turns.conversationId} = ${conversationId} AND ${turns.turn} = ${turn}
        AND ${turns.expiresAt} > ${now} AND ${others} < ${MOST_GIVERS}`,
    )
    .onConflictDoUpdate({
      target: [feedback.conversationId, feedback.turn, feedback.giver],
      set: { rating, score, comment, reasons, updatedAt: now },
    })
    .returning()
  return row
}

/** Counts ratings by the conversation's id. Conversations without ratings are absent. */
export async function ratingsOf(
  db: Database,
  conversations: readonly { id: string }[],
): Promise<Map<string, { up: number; down: number }>> {
  const ids = JSON.stringify(conversations.map(({ id }) => id))
  const rows = await db
    .select({
      id: feedback.conversationId,
      up: sql<number>`sum(${feedback.rating} = 'up')`,
      down: sql<number>`sum(${feedback.rating} = 'down')`,
    })
    .from(feedback)
    .where(
      sql`${feedback.conversationId} IN (SELECT value FROM json_each(${ids})) AND ${feedback.rating} IS NOT NULL`,
    )
    .groupBy(feedback.conversationId)
  return new Map(rows.map(({ id, up, down }) => [id, { up, down }]))
}

/** @returns whether there was anything to delete */
export async function deleteFeedback(db: Database, place: Place, giver: string): Promise<boolean> {
  const gone = await db.delete(feedback).where(ofGiver(place, giver)).returning({ turn: feedback.turn })
  return gone.length > 0
}

/**
 * Feedback on some turns of a conversation, oldest first.
 * @param giver undefined: everybody's
 */
export const feedbackOn = (
  db: Database,
  conversationId: string,
  numbers: readonly number[],
  giver: string | undefined,
): Promise<FeedbackRow[]> =>
  db
    .select()
    .from(feedback)
    .where(
      and(
        eq(feedback.conversationId, conversationId),
        sql`${feedback.turn} IN (SELECT value FROM json_each(${JSON.stringify(numbers)}))`,
        giver === undefined ? undefined : eq(feedback.giver, giver),
      ),
    )
    .orderBy(feedback.createdAt)
