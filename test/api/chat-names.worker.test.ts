/** Which conversation a chat goes to whose name has the form of a conversation's id. */
import { listDurableObjectIds } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { forgetKeys } from '../../src/auth/authenticate'
import * as objects from '../../src/conversation/conversation-object'
import { Prefetch } from '../../src/conversation/prefetch'
import { ApiError } from '../../src/errors'
import * as engines from '../../src/registry/engines'
import { rowsOf, usedSoFar, withoutTables } from '../conversation/stage'
import { ask, makeKey, QUESTION, setStage } from './parley/stage'
import { call, send } from './typesense/api'

/** Longer than any row is cached, shorter than messages are kept. */
const LATER_MS = 120_000
const DAY_MS = 86_400_000
const realNow = Date.now
let later = 0

/** Forgets the rows that the isolate has in memory. */
function beginAnew(): void {
  later += LATER_MS
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
  forgetKeys()
}

/** Goes on in the first minutes of another day: a budget of a day that is spent stays so while caches are emptied. */
function beginDay(): void {
  later += DAY_MS - ((realNow() + later) % DAY_MS)
  beginAnew()
}

const messages = (content: string) => [{ role: 'user', content }]

/** @returns the id of the conversation that answered */
async function idOf(response: Response): Promise<string | null> {
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('330')])
  return response.headers.get('x-parley-conversation-id')
}

const toUi = (id: string, question = QUESTION, options: { key?: string; assistant?: string } = {}) =>
  send('POST', `/ui/${options.assistant ?? 'guide'}`, {
    ...(options.key !== undefined && { key: options.key }),
    body: { id, messages: messages(`${question} ${crypto.randomUUID()}`), trigger: 'submit-message' },
  })
const ui = async (id: string, question?: string) => idOf(await toUi(id, question))
const agui = async (id: string) =>
  idOf(
    await send('POST', '/agui/guide', {
      body: { threadId: id, runId: 'r', messages: messages(`${QUESTION} ${crypto.randomUUID()}`) },
    }),
  )

async function imported(id: string): Promise<void> {
  const said = { user: QUESTION, assistant: '330 metres.' }
  const lines = Object.entries(said).map(([role, message]) => {
    const timestamp = Math.floor(realNow() / 1000)
    return JSON.stringify({ conversation_id: id, model_id: 'm', role, message, timestamp })
  })
  const response = await send('POST', '/collections/history/documents/import', { body: lines.join('\n') })
  expect([response.status, await response.text()]).toEqual([200, '{"success":true}\n{"success":true}'])
}

/** The methods of a handle, some of which a test replaces. */
const methodsOf = <Handle extends object>(handle: Handle): Handle =>
  new Proxy(handle, {
    ownKeys: () => METHODS,
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
  })
const METHODS = ['ask', 'askNamed', 'isOpenTo', 'lookBack', 'lost', 'recorded', 'recentMessages', 'messages']

const inD1 = (id: string) => rowsOf('SELECT role FROM messages WHERE conversation_id = ?', id)

beforeAll(async () => {
  await setStage()
  expect((await call('PUT', '/assistants/guide', { body: { model: 'm', collections: ['facts'] } }))[0]).toBe(
    200,
  )
})
afterEach(() => vi.restoreAllMocks())

describe.each([
  ['where the rows are in the memory of the isolate', () => {}],
  ['from an isolate without any', beginAnew],
])('a chat named by a UUID, %s', (_, begin) => {
  it('continues what was imported under its name, before D1 knows of it', async () => {
    const id = crypto.randomUUID()
    vi.spyOn(console, 'error').mockReturnValue()
    await withoutTables(['messages'], () => imported(id))
    expect(await inD1(id)).toEqual([])
    begin()
    expect(await ui(id)).toBe(id)
    begin()
    expect(await ui(id)).toBe(id)
  })

  it('continues one of another wire by its id, before D1 knows of it', async () => {
    const id = await ui(`Chat${crypto.randomUUID().replaceAll('-', '')}`)
    await env.DB.prepare('DELETE FROM messages WHERE conversation_id = ?').bind(id).run()
    begin()
    expect(await agui(id!)).toBe(id)
    begin()
    expect(await agui(id!)).toBe(id)
  })

  it('stays the one that began, whatever is imported later', async () => {
    const name = crypto.randomUUID()
    begin()
    const id = await ui(name)
    expect(id).not.toBe(name)
    await imported(name)
    begin()
    expect(await ui(name)).toBe(id)
    begin()
    expect(await ui(name)).toBe(id)
  })
})

