/** What the events of a turn add up to, as one object: pure. */
import type { InferOutput } from 'valibot'
import type { TurnEvent } from '../../conversation/events'
import type { Answer } from './schemas'

export type AnswerBody = Omit<InferOutput<typeof Answer>, 'results'> & { results: unknown[] }

/** @param events of one turn, from its first to its `done` */
export function answerOf(events: TurnEvent[]): AnswerBody {
  const answer: AnswerBody = {
    conversation_id: '',
    turn: 0,
    question: '',
    answer: '',
    finish_reason: '',
    citations: [],
    results: [],
  }
  for (const { conversation_id, turn, seq: _, ...event } of events) {
    answer.conversation_id = conversation_id
    answer.turn = turn
    switch (event.type) {
      case 'question':
        answer.question = event.question
        if (event.standalone !== undefined) answer.standalone = event.standalone
        break
      case 'retrieval':
        answer.results = event.replies.map((reply) => ('result' in reply ? reply.result : reply))
        break
      case 'citation': {
        const { type: _, ...citation } = event
        answer.citations.push(citation)
        break
      }
      case 'followups':
        answer.followups = event.questions
        break
      case 'usage':
        answer.usage = event.usage
        answer.timings = event.timings
        break
      case 'done':
        answer.answer = event.answer
        answer.finish_reason = event.finish_reason
        break
    }
  }
  return answer
}
