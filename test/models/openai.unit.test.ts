import { LLMock } from '@copilotkit/aimock'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openai } from '../../src/models/openai-compatible'
import { ask, config, localEnv, textOf } from './ask'
import { type RawServer, sendJson, sendSplit, sse, startRawServer } from './raw-server'

const KEY = 'sk-1234567890'
let raw: RawServer
let mock: LLMock

beforeAll(async () => {
  raw = await startRawServer()
  mock = new LLMock({ port: 0, chunkSize: 5 })
  mock.onMessage('hi there', { content: 'Hello, who asks?', reasoning: 'Somebody greets me.' })
  mock.onMessage('hello', { content: 'Hi.' })
  await mock.start()
})

afterAll(async () => {
  await raw.stop()
  await mock.stop()
})

beforeEach(() => {
  raw.received.length = 0
  mock.clearRequests()
})

const model = (extra: Record<string, unknown> = {}) => ({
  model_name: 'openai/gpt-4o-mini',
  api_key: KEY,
  openai_url: raw.url,
  ...extra,
})

const chunk = (content: unknown, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
})

const failure = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    () => expect.fail('should have failed'),
    (reason) => reason,
  )
  expect(error.name).toBe('ApiError')
  return { status: error.status, message: error.message }
}

describe('against a mock of OpenAI', () => {
  it('streams the answer in pieces, reasoning apart, and ends with the finish reason', async () => {
    const deltas = await ask(model({ openai_url: mock.url }))
    expect(deltas.filter((delta) => delta.type === 'text').length).toBeGreaterThan(1)
    expect(textOf(deltas)).toBe('Hello, who asks?')
    expect(deltas.some((delta) => delta.type === 'reasoning')).toBe(true)
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' })
  })

  it('reads an answer in one piece, with its token counts', async () => {
    const deltas = await ask(model({ openai_url: mock.url }), { stream: false })
    expect(deltas.filter((delta) => delta.type === 'text')).toEqual([
      { type: 'text', text: 'Hello, who asks?' },
    ])
    expect(deltas).toContainEqual(expect.objectContaining({ type: 'usage' }))
  })

  it('says hello, and no more, when a model is checked', async () => {
    await openai.probe(config(model({ openai_url: `${mock.url}/` })), localEnv)
    const [entry] = mock.getRequests()
    expect(entry).toMatchObject({ method: 'POST', path: '/v1/chat/completions' })
    expect(entry?.body).toMatchObject({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'hello' }],
    })
  })

  it('gives the provider its message on, in the words of the contract', async () => {
    mock.nextRequestError(429, { message: 'Rate limit reached', type: 'rate_limit' })
    expect(await failure(ask(model({ openai_url: mock.url })))).toEqual({
      status: 400,
      message: 'OpenAI API error: Rate limit reached',
    })
  })
})

describe('what is sent', () => {
  beforeEach(() => {
    raw.respond = (response) => sendSplit(response, sse(chunk('ok', 'stop'), '[DONE]'), 1000)
  })

  it('is the model, the messages and stream, and nothing else', async () => {
    await ask(model())
    expect(raw.received[0]).toMatchObject({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
    })
    expect(raw.received[0]?.body).toEqual({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'hi there' }],
      stream: true,
    })
  })

  it('has no stream at all when the answer is wanted whole', async () => {
    raw.respond = (response) => sendJson(response, 200, { choices: [{ message: { content: 'whole' } }] })
    expect(textOf(await ask(model(), { stream: false }))).toBe('whole')
    expect(raw.received[0]?.body).not.toHaveProperty('stream')
  })

  it('has the sampling that the model sets', async () => {
    const sampling = {
      temperature: 0,
      top_p: 0.5,
      max_tokens: 10,
      reasoning_effort: 'low',
      stop: ['\n'],
      stream_options: { include_usage: true },
    }
    await ask(model(sampling))
    expect(raw.received[0]?.body).toMatchObject(sampling)
  })

  it('asks a server of somebody else for token counts only where the model says so', async () => {
    await ask(model())
    expect(raw.received[0]?.body).not.toHaveProperty('stream_options')
  })

  it('goes to the path that was given, with its slash added', async () => {
    await ask(model({ openai_url: `${raw.url}/`, openai_path: 'api/v2/chat?x=1' }))
    expect(raw.received[0]?.path).toBe('/api/v2/chat?x=1')
  })
})

