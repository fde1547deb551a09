import { parse } from 'valibot'
import { expect, it } from 'vitest'
import { answerOf } from '../../../src/api/parley/encoder'
import { Answer } from '../../../src/api/parley/response-schemas'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEventBody } from '../../../src/turn/events'
import { foldTurn, type Turn } from '../../../src/turn/fold'
import { found } from '../turn-events'

const RESULT = {
  facet_counts: [],
  found: 0,
  hits: [],
  request_params: { collection_name: 'c', first_q: 'q', per_page: 10, q: 'q' },
  search_cutoff: false,
}

const turn = (...bodies: TurnEventBody[]): Turn =>
  foldTurn(bodies.map((body, seq) => ({ ...body, conversation_id: 'c-1', turn: 2, seq })))

const DONE: TurnEventBody = { type: 'done', finish_reason: 'stop', answer: contentOf('It is high.') }

it('gathers a whole turn, as the schema says', () => {
  const citation = { collection: 'facts', document_id: '1', start: 0, end: 11, quote: 'High.' }
  const answer = answerOf(
    turn(
      { type: 'question', question: contentOf('how?'), standalone: 'How high?' },
      ...found([{ result: RESULT }, { error: 'no', code: 404 }]),
      { type: 'delta', text: 'It is ' },
      { type: 'delta', text: 'high.' },
      { type: 'citation', ...citation },
      { type: 'followups', questions: ['Why?'] },
      { type: 'usage', usage: { model: 'openai/gpt', input_tokens: 7 }, timings: { finished: 9 } },
      DONE,
    ),
  )
  expect(answer).toEqual({
    conversation_id: 'c-1',
    turn: 2,
    question: 'how?',
    standalone: 'How high?',
    answer: 'It is high.',
    finish_reason: 'stop',
    citations: [citation],
    followups: ['Why?'],
    usage: { model: 'openai/gpt', input_tokens: 7 },
    timings: { finished: 9 },
    // With the question that was asked, where another one was searched.
    results: [
      { ...RESULT, request_params: { ...RESULT.request_params, first_q: 'how?', q: 'how?' } },
      { error: 'no', code: 404 },
    ],
  })
  expect(parse(Answer, answer)).toEqual(answer)
})

it('leaves out what did not happen', () => {
  const answer = answerOf(turn({ type: 'question', question: contentOf('how?') }, ...found([]), DONE))
  expect(Object.keys(answer).sort()).toEqual([
    'answer',
    'citations',
    'conversation_id',
    'finish_reason',
    'question',
    'results',
    'turn',
  ])
  expect(parse(Answer, answer)).toEqual(answer)
})
