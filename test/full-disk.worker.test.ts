/** What callers are told where there is no room left: on the disk of a local start, in D1, in an object. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { TurnLog } from '../src/conversation/turn-log'
import * as collections from '../src/search/collection/handle'
import { QUESTION, setStage } from './api/parley/stage'
import { call, send } from './api/typesense/api'

const FULL = 'database or disk is full: SQLITE_FULL'
const asked = () => `${QUESTION} ${crypto.randomUUID()}`
const messages = () => [{ role: 'user', content: asked() }]
const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })

beforeAll(async () => {
  await setStage()
  expect((await call('PUT', '/assistants/guide', { body: { model: 'm', collections: ['facts'] } }))[0]).toBe(
    200,
  )
})
let logged = ''
beforeEach(() => {
  logged = ''
  vi.spyOn(console, 'error').mockImplementation((...words) => {
    logged += words.join(' ')
  })
})
afterEach(() => vi.restoreAllMocks())

const FULL_REPLY = [507, expect.stringMatching(/storage of this server is full.*make room/)]

async function refused(method: string, path: string, body?: unknown): Promise<void> {
  const response = await send(method as 'GET', path, {
    body,
    headers: { 'content-type': 'application/json' },
  })
  expect([path, response.status, await response.text()]).toEqual([path, ...FULL_REPLY])
  expect(response.headers.get('retry-after')).toBeNull()
  expect(logged).toContain('storage is full')
}

/** D1 refuses every statement that writes. */
function fillDatabase(): void {
  const prepared = Object.getPrototypeOf(env.DB.prepare('SELECT 1')) as D1PreparedStatement
  const isWrite = (query: string) => /^\s*(insert|update|delete|replace)\b/i.test(query)
  for (const name of ['run', 'all', 'raw', 'first'] as const) {
    const method = prepared[name] as (...args: unknown[]) => Promise<unknown>
    vi.spyOn(prepared, name).mockImplementation(function (this: { statement: string }, ...args: unknown[]) {
      if (isWrite(this.statement)) return Promise.reject(new Error(`D1_ERROR: ${FULL}`)) as never
      return method.apply(this, args) as never
    })
  }
  for (const source of [env.DB, env.DB.withSession('first-unconstrained')]) {
    const database = Object.getPrototypeOf(source) as D1Database
    const { batch } = database
    vi.spyOn(database, 'batch').mockImplementation(function (this: D1Database, statements) {
      const queries = statements as unknown as { statement: string }[]
      if (queries.some(({ statement }) => isWrite(statement))) {
        return Promise.reject(new Error(`D1_ERROR: ${FULL}`)) as never
      }
      return batch.call(this, statements) as never
    })
  }
}

it('says so where D1 has no room, and reads on', async () => {
  fillDatabase()
  await refused('POST', '/keys', { description: '', actions: ['*'], collections: ['*'] })
  await refused('PUT', '/assistants/other', { model: 'm', collections: ['facts'] })
  expect((await call('GET', '/assistants'))[0]).toBe(200)
  expect((await call('GET', '/collections/facts/documents/search?q=tower&query_by=text'))[0]).toBe(200)
})

it('says so where a collection has no room, and reads on', async () => {
  const { collectionObject } = collections
  vi.spyOn(collections, 'collectionObject').mockImplementation((...given) => {
    const object = collectionObject(...given)
    return new Proxy(object, {
      get: (_, name: keyof typeof object) =>
        /write|import|create|update|put|index/i.test(name)
          ? () => Promise.reject(new Error(FULL))
          : Reflect.get(object, name),
    })
  })
  await refused('POST', '/collections/facts/documents', { text: 'More.' })
  await refused('PUT', '/facts/_doc/1', { text: 'More.' })
  expect((await call('GET', '/collections/facts/documents/search?q=tower&query_by=text'))[0]).toBe(200)
})

describe.each<[wire: string, path: string, body: () => unknown]>([
  ["Parley's", '/conversations', () => ({ question: asked(), model: 'm', collections: ['facts'] })],
  ["OpenAI's", '/v1/chat/completions', () => ({ model: 'guide', messages: messages() })],
  ["OpenAI's responses", '/v1/responses', () => ({ model: 'guide', input: asked() })],
  ['the UI message stream', '/ui/guide', () => ({ id: crypto.randomUUID(), messages: messages() })],
  ['AG-UI', '/agui/guide', () => ({ threadId: crypto.randomUUID(), runId: 'r', messages: messages() })],
  ['the AI Chat Protocol', '/a/guide/chat', () => ({ messages: messages() })],
])('a question on the wire of %s', (_, path, body) => {
  it('is refused where its conversation has no room', async () => {
    vi.spyOn(TurnLog.prototype, 'begin').mockImplementation(() => {
      throw new Error(FULL)
    })
    await refused('POST', path, body())
  })
})

it('A2A gives its own shape', async () => {
  vi.spyOn(TurnLog.prototype, 'begin').mockImplementation(() => {
    throw new Error(FULL)
  })
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: asked() }] }
  const [, { result, error }] = await call('POST', '/a2a/guide', { body: rpc('SendMessage', { message }) })
  expect(JSON.stringify(result ?? error)).toContain('storage of this server is full')
})