describe('a stream', () => {
  it('reads the same whatever bytes it is split at', async () => {
    const text = sse(chunk('Grüße, '), chunk('日本語 '), chunk('🙂'), chunk('', 'stop'), '[DONE]')
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), async (size) => {
        raw.respond = (response) => sendSplit(response, text, size)
        expect(textOf(await ask(model()))).toBe('Grüße, 日本語 🙂')
      }),
      { numRuns: 15 },
    )
  })

  it('passes over null content, empty choices, comments and CRLF, and takes the last usage', async () => {
    const events = [
      ': keep-alive\r\n\r\n',
      sse({ choices: [] }).replaceAll('\n', '\r\n'),
      sse({ choices: [{ delta: { role: 'assistant', content: null }, finish_reason: null }] }),
      sse(chunk('Yes.')),
      sse({ choices: [{ delta: {}, finish_reason: 'length' }], usage: null }),
      sse({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } }),
      sse('[DONE]'),
    ]
    raw.respond = (response) => sendSplit(response, events.join(''), 1000)
    expect(await ask(model())).toEqual([
      { type: 'text', text: 'Yes.' },
      { type: 'usage', inputTokens: 7, outputTokens: 2 },
      { type: 'finish', reason: 'length' },
    ])
  })

  it('is complete without [DONE] when it gave a finish reason, and the other way round', async () => {
    raw.respond = (response) => sendSplit(response, sse(chunk('a', 'stop')), 1000)
    expect((await ask(model())).at(-1)).toEqual({ type: 'finish', reason: 'stop' })
    raw.respond = (response) => sendSplit(response, sse(chunk('a'), '[DONE]').trimEnd(), 1000)
    expect((await ask(model())).at(-1)).toEqual({ type: 'finish', reason: 'stop' })
  })

  it('is an error when it ends without either', async () => {
    raw.respond = (response) => sendSplit(response, sse(chunk('half an ans')), 1000)
    expect(await failure(ask(model()))).toEqual({
      status: 400,
      message: 'OpenAI API error: the stream ended before the answer was complete',
    })
  })

  it('is an error when the connection breaks', async () => {
    raw.respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': '9999' })
      response.write(sse(chunk('half')))
      setTimeout(() => response.destroy(), 20)
    }
    expect((await failure(ask(model()))).message).toBe(
      'OpenAI API error: the stream ended before the answer was complete',
    )
  })

  it('is an error when it carries one', async () => {
    raw.respond = (response) =>
      sendSplit(response, sse(chunk('So'), { error: { message: 'overloaded' } }), 1000)
    expect((await failure(ask(model()))).message).toBe('OpenAI API error: overloaded')
  })

  it('is malformed when an event is not JSON, and when it holds no text', async () => {
    const malformed = { status: 400, message: 'Got malformed response from OpenAI API.' }
    raw.respond = (response) => sendSplit(response, sse('{"choices": [', '[DONE]'), 1000)
    expect(await failure(ask(model()))).toEqual(malformed)
    raw.respond = (response) => sendSplit(response, sse(chunk(null), chunk('', 'stop'), '[DONE]'), 1000)
    expect(await failure(ask(model()))).toEqual(malformed)
    raw.respond = (response) => sendSplit(response, 'hello\n', 1000)
    expect(await failure(ask(model()))).toEqual(malformed)
  })

  const refusal = (text: string) => ({ choices: [{ delta: { refusal: text }, finish_reason: null }] })
  it.each([
    [
      [refusal("I'm sorry, "), refusal('no.'), chunk(null, 'stop')],
      "the model refused to answer: I'm sorry, no.",
    ],
    [[chunk('', 'content_filter')], 'a content filter or the model itself withheld the answer'],
    [
      [chunk('', 'length')],
      'the model reached its limit of tokens before its answer began: raise `max_tokens`',
    ],
  ])('says why it holds no answer: %j', async (events, why) => {
    raw.respond = (response) => sendSplit(response, sse(...events, '[DONE]'), 1000)
    expect(await failure(ask(model()))).toEqual({ status: 400, message: `OpenAI API error: ${why}` })
  })

  it('that a filter ended after some words is an answer, and says so', async () => {
    raw.respond = (response) => sendSplit(response, sse(chunk('So'), chunk('', 'content_filter')), 1000)
    expect((await ask(model())).at(-1)).toEqual({ type: 'finish', reason: 'content_filter' })
  })

  it('may be a whole answer from a server that cannot stream', async () => {
    raw.respond = (response) => sendJson(response, 200, { choices: [{ message: { content: 'whole' } }] })
    expect(textOf(await ask(model()))).toBe('whole')
  })
})

