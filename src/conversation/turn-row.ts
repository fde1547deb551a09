/** A turn as D1 keeps it. */
import type { ConversationEntry } from '../db/conversations'
import type { TurnRecord } from '../db/turns'
import type { recordOf, traceOf } from '../turn/fold'

/**
 * @param record of the turn
 * @param trace of the turn
 * @param now when it ended, in milliseconds since 1970
 * @param conversation whose row the turn's row belongs to, and expires with
 */
export function turnRow(
  { standalone, answer, followups = [], ...recorded }: ReturnType<typeof recordOf>,
  trace: ReturnType<typeof traceOf>,
  now: number,
  { id, expiresAt }: ConversationEntry,
): TurnRecord['turn'] {
  return {
    conversationId: id,
    turn: recorded.turn,
    question: recorded.question,
    standalone: standalone ?? null,
    answer,
    finishReason: recorded.finish_reason,
    citations: JSON.stringify(recorded.citations),
    usage: JSON.stringify(recorded.usage),
    timings: JSON.stringify(recorded.timings),
    trace: JSON.stringify(trace),
    createdAt: now,
    expiresAt,
    followups: JSON.stringify(followups),
  }
}
