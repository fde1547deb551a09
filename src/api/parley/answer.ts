/** What the events of a turn add up to, as Parley's own routes show it: pure. */
import type { InferOutput } from 'valibot'
import type { Turn } from '../../turn/fold'
import type { Answer } from './response-schemas'

export type AnswerBody = Omit<InferOutput<typeof Answer>, 'results'> & { results: unknown[] }

/** @param folded one that is done */
export function answerOf(folded: Turn): AnswerBody {
  const { standalone, followups, usage, timings, cut, ...turn } = folded
  return {
    conversation_id: turn.conversationId,
    turn: turn.turn,
    question: turn.question,
    ...(standalone !== undefined && { standalone }),
    answer: turn.answer,
    finish_reason: turn.finishReason ?? '',
    citations: turn.citations,
    ...(cut && { cut }),
    ...(followups && { followups }),
    ...(usage && { usage }),
    ...(timings && { timings }),
    results: turn.replies.map((reply) => ('result' in reply ? reply.result : reply)),
  }
}
