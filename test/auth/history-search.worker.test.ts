/** Who may search what was said: a key that can only search has to name the history collection. */
import { beforeAll, describe, expect, it } from 'vitest'
import { ask, makeKey, setStage } from '../api/parley/stage'
import { call, FORBIDDEN } from '../api/typesense/api'
import { scopedKey } from '../api/typesense/conversing'
import { historySchema } from '../history-schema'

const SEARCH = { actions: ['documents:search'] }
const BY_TIME = '/collections/history/documents/search?q=*&filter_by=timestamp:>0'
const JSON_TYPE = { 'content-type': 'application/json' }

let everywhere: string

beforeAll(async () => {
  await setStage()
  expect((await ask())[0]).toBe(200)
  everywhere = await makeKey(SEARCH)
  await call('PUT', '/aliases/chats', { body: { collection_name: 'history' } })
  // Its schema says what it is, before and after a model keeps its history there.
  await call('POST', '/collections', { body: historySchema('later') })
  const copy = '/collections?src_name=history&copy_documents=true'
  expect((await call('POST', copy, { body: { name: 'copy' } }))[1].num_documents).toBe(2)
})

describe('a key that may only search, on every collection', () => {
  it.each(['history', 'chats', 'later', 'copy'])('does not search %s', async (collection) => {
    const key = everywhere
    const path = `/collections/${collection}/documents`
    expect(await call('GET', `${path}/search?q=*`, { key })).toEqual([401, FORBIDDEN])
    expect(await call('GET', `${path}/search?q=*&facet_by=conversation_id&per_page=0`, { key })).toEqual([
      401,
      FORBIDDEN,
    ])
    expect((await call('GET', `${path}/export`, { key }))[0]).toBe(401)
    expect((await call('GET', `${path}/0`, { key }))[0]).toBe(401)
    expect((await call('GET', `${path}/search?q=*`))[0]).toBe(200)
  })

  it('reads nothing of it through several searches, a union, a conversation or an assistant', async () => {
    const key = everywhere
    const searches = [
      { collection: 'history', q: '*' },
      { collection: 'facts', q: '*' },
    ]
    const [, each] = await call('POST', '/multi_search', { key, body: { searches } })
    expect(each.results).toMatchObject([{ code: 401, error: FORBIDDEN.message }, { found: 2 }])
    const [, union] = await call('POST', '/multi_search', { key, body: { searches, union: true } })
    expect(union).toEqual({ code: 401, error: FORBIDDEN.message })

    const filtered = [
      { collection: 'history', q: '*', query_by: 'conversation_id', filter_by: 'timestamp:>0' },
    ]
    const asked = await ask(
      { collections: undefined, searches: filtered.map(({ q, ...rest }) => rest) },
      { key },
    )
    expect(asked).toEqual([401, { ...FORBIDDEN, code: 'search_failed' }])
    const once =
      '/collections/history/documents/search?q=x&query_by=conversation_id&conversation=true&conversation_model_id=m'
    expect(await call('GET', once, { key })).toEqual([401, FORBIDDEN])

    const own = { searches: [{ collection: 'history', query_by: 'conversation_id' }], model: 'm' }
    expect((await call('PUT', '/assistants/past', { body: own }))[0]).toBe(200)
    const chat = { messages: [{ role: 'user', content: 'x' }] }
    expect((await call('POST', '/a/past/chat', { key, body: chat, headers: JSON_TYPE }))[0]).toBe(401)
    // Whoever binds a key to an assistant has named what it searches.
    const bound = await makeKey({ ...SEARCH, limits: { assistant: 'past' } })
    expect((await call('POST', '/a/past/chat', { key: bound, body: chat, headers: JSON_TYPE }))[0]).toBe(200)
  })

  it('nor does a scoped key of it, whatever it embeds', async () => {
    for (const embedded of [{}, { collection: 'history' }, { filter_by: 'timestamp:>0' }]) {
      expect(await call('GET', BY_TIME, { key: await scopedKey(everywhere, embedded) })).toEqual([
        401,
        FORBIDDEN,
      ])
    }
  })
})

describe('what was said is searched by', () => {
  it.each([
    ['a key that names the collection', { ...SEARCH, collections: ['history'] }],
    ['a key that names it by an expression', { ...SEARCH, collections: ['*', 'hist.*'] }],
    ['a key that may read documents', { actions: ['documents:search', 'documents:get'] }],
    ['a key that may do all with documents', { actions: ['documents:*'] }],
  ])('%s', async (_, body) => {
    const [status, { found }] = await call('GET', BY_TIME, { key: await makeKey(body) })
    expect([status, found > 1]).toEqual([200, true])
  })

  it.each([
    ['an expression that fits any name', { ...SEARCH, collections: ['.*'] }],
    ['the right to converse', { actions: ['documents:search', 'conversations:create'] }],
  ])('nobody through %s', async (_, body) => {
    expect(await call('GET', BY_TIME, { key: await makeKey(body) })).toEqual([401, FORBIDDEN])
  })
})
