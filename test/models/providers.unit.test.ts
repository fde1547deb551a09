import { describe, expect, it } from 'vitest'
import { providerOf } from '../../src/models/providers'
import { ask, config, localEnv, textOf } from './ask'
import { rawServer, sendJson, sendSplit, sse } from './raw-server'
import { WorkersAi } from './workers-ai/workers-ai'

const raw = rawServer()

const workersAi = { AI_BACKEND: 'workers-ai' } as Cloudflare.Env

const check = (properties: Record<string, unknown>, env = localEnv) => {
  const checked = config(properties)
  providerOf(checked).validate(checked, env)
}

describe('namespaces', () => {
  it.each([
    ['gpt-4', ''],
    ['mistral/x', 'mistral'],
    ['/x', ''],
  ])('of %s are refused by name', (model_name, namespace) => {
    expect(() => providerOf(config({ model_name }))).toThrow(
      `Model namespace \`${namespace}\` is not supported.`,
    )
  })
})

describe('properties', () => {
  const openai = { model_name: 'openai/x' }
  const cloudflare = { model_name: 'cloudflare/@cf/x' }
  const vllm = { model_name: 'vllm/x' }
  it.each([
    [openai, 'API key is not provided'],
    [{ ...openai, api_key: 123 }, 'API key is not a string'],
    [{ ...openai, api_key: 'k', openai_url: 1 }, 'Property `openai_url` is not a string.'],
    [{ ...openai, api_key: 'k', openai_path: 1 }, 'Property `openai_path` is not a string.'],
    [{ model_name: 'azure/x' }, 'api_key is required for Azure models'],
    [{ model_name: 'azure/x', api_key: 'k' }, 'url is required for Azure models'],
    [{ model_name: 'google/x' }, 'Gemini API key is not provided'],
    [{ model_name: 'google/x', api_key: 1 }, 'Gemini API key is not a string'],
    [cloudflare, 'API key is not provided'],
    [{ ...cloudflare, api_key: 1 }, 'API key is not a string'],
    [{ ...cloudflare, api_key: 'k' }, 'Account ID is not provided'],
    [{ ...cloudflare, api_key: 'k', account_id: 1 }, 'Account ID is not a string'],
    [vllm, 'vLLM URL is not provided'],
    [{ ...vllm, vllm_url: 1 }, 'vLLM URL is not a string'],
    [{ ...vllm, vllm_url: 'u', api_key: 1 }, 'API key is not a string'],
    [
      { model_name: 'local/x' },
      'Property `model_name` is not a valid local model: the only one is `local/extractive`.',
    ],
  ])('%j: %s', (properties, message) => {
    expect(() => check(properties)).toThrow(message)
  })

  it('let Workers AI do without a key where the deployment runs on it', () => {
    expect(() => check({ model_name: 'cloudflare/@cf/x' }, workersAi)).not.toThrow()
  })
})

const chunk = (content: string, finish_reason: string | null = null) => ({
  choices: [{ delta: { content }, finish_reason }],
})

describe('vllm', () => {
  const model = () => ({ model_name: 'vllm/org/llama', vllm_url: `${raw.url}/` })

  it('is accepted when its server lists it and answers', async () => {
    raw.respond = (response, { path }) =>
      sendJson(response, 200, path === '/v1/models' ? { data: [{ id: 'org/llama' }] } : {})
    await providerOf(config(model())).probe(config(model()), localEnv)
    expect(raw.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/models',
      'POST /v1/chat/completions',
    ])
    expect(raw.received[1]?.headers).not.toHaveProperty('authorization')
    expect(raw.received[1]?.body).toMatchObject({ model: 'org/llama' })
  })

  it('is refused when its server does not list it', async () => {
    raw.respond = (response) => sendJson(response, 200, { data: [{ id: 'other' }] })
    await expect(providerOf(config(model())).probe(config(model()), localEnv)).rejects.toMatchObject({
      status: 400,
      message: 'Property `model_name` is not a valid vLLM model.',
    })
  })

  it('words a malformed answer as OpenAI does', async () => {
    raw.respond = (response) => sendJson(response, 200, '{}')
    await expect(ask(model(), { stream: false })).rejects.toThrow('Got malformed response from OpenAI API.')
    raw.respond = (response) => sendJson(response, 500, { message: 'no such model' })
    await expect(ask(model())).rejects.toThrow('vLLM API error: no such model')
  })
})

