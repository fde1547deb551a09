/** A finished turn as Parley's own routes show it. Pure. */

import type { InferOutput } from 'valibot'
import { textOf } from '../../lib/parts'
import type { Turn } from '../../turn/fold'
import { askedReplies } from '../shared/sources'
import type { Answer } from './response-schemas'

export type AnswerBody = Omit<InferOutput<typeof Answer>, 'results'> & { results: unknown[] }

/** @param folded one that is done */
export function answerOf(folded: Turn): AnswerBody {
  const { standalone, suggestions, usage, timings, cut, ...turn } = folded
  const question = textOf(turn.question)
  return {
    conversation_id: turn.conversationId,
    turn: turn.turn,
    question,
    ...(standalone !== undefined && { standalone }),
    answer: textOf(turn.answer),
    finish_reason: turn.finishReason ?? '',
    ...turn.verdict,
    citations: turn.citations,
    ...(cut && { cut }),
    ...(suggestions && { followups: suggestions }),
    ...(usage && { usage }),
    ...(timings && { timings }),
    results: askedReplies(folded, question).map((reply) => ('result' in reply ? reply.result : reply)),
  }
}
