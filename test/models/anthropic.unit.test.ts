import { beforeEach, describe, expect, it } from 'vitest'
import { anthropic } from '../../src/models/anthropic'
import { ask, config, localEnv, textOf } from './ask'
import { rawServer, sendJson, sendSplit } from './raw-server'

const raw = rawServer()

const model = (extra: Record<string, unknown> = {}) => ({
  model_name: 'anthropic/claude-sonnet-4-5',
  api_key: 'sk-ant-1234567890',
  anthropic_url: raw.url,
  ...extra,
})

/** Events as the API names them: the name stands before the data and in it. */
const stream = (...events: { type: string; [part: string]: unknown }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

const start = (usage: object = { input_tokens: 5, output_tokens: 1 }) => ({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], stop_reason: null, usage },
})
const blockStart = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }
const text = (part: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: part },
})
const thinking = (part: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'thinking_delta', thinking: part },
})
const end = (stop_reason: string, output_tokens = 3) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null },
  usage: { output_tokens },
})
const stop = { type: 'message_stop' }

const answer = stream(start(), blockStart, text('Good '), text('day'), end('end_turn'), stop)

describe('what is sent to Anthropic', () => {
  beforeEach(() => {
    raw.respond = (response) => sendSplit(response, answer, 1000)
  })

  it('has the system prompt apart, the version, and the room that the API insists on', async () => {
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'hi' },
    ]
    await ask(model(), { messages })
    expect(raw.received[0]).toMatchObject({
      method: 'POST',
      path: '/v1/messages',
      headers: { 'x-api-key': 'sk-ant-1234567890', 'anthropic-version': '2023-06-01' },
    })
    expect(raw.received[0]?.body).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 4096,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'hi' }],
      stream: true,
    })
  })

  it('has the sampling that the model sets, in its words', async () => {
    await ask(model({ temperature: 0.2, top_p: 0.5, max_tokens: 9, stop: 'END', reasoning_effort: 'low' }))
    expect(raw.received[0]?.body).toMatchObject({
      temperature: 0.2,
      top_p: 0.5,
      max_tokens: 9,
      stop_sequences: ['END'],
      output_config: { effort: 'low' },
    })
  })

  it('is a hello of one token when a model is checked', async () => {
    raw.respond = (response) => sendJson(response, 200, {})
    await anthropic.probe(config(model()), localEnv)
    expect(raw.received[0]?.body).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'hello' }],
    })
  })
})

describe('a stream of Anthropic', () => {
  const asking = (...events: Parameters<typeof stream>) => {
    raw.respond = (response) => sendSplit(response, stream(...events), 1000)
    return ask(model())
  }

  it.each([1, 7, 1000])('reads the same in pieces of %i bytes', async (size) => {
    raw.respond = (response) => sendSplit(response, answer, size)
    expect(await ask(model())).toEqual([
      { type: 'text', text: 'Good ' },
      { type: 'text', text: 'day' },
      { type: 'usage', inputTokens: 5, outputTokens: 3 },
      { type: 'finish', reason: 'stop' },
    ])
  })

  it('keeps thoughts apart, and passes over pings and events that are not known', async () => {
    const deltas = await asking(
      start({
        input_tokens: 5,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 10,
        output_tokens: 1,
      }),
      { type: 'ping' },
      thinking('Somebody greets.'),
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'abc' } },
      text('Hi.'),
      { type: 'something_new' },
      end('end_turn', 20),
      stop,
    )
    expect(deltas).toEqual([
      { type: 'reasoning', text: 'Somebody greets.' },
      { type: 'text', text: 'Hi.' },
      { type: 'usage', inputTokens: 115, outputTokens: 20 },
      { type: 'finish', reason: 'stop' },
    ])
  })

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['pause_turn', 'other'],
  ])('that ended with %s finished with %s', async (stopReason, reason) => {
    expect((await asking(start(), text('So'), end(stopReason), stop)).at(-1)).toEqual({
      type: 'finish',
      reason,
    })
  })

  it.each([
    [[start(), text('half')], 'the stream ended before the answer was complete'],
    [[start(), text('half'), end('end_turn')], 'the stream ended before the answer was complete'],
    [[start(), end('refusal'), stop], 'a content filter or the model itself withheld the answer'],
    [
      [start(), thinking('Hm.'), end('max_tokens'), stop],
      'the model reached its limit of tokens before its answer began: raise `max_tokens`',
    ],
    [
      [start(), text('So'), { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
      'Overloaded',
    ],
  ])('is no answer: %j', async (events, why) => {
    await expect(asking(...events)).rejects.toMatchObject({
      status: 400,
      message: `Anthropic API error: ${why}`,
    })
  })

  it('of nothing, or without text, is malformed', async () => {
    const malformed = 'Got malformed response from Anthropic API.'
    await expect(asking()).rejects.toThrow(malformed)
    await expect(asking(start(), end('end_turn'), stop)).rejects.toThrow(malformed)
  })

  it.each([
    ['overloaded_error', 'busy'],
    ['rate_limit_error', 'limited'],
    ['invalid_request_error', 'refused'],
  ])('with an %s says to whoever may ask again that it is %s', async (type, fault) => {
    const events = [{ type: 'error', error: { type, message: 'No' } }]
    await expect(asking(...events)).rejects.toMatchObject({ fault })
  })
})

describe('a whole answer of Anthropic', () => {
  const reply = (content: unknown[], stop_reason = 'end_turn') => ({
    type: 'message',
    role: 'assistant',
    content,
    stop_reason,
    usage: { input_tokens: 4, output_tokens: 2 },
  })

  it('has its texts joined and its thoughts apart', async () => {
    raw.respond = (response) =>
      sendJson(
        response,
        200,
        reply([
          { type: 'thinking', thinking: 'Hm.' },
          { type: 'text', text: 'Good ' },
          { type: 'text', text: 'day' },
        ]),
      )
    const deltas = await ask(model(), { stream: false })
    expect(textOf(deltas)).toBe('Good day')
    expect(deltas.slice(-2)).toEqual([
      { type: 'usage', inputTokens: 4, outputTokens: 2 },
      { type: 'finish', reason: 'stop' },
    ])
    expect(raw.received[0]?.body).not.toHaveProperty('stream')
  })

  it.each([
    [
      200,
      reply([], 'refusal'),
      'Anthropic API error: a content filter or the model itself withheld the answer',
    ],
    [200, {}, 'Got malformed response from Anthropic API.'],
    [
      529,
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'Anthropic API error: Overloaded',
    ],
    [
      401,
      { type: 'error', error: { type: 'authentication_error', message: 'invalid sk-ant-1234567890' } },
      'Anthropic API error: invalid sk-an************',
    ],
  ])('of status %i, %j, is an error', async (status, body, message) => {
    raw.respond = (response) => sendJson(response, status, body)
    await expect(ask(model(), { stream: false })).rejects.toMatchObject({ status: 400, message })
  })
})
