/**
 * Feedback on answers: a rating, a comment, reasons.
 *
 * Feedback is not in the log of its turn. The log ends with the turn and never changes once readers have read it, but
 * feedback comes later and can change or be withdrawn. So each piece of feedback is a row of its own in D1, and code
 * that shows a turn's record adds it.
 */
import {
  deleteFeedback,
  type FeedbackRow,
  feedbackOn,
  MOST_GIVERS,
  type NewFeedback,
  putFeedback,
} from '../db/feedback'
import { findTurn } from '../db/turns'
import { ApiError } from '../errors'
import { readStored } from '../lib/stored-json'
import { unknownTurn } from '../turn/errors'
import type { RecordedTurn } from '../turn/fold'
import type { Asker } from '../turn/request'
import { type Owner, seesAll, stringsShape } from './stored'

/** One person's feedback. Without a rating, a score of 4 or 5 counts as up, and 1 or 2 as down. */
export interface Feedback {
  rating?: 'up' | 'down'
  /** 1 to 5 */
  score?: number
  comment?: string
  reasons?: string[]
}

/** Feedback as it is shown. Times are in milliseconds since 1970. */
export interface ShownFeedback extends Feedback {
  /** whether it is the reader's own */
  own: boolean
  created_at: number
  updated_at: number
}

/**
 * Who gives feedback: the proven user or visitor, or else the key. A claimed name does not count. Askers who cannot be
 * distinguished share a row.
 */
export const giverOf = ({ owner, proofs = [] }: Asker): string => JSON.stringify([owner, proofs[0] ?? ''])

const ratingOf = ({ rating, score = 3 }: Feedback): 'up' | 'down' | null => {
  if (rating !== undefined) return rating
  if (score > 3) return 'up'
  return score < 3 ? 'down' : null
}

/**
 * Stores an asker's feedback on a turn. It replaces their earlier feedback. The caller must have checked that the
 * conversation is open to them.
 * @throws ApiError 404 for a turn that has no stored answer, 409 if too many others have said something
 */
export async function storeFeedback(
  env: Cloudflare.Env,
  asker: Asker,
  place: { conversationId: string; turn: number },
  given: Feedback,
): Promise<ShownFeedback> {
  const db = env.DB
  const now = Date.now()
  const row: NewFeedback = {
    ...place,
    giver: giverOf(asker),
    rating: ratingOf(given),
    score: given.score ?? null,
    comment: given.comment?.trim() ?? '',
    reasons: JSON.stringify(given.reasons ?? []),
  }
  const stored = await putFeedback(db, row, now)
  if (stored) return shown(stored, asker)
  if (!(await findTurn(db, place.conversationId, place.turn, now))) throw unknownTurn()
  throw new ApiError(
    409,
    `This answer has feedback from ${MOST_GIVERS} people, the most that are kept. Delete some of it first.`,
  )
}

/** @returns whether there was anything to withdraw */
export const withdrawFeedback = (
  env: Cloudflare.Env,
  asker: Asker,
  place: { conversationId: string; turn: number },
): Promise<boolean> => deleteFeedback(env.DB, place, giverOf(asker))

/** Adds feedback to turns: everybody's for a key that reaches the conversation, or else only the asker's own. */
export async function withFeedback<Turn extends RecordedTurn>(
  env: Cloudflare.Env,
  asker: Asker,
  conversation: Owner & { id: string },
  turns: Turn[],
): Promise<(Turn & { feedback?: ShownFeedback[] })[]> {
  if (turns.length === 0) return turns
  const rows = await feedbackOn(
    env.DB,
    conversation.id,
    turns.map(({ turn }) => turn),
    seesAll(asker, conversation) ? undefined : giverOf(asker),
  )
  const byTurn = Map.groupBy(rows, ({ turn }) => turn)
  return turns.map((turn) => {
    const said = byTurn.get(turn.turn)
    return said ? { ...turn, feedback: said.map((row) => shown(row, asker)) } : turn
  })
}

function shown(row: FeedbackRow, asker: Asker): ShownFeedback {
  const reasons = readStored(stringsShape(), row.reasons)
  return {
    ...(row.rating !== null && { rating: row.rating }),
    ...(row.score !== null && { score: row.score }),
    ...(row.comment !== '' && { comment: row.comment }),
    ...(reasons.length > 0 && { reasons }),
    own: row.giver === giverOf(asker),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  }
}