describe('failures', () => {
  it.each([
    [500, { error: { message: 'boom' } }, 'OpenAI API error: boom'],
    [401, { error: 'no' }, 'OpenAI API error: no'],
    [503, 'Service Unavailable', 'OpenAI API error: Service Unavailable'],
    [201, '', 'OpenAI API error: HTTP status 201'],
    [302, '', 'OpenAI API error: HTTP status 302'],
  ])('of status %i say what the provider said', async (status, body, message) => {
    raw.respond = (response) => sendJson(response, status, body)
    expect(await failure(ask(model()))).toEqual({ status: 400, message })
    expect(await failure(openai.probe(config(model()), localEnv))).toEqual({ status: 400, message })
  })

  it('never carry the key or a secret header', async () => {
    const headers = { 'x-proxy-key': 'proxy-secret' }
    raw.respond = (response) => sendJson(response, 403, { error: { message: 'proxy-secret is no key' } })
    expect((await failure(ask(model({ headers })))).message).toBe('OpenAI API error: proxy******* is no key')

    raw.respond = (response) => sendJson(response, 401, { error: { message: `Wrong key ${KEY}!` } })
    expect((await failure(ask(model()))).message).toBe('OpenAI API error: Wrong key sk-12********!')
  })

  it.each([3_990, 3_998, 4_010])(
    'carry no part of the key either, where they are cut: %i',
    async (before) => {
      const message = `${'x'.repeat(before)}${KEY}`
      raw.respond = (response) => sendJson(response, 401, { error: { message } })
      expect((await failure(ask(model()))).message).not.toContain(KEY.slice(0, 8))
    },
  )

  it('of a server without an end are what it said first', async () => {
    raw.respond = (response) => {
      response.writeHead(500)
      const more = () => response.writable && response.write('no '.repeat(10_000), more)
      more()
    }
    expect((await failure(ask(model()))).message).toMatch(/^OpenAI API error: (no ){1000}/)
  })

  it('of an answer that is larger than any: it is malformed', async () => {
    raw.respond = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => response.writable && response.write(' '.repeat(1 << 20), more)
      more()
    }
    expect((await failure(ask(model(), { stream: false }))).message).toBe(
      'Got malformed response from OpenAI API.',
    )
  })

  it.each(['{"choices": []}', '{"choices":[{"message":{"content":null}}]}', '[]', 'not json'])(
    'of an answer in one piece: %s is malformed',
    async (body) => {
      raw.respond = (response) => sendJson(response, 200, body)
      expect(await failure(ask(model(), { stream: false }))).toEqual({
        status: 400,
        message: 'Got malformed response from OpenAI API.',
      })
    },
  )

  it('of an answer in one piece say whether the model refused or a filter did', async () => {
    const whole = (message: object, finish_reason: string) => ({ choices: [{ message, finish_reason }] })
    raw.respond = (response) => sendJson(response, 200, whole({ content: null, refusal: 'No.' }, 'stop'))
    expect((await failure(ask(model(), { stream: false }))).message).toBe(
      'OpenAI API error: the model refused to answer: No.',
    )
    raw.respond = (response) => sendJson(response, 200, whole({ content: '' }, 'content_filter'))
    expect((await failure(ask(model(), { stream: false }))).message).toBe(
      'OpenAI API error: a content filter or the model itself withheld the answer',
    )
  })

  it('of a server that is not there name no address', async () => {
    expect(await failure(ask(model({ openai_url: 'http://127.0.0.1:1' })))).toEqual({
      status: 400,
      message: 'OpenAI API error: the provider could not be reached',
    })
  })

  it('of a silent server are time-outs: 400 when asked, 408 when checked', async () => {
    raw.respond = () => {}
    const silent = model({ timeout: 0.05 })
    expect(await failure(ask(silent))).toEqual({ status: 400, message: 'OpenAI API timeout.' })
    expect(await failure(openai.probe(config(silent), localEnv))).toEqual({
      status: 408,
      message: 'OpenAI API timeout.',
    })
  })

  it('of a stream that falls silent are time-outs too', async () => {
    raw.respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse(chunk('So')))
    }
    expect((await failure(ask(model({ timeout: 0.05 })))).message).toBe('OpenAI API timeout.')
  })

  it('do not replace the reason when the caller stops the call', async () => {
    raw.respond = () => {}
    const abort = new AbortController()
    const asked = ask(model(), {}, abort.signal)
    abort.abort(new Error('stopped by me'))
    await expect(asked).rejects.toThrow('stopped by me')
  })
})

