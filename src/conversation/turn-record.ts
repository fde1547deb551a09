/** What D1 stores of a finished turn, besides its cost. */
import type { ConversationEntry } from '../db/conversations'
import type { TurnRecord } from '../db/turns'
import { recordOf, type Turn, type TurnTrace } from '../turn/fold'

/**
 * @param conversation its conversation's row @param model the one that was asked
 * @param now when it ended, in milliseconds since 1970
 */
export function rowsOf(
  conversation: ConversationEntry,
  turn: Turn,
  trace: TurnTrace,
  model: string,
  now: number,
): Pick<TurnRecord, 'conversation' | 'turn'> {
  const { standalone, answer, followups = [], ...recorded } = recordOf(turn, now, model)
  return {
    conversation,
    turn: {
      conversationId: conversation.id,
      turn: turn.turn,
      question: recorded.question,
      standalone: standalone ?? null,
      answer,
      finishReason: recorded.finish_reason,
      citations: JSON.stringify(recorded.citations),
      usage: JSON.stringify(recorded.usage),
      timings: JSON.stringify(recorded.timings),
      trace: JSON.stringify(trace),
      createdAt: now,
      expiresAt: conversation.expiresAt,
      followups: JSON.stringify(followups),
    },
  }
}
