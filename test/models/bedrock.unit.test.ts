import { createHash, createHmac } from 'node:crypto'
import { EventStreamCodec } from '@smithy/core/event-streams'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { bedrock, readFrames } from '../../src/models/bedrock'
import { ask, config, localEnv, textOf } from './ask'
import { type Received, rawServer, sendJson } from './raw-server'

const MODEL = 'anthropic.claude-3-5-sonnet-20241022-v2:0'
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const raw = rawServer()

const model = (extra: Record<string, unknown> = {}) => ({
  model_name: `bedrock/${MODEL}`,
  access_key_id: 'AKIDEXAMPLE',
  secret_access_key: SECRET,
  region: 'eu-west-1',
  bedrock_url: raw.url,
  ...extra,
})

const encoder = new TextEncoder()
const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => encoder.encode(text),
)

type Event = [name: string, payload: object, type?: string]

const frame = ([name, payload, type = 'event']: Event): Uint8Array =>
  codec.encode({
    headers: {
      [`:${type}-type`]: { type: 'string', value: name },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: type },
    },
    body: encoder.encode(JSON.stringify(payload)),
  })

const frames = (...events: Event[]): Buffer => Buffer.concat(events.map(frame))

const text = (part: string): Event => ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: part } }]
const stop = (stopReason = 'end_turn'): Event => ['messageStop', { stopReason }]
const metadata: Event = [
  'metadata',
  { usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 }, metrics: { latencyMs: 1 } },
]
const ANSWER: Event[] = [
  ['messageStart', { role: 'assistant' }],
  text('Good '),
  text('day'),
  stop(),
  metadata,
]

function answering(...events: Event[]): Promise<Awaited<ReturnType<typeof ask>>> {
  return answeringTo({}, ...events)
}