describe('a server with ways of its own', () => {
  const stream = (text: string): void => {
    raw.respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(text)
    }
  }

  it.each([
    ...['error', 'ERROR', 'abort', 'network_error', 'insufficient_system_resource'].map((reason) =>
      sse(chunk('Half'), chunk('', reason), '[DONE]'),
    ),
    `${sse(chunk('Half'))}event: error\ndata: {"message":"the account 0 is out of credit"}\n\n${sse('[DONE]')}`,
    `${sse(chunk('Half'))}event: error\ndata: out of credit\n\n${sse(chunk('', 'stop'), '[DONE]')}`,
    `event: error\ndata: {"error":"out of credit"}\n\n${sse('[DONE]')}`,
    `event: error\ndata: 503\n\n${sse(chunk('Half', 'stop'), '[DONE]')}`,
  ])('that reports an error has not answered: %j', async (text) => {
    stream(text)
    await expect(ask(model())).rejects.toThrow(/^OpenAI API error: (?!.*before the answer)/)
  })

  it('that ends a whole answer with an error has not answered', async () => {
    const choice = { message: { content: 'Half' }, finish_reason: 'error' }
    raw.respond = (response) => sendJson(response, 200, { choices: [choice] })
    await expect(ask(model(), { stream: false })).rejects.toThrow(/^OpenAI API error: /)
  })

  it.each([
    ['max_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['model_length', 'length'],
    ['max_output_tokens', 'length'],
    ['token_limit', 'length'],
    ['sensitive', 'content_filter'],
    ['eos', 'stop'],
    ['constructor', 'other'],
    ['tool_calls', 'other'],
  ])('ends in %s, which is %s', async (finish, reason) => {
    stream(sse(chunk('Yes.'), chunk('', finish), '[DONE]'))
    expect((await ask(model())).at(-1)).toEqual({ type: 'finish', reason })
  })

  it.each([true, false, 3, 0, -1.5, {}, { a: [1] }])('writes %j as it was said', async (token) => {
    const said = JSON.stringify(token)
    stream(sse(chunk('It is '), chunk(token), chunk('.', 'stop'), '[DONE]'))
    expect(textOf(await ask(model()))).toBe(`It is ${said}.`)
    stream(sse({ response: 'It is ' }, { response: token }, { response: [] }, '[DONE]'))
    expect(textOf(await ask(model()))).toBe(`It is ${said}[]`)
    raw.respond = (response) => sendJson(response, 200, { choices: [{ message: { content: token } }] })
    expect(textOf(await ask(model(), { stream: false }))).toBe(said)
  })
})