describe('azure', () => {
  const model = () => ({
    model_name: 'azure/gpt',
    api_key: 'azure-key',
    url: `${raw.url}/d/gpt?api-version=1`,
  })

  it('has its model in the URL and its key in its own header', async () => {
    raw.respond = (response) => sendSplit(response, sse(chunk('Hi', 'stop'), '[DONE]'), 7)
    expect(textOf(await ask(model()))).toBe('Hi')
    const [received] = raw.received
    expect(received).toMatchObject({ path: '/d/gpt?api-version=1', headers: { 'api-key': 'azure-key' } })
    expect(received?.body).not.toHaveProperty('model')
  })

  it.each([
    ['?api-version=2024-06-01', false],
    ['?api-version=2024-08-01-preview', false],
    ['?api-version=2024-09-01-preview', true],
    ['?api-version=2024-10-21', true],
    ['', false],
  ])('asks for token counts at %j: %s', async (version, isAsked) => {
    raw.respond = (response) => sendSplit(response, sse(chunk('Hi', 'stop'), '[DONE]'), 7)
    const url = `${raw.url}/openai/deployments/gpt/chat/completions${version}`
    await ask({ ...model(), url })
    expect(raw.received[0]?.body.stream_options).toEqual(isAsked ? { include_usage: true } : undefined)
  })

  it('tells its own errors from those on the way to it', async () => {
    raw.respond = (response) => sendJson(response, 404, { error: { message: 'DeploymentNotFound' } })
    await expect(ask(model())).rejects.toThrow('Azure API error: DeploymentNotFound')
    raw.respond = (response) => sendJson(response, 502, '<html>')
    await expect(ask(model())).rejects.toThrow('Failed to get response from Azure API: <html>')
  })
})

describe('google', () => {
  const model = () => ({ model_name: 'google/gemini-2.5-flash', api_key: 'google-key', google_url: raw.url })
  const reply = (text: string, finishReason?: string) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3 },
  })

  it('streams the objects that it answers whole', async () => {
    raw.respond = (response) => sendSplit(response, sse(reply('Good '), reply('day', 'STOP')), 11)
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'hi' },
    ]
    expect(await ask({ ...model(), temperature: 0 }, { messages })).toEqual([
      { type: 'text', text: 'Good ' },
      { type: 'text', text: 'day' },
      { type: 'usage', inputTokens: 5, outputTokens: 3 },
      { type: 'finish', reason: 'stop' },
    ])
    const [received] = raw.received
    expect(received?.path).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
    expect(received?.headers).toMatchObject({ 'x-goog-api-key': 'google-key' })
    expect(received?.body).toEqual({
      system_instruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      generationConfig: { temperature: 0 },
    })
  })

  it('keeps thoughts apart, and counts them as what they cost', async () => {
    const thought = { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }] } }] }
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 40 }
    raw.respond = (response) =>
      sendSplit(response, sse(thought, { ...reply('Hi.', 'STOP'), usageMetadata }), 1000)
    expect((await ask(model())).slice(0, 3)).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Hi.' },
      { type: 'usage', inputTokens: 5, outputTokens: 43 },
    ])
  })

  it('answers whole', async () => {
    raw.respond = (response) => sendJson(response, 200, reply('Whole', 'MAX_TOKENS'))
    const deltas = await ask(model(), { stream: false })
    expect(textOf(deltas)).toBe('Whole')
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'length' })
  })

  it.each([
    [sse(reply('half')), 'Gemini API error: the stream ended before the answer was complete'],
    [sse({ promptFeedback: { blockReason: 'SAFETY' } }), 'Gemini API error: the prompt was blocked (SAFETY)'],
    [
      sse({ candidates: [{ finishReason: 'SAFETY' }] }),
      'Gemini API error: a content filter or the model itself withheld the answer',
    ],
    [
      sse(reply('half'), { promptFeedback: { blockReason: 'OTHER' } }),
      'Gemini API error: the prompt was blocked (OTHER)',
    ],
    [
      sse({ candidates: [{ finishReason: 'MAX_TOKENS' }] }),
      'Gemini API error: the model reached its limit of tokens before its answer began: raise `max_tokens`',
    ],
    [sse({ error: { message: 'quota' } }), 'Gemini API error: quota'],
    [sse(reply('', 'STOP')), 'Got malformed response from Gemini API.'],
  ])('refuses %s', async (events, message) => {
    raw.respond = (response) => sendSplit(response, events, 1000)
    await expect(ask(model())).rejects.toThrow(message)
  })

  it('is checked by a hello', async () => {
    raw.respond = (response) => sendJson(response, 200, reply('hi', 'STOP'))
    await providerOf(config(model())).probe(config(model()), localEnv)
    expect(raw.received[0]?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
    raw.respond = (response) => sendJson(response, 200, {})
    await expect(providerOf(config(model())).probe(config(model()), localEnv)).rejects.toThrow(
      'Got malformed response from Gemini API.',
    )
  })
})

