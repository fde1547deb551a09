/** People's feedback on answers. The triggers of migration 0010 delete a row together with its turn. */
import sql from 'sql-template-tag'
import * as v from 'valibot'
import { all, allOf, batch, type Database, isIn, returning, run, select } from './client'
import { announcing, WROTE } from './deliveries'
import { feedback, type RowOf } from './schema'

export type FeedbackRow = RowOf<typeof feedback> & { rating: 'up' | 'down' | null }

export type NewFeedback = Omit<FeedbackRow, 'createdAt' | 'updatedAt'>

/** The most rows for one turn. Anybody with a page's key can make up visitors, so there has to be a limit. */
export const MOST_GIVERS = 100

type Place = Pick<FeedbackRow, 'conversationId' | 'turn'>

/**
 * Stores a giver's feedback on a turn, replaces their earlier one, and tells the webhooks. This is one statement, so that no row
 * remains if the turn is deleted at the same time.
 * @param now milliseconds
 * @returns the row; undefined if there is no such turn, or MOST_GIVERS others have given feedback
 */
export async function putFeedback(
  db: Database,
  { conversationId, turn, giver, rating, score, comment, reasons }: NewFeedback,
  now: number,
): Promise<FeedbackRow | undefined> {
  const data = { rating, score, comment, reasons: v.parse(v.array(v.string()), JSON.parse(reasons)) }
  const [stored] = await batch(db, [
    sql`INSERT INTO feedback
      (conversation_id, turn, giver, rating, score, comment, reasons, created_at, updated_at)
      SELECT conversation_id, turn, ${giver}, ${rating}, ${score}, ${comment}, ${reasons}, ${now}, ${now}
        FROM turns WHERE conversation_id = ${conversationId} AND turn = ${turn} AND expires_at > ${now}
          AND (SELECT count(*) FROM feedback WHERE conversation_id = ${conversationId} AND turn = ${turn}
            AND giver <> ${giver}) < ${MOST_GIVERS}
      ON CONFLICT (conversation_id, turn, giver) DO UPDATE SET rating = excluded.rating, score = excluded.score,
        comment = excluded.comment, reasons = excluded.reasons, updated_at = excluded.updated_at
      ${returning(feedback)}`,
    announcing({ event: 'feedback', conversationId, turn, data }, WROTE, now),
  ])
  return stored!.results[0] as FeedbackRow | undefined
}

/** Counts ratings by the conversation's id. Conversations without ratings are absent. */
export async function ratingsOf(
  db: Database,
  conversations: readonly { id: string }[],
): Promise<Map<string, { up: number; down: number }>> {
  const ids = conversations.map(({ id }) => id)
  const rows = await all<{ id: string; up: number; down: number }>(
    db,
    sql`SELECT conversation_id AS id, sum(rating = 'up') AS up, sum(rating = 'down') AS down FROM feedback
      WHERE ${isIn('conversation_id', ids)} AND rating IS NOT NULL GROUP BY conversation_id`,
  )
  return new Map(rows.map(({ id, up, down }) => [id, { up, down }]))
}

/** @returns whether there was anything to delete */
export const deleteFeedback = async (
  db: Database,
  { conversationId, turn }: Place,
  giver: string,
): Promise<boolean> =>
  (await run(
    db,
    sql`DELETE FROM feedback WHERE conversation_id = ${conversationId} AND turn = ${turn} AND giver = ${giver}`,
  )) > 0

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
  all(
    db,
    sql`${select(feedback)} WHERE ${allOf(
      sql`conversation_id = ${conversationId}`,
      isIn('turn', numbers),
      giver === undefined ? undefined : sql`giver = ${giver}`,
    )} ORDER BY created_at`,
  )
