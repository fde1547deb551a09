import { describe, expect, it } from 'vitest'
import { itemId, readItemId } from '../../../src/api/openai/ids'
import {
  type ResponseShape,
  readResponse,
  responseEncoder,
  responseOf,
} from '../../../src/api/openai/responses'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEventBody } from '../../../src/turn/events'
import { foldTurn } from '../../../src/turn/fold'
import { ANSWER, TURN, turnOf } from '../turn-events'

const SHAPE: ResponseShape = {
  model: 'docs',
  created: 1_700_000_000,
  fields: {},
  previous: null,
  handle: 'c-1',
}

const PLACE = '"item_id":"msg_c-1.3","output_index":0,"content_index":0'

const response = (status: string, rest: string): string =>
  `{"id":"resp_c-1.3","object":"response","created_at":1700000000,"status":"${status}","model":"docs","conversation":{"id":"c-1"},"store":true,"previous_response_id":null,"error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":false,"temperature":null,"tool_choice":"none","tools":[],"top_p":null,${rest}}`

const frame = (type: string, sequence: number, rest: string): string =>
  `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence},${rest}}\n\n`

const CITED =
  '{"type":"url_citation","start_index":0,"end_index":27,"title":"The tower","url":"https://example.org/tower"}'
const PART = `{"type":"output_text","text":${JSON.stringify(ANSWER)},"annotations":[${CITED}],"logprobs":[]}`
const ITEM = `{"id":"msg_c-1.3","type":"message","status":"completed","role":"assistant","content":[${PART}]}`
const USAGE =
  '"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9}'

