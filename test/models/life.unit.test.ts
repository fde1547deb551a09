/** What counts as life of a provider's stream: content, by whatever wire it comes, and nothing else. */
import type { ServerResponse } from 'node:http'
import { describe, expect, it, type TestContext } from 'vitest'
import { WIRES } from '../../bench/wires.mjs'
import { overallLimit } from '../../src/models/resilient'
import { ask, localEnv, textOf } from './ask'
import { startRawServer } from './raw-server'

type Wire = (typeof WIRES)[string]

/** A provider by its wire, and a piece of its stream that says nothing. */
const PROVIDERS: [
  name: string,
  wire: string,
  model: (url: string) => Record<string, unknown>,
  nothing: Wire['chunk'],
][] = [
  [
    'openai',
    'openai',
    (url) => ({ model_name: 'openai/m', api_key: 'k', openai_url: url }),
    WIRES.openai!.chunk,
  ],
  [
    'vllm',
    'openai',
    (url) => ({ model_name: 'vllm/m', vllm_url: url }),
    () => 'data: {"choices":[],"usage":null}\n\n',
  ],
  [
    'anthropic',
    'anthropic',
    (url) => ({ model_name: 'anthropic/m', api_key: 'k', anthropic_url: url }),
    () => 'event: ping\ndata: {"type":"ping"}\n\n',
  ],
  [
    'google',
    'google',
    (url) => ({ model_name: 'google/m', api_key: 'k', google_url: url }),
    WIRES.google!.chunk,
  ],
  [
    'bedrock',
    'bedrock',
    (url) => ({ model_name: 'bedrock/m', api_key: 'k', region: 'eu-west-1', bedrock_url: url }),
    WIRES.bedrock!.chunk,
  ],
  [
    'cloudflare',
    'workers-ai',
    (url) => ({
      model_name: 'cloudflare/@cf/m',
      api_key: 'k',
      account_id: 'a',
      cloudflare_url: url,
    }),
    WIRES['workers-ai']!.chunk,
  ],
]

/** Writes a piece every few milliseconds, for as long as somebody listens. */
function drip(response: ServerResponse, piece: string | Uint8Array, times = Number.POSITIVE_INFINITY) {
  return new Promise<void>((resolve) => {
    let sent = 0
    const timer = setInterval(() => {
      if (sent++ < times) return void response.write(piece)
      clearInterval(timer)
      resolve()
    }, 30)
    response.once('close', () => clearInterval(timer))
  })
}

/** A provider of one test, which ends with it: each of them waits, and they wait at the same time. */
async function serving(
  onTestFinished: TestContext['onTestFinished'],
  respond: (response: ServerResponse) => Promise<void>,
): Promise<string> {
  const raw = await startRawServer()
  onTestFinished(() => raw.stop())
  raw.respond = respond
  return raw.url
}

describe.concurrent.each(PROVIDERS)('%s', (_, name, model, nothing) => {
  const wire = WIRES[name]!
  const begin = (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': wire.type })
    for (const piece of wire.begin) response.write(piece)
    response.write(wire.chunk('Half '))
  }

  it('that goes on without content is silent', async ({ expect, onTestFinished }) => {
    const url = await serving(onTestFinished, async (response) => {
      begin(response)
      await drip(response, nothing(''))
    })
    await expect(ask({ ...model(url), timeout: 0.3 })).rejects.toMatchObject({
      fault: 'silent',
      message: expect.stringMatching(/API timeout\.$/),
    })
  })

  it('that goes on with content is alive', async ({ expect, onTestFinished }) => {
    const url = await serving(onTestFinished, async (response) => {
      begin(response)
      await drip(response, wire.chunk('and '), 60)
      for (const piece of wire.end) response.write(piece)
      response.end()
    })
    expect(textOf(await ask({ ...model(url), timeout: 1 }))).toBe(`Half ${'and '.repeat(60)}`)
  })

  it('that keeps the connection open after the end has answered', async ({ expect, onTestFinished }) => {
    let closed = false
    const url = await serving(onTestFinished, async (response) => {
      response.once('close', () => {
        closed = true
      })
      begin(response)
      // Many servers of OpenAI's wire leave out its end marker.
      const end = name === 'openai' ? wire.end.slice(0, -1) : wire.end
      for (const piece of end) response.write(piece)
      await drip(response, nothing(''))
    })
    expect(textOf(await ask({ ...model(url), timeout: 0.3 }))).toBe('Half ')
    await expect.poll(() => closed).toBe(true)
  })
})

describe.concurrent('the binding of Workers AI', () => {
  it('whose stream goes on without content is silent', async ({ expect }) => {
    let timer: ReturnType<typeof setInterval>
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        const piece = new TextEncoder().encode('data: {"response":""}\n\n')
        timer = setInterval(() => controller.enqueue(piece), 30)
      },
      cancel: () => clearInterval(timer),
    })
    const env = { ...localEnv, AI_BACKEND: 'workers-ai', AI: { run: async () => stream } }
    const asking = ask(
      { model_name: 'cloudflare/@cf/m', timeout: 0.3 },
      {},
      undefined,
      env as unknown as Cloudflare.Env,
    )
    await expect(asking).rejects.toMatchObject({ fault: 'silent' })
  })
})

describe.concurrent('a whole reply', () => {
  it('that is white space for ever is silent', async ({ expect, onTestFinished }) => {
    const url = await serving(onTestFinished, async (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      await drip(response, '\n')
    })
    const asking = ask(
      { model_name: 'openai/m', api_key: 'k', openai_url: url, timeout: 0.3 },
      { stream: false },
    )
    await expect(asking).rejects.toMatchObject({ fault: 'silent' })
  })
})

it('a call may take half an hour, and the silence that its model is allowed', () => {
  expect([overallLimit(60), overallLimit(3_600)]).toEqual([1_860, 5_400])
})