function answeringTo(
  request: Parameters<typeof ask>[1],
  ...events: Event[]
): Promise<Awaited<ReturnType<typeof ask>>> {
  raw.respond = (response) => {
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
    response.end(frames(...events))
  }
  return ask(model(), request)
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** The signature that a request should have, worked out from the published steps of Signature Version 4. */
function signatureOf({ method, path, headers, body }: Received): string {
  const [, day, names] =
    /Credential=AKIDEXAMPLE\/(\d{8})\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=([^,]+), /.exec(
      String(headers.authorization),
    ) ?? []
  const signed = names!.split(';')
  const canonical = [
    method,
    // All services but S3 encode the path once more.
    path.split('/').map(encodeURIComponent).join('/'),
    '',
    ...signed.map((name) => `${name}:${headers[name]}`),
    '',
    signed.join(';'),
    sha256(JSON.stringify(body)),
  ].join('\n')
  const scope = `${day}/eu-west-1/bedrock/aws4_request`
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n')
  const key = [day!, 'eu-west-1', 'bedrock', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${SECRET}`)
  return createHmac('sha256', key).update(toSign).digest('hex')
}

it('reads the calls of tools in a stream, whose arguments come in pieces', async () => {
  const piece = (at: number, input: string): Event => [
    'contentBlockDelta',
    { contentBlockIndex: at, delta: { toolUse: { input } } },
  ]
  const begin = (at: number, toolUseId: string): Event => [
    'contentBlockStart',
    { contentBlockIndex: at, start: { toolUse: { toolUseId, name: 'orders' } } },
  ]
  const tools = [{ name: 'orders', description: 'Looks up an order.', parameters: { type: 'object' } }]
  const deltas = await answeringTo(
    { tools },
    text('Let me see.'),
    begin(1, 'c1'),
    piece(1, '{"id":'),
    begin(2, 'c2'),
    piece(2, ''),
    piece(1, '"7"}'),
    piece(2, '{"id":"8"}'),
    stop('tool_use'),
    metadata,
  )
  expect(deltas.filter(({ type }) => type !== 'usage')).toEqual([
    { type: 'text', text: 'Let me see.' },
    { type: 'call', call: { type: 'tool_call', id: 'c1', name: 'orders', arguments: '{"id":"7"}' } },
    { type: 'call', call: { type: 'tool_call', id: 'c2', name: 'orders', arguments: '{"id":"8"}' } },
    { type: 'finish', reason: 'stop' },
  ])
})

describe('what is sent to Bedrock', () => {
  it('is a Converse request, signed', async () => {
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'hi' },
    ]
    raw.respond = (response) => void response.end(frames(...ANSWER))
    await ask(model({ session_token: 'session', temperature: 0, max_tokens: 9 }), { messages })
    const [received] = raw.received
    expect(received?.path).toBe('/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse-stream')
    expect(received?.body).toEqual({
      system: [{ text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ text: 'hi' }] }],
      inferenceConfig: { maxTokens: 9, temperature: 0 },
    })
    expect(received?.headers['x-amz-security-token']).toBe('session')
    expect(received?.headers.authorization).toMatch(/SignedHeaders=[^,]*host;[^,]*x-amz-security-token/)
    expect(received?.headers.authorization).toContain(`Signature=${signatureOf(received!)}`)
  })

  it('carries an API key instead where there is one', async () => {
    raw.respond = (response) => void response.end(frames(...ANSWER))
    await ask(model({ api_key: 'bedrock-api-key', access_key_id: undefined, secret_access_key: undefined }))
    expect(raw.received[0]?.headers.authorization).toBe('Bearer bedrock-api-key')
  })

  it('is a hello of one token when a model is checked', async () => {
    raw.respond = (response) => sendJson(response, 200, {})
    await bedrock.probe(config(model()), localEnv)
    expect(raw.received[0]).toMatchObject({
      path: expect.stringMatching(/\/converse$/),
      body: { messages: [{ content: [{ text: 'hello' }] }], inferenceConfig: { maxTokens: 1 } },
    })
  })

  it('that cannot be signed is refused like any other, and nothing of it is left behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await expect(ask(model({ bedrock_url: 'nowhere' }))).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining('not a complete'),
      })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('goes to the endpoint of the region', async () => {
    const elsewhere = config(model({ bedrock_url: undefined, region: 'eu-west-1', api_key: 'k' }))
    const env = { ...localEnv, ALLOWED_HOSTS: '', AI_GATEWAY: 'acc/gw', AI_GATEWAY_URL: raw.url }
    // The gateway's host is not allowed: the error names where the call was going.
    await expect(bedrock.probe(elsewhere, env as Cloudflare.Env)).rejects.toThrow(raw.url)
    env.ALLOWED_HOSTS = '127.0.0.1'
    raw.respond = (response) => sendJson(response, 200, {})
    await bedrock.probe(elsewhere, env as Cloudflare.Env)
    expect(raw.received[0]?.path).toMatch(/^\/acc\/gw\/aws-bedrock\/bedrock-runtime\/eu-west-1\/model\//)
  })
})

describe('the properties of a Bedrock model', () => {
  it.each([
    [{ region: undefined }, 'Property `region` is not an AWS region, such as `us-east-1`.'],
    [{ region: 'evil.test/#' }, 'Property `region` is not an AWS region, such as `us-east-1`.'],
    [
      { secret_access_key: undefined },
      'Bedrock models need `access_key_id` and `secret_access_key`, or an `api_key` of Bedrock.',
    ],
    [{ secret_access_key: 5 }, 'Property `secret_access_key` is not a string.'],
    [{ session_token: 5 }, 'Property `session_token` is not a string.'],
    [{ bedrock_url: 5 }, 'Property `bedrock_url` is not a string.'],
  ])('%j: %s', (parts, message) => {
    expect(() => bedrock.validate(model(parts), localEnv)).toThrow(message)
  })
})

describe('a stream of Bedrock', () => {
  it('gives text, and the counts that come after its end', async () => {
    expect(await answering(...ANSWER)).toEqual([
      { type: 'text', text: 'Good ' },
      { type: 'text', text: 'day' },
      { type: 'usage', inputTokens: 5, outputTokens: 3 },
      { type: 'finish', reason: 'stop' },
    ])
  })

  it('keeps reasoning apart', async () => {
    const reasoning: Event = [
      'contentBlockDelta',
      { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm.' } } },
    ]
    const deltas = await answering(reasoning, text('Hi.'), stop())
    expect(deltas[0]).toEqual({ type: 'reasoning', text: 'Hm.' })
    expect(textOf(deltas)).toBe('Hi.')
  })

  it.each([
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['malformed_model_output', 'other'],
  ])('that ended with %s finished with %s', async (stopReason, reason) => {
    expect((await answering(text('So'), stop(stopReason), metadata)).at(-1)).toEqual({
      type: 'finish',
      reason,
    })
  })

  it.each<[Event[], string]>([
    [[text('half')], 'the stream ended before the answer was complete'],
    [[stop('content_filtered'), metadata], 'a content filter or the model itself withheld the answer'],
    [
      [text('half'), ['throttlingException', { message: 'Too many tokens' }, 'exception']],
      'throttlingException: Too many tokens',
    ],
    [
      [['modelStreamErrorException', { message: 'broken', originalStatusCode: 500 }, 'exception']],
      'modelStreamErrorException: broken',
    ],
  ])('is no answer: %j', async (events, why) => {
    await expect(answering(...events)).rejects.toMatchObject({
      status: 400,
      message: `Bedrock API error: ${why}`,
    })
  })

  it.each([
    ['throttlingException', 'limited'],
    ['modelStreamErrorException', 'failed'],
    ['internalServerException', 'busy'],
    ['serviceUnavailableException', 'busy'],
    ['validationException', 'refused'],
  ])('tells by %s that it is %s', async (name, fault) => {
    await expect(answering([name, { message: 'x' }, 'exception'])).rejects.toMatchObject({ fault })
  })

  it('tells a model that failed from a request that is refused, before the stream too', async () => {
    const failing = (status: number) => {
      raw.respond = (response) => sendJson(response, status, { message: 'x' })
      return ask(model())
    }
    await expect(failing(424)).rejects.toMatchObject({ fault: 'failed' })
    await expect(failing(400)).rejects.toMatchObject({ fault: 'refused' })
  })

  it('is no answer when its bytes are not what was sent', async () => {
    const bytes = frames(...ANSWER)
    bytes[bytes.length - 20]! ^= 1
    raw.respond = (response) => void response.end(bytes)
    await expect(ask(model())).rejects.toThrow('Bedrock API error: the stream ended before')
  })
})

describe('a whole answer of Bedrock', () => {
  it('has its texts joined and its reasoning apart', async () => {
    raw.respond = (response) =>
      sendJson(response, 200, {
        output: {
          message: {
            role: 'assistant',
            content: [
              { reasoningContent: { reasoningText: { text: 'Hm.' } } },
              { text: 'Good ' },
              { text: 'day' },
            ],
          },
        },
        stopReason: 'end_turn',
        usage: { inputTokens: 4, outputTokens: 2, cacheReadInputTokens: 6 },
      })
    expect(await ask(model(), { stream: false })).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Good ' },
      { type: 'text', text: 'day' },
      { type: 'usage', inputTokens: 10, outputTokens: 2 },
      { type: 'finish', reason: 'stop' },
    ])
    expect(raw.received[0]?.path).toMatch(/\/converse$/)
  })

  it.each([
    [
      403,
      { message: `The secret ${SECRET} does not match` },
      `The secret wJalr${'*'.repeat(35)} does not match`,
    ],
    [429, { message: 'Too many requests' }, 'Too many requests'],
    [404, { Message: 'UnknownOperationException' }, 'UnknownOperationException'],
  ])('of status %i is an error', async (status, body, message) => {
    raw.respond = (response) => sendJson(response, status, body)
    await expect(ask(model(), { stream: false })).rejects.toThrow(`Bedrock API error: ${message}`)
  })

  it('without a message is malformed', async () => {
    raw.respond = (response) => sendJson(response, 200, { stopReason: 'end_turn' })
    await expect(ask(model(), { stream: false })).rejects.toThrow('Got malformed response from Bedrock API.')
  })
})

describe('the frames of an event stream', () => {
  const bodies = async (bytes: Uint8Array, cuts: number[]): Promise<string[]> => {
    const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 1; at < edges.length; at++) {
          const piece = bytes.slice(edges[at - 1], edges[at])
          if (piece.length > 0) controller.enqueue(piece)
        }
        controller.close()
      },
    })
    const found: string[] = []
    for await (const { body } of readFrames(stream)) found.push(body)
    return found
  }

  it('are the same wherever the network cuts them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (texts, cuts) => {
          const bytes = frames(...texts.map((part): Event => text(part)))
          const expected = texts.map((part) => JSON.stringify(text(part)[1]))
          expect(await bodies(bytes, cuts)).toEqual(expected)
        },
      ),
    )
  })

  it('that lack their end are not given', async () => {
    const bytes = frames(text('a'), text('b'))
    expect(await bodies(bytes.subarray(0, -1), [])).toHaveLength(1)
  })

  it('of an impossible length are refused at once', async () => {
    const huge = frames(text('a'))
    new DataView(huge.buffer, huge.byteOffset).setUint32(0, 0x7fffffff)
    await expect(bodies(huge, [])).rejects.toThrow('length')
  })
})
