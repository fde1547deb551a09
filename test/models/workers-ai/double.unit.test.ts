import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Served } from '../../serve'
import { serveWorkersAi, TOKEN } from './server'
import { WorkersAi } from './workers-ai'

const NATIVE = '@cf/meta/llama-3.3-70b-instruct-fp8-fast'
const OPENAI = '@cf/zai-org/glm-4.7-flash'
const messages = [{ role: 'user', content: 'hi' }]

const textIn = async (stream: unknown): Promise<string> => new Response(stream as ReadableStream).text()

describe('the binding of Workers AI', () => {
  it('streams in either shape, to the end marker', async () => {
    const ai = new WorkersAi({ answer: () => 'Two words' })
    const native = await textIn(await ai.run(NATIVE, { messages, stream: true }))
    expect(native).toMatch(/^data: {"response":"Two","p":"\w+"}\n\n/)
    expect(native).toMatch(/"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4}}\n\n/)
    const openai = await textIn(await ai.run(OPENAI, { messages, stream: true }))
    expect(openai).toContain('"delta":{"content":" words"}')
    expect(openai).toContain('"finish_reason":"stop"')
    for (const text of [native, openai]) expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('answers whole in either shape', async () => {
    const ai = new WorkersAi({ answer: () => ({ text: 'Yes.', usage: [7, 2] }) })
    expect(await ai.run(NATIVE, { messages })).toMatchObject({
      response: 'Yes.',
      usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
    })
    expect(await ai.run(OPENAI, { messages })).toMatchObject({
      choices: [{ message: { content: 'Yes.' }, finish_reason: 'stop' }],
    })
  })

  it.each([
    ['@cf/nobody/nothing', {}, '5007: No such model @cf/nobody/nothing or task'],
    ['gpt-4', {}, '3042: The model name is invalid'],
    [NATIVE, {}, /^5006: .*'messages'/],
    [NATIVE, { messages: [{ role: 'user', content: 'x'.repeat(100_000) }] }, /^5021: .*\(25256\).*\(24000\)/],
    ['@cf/baai/bge-m3', { text: new Array(101).fill('x') }, /^5006: .*between 1 and 100/],
    ['@cf/qwen/qwen3-embedding-0.6b', { documents: new Array(33).fill('x') }, /^5006: .*between 1 and 32/],
    ['@cf/baai/bge-m3', { text: [] }, /^5006: /],
    ['@cf/baai/bge-reranker-base', { query: 'x' }, /^5006: .*'contexts'/],
  ])('refuses %s %j with a plain error', async (model, inputs, message) => {
    const ai = new WorkersAi()
    await expect(ai.run(model, inputs)).rejects.toThrow(message)
    const error: object = await ai.run(model, inputs).then(Object, Object)
    expect(Object.keys(error)).toEqual(['name'])
  })

  it('fails as often as it is told to, and stops when it is aborted', async () => {
    const ai = new WorkersAi()
    ai.failNext(3040, { times: 2 })
    for (let n = 0; n < 2; n++) await expect(ai.run(NATIVE, { messages })).rejects.toThrow('3040: Capacity')
    await expect(ai.run(NATIVE, { messages })).resolves.toBeDefined()
    expect(ai.calls).toHaveLength(3)
    await expect(
      ai.run(NATIVE, { messages }, { signal: AbortSignal.abort(new Error('gone')) }),
    ).rejects.toThrow('gone')
  })

  it('embeds texts as unit vectors that words in common bring near', async () => {
    const { data, shape } = (await new WorkersAi().run('@cf/baai/bge-small-en-v1.5', {
      text: ['red apple', 'green apple', 'blue whale'],
    })) as { data: number[][]; shape: number[] }
    expect(shape).toEqual([3, 384])
    const cosine = (a: number, b: number) => data[a]!.reduce((sum, part, at) => sum + part * data[b]![at]!, 0)
    expect(cosine(0, 0)).toBeCloseTo(1)
    expect(cosine(0, 1)).toBeGreaterThan(cosine(0, 2))
  })

  it('ranks contexts by their places in the request', async () => {
    const contexts = [{ text: 'a whale' }, { text: 'where a red apple grows' }, { text: 'an apple' }]
    const reply = await new WorkersAi().run('@cf/baai/bge-reranker-base', {
      query: 'red apple',
      contexts,
      top_k: 2,
    })
    expect(reply).toEqual({
      response: [
        { id: 1, score: expect.any(Number) },
        { id: 2, score: expect.any(Number) },
      ],
    })
  })
})

describe('the REST API of Workers AI', () => {
  let ai: WorkersAi
  let server: Served
  beforeAll(async () => {
    ai = new WorkersAi()
    server = await serveWorkersAi(ai)
  })
  afterAll(() => server.stop())

  const post = (model: string, body: unknown, token = TOKEN) =>
    fetch(`${server.url}/accounts/acc/ai/run/${model}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  it('wraps results, and streams without a wrapping', async () => {
    const whole = await post(NATIVE, { messages })
    expect(await whole.json()).toMatchObject({
      success: true,
      errors: [],
      result: { response: 'You said: hi' },
    })
    const stream = await post(NATIVE, { messages, stream: true })
    expect(stream.headers.get('content-type')).toBe('text/event-stream')
    expect(await stream.text()).toMatch(/data: \[DONE\]\n\n$/)
  })

  it.each([
    [3036, 429],
    [3040, 429],
    [3006, 413],
    [3007, 408],
    [3008, 408],
    [3042, 404],
    [3023, 403],
    [5007, 400],
  ])('answers the internal code %i with the status %i', async (code, status) => {
    ai.failNext(code)
    const response = await post(NATIVE, { messages })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ success: false, result: null, errors: [{ code }] })
  })

  it('knows its token and its bodies', async () => {
    const refused = await post(NATIVE, { messages }, 'another')
    expect(refused.status).toBe(401)
    expect(await refused.json()).toMatchObject({ errors: [{ code: 10000, message: 'Authentication error' }] })
    expect((await post(NATIVE, '{')).status).toBe(400)
  })
})
