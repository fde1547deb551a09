import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AnswerShape,
  encodeMessage,
  messageEncoder,
  responseBody,
} from '../../../src/api/typesense/encoder'
import { contentOf } from '../../../src/lib/parts'
import type { SearchResult } from '../../../src/search/types'
import type { TurnEvent, TurnEventBody } from '../../../src/turn/events'
import { asciiJson } from '../../../src/turn/events'
import { foldTurn } from '../../../src/turn/fold'
import { found } from '../turn-events'

const ID = '7b1d9a52-0d5c-4a0e-9b53-2c6f4f1f6a11'

const result = (q: string): SearchResult => ({
  facet_counts: [],
  found: 1,
  hits: [{ document: { id: '0', title: 'naïve' }, highlight: {}, highlights: [] }],
  out_of: 1,
  page: 1,
  request_params: { collection_name: 'docs', first_q: q, per_page: 10, q },
  search_cutoff: false,
  search_time_ms: 0,
})

const events = (...bodies: TurnEventBody[]): TurnEvent[] =>
  bodies.map((body, seq) => ({ ...body, conversation_id: ID, turn: 0, seq }))

const followUp = events(
  { type: 'question', question: contentOf('and there?'), standalone: 'What of Paris?' },
  ...found([{ result: result('What of Paris?') }], [{ collection: 'docs', document_id: '0' }]),
  { type: 'delta', text: 'Grüße ' },
  { type: 'delta', text: '😀' },
  { type: 'citation', collection: 'docs', document_id: '0', start: 0, end: 5, quote: 'Grüße' },
  { type: 'usage', usage: { model: 'local/extractive', input_tokens: 3, output_tokens: 2 }, timings: {} },
  {
    type: 'history',
    messages: [
      { role: 'user', content: contentOf('and there?'), timestamp: 10 },
      { role: 'assistant', content: contentOf('Grüße 😀'), timestamp: 11 },
    ],
  },
  { type: 'done', finish_reason: 'stop', answer: contentOf('Grüße 😀') },
)

const single: AnswerShape = {
  conversationId: ID,
  question: 'and there?',
  shape: 'single',
  ttl: 86_400,
  withHistory: true,
}

const body = (log: TurnEvent[], shape: AnswerShape): Record<string, unknown> =>
  responseBody(foldTurn(log), shape)

describe('the response', () => {
  it('is the search result with its conversation, questions put back', () => {
    expect(body(followUp, single)).toEqual({
      ...result('and there?'),
      conversation: {
        answer: 'Grüße 😀',
        conversation_history: {
          conversation: [{ user: 'and there?' }, { assistant: 'Grüße 😀' }],
          id: ID,
          last_updated: 11,
          ttl: 86_400,
        },
        conversation_id: ID,
        query: 'What of Paris?',
        citations: [{ document_id: '0', collection: 'docs', start: 0, end: 5, quote: 'Grüße' }],
        finish_reason: 'stop',
        usage: { model: 'local/extractive', input_tokens: 3, output_tokens: 2 },
        timings: {},
      },
    })
  })

  it('of a multi_search shows the raw question and stands beside the results', () => {
    const shown = body(followUp, { ...single, shape: 'multi', withHistory: false })
    expect(Object.keys(shown).sort()).toEqual(['conversation', 'results'])
    expect(shown.results).toEqual([result('and there?')])
    expect(shown.conversation).toMatchObject({ query: 'and there?' })
    expect(shown.conversation).not.toHaveProperty('conversation_history')
  })

  it('keeps the error of a search in its place', () => {
    const log = events(
      { type: 'question', question: contentOf('q') },
      ...found([{ error: 'Collection not found', code: 404 }, { result: result('q') }]),
      { type: 'history', messages: [] },
      { type: 'done', finish_reason: 'stop', answer: contentOf('a') },
    )
    const shown = body(log, { ...single, shape: 'multi' })
    expect(shown.results).toEqual([{ code: 404, error: 'Collection not found' }, result('and there?')])
    expect(shown).toHaveProperty('conversation')
  })

  it('has no conversation when every search failed', () => {
    const log = events(
      { type: 'question', question: contentOf('q') },
      ...found([{ error: 'Collection not found', code: 404 }]),
      { type: 'done', finish_reason: 'stop', answer: contentOf('') },
    )
    expect(body(log, { ...single, shape: 'multi' })).toEqual({
      results: [{ code: 404, error: 'Collection not found' }],
    })
  })
})

describe('the stream', () => {
  const streamed = (log: TurnEvent[]): string => {
    const encoder = messageEncoder(single)
    return log.map((event) => encoder.encode(event)).join('')
  }

  it('is, byte for byte, what Typesense sends', () => {
    const lines = streamed(followUp).split('\n\n')
    expect(lines.slice(0, 4)).toEqual([
      `data: {"conversation_id":"${ID}","message":"Gr\\u00fc\\u00dfe "}`,
      `data: {"conversation_id":"${ID}","message":"\\ud83d\\ude00"}`,
      `data: {"conversation_id":"${ID}","message":""}`,
      'data: [DONE]',
    ])
    expect(lines[5]).toBe('')
    expect(lines).toHaveLength(6)
    expect(JSON.parse(lines[4]!.slice('data: '.length))).toEqual({
      ...body(followUp, single),
      conversation_id: ID,
      message: '',
    })
  })

  it('is ASCII, LF only, and nothing but data lines', () => {
    const text = streamed(followUp)
    expect(text).toMatch(/^[\n\x20-\x7e]*$/)
    for (const line of text.split('\n')) expect(line === '' || line.startsWith('data: ')).toBe(true)
  })

  it('gives every text back, wherever the pieces were cut', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (pieces) => {
        const read = pieces
          .map((piece) => encodeMessage(ID, piece))
          .map((event) => JSON.parse(event.slice('data: '.length)) as { message: string })
        expect(read.map((event) => event.message).join('')).toBe(pieces.join(''))
      }),
    )
  })

  it('writes any JSON in ASCII without changing it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = asciiJson(value)
        expect(text).toMatch(/^[\x20-\x7e]*$/)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})
