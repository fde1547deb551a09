/**
 * A follow-up from an isolate that has no rows in memory: its history is read while the registry is. Whatever was changed in the
 * history before the follow-up came counts. test/api/hops.worker.test.ts counts what it saves.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { forgetKeys } from '../../src/auth/authenticate'
import type { ConversationRpc } from '../../src/conversation/conversation-object'
import * as conversations from '../../src/conversation/conversation-object'
import * as collections from '../../src/search/collection/handle'
import { usedSoFar } from '../conversation/stage'
import { ask, makeKey, QUESTION, setStage } from './parley/stage'
import { call, queryString, send } from './typesense/api'
import { HISTORY } from './typesense/conversing'

const SAID = 'It is 330 metres high.'
const FOLLOW_UP = 'And the gate?'
const HOUR_MS = 3_600_000
const MODEL = {
  model_name: 'openai/any',
  api_key: 'sk-1',
  openai_url: 'https://llm.test',
  max_bytes: 16_384,
  ttl: 48 * 3_600,
}

/** the prompts that the provider got */
let rewritings: string[] = []
let prompts: string[] = []
/** calls to objects */
let calls: string[] = []
let later = 0
const realNow = Date.now

/** @param around changes what a conversation's object does */
function watch(around: (object: ConversationRpc) => Partial<ConversationRpc> = () => ({})): void {
  const { collectionObject } = collections
  const { conversationObject } = conversations
  vi.spyOn(collections, 'collectionObject').mockImplementation((...given) => {
    const object = collectionObject(...given)
    return new Proxy(object, {
      get: (_, name) => {
        if (name === 'recentMessages') calls.push(name)
        return Reflect.get(object, name)
      },
    })
  })
  vi.spyOn(conversations, 'conversationObject').mockImplementation((...given) => {
    const object = conversationObject(...given)
    const changed: Partial<ConversationRpc> = {
      lookBack: (...given) => object.lookBack(...given),
      ...around(object),
    }
    return new Proxy(object, {
      get: (_, name) => {
        if (name === 'lookBack') calls.push(name)
        return Reflect.get(changed, name) ?? Reflect.get(object, name)
      },
    })
  })
}

/** Forgets the rows that the isolate has in memory. */
function beginAnew(hours = 1): void {
  later += hours * HOUR_MS
  forgetKeys()
}

async function begun(more: Record<string, unknown> = {}): Promise<string> {
  const [status, { conversation_id: id }] = await ask({
    question: `${QUESTION} ${crypto.randomUUID()}`,
    model: 'far',
    ...more,
  })
  expect(status).toBe(200)
  return id
}

/** Asks a follow-up. @returns the status of its answer */
async function follow(id: string, more: Record<string, unknown> = {}, key?: string): Promise<number> {
  beginAnew()
  rewritings = []
  prompts = []
  calls = []
  const [status] = await ask({ question: FOLLOW_UP, model: 'far', conversation_id: id, ...more }, { key })
  return status
}

const filter = (filter_by: string) => queryString({ filter_by })

async function answerOf(id: string): Promise<string> {
  const [, { hits }] = await call(
    'GET',
    `/collections/history/documents/search${queryString({ q: '*', filter_by: `conversation_id:=${id}` })}`,
  )
  return hits.find(({ document }: { document: { role: string } }) => document.role === 'assistant').document
    .id
}

beforeAll(async () => {
  await setStage()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({ choices: [{ message: { content: 'yes' }, finish_reason: 'stop' }] }),
  )
  for (const [id, history] of [
    ['far', 'history'],
    ['else', 'replaced'],
  ] as const) {
    if (history !== 'history') await call('POST', '/collections', { body: { ...HISTORY, name: history } })
    const body = { ...MODEL, id, history_collection: history }
    expect((await call('POST', '/conversations/models', { body }))[0]).toBe(201)
  }
  vi.restoreAllMocks()
})
beforeEach(() => {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { stream, messages } = JSON.parse(String(init?.body))
    prompts.push(JSON.stringify(messages))
    if (stream) {
      const said = `data: ${JSON.stringify({ choices: [{ delta: { content: SAID } }] })}\n\ndata: [DONE]\n\n`
      return new Response(said, { headers: { 'content-type': 'text/event-stream' } })
    }
    rewritings.push(JSON.stringify(messages))
    return Response.json({
      choices: [{ message: { content: 'How high is the gate?' }, finish_reason: 'stop' }],
    })
  })
})
afterEach(() => vi.restoreAllMocks())

it('reads the history once, and sends what it says', async () => {
  const id = await begun()
  watch()
  expect(await follow(id)).toBe(200)
  expect(rewritings).toEqual([expect.stringContaining(SAID)])
  expect(calls).toEqual(['lookBack', 'recentMessages'])
})

it('makes no call more where the isolate waits for no row', async () => {
  const id = await begun()
  watch()
  calls = []
  expect((await ask({ question: FOLLOW_UP, model: 'far', conversation_id: id }))[0]).toBe(200)
  expect(calls).toEqual(['recentMessages'])
})

