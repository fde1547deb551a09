/** Budgets of turns where many turns begin at once: no more run than there are, and what costs nothing is given back. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import * as usage from '../../src/db/turns'
import { ASK, ask, makeKey, QUESTION, setStage } from './parley/stage'
import { call, send } from './typesense/api'

const AT_ONCE = 12
const BUDGET = 5
const asked = () => `${QUESTION} ${crypto.randomUUID()}`
const messages = () => [{ role: 'user', content: asked() }]

beforeAll(async () => {
  await setStage()
  for (const name of ['guide', 'lost']) {
    const collections = name === 'guide' ? ['facts'] : ['facts', 'gone']
    const body = { model: 'm', collections }
    await call('POST', '/collections', { body: { name: 'gone', fields: [{ name: 'text', type: 'string' }] } })
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
  }
})
// As in other isolates, which have not heard of what is spent here.
beforeEach(() => {
  const nothing = async () => ({ turns: 0, tokens: 0 })
  vi.spyOn(usage, 'spentByOwner').mockImplementation(nothing)
  vi.spyOn(usage, 'spentOnModel').mockImplementation(nothing)
})
afterEach(() => vi.restoreAllMocks())

const limited = (turns_per_day: number) =>
  makeKey({
    actions: ['documents:search', 'conversations:create'],
    limits: { turns_per_day, tokens_per_day: null },
  })

/** The turns that are counted for a key. */
async function countedFor(key: string): Promise<number> {
  const [, { keys }] = await call('GET', '/keys')
  const { id } = keys.find(({ value_prefix }: { value_prefix: string }) => key.startsWith(value_prefix))
  const sum = env.DB.prepare('SELECT coalesce(sum(turns), 0) AS turns FROM usage WHERE owner = ?')
  return (await sum.bind(String(id)).first<{ turns: number }>())!.turns
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })
const search = 'conversation=true&conversation_model_id=m&query_by=text'

const WIRES: Record<string, (key: string) => Promise<Response>> = {
  search: (key) =>
    send('GET', `/collections/facts/documents/search?${search}&q=${encodeURIComponent(asked())}`, { key }),
  multi_search: (key) =>
    send('POST', `/multi_search?${search}&q=${encodeURIComponent(asked())}`, {
      key,
      body: { searches: [{ collection: 'facts' }] },
    }),
  '/conversations': (key) => send('POST', '/conversations', { key, body: { ...ASK, question: asked() } }),
  '/conversations, streamed': (key) =>
    send('POST', '/conversations', {
      key,
      body: { ...ASK, question: asked(), stream: true },
    }),
  'chat completions': (key) =>
    send('POST', '/v1/chat/completions', { key, body: { model: 'guide', messages: messages() } }),
  'responses without a conversation': (key) =>
    send('POST', '/v1/responses', { key, body: { model: 'guide', input: asked(), store: false } }),
  'UI messages': (key) =>
    send('POST', '/ui/guide', { key, body: { id: crypto.randomUUID(), messages: messages() } }),
  'AG-UI': (key) =>
    send('POST', '/agui/guide', {
      key,
      body: { threadId: crypto.randomUUID(), runId: 'r', messages: messages() },
    }),
  A2A: (key) =>
    send('POST', '/a2a/guide', {
      key,
      body: rpc('SendMessage', {
        message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: asked() }] },
      }),
    }),
}

describe.each(Object.entries(WIRES))('on %s', (_, wire) => {
  it('no more turns run at once than the budget of their key has', async () => {
    const key = await limited(BUDGET)
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const response = await wire(key)
        return `${response.status} ${await response.text()}`
      }),
    )
    const refused = answers.filter((text) => text.includes(`The budget of ${BUDGET} turns a day`))
    expect(answers.filter((text) => text.startsWith('200') && text.includes('330'))).toHaveLength(BUDGET)
    expect(refused).toHaveLength(AT_ONCE - BUDGET)
    await expect.poll(() => countedFor(key)).toBe(BUDGET)
  })
})

it('no more turns run at once than the budget of a model has', async () => {
  const model = {
    id: 'few',
    model_name: 'local/extractive',
    history_collection: 'history',
    max_bytes: 16_384,
  }
  expect((await call('POST', '/conversations/models', { body: { ...model, turns_per_day: 3 } }))[0]).toBe(201)
  const keys = await Promise.all([limited(100), makeKey({ actions: ['documents:search'] }), 'xyz'])
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, at) =>
      ask({ question: asked(), model: 'few' }, { key: keys[at % keys.length]! }),
    ),
  )
  expect(answers.filter(([status]) => status === 200)).toHaveLength(3)
  for (const [status, body] of answers) {
    if (status !== 200)
      expect([status, body.message]).toEqual([429, expect.stringContaining('3 turns a day')])
  }
})

it('readers who leave have used their turns, and those who are refused none', async () => {
  const key = await limited(3)
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const response = await WIRES['/conversations, streamed']!(key)
      await response.body?.cancel()
    }),
  )
  await expect.poll(() => countedFor(key)).toBe(3)
  expect((await ask({ question: asked() }, { key }))[0]).toBe(429)
  expect(await countedFor(key)).toBe(3)
})

it('a turn that cost nothing is given back', async () => {
  const key = await limited(1)
  for (const body of [{ filter_by: 'nowhere:=1' }, { conversation_id: crypto.randomUUID() }]) {
    const [status] = await ask({ question: asked(), ...body }, { key })
    expect([400, 404]).toContain(status)
    await expect.poll(() => countedFor(key)).toBe(0)
  }
  const responses = { model: 'guide', input: asked(), store: false }
  vi.spyOn(console, 'error').mockReturnValue()
  expect((await call('DELETE', '/collections/gone'))[0]).toBe(200)
  expect((await call('POST', '/v1/responses', { key, body: responses }))[0]).toBe(200)
  expect((await ask({ question: asked() }, { key }))[0]).toBe(429)
})

it('the same turn again, and a copy of it, count once', async () => {
  const key = await limited(2)
  const question = asked()
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const twice = await Promise.all([1, 2].map(() => ask({ question }, { key, headers })))
  expect(twice.map(([status]) => status)).toEqual([200, 200])
  expect(await countedFor(key)).toBe(1)
  const other = asked()
  const copies = await Promise.all([1, 2].map(() => ask({ question: other }, { key })))
  expect(copies.map(([status]) => status)).toEqual([200, 200])
  expect(await countedFor(key)).toBe(2)
})