describe('cloudflare', () => {
  const model = () => ({
    model_name: 'cloudflare/@cf/meta/llama-3',
    api_key: 'cloudflare-key',
    account_id: 'acc',
    cloudflare_url: raw.url,
  })

  it('reads both shapes of stream, null responses and usage alone included', async () => {
    const native = [
      { response: 'One' },
      { response: ' two' },
      { response: null, usage: { prompt_tokens: 4, completion_tokens: 2 } },
      '[DONE]',
    ]
    raw.respond = (response) => sendSplit(response, sse(...native), 9)
    expect(await ask(model())).toEqual([
      { type: 'text', text: 'One' },
      { type: 'text', text: ' two' },
      { type: 'usage', inputTokens: 4, outputTokens: 2 },
      { type: 'finish', reason: 'stop' },
    ])
    expect(raw.received[0]).toMatchObject({
      path: '/accounts/acc/ai/run/@cf/meta/llama-3',
      body: { stream: true },
    })
    raw.respond = (response) =>
      sendSplit(response, sse(chunk('OpenAI '), chunk('style', 'stop'), '[DONE]'), 9)
    expect(textOf(await ask(model(), { stream: false }))).toBe('OpenAI style')
  })

  it.each([
    { response: 'whole', usage: { prompt_tokens: 4, completion_tokens: 2 } },
    { choices: [{ message: { content: 'whole' } }], usage: { prompt_tokens: 4, completion_tokens: 2 } },
  ])('reads an answer that came whole all the same: %j', async (result) => {
    const expected = [
      { type: 'text', text: 'whole' },
      { type: 'usage', inputTokens: 4, outputTokens: 2 },
      { type: 'finish', reason: 'stop' },
    ]
    raw.respond = (response) => sendJson(response, 200, { success: true, result })
    expect(await ask(model())).toEqual(expected)
    const env = { AI_BACKEND: 'workers-ai', AI: { run: async () => result } } as unknown as Cloudflare.Env
    expect(await ask({ model_name: 'cloudflare/@cf/m' }, {}, undefined, env)).toEqual(expected)
  })

  it('gives its first error on, and takes a stream without an end for an error', async () => {
    raw.respond = (response) =>
      sendJson(response, 403, { success: false, errors: [{ code: 10000, message: 'Authentication error' }] })
    await expect(ask(model())).rejects.toThrow('Cloudflare API error: Authentication error')
    raw.respond = (response) => sendSplit(response, sse({ response: 'half' }), 1000)
    await expect(ask(model())).rejects.toThrow('Cloudflare API error: the stream ended')
  })

  describe('through the binding, where the deployment runs on Workers AI', () => {
    const bound = (ai: WorkersAi) => ({ AI_BACKEND: 'workers-ai', AI: ai }) as unknown as Cloudflare.Env
    const asking = (ai: WorkersAi, properties: Record<string, unknown> = {}) =>
      ask(
        { model_name: 'cloudflare/@cf/meta/llama-3.2-1b-instruct', ...properties },
        {},
        undefined,
        bound(ai),
      )

    it('needs no key', async () => {
      const ai = new WorkersAi({ answer: () => 'bound' })
      expect(textOf(await asking(ai, { max_tokens: 9 }))).toBe('bound')
      expect(ai.calls[0]).toMatchObject({
        model: '@cf/meta/llama-3.2-1b-instruct',
        inputs: { max_tokens: 9, messages: [{ role: 'user', content: 'hi there' }], stream: true },
      })
    })

    it("sends the model's own headers", async () => {
      const ai = new WorkersAi()
      await asking(ai, { headers: { 'x-team': 'search' } })
      await asking(ai)
      expect(ai.calls.map(({ options }) => options.extraHeaders)).toEqual([{ 'x-team': 'search' }, undefined])
    })

    it.each([
      [3036, 429, 'exhausted'],
      [3040, 429, 'busy'],
      [3006, 413, 'refused'],
      [3042, 404, 'denied'],
      [3023, 403, 'denied'],
      [5007, 400, 'refused'],
      // Another model can answer; the same one never will.
      [5028, 410, 'denied'],
      [5035, 403, 'denied'],
    ])('its error %i stands for the status %i', async (code, upstream, fault) => {
      const ai = new WorkersAi()
      ai.failNext(code)
      await expect(asking(ai)).rejects.toMatchObject({
        status: 400,
        message: expect.stringMatching(`^Cloudflare API error: ${code}: `),
        upstream,
        fault,
      })
    })

    it.each([3007, 3008])('its error %i is a time-out', async (code) => {
      const ai = new WorkersAi()
      ai.failNext(code)
      await expect(asking(ai)).rejects.toMatchObject({ message: 'Cloudflare API timeout.', fault: 'silent' })
    })

    it.each<[string, () => Promise<unknown>]>([
      ['that never answers', () => new Promise(() => {})],
      ['whose stream falls silent', async () => new ReadableStream({ pull: () => new Promise(() => {}) })],
    ])('one %s is given up, whether or not it heeds the signal', async (_, run) => {
      const env = { AI_BACKEND: 'workers-ai', AI: { run } } as unknown as Cloudflare.Env
      await expect(
        ask({ model_name: 'cloudflare/@cf/m', timeout: 0.05 }, {}, undefined, env),
      ).rejects.toMatchObject({ message: 'Cloudflare API timeout.', fault: 'silent' })
    })

    it.each([
      [{}, 256, 'length'],
      [{}, 255, 'stop'],
      [{}, 900, 'stop'],
      [{ max_tokens: 40 }, 40, 'length'],
      [{ max_tokens: 40 }, 39, 'stop'],
    ])('with %j and %i tokens written, its answer ended by %s', async (properties, tokens, reason) => {
      const ai = new WorkersAi({ answer: () => ({ text: 'This is how it', usage: [3, tokens] }) })
      expect((await asking(ai, properties)).at(-1)).toEqual({ type: 'finish', reason })
    })

    it('an error without a code is a fault on the way to it', async () => {
      const env = { AI_BACKEND: 'workers-ai', AI: { run: () => Promise.reject(new Error('Network lost')) } }
      const asked = ask({ model_name: 'cloudflare/@cf/m' }, {}, undefined, env as unknown as Cloudflare.Env)
      await expect(asked).rejects.toMatchObject({
        message: 'Cloudflare API error: Network lost',
        fault: 'unreached',
      })
    })
  })

  it('tells a used up allowance from a crowd over HTTP too', async () => {
    const failing = (code: number) => {
      raw.respond = (response) =>
        sendJson(response, 429, { success: false, errors: [{ code, message: 'no' }] })
      return ask(model())
    }
    await expect(failing(3036)).rejects.toMatchObject({ fault: 'exhausted' })
    await expect(failing(3040)).rejects.toMatchObject({ fault: 'busy' })
  })
})