/** What each event of the turn adds to the stream. */
const GOLDEN: Record<Exclude<TurnEventBody['type'], 'results' | 'history' | 'part'>, string[]> = {
  question: [
    frame('response.created', 0, `"response":${response('in_progress', '"output":[]')}`) +
      frame('response.in_progress', 1, `"response":${response('in_progress', '"output":[]')}`) +
      frame(
        'response.output_item.added',
        2,
        '"output_index":0,"item":{"id":"msg_c-1.3","type":"message","status":"in_progress","role":"assistant","content":[]}',
      ) +
      frame(
        'response.content_part.added',
        3,
        `${PLACE},"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
      ),
  ],
  resumed: [],
  retrieval: [''],
  delta: [
    frame('response.output_text.delta', 4, `${PLACE},"delta":"It is 330 metres high [17","logprobs":[]`),
    frame('response.output_text.delta', 5, `${PLACE},"delta":"]. Füße: 日本 🎬","logprobs":[]`),
  ],
  citation: [''],
  followups: [''],
  usage: [''],
  error: [],
  done: [
    frame('response.output_text.annotation.added', 6, `${PLACE},"annotation_index":0,"annotation":${CITED}`) +
      frame('response.output_text.done', 7, `${PLACE},"text":${JSON.stringify(ANSWER)},"logprobs":[]`) +
      frame('response.content_part.done', 8, `${PLACE},"part":${PART}`) +
      frame('response.output_item.done', 9, `"output_index":0,"item":${ITEM}`) +
      frame('response.completed', 10, `"response":${response('completed', `"output":[${ITEM}],${USAGE}`)}`),
  ],
}

describe('a stream of a response', () => {
  it('has these bytes for each event', () => {
    const encoder = responseEncoder(SHAPE)
    const golden = structuredClone(GOLDEN)
    for (const event of turnOf(TURN))
      expect(encoder.encode(event), event.type).toBe(golden[event.type as keyof typeof golden].shift())
    expect(Object.values(golden).flat()).toEqual([])
  })

  it('ends failed when its turn failed', () => {
    const encoder = responseEncoder(SHAPE)
    const failure = { status: 503, message: 'No.' }
    expect(encoder.fail(failure)).toBe(
      frame('error', 0, '"code":"server_error","message":"No.","param":null'),
    )
    encoder.encode(turnOf(TURN)[0]!)
    const failed = encoder.fail(failure)
    expect(failed).toMatch(/^event: response\.failed\n/)
    expect(failed).toContain('"error":{"code":"server_error","message":"No."}')
  })

  it.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('is incomplete where the model stopped for %s', (finish_reason, reason) => {
    const turn = turnOf([...TURN.slice(0, -1), { type: 'done', finish_reason, answer: contentOf(ANSWER) }])
    const encoder = responseEncoder(SHAPE)
    expect(turn.map((event) => encoder.encode(event)).at(-1)).toContain('event: response.incomplete\n')
    expect(responseOf(foldTurn(turn), SHAPE)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason },
    })
  })
})

describe('a response request', () => {
  it('is a question alone, or all that was said', () => {
    const rest = { model: 'docs', transcript: [], instructions: '', stream: false, sampling: {}, ignored: [] }
    expect(readResponse({ model: 'docs', input: 'How high?' })).toEqual({ ...rest, question: 'How high?' })
    const input = [
      { role: 'developer', content: 'In French.' },
      { role: 'user', content: [{ type: 'input_text', text: 'How high?' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '330 m' }] },
      { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
      { role: 'user', content: 'And there?' },
    ]
    const body = {
      model: 'docs',
      input,
      instructions: 'Be brief.',
      stream: true,
      max_output_tokens: 9,
      user: 'anna',
    }
    expect(readResponse(body)).toEqual({
      ...rest,
      question: 'And there?',
      transcript: [
        { role: 'user', content: contentOf('How high?') },
        { role: 'assistant', content: contentOf('330 m') },
        { role: 'assistant', content: [{ type: 'tool_call', id: '1', name: 'f', arguments: '{}' }] },
      ],
      instructions: 'Be brief.\n\nIn French.',
      stream: true,
      user: 'anna',
      sampling: { max_output_tokens: 9 },
    })
  })

  it.each([
    [{ conversation: 'mine' }, 'mine', undefined],
    [{ conversation: { id: 'mine' } }, 'mine', undefined],
    [{ previous_response_id: 'resp_c-1.3' }, 'c-1', 'resp_c-1.3'],
    [{ conversation: null, previous_response_id: null }, undefined, undefined],
  ])('with %j goes on with a conversation', (more, conversation, previous) => {
    const read = readResponse({ model: 'docs', input: 'q', ...more })
    expect([read.conversation, read.previous]).toEqual([conversation, previous])
  })

  it.each([
    [{ input: undefined }, 'input'],
    [{ input: [] }, 'input'],
    [{ input: ' ' }, 'input'],
    [{ input: [{ type: 'function_call' }] }, 'input'],
    [{ input: [{ role: 'user', content: [{ type: 'input_image' }] }] }, 'input.0.content'],
    [{ previous_response_id: 'resp_5' }, 'previous_response_id'],
    [{ previous_response_id: 'resp_c.1', conversation: 'c' }, 'previous_response_id'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ model: undefined }, 'model'],
  ])('%j is refused by its parameter', (more, param) => {
    const read = () => readResponse({ model: 'docs', input: 'q', ...more })
    expect(read).toThrowError(expect.objectContaining({ status: 400, param }))
  })
})

it('an id of an item says which turn of which conversation it is of, or which document', () => {
  for (const place of [
    { turn: 3, role: 'assistant' },
    { turn: 3, role: 'user' },
    { document: 'a/b ü' },
    { document: '3.q' },
  ] as const)
    expect(readItemId('c1', itemId('c1', place))).toEqual(place)
  for (const id of [
    'msg_c2.3',
    'c1.3',
    'msg_c1.',
    'msg_c1.3.x',
    'msg_c1.x3',
    'msg_c1.d%',
    'msg_c1.1234567890',
  ])
    expect([id, readItemId('c1', id)]).toEqual([id, undefined])
})
