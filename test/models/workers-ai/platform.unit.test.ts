/** The platform's own limits on Workers AI: models that are retired or need a plan, thinking, generations a minute. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EMBEDDING_MODELS, WORKERS_AI_MODELS } from '../../../scripts/costs/workers-ai.mjs'
import { isCurable, isRetriable } from '../../../src/models/resilient'
import { ask, textOf } from '../ask'
import { rawServer, sendJson, sendSplit, sse } from '../raw-server'
import { WorkersAi } from './workers-ai'

const SRC = join(import.meta.dirname, '../../../src')
const raw = rawServer()

/** Over HTTP, with a key. */
const model = () => ({
  model_name: 'cloudflare/@cf/meta/llama-3',
  api_key: 'cloudflare-key',
  account_id: 'acc',
  cloudflare_url: raw.url,
})
const bound = (ai: WorkersAi) => ({ AI_BACKEND: 'workers-ai', AI: ai }) as unknown as Cloudflare.Env
/** Through the binding. */
const asking = (ai: WorkersAi, properties: Record<string, unknown> = {}) =>
  ask({ model_name: 'cloudflare/@cf/meta/llama-3.2-1b-instruct', ...properties }, {}, undefined, bound(ai))

test.each([
  [5028, 'was retired'],
  [5035, 'Workers Paid plan'],
])('its error %i says what to do, once, through the binding and over HTTP', async (code, advice) => {
  const ai = new WorkersAi()
  ai.failNext(code)
  const error = await asking(ai).catch((thrown) => thrown)
  expect(error.message).toContain(advice)
  expect(isRetriable(error)).toBe(false)
  expect(isCurable(error)).toBe(true)
  expect(ai.calls).toHaveLength(1)
  raw.respond = (response) => sendJson(response, 400, { success: false, errors: [{ code, message: 'No.' }] })
  const remote = await ask(model()).catch((thrown) => thrown)
  expect(remote.message).toContain(advice)
  expect(remote.fault).toBe('denied')
})

test('does not think unless it is asked to', async () => {
  const ai = new WorkersAi()
  const inputsFor = async (name: string, properties = {}) => {
    await asking(ai, { model_name: `cloudflare/@cf/${name}`, ...properties })
    return ai.calls.at(-1)!.inputs
  }
  const off = { chat_template_kwargs: { enable_thinking: false } }
  for (const [name, { thinking }] of Object.entries(WORKERS_AI_MODELS)) {
    const { chat_template_kwargs: sent } = await inputsFor(name.replace('@cf/', ''))
    expect([name, sent]).toEqual([name, thinking === 'off' ? off.chat_template_kwargs : undefined])
  }
  expect(await inputsFor('zai-org/glm-4.7-flash')).toMatchObject(off)
  expect(await inputsFor('zai-org/glm-4.7-flash', { reasoning_effort: 'none' })).toMatchObject(off)
  expect(ai.calls.at(-1)!.inputs).not.toHaveProperty('reasoning_effort')
  const thinking = await inputsFor('zai-org/glm-4.7-flash', { reasoning_effort: 'low' })
  expect(thinking).toMatchObject({ reasoning_effort: 'low' })
  expect(thinking).not.toHaveProperty('chat_template_kwargs')
  expect(await inputsFor('meta/llama-3.2-1b-instruct')).not.toHaveProperty('chat_template_kwargs')
})

test('models that are called by name are among those that `npm run models -- --check` looks for', () => {
  const called = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => readFileSync(join(SRC, file), 'utf8').match(/@cf\/[a-z]+\/[a-z0-9.-]+/g) ?? [])
  expect(new Set([...called, ...EMBEDDING_MODELS])).toEqual(new Set(EMBEDDING_MODELS))
})

test('is asked no more often than the account may, and waits a moment before it says so', async () => {
  const ai = new WorkersAi()
  const keys: string[] = []
  let left = 1
  const RATE_LIMIT_MODELS = {
    limit: async ({ key }: { key: string }) => {
      keys.push(key)
      return { success: left-- > 0 }
    },
  }
  const config = { model_name: 'cloudflare/@cf/meta/llama-3.2-1b-instruct' }
  const env = (more = {}) => ({ ...bound(ai), RATE_LIMIT_MODELS, ...more }) as unknown as Cloudflare.Env
  expect(textOf(await ask(config, {}, undefined, env()))).toContain('You said')
  const error = await ask(config, {}, undefined, env()).catch((thrown) => thrown)
  expect(error).toMatchObject({ status: 429, fault: 'limited', upstream: undefined })
  expect(error.message).toContain('300 text generations a minute')
  expect(isRetriable(error)).toBe(true)
  expect(isCurable(error)).toBe(true)
  expect(ai.calls).toHaveLength(1)
  // All deployments of the account count together, whatever they ask.
  expect(new Set(keys)).toEqual(new Set(['text-generation']))
  expect(textOf(await ask(config, {}, undefined, env({ RATE_LIMITS: 'off' })))).toContain('You said')
  // A key of another account has limits of its own.
  raw.respond = (response) => sendSplit(response, sse({ response: 'One' }, '[DONE]'), 9)
  expect(textOf(await ask(model(), {}, undefined, env({ ALLOWED_HOSTS: '127.0.0.1' })))).toBe('One')
})