describe('a message that was changed in the history', () => {
  const changes: Record<string, (id: string) => Promise<[number, unknown]>> = {
    'deleted by its id': async (id) => call('DELETE', `/collections/history/documents/${await answerOf(id)}`),
    'deleted by a filter': async (id) =>
      call('DELETE', `/collections/history/documents${filter(`id:=${await answerOf(id)}`)}`),
    corrected: async (id) =>
      call('PATCH', `/collections/history/documents/${await answerOf(id)}`, {
        body: { message: 'Corrected.' },
      }),
    'corrected by a filter': async (id) =>
      call('PATCH', `/collections/history/documents${filter(`id:=${await answerOf(id)}`)}`, {
        body: { message: 'Corrected.' },
      }),
    imported: async (id) =>
      call('POST', '/collections/history/documents/import?action=emplace', {
        body: JSON.stringify({ id: await answerOf(id), message: 'Corrected.' }),
      }),
  }

  it.each(Object.entries(changes))('%s: goes to no provider again', async (name, change) => {
    const id = await begun()
    expect((await change(id))[0]).toBe(200)
    watch()
    expect(await follow(id)).toBe(200)
    expect(rewritings).toHaveLength(1)
    expect(prompts.join()).not.toContain(SAID)
    expect(prompts.join().includes('Corrected.')).toBe(!name.startsWith('deleted'))
    expect(calls).toEqual(['lookBack', 'recentMessages'])
  })

  it('expired: goes to no provider again', async () => {
    const id = await begun()
    later += 50 * HOUR_MS
    watch()
    await follow(id)
    expect(calls[0]).toBe('lookBack')
    expect(prompts.join()).not.toContain(SAID)
  })
})

describe('a conversation whose messages are all gone', () => {
  it.each([
    [
      'deleted',
      (id: string) => call('DELETE', `/collections/replaced/documents${filter(`conversation_id:=${id}`)}`),
    ],
    ['truncated', () => call('DELETE', '/collections/replaced/documents?truncate=true')],
    [
      'in a collection that another one of its name replaced',
      async () => {
        await call('DELETE', '/collections/replaced')
        const [status, body] = await call('POST', '/collections', { body: { ...HISTORY, name: 'replaced' } })
        return [status === 201 ? 200 : status, body] as [number, unknown]
      },
    ],
  ])('%s: is unknown, and costs nothing', async (_, remove) => {
    const id = await begun({ model: 'else' })
    expect((await remove(id))[0]).toBe(200)
    const before = await usedSoFar()
    watch()
    expect(await follow(id, { model: 'else' })).toBe(404)
    expect(prompts).toEqual([])
    expect(calls).toContain('lookBack')
    expect(await usedSoFar()).toEqual(before)
  })
})

it('counts a follow-up as one turn, and a refused one as none', async () => {
  const id = await begun()
  const before = await usedSoFar()
  expect(await follow(id)).toBe(200)
  await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
  const after = await usedSoFar()
  const other = await makeKey({ actions: ['documents:search', 'conversations:create'] })
  expect(await follow(id, {}, other)).toBe(404)
  expect(prompts).toEqual([])
  expect(await usedSoFar()).toEqual(after)
})

it('wakes no conversation for a key that is unknown or may not ask, nor for an id that Parley did not make', async () => {
  const id = await begun()
  const foreign = await makeKey({ actions: ['documents:get'] })
  watch()
  for (const key of ['unknown', foreign]) {
    expect(await follow(id, {}, key)).toBe(401)
    expect(calls).toEqual([])
  }
  expect(await follow(crypto.randomUUID())).toBe(404)
  expect(calls).not.toContain('lookBack')
})

it.each([
  [
    'is of the version before',
    () => new TypeError('The RPC receiver does not implement the method "lookBack".'),
  ],
  ['is out of reach', () => new Error('Network connection lost.')],
])('reads the history with the turn if the object %s', async (_, error) => {
  const id = await begun()
  vi.spyOn(console, 'error').mockImplementation(() => {})
  watch(() => ({ lookBack: () => Promise.reject(error()) }))
  expect(await follow(id)).toBe(200)
  expect(rewritings).toEqual([expect.stringContaining(SAID)])
  expect(calls).toEqual(['lookBack', 'recentMessages'])
})

it('is of no use to a request that begins another turn', async () => {
  const id = await begun()
  watch()
  // The turn that is replaced does not count, which the reading did not know.
  expect(await follow(id, { replaces: 1 })).toBe(200)
  expect(rewritings).toEqual([])
  expect(prompts.join()).not.toContain(SAID)
})

const single = (id: string) =>
  send(
    'GET',
    `/collections/facts/documents/search${queryString({
      q: FOLLOW_UP,
      query_by: 'text',
      conversation: true,
      conversation_model_id: 'far',
      conversation_id: id,
    })}`,
  )