describe('a chat named by the id of a conversation that was imported', () => {
  const conversations = () => rowsOf('SELECT id FROM conversations')

  it('begins nothing of its own, and spends on one answer', async () => {
    const id = crypto.randomUUID()
    await imported(id)
    const before = (await conversations()).length
    const turns = (await usedSoFar()).turns
    beginAnew()
    expect(await ui(id)).toBe(id)
    await expect.poll(async () => (await usedSoFar()).turns).toBe(turns + 1)
    expect((await conversations()).length).toBe(before + 1)
  })

  it('is a chat of its own for another key, which gets nothing of that conversation', async () => {
    const id = crypto.randomUUID()
    await imported(id)
    expect(await ui(id)).toBe(id)
    const key = await makeKey({ actions: ['documents:search', 'conversations:create'] })
    for (const begin of [beginAnew, () => {}]) {
      begin()
      const own = await idOf(await toUi(id, QUESTION, { key }))
      expect(own).not.toBe(id)
      const [status, { turns }] = await call('GET', `/conversations/${own}`, { key: 'xyz' })
      expect([status, turns[0].question]).toEqual([200, expect.stringContaining(QUESTION)])
    }
    expect(await ui(id)).toBe(id)
  })

  it('is judged by the Worker where the object is of the version before', async () => {
    const { conversationObject } = objects
    const askNamed = vi.fn(() => Promise.reject(new TypeError('The RPC receiver does not implement it.')))
    vi.spyOn(objects, 'conversationObject').mockImplementation((...given) => ({
      ...methodsOf(conversationObject(...given)),
      askNamed,
    }))
    const id = crypto.randomUUID()
    await imported(id)
    expect(await ui(id)).toBe(id)
    expect(askNamed).toHaveBeenCalledTimes(1)
    expect(await ui(crypto.randomUUID())).not.toBe(id)
    expect(askNamed).toHaveBeenCalledTimes(2)
  })

  it('is refused with the history, and begins nothing, while that is out of reach', async () => {
    const before = (await conversations()).length
    const { historyStore } = engines
    vi.spyOn(engines, 'historyStore').mockImplementation((...given) => ({
      ...methodsOf(historyStore(...given)),
      recentMessages: () => Promise.reject(new ApiError(503, 'Out of reach.')),
    }))
    const refused = await toUi(crypto.randomUUID())
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('Out of reach.')])
    expect((await conversations()).length).toBe(before)
  })
})

it('does not wait for D1 with a follow-up where the rows are in the memory of the isolate', async () => {
  const name = crypto.randomUUID()
  const id = await ui(name)
  const prepare = env.DB.prepare.bind(env.DB)
  const reads: string[] = []
  vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
    if (/\b(messages|conversations)\b/.test(query) && /^\s*select/i.test(query)) reads.push(query)
    return prepare(query)
  })
  expect(await ui(name)).toBe(id)
  expect(reads).toEqual([])
})

describe('a question that is not admitted', () => {
  const objects = async () => (await listDurableObjectIds(env.CONVERSATION)).length
  const MOST_UNADMITTED = 2

  it.each([
    ['for an assistant that does not exist', 'nobody', 404],
    ['with a budget that is spent', 'guide', 429],
  ])('%s: creates few objects, however often it comes', async (_, assistant, status) => {
    const key = await makeKey({
      actions: ['documents:search', 'conversations:create'],
      ...(status === 429 && { limits: { turns_per_day: 1 } }),
    })
    beginDay()
    if (status === 429) await (await toUi(crypto.randomUUID(), QUESTION, { key })).text()
    const before = await objects()
    for (let count = 0; count < 6; count++) {
      beginAnew()
      const refused = await toUi(crypto.randomUUID(), QUESTION, { key, assistant })
      expect([refused.status, await refused.text()]).toEqual([status, expect.any(String)])
    }
    expect((await objects()) - before).toBeLessThanOrEqual(MOST_UNADMITTED)
  })
})

it('is not looked ahead for where a widget of n8n only loads what was said', async () => {
  const before = (await listDurableObjectIds(env.CONVERSATION)).length
  const lookBack = vi.spyOn(Prefetch.prototype, 'look')
  beginAnew()
  const body = { action: 'loadPreviousSession', sessionId: crypto.randomUUID() }
  expect(await call('POST', '/n8n/guide', { body })).toEqual([200, { data: [] }])
  expect(lookBack).not.toHaveBeenCalled()
  expect(await listDurableObjectIds(env.CONVERSATION)).toHaveLength(before)
})

it('is not taken for a new chat because the conversation that gave it its name was deleted', async () => {
  const [, { conversation_id: id }] = await ask()
  expect((await call('DELETE', `/conversations/${id}`))[0]).toBe(200)
  const embed = vi.spyOn(Prefetch.prototype, 'embed')
  beginAnew()
  const next = await ui(id)
  beginAnew()
  expect(await ui(id)).toBe(next)
  expect(embed.mock.calls.map(([, isNew]) => isNew)).toEqual([false, false])
})
