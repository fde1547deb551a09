/** A collection's log lines of faults name the request that caused them. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { rewriteOnce } from '../../src/conversation/ask'
import { conversationObject } from '../../src/conversation/conversation-object'
import { sweepExpired } from '../../src/conversation/expiry'
import { rewriterOf } from '../../src/conversation/turn-queue'
import * as turns from '../../src/db/turns'
import * as usage from '../../src/db/turns'
import { findCollection } from '../../src/registry/collections'
import * as models from '../../src/registry/models'
import { Collection } from '../../src/search/collection/object'
import { Reindex } from '../../src/search/collection/reindex'
import { messageOf } from '../../src/search/embedding/queue'
import * as fields from '../../src/search/schema/tables'
import { ask, MODEL, setStage } from '../api/parley/stage'
import { call, send } from '../api/typesense/api'

const SETTING = env.LOG_REQUESTS
const headers = { 'x-request-id': 'front-7' }

let written: string[] = []
const lines = (type: string): Record<string, unknown>[] =>
  written
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter((line) => line.type === type)

/** Takes the table of documents away from a collection, or gives it back. */
async function rename(from: string, to: string, collection = 'facts'): Promise<void> {
  const { objectId } = await findCollection(env, collection)
  await runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) => {
    storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`)
  })
}

beforeAll(async () => {
  await setStage()
  await call('PUT', '/assistants/guide', { body: { model: 'm', collections: ['facts'] } })
})

beforeEach(async () => {
  written = []
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void written.push(String(line)))
  }
  env.LOG_REQUESTS = 'on'
  await rename('documents', 'away')
})

afterEach(async () => {
  await rename('away', 'documents')
  env.LOG_REQUESTS = SETTING
  vi.restoreAllMocks()
})

const FAULT = {
  type: 'collection',
  ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  request_id: 'front-7',
  collection: 'facts',
}
const THROWN = { ...FAULT, status: 500, error: 'Error', places: expect.any(Array) }
const STEP = { ...FAULT, reason: expect.stringContaining('no such table') }

const DOCUMENTS = '/collections/facts/documents'
const SEARCH = { collection: 'facts', q: 'tower', query_by: 'text' }

describe('a fault in a collection names the request', () => {
  it.each([
    ['search', 'GET', `${DOCUMENTS}/search?q=tower&query_by=text`, undefined],
    ['search', 'POST', '/multi_search', { searches: [SEARCH] }],
    ['search', 'POST', '/multi_search', { union: true, searches: [SEARCH] }],
    ['get', 'GET', `${DOCUMENTS}/0`, undefined],
    ['remove', 'DELETE', `${DOCUMENTS}/0`, undefined],
    ['updateWhere', 'PATCH', `${DOCUMENTS}?filter_by=city:Paris`, { city: 'Lyon' }],
    ['removeWhere', 'DELETE', `${DOCUMENTS}?filter_by=city:Paris`, undefined],
    ['exportPage', 'GET', `${DOCUMENTS}/export`, undefined],
    ['truncate', 'DELETE', `${DOCUMENTS}?truncate=true`, undefined],
    ['alter', 'PATCH', '/collections/facts', { fields: [{ name: 'height', type: 'int32', optional: true }] }],
  ])('of %s: %s %s', async (event, method, path, body) => {
    const response = await send(method, path, { headers, body })
    await response.text()
    expect(response.headers.get('x-request-id')).toBe('front-7')
    expect(lines('collection')).toEqual([{ ...THROWN, event }])
    expect(lines('request')[0]).toMatchObject({ request_id: 'front-7' })
  })

  it.each([
    ['POST', DOCUMENTS, { id: '9', text: 'The Atomium is 102 metres high.', city: 'Brussels' }],
    ['PATCH', `${DOCUMENTS}/0`, { text: 'The Atomium is 102 metres high.' }],
    [
      'POST',
      `${DOCUMENTS}/import`,
      '{"id":"9","text":"The Atomium is 102 metres high.","city":"Brussels"}\n',
    ],
  ])('of a write: %s %s', async (method, path, body) => {
    await (await send(method, path, { headers, body })).text()
    const faults = lines('collection')
    expect(faults.map(({ request_id }) => request_id)).toEqual(faults.map(() => 'front-7'))
    expect(faults.slice(0, 2)).toEqual([
      { ...STEP, event: 'batch' },
      { ...STEP, event: 'document' },
    ])
    expect(written.join()).not.toContain('Atomium')
  })

  it('of a turn, beside the line of the turn', async () => {
    const question = 'Which architect built the Eiffel Tower?'
    await ask({ question }, { headers })
    await expect.poll(() => lines('turn').length, { timeout: 20_000 }).toBe(1)
    expect(lines('turn')[0]).toMatchObject({ request_id: 'front-7' })
    const faults = lines('collection')
    expect(faults.length).toBeGreaterThan(0)
    for (const fault of faults) expect(fault).toEqual({ ...THROWN, event: 'search' })
    for (const text of [question, '330 metres', 'xyz']) expect(written.join()).not.toContain(text)
  })
})

it('a fault of a history names the request that asked', async () => {
  await rename('away', 'documents')
  const [, { conversation_id }] = await ask({})
  written = []
  await rename('documents', 'away', 'history')
  await ask({ conversation_id, question: 'And how high is the gate in Berlin?' }, { headers })
  await rename('away', 'documents', 'history')
  const faults = lines('collection')
  expect(new Set(faults.map(({ event }) => event))).toEqual(new Set(['recentMessages']))
  for (const fault of faults) expect(fault).toMatchObject({ request_id: 'front-7', collection: 'history' })
  await rename('documents', 'away')
})

it('a fault in making a collection names the request', async () => {
  vi.spyOn(fields, 'takeStemWords').mockRejectedValue(new Error('a fault'))
  const body = { name: 'faulty', fields: [{ name: 'text', type: 'string' }] }
  expect((await call('POST', '/collections', { body, headers }))[0]).toBe(500)
  expect(lines('collection')).toMatchObject([{ request_id: 'front-7', event: 'create', error: 'Error' }])
})

it("a caller's own mistake is answered and not logged", async () => {
  const [status] = await call('GET', `${DOCUMENTS}/search?q=tower&query_by=nothing`, { headers })
  expect(status).toBe(404)
  expect(lines('collection')).toEqual([])
})

describe('what goes on in objects names the request', () => {
  /** Begins a conversation while all tables are there. @returns its id */
  async function begun(): Promise<string> {
    await rename('away', 'documents')
    const [, { conversation_id: id }] = await ask({
      question: `How high is the Eiffel Tower? ${crypto.randomUUID()}`,
    })
    written = []
    return id
  }
  /** Runs work while the history is out of order. */
  async function broken(work: () => Promise<unknown>): Promise<void> {
    await rename('documents', 'away', 'history')
    await work().finally(() => rename('away', 'documents', 'history'))
    await rename('documents', 'away')
  }
  const eventsOf = (type: string) => [...new Set(lines(type).map(({ event }) => event))]
  const everyLine = (type: string, part: Record<string, unknown>) => {
    for (const line of lines(type)) expect(line).toMatchObject(part)
  }

  it('of a deletion, in the conversation and in its history', async () => {
    const id = await begun()
    await broken(() => call('DELETE', `/conversations/${id}`, { headers }))
    expect(eventsOf('collection')).toEqual(['removeConversation'])
    expect(eventsOf('conversation')).toEqual(['a conversation could not be deleted yet'])
    everyLine('collection', { request_id: 'front-7', collection: 'history' })
    everyLine('conversation', { request_id: 'front-7', conversation_id: id, reason: expect.any(String) })
  })

  it('of the deletion of a user', async () => {
    await rename('away', 'documents')
    const of = { headers: { 'x-typesense-user-id': 'ann' } }
    const [, { conversation_id: id }] = await ask({ question: `How high is it? ${crypto.randomUUID()}` }, of)
    written = []
    await broken(() => call('DELETE', '/users/ann/conversations', { headers }))
    expect(eventsOf('conversation')).toEqual(['a conversation could not be deleted yet'])
    everyLine('collection', { request_id: 'front-7' })
    everyLine('conversation', { request_id: 'front-7', conversation_id: id })
  })

  it('of a look back that begins before the question comes', async () => {
    const id = await begun()
    const recentMessages = vi.spyOn(Collection.prototype, 'recentMessages')
    await conversationObject(env, id).lookBack('r', undefined, undefined, { requestId: 'front-7' })
    await expect.poll(() => recentMessages.mock.calls.length).toBe(1)
    expect(recentMessages.mock.calls[0]!.at(-1)).toEqual({ requestId: 'front-7' })
    await rename('documents', 'away')
  })

  it('of a check whether turns were deleted', async () => {
    const id = await begun()
    await broken(() =>
      send('POST', '/v1/responses', {
        headers,
        body: { model: 'guide', input: 'And the gate?', previous_response_id: `resp_${id}.1` },
      }).then((response) => response.text()),
    )
    expect(eventsOf('collection')).toContain('wholeTurns')
    everyLine('collection', { request_id: 'front-7', collection: 'history' })
  })

  it('of the steps that index a new field', async () => {
    await rename('away', 'documents')
    vi.spyOn(Reindex.prototype, 'step').mockImplementation(() => {
      throw new Error('no')
    })
    const body = { fields: [{ name: 'height', type: 'int32', optional: true }] }
    await call('PATCH', '/collections/facts', { headers, body })
    expect(lines('collection').filter(({ event }) => event === 'reindex')).toEqual([
      { ...THROWN, event: 'reindex' },
    ])
    await rename('documents', 'away')
  })

  it('of models that another one names, and of what a rewriting costs', async () => {
    const id = await begun()
    vi.spyOn(models, 'findModel').mockRejectedValue(new Error('no'))
    vi.spyOn(turns, 'recordCost').mockRejectedValue(new Error('no'))
    const { objectId: historyId } = await findCollection(env, 'history')
    const model = { ...MODEL, ttl: 60, rewrite_model: 'another' }
    const asked = { memory: { id, historyId }, question: 'And the gate?', model, owner: 'admin' }
    await rewriteOnce(env, { ...asked, requestId: 'front-7' }, AbortSignal.timeout(10_000))
    await expect.poll(() => eventsOf('conversation').length).toBe(2)
    vi.mocked(models.findModel).mockResolvedValue({ ...model, id: 'another', tokens_per_day: 1 })
    vi.spyOn(usage, 'spentOnModel').mockRejectedValue(new Error('no'))
    await rewriterOf(model, env, { requestId: 'front-7', conversation: id })
    expect(eventsOf('conversation')).toEqual([
      'a model that another one names could not be read',
      'a rewriting could not be charged',
      'what was spent on a model could not be read',
    ])
    everyLine('conversation', { request_id: 'front-7', conversation_id: id })
    await rename('documents', 'away')
  })

  it('of a turn that names another model', async () => {
    const id = await begun()
    const { findModel } = models
    const named = { rewrite_model: 'another' }
    vi.spyOn(models, 'findModel').mockImplementation(async (of, name, ...more) => {
      if (name === 'another') throw new Error('no')
      const found = await findModel(of, name, ...more)
      return found && { ...found, ...named }
    })
    await ask({ conversation_id: id, question: 'And how high is the gate in Berlin?' }, { headers })
    expect(eventsOf('conversation')).toEqual(['a model that another one names could not be read'])
    everyLine('conversation', { request_id: 'front-7', conversation_id: id })
    await rename('documents', 'away')
  })

  it('of a sweep, which no request caused: its lines share the id of its run', async () => {
    await begun()
    await broken(() => sweepExpired(env, Math.floor(Date.now() / 1000) + 7_200))
    expect(eventsOf('collection')).toEqual(['expireMessages', expect.stringMatching(/^expiry: history/)])
    const [run] = lines('collection').map(({ request_id }) => request_id)
    expect(run).toMatch(/^sweep-[0-9a-f-]{36}$/)
    everyLine('collection', { request_id: run })
  })
})

describe('what no request causes names the object', () => {
  it('an alarm that could not be set', async () => {
    await rename('away', 'documents')
    const { objectId: known } = await findCollection(env, 'facts')
    await runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(known)), (_, { storage }) => {
      const prototype = Object.getPrototypeOf(storage) as DurableObjectStorage
      vi.spyOn(prototype, 'setAlarm').mockRejectedValue(new Error('no'))
    })
    const [, { conversation_id }] = await ask({ question: `How high is it? ${crypto.randomUUID()}` })
    const body = { name: 'new', fields: [{ name: 'text', type: 'string' }] }
    expect((await call('POST', '/collections', { body }))[0]).toBe(201)
    const { objectId } = await findCollection(env, 'new')
    const named = () =>
      [...lines('conversation'), ...lines('collection')]
        .filter(({ event }) => event === 'the alarm could not be set')
        .map(({ conversation_id, collection }) => conversation_id ?? collection)
    await expect.poll(named).toEqual(expect.arrayContaining([conversation_id, objectId]))
    vi.restoreAllMocks()
    await rename('documents', 'away')
  })

  it('an embedder that failed', () => {
    messageOf(new Error('no'), 'facts')
    expect(lines('collection')).toMatchObject([{ event: 'embedding failed', collection: 'facts' }])
  })
})