it('reads ahead where the address names the conversation', async () => {
  const id = await begun()
  watch()
  beginAnew()
  calls = []
  rewritings = []
  expect((await single(id)).status).toBe(200)
  expect(rewritings).toEqual([expect.stringContaining(SAID)])
  expect(calls.filter((name) => name === 'lookBack')).toHaveLength(1)
})

describe('a conversation that the body of another protocol names', () => {
  const responses = (id: string) =>
    call('POST', '/v1/responses', {
      body: { model: 'guide', input: FOLLOW_UP, previous_response_id: `resp_${id}.1` },
    })
  const agui = (threadId: string) =>
    send('POST', '/agui/guide', {
      body: { threadId, runId: 'r', messages: [{ role: 'user', content: FOLLOW_UP }] },
    })
  const ui = (id: string) =>
    send('POST', '/ui/guide', { body: { id, messages: [{ role: 'user', content: FOLLOW_UP }] } })

  /** Asks from an isolate that has no rows in memory. */
  async function anew<T>(asking: () => Promise<T>): Promise<T> {
    beginAnew()
    rewritings = []
    prompts = []
    calls = []
    return asking()
  }
  /** ids of a conversation's messages in the history */
  async function messagesOf(id: string): Promise<string[]> {
    const parameters = queryString({ q: '*', filter_by: `conversation_id:=${id}` })
    const [, { hits }] = await call('GET', `/collections/history/documents/search${parameters}`)
    return hits.map(({ document }: { document: { id: string } }) => document.id)
  }
  const assistantOf = async (model: string) =>
    expect((await call('PUT', '/assistants/guide', { body: { model, collections: ['facts'] } }))[0]).toBe(200)

  it('is read once, and continued', async () => {
    await assistantOf('far')
    const id = await begun()
    watch()
    const [status, { output }] = await anew(() => responses(id))
    expect([status, output[0].content[0].text]).toEqual([200, SAID])
    expect(rewritings).toEqual([expect.stringContaining(SAID)])
    expect(calls).toEqual(['lookBack', 'recentMessages'])
  })

  it('is refused or begun anew if its messages are gone, and nothing of them is sent', async () => {
    await assistantOf('else')
    const id = await begun({ model: 'else' })
    expect(
      (await call('DELETE', `/collections/replaced/documents${filter(`conversation_id:=${id}`)}`))[0],
    ).toBe(200)
    watch()
    const [status, { error }] = await anew(() => responses(id))
    expect([status, error.code]).toEqual([400, 'previous_response_not_found'])
    expect(prompts).toEqual([])
    for (const asking of [ui, agui]) {
      const response = await anew(() => asking(id))
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining(SAID)])
      expect(response.headers.get('x-parley-conversation-id')).not.toBe(id)
      expect(prompts.join()).not.toContain(QUESTION)
    }
  })

  it('is refused if the answer that the question follows was deleted', async () => {
    await assistantOf('far')
    const id = await begun()
    const before = await messagesOf(id)
    expect(await follow(id)).toBe(200)
    const added = (await messagesOf(id)).filter((each) => !before.includes(each))
    const [, removed] = await call('DELETE', `/collections/history/documents${filter(`id:[${added}]`)}`)
    expect(removed).toEqual({ num_deleted: 2 })
    watch()
    const second = () =>
      call('POST', '/v1/responses', {
        body: { model: 'guide', input: 'And Rome?', previous_response_id: `resp_${id}.2` },
      })
    const [status, { error }] = await anew(second)
    expect([status, error.code]).toEqual([400, 'previous_response_not_found'])
  })

  it('is found by an id that Parley did not make, if messages with it were imported', async () => {
    await assistantOf('far')
    const id = crypto.randomUUID()
    const said = { conversation_id: id, model_id: 'far', timestamp: Math.floor(Date.now() / 1000) }
    for (const [role, message] of [
      ['user', 'How high is it?'],
      ['assistant', 'Imported.'],
    ]) {
      const body = { ...said, role, message }
      expect((await call('POST', '/collections/history/documents', { body }))[0]).toBe(201)
    }
    watch()
    for (const isCold of [true, false]) {
      const response = isCold ? await anew(() => agui(id)) : await agui(id)
      expect(await response.text()).toContain(SAID)
      expect(response.headers.get('x-parley-conversation-id')).toBe(id)
      expect(rewritings[0]).toContain('Imported.')
    }
    const other = await anew(() => agui(crypto.randomUUID()))
    expect(await other.text()).toContain(SAID)
    expect(rewritings).toEqual([])
  })

  it('is not shown to another key', async () => {
    await assistantOf('far')
    const id = await begun()
    const other = await makeKey({ actions: ['documents:search', 'conversations:create'] })
    const asking = () =>
      call('POST', '/v1/responses', {
        key: other,
        body: { model: 'guide', input: FOLLOW_UP, previous_response_id: `resp_${id}.1` },
      })
    const [status, { error }] = await anew(asking)
    expect([status, error.code]).toEqual([400, 'previous_response_not_found'])
    expect(prompts).toEqual([])
  })
})
