/** Access: rows 1 to 3 and 60 to 62. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { client, createModel, createShows, FORBIDDEN, request, searchClient, unique, url } from './harness'
import { documentsIn, type Llm, startLlm } from './llm'

let llm: Llm
let shows: string
let model: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
  model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
})
afterAll(() => llm.stop())

const forbidden = { name: 'RequestUnauthorized', httpStatus: 401 }

const searchKey = async (actions = ['documents:search'], collections = ['.*']): Promise<string> =>
  (await client().keys().create({ description: 'for a test', actions, collections })).value ?? ''

const conversation = () => ({
  q: 'an action series',
  query_by: 'embedding',
  exclude_fields: 'embedding',
  conversation: true,
  conversation_model_id: model,
})

describe('without a key', () => {
  test('1: /health', async () => {
    const reply = await request('GET', '/health', undefined, null)
    expect([reply.status, reply.body]).toEqual([200, { ok: true }])
    expect(await client().health.retrieve()).toEqual({ ok: true })
  })

  test('2: anything else', async () => {
    for (const key of [null, 'wrong']) {
      const reply = await request('GET', '/collections', undefined, key)
      expect([reply.status, reply.body]).toEqual([401, { message: FORBIDDEN }])
      expect(reply.contentType).toBe('application/json; charset=utf-8')
    }
  })

  test('3: an unknown route is unknown to everybody', async () => {
    const reply = await request('GET', '/nope/nope', undefined, null)
    expect([reply.status, reply.body]).toEqual([404, { message: 'Not Found' }])
  })
})

describe('keys', () => {
  test('3.1: made, listed without their value, deleted', async () => {
    const made = await client()
      .keys()
      .create({ description: 'read only', actions: ['documents:search'], collections: ['films'] })
    expect(made).toMatchObject({ id: expect.any(Number), description: 'read only', expires_at: 64723363199 })
    expect(made.value).toHaveLength(32)
    const read = await client().keys(made.id).retrieve()
    expect(read).toMatchObject({ id: made.id, value_prefix: made.value?.slice(0, 4) })
    expect(read).not.toHaveProperty('value')
    const { keys } = await client().keys().retrieve()
    expect(keys.map(({ id }) => id)).toContain(made.id)
    expect(JSON.stringify(keys)).not.toContain(made.value)
    expect(await client().keys(made.id).delete()).toEqual({ id: made.id })
    await expect(client().keys(made.id).retrieve()).rejects.toMatchObject({ name: 'ObjectNotFound' })
  })

  test('0: a key reaches its actions and collections only', async () => {
    const key = await searchKey(['documents:search'], [shows])
    const mine = client(key).collections(shows).documents()
    expect((await mine.search({ q: '*' }, {})).found).toBe(5)
    await expect(
      client(key).collections(unique('other')).documents().search({ q: '*' }, {}),
    ).rejects.toMatchObject(forbidden)
    await expect(mine.create({ id: 'x' })).rejects.toMatchObject(forbidden)
    await expect(client(key).conversations().models().retrieve()).rejects.toMatchObject(forbidden)
  })

  test('1.1: conversations/models:* opens models and nothing else', async () => {
    const key = await searchKey(['conversations/models:*'])
    expect(await client(key).conversations().models().retrieve()).toBeInstanceOf(Array)
    await expect(client(key).collections().retrieve()).rejects.toMatchObject(forbidden)
    const other = await searchKey(['conversations:*'])
    await expect(client(other).conversations().models().retrieve()).rejects.toMatchObject(forbidden)
  })
})

describe('searching clients', () => {
  test('60: the key in the query and the body as text', async () => {
    const key = await searchKey()
    const reply = await searchClient(key).multiSearch.perform({
      searches: [{ collection: shows, q: '*' }],
    } as never)
    expect(reply).toMatchObject({ results: [{ found: 5 }] })
    const single = await searchClient(key).collections(shows).documents().search(conversation(), {})
    expect(single.conversation?.answer).toBe('You asked: an action series')
  })

  test('60: the header wins over the query', async () => {
    const path = `/collections/${shows}/documents/search?q=*&x-typesense-api-key=${await searchKey()}`
    expect((await request('GET', path, undefined, null)).status).toBe(200)
    expect((await request('GET', path, undefined, 'wrong')).status).toBe(401)
  })

  test('0: a page of another origin may ask, of this machine', async () => {
    const preflight = await fetch(`${url}/multi_search`, {
      method: 'OPTIONS',
      headers: {
        origin: 'http://localhost:5173',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-typesense-api-key,content-type',
      },
    })
    expect(preflight.status).toBe(200)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('x-typesense-api-key')
  })
})

describe('scoped keys', () => {
  test('61: the test vector', async () => {
    const parent = 'RN23GFr1s6jQ9kgSNg2O7fYcAUXU7127'
    const parameters = { filter_by: 'company_id:124', expires_at: 1906054106 }
    const scoped = client().keys().generateScopedSearchKey(parent, parameters)
    expect(scoped).toBe(
      'OW9DYWZGS1Q1RGdSbmo0S1QrOWxhbk9PL2kxbTU1eXA3bCthdmE5eXJKRT1STjIzeyJmaWx0ZXJfYnkiOiJjb21wYW55X2lkOjEyNCIsImV4cGlyZXNfYXQiOjE5MDYwNTQxMDZ9',
    )
    const name = unique('companies')
    await client()
      .collections()
      .create({ name, fields: [{ name: 'company_id', type: 'int32' }] })
    await client()
      .collections(name)
      .documents()
      .import([
        { id: 'a', company_id: 123 },
        { id: 'b', company_id: 124 },
      ])
    await request('POST', '/keys', {
      value: parent,
      description: 'the parent of the test vector',
      actions: ['documents:search'],
      collections: ['.*'],
    })
    const reply = await client(scoped).collections(name).documents().search({ q: '*' }, {})
    expect(reply.hits?.map(({ document }) => (document as { id: string }).id)).toEqual(['b'])
  })

  test('61: an embedded filter holds for hits and prompt, whatever the request says', async () => {
    const scoped = client()
      .keys()
      .generateScopedSearchKey(await searchKey(), { filter_by: 'id:=[kitchen,reef]' })
    llm.forget()
    const reply = await client(scoped)
      .collections(shows)
      .documents()
      .search({ ...conversation(), filter_by: 'id:=[salvage,reef]' }, {})
    expect(reply.hits?.map(({ document }) => (document as { id: string }).id)).toEqual(['reef'])
    const documents = documentsIn(llm.calls()[0]?.messages.at(-1)?.content ?? '')
    expect(documents.map(({ id }) => id)).toEqual(['reef'])
  })

  test('61: expired, or changed by hand', async () => {
    const parent = await searchKey()
    const expired = client().keys().generateScopedSearchKey(parent, { expires_at: 1_600_000_000 })
    await expect(client(expired).collections(shows).documents().search({ q: '*' }, {})).rejects.toMatchObject(
      forbidden,
    )
    const scoped = Buffer.from(
      client().keys().generateScopedSearchKey(parent, { filter_by: 'points:<70' }),
      'base64',
    )
    const forged = Buffer.from(scoped.toString().replace('points:<70', 'points:>00')).toString('base64')
    await expect(client(forged).collections(shows).documents().search({ q: '*' }, {})).rejects.toMatchObject(
      forbidden,
    )
  })

  test('62: a parent that may do more makes no scoped keys', async () => {
    const parent = await searchKey(['documents:search', 'documents:get'])
    const scoped = client().keys().generateScopedSearchKey(parent, { filter_by: 'points:>0' })
    await expect(client(scoped).collections(shows).documents().search({ q: '*' }, {})).rejects.toMatchObject(
      forbidden,
    )
  })
})
