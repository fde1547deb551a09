/** Names that lead to a collection: none leads a key past the collections that it names. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call, FORBIDDEN, MAY_NOT, queryString } from '../api/typesense/api'
import { scopedKey } from '../api/typesense/conversing'
import { historySchema } from '../history-schema'

const REFUSED = [401, MAY_NOT]
/** The same on Parley's own routes. */
const REFUSED_HERE = [401, { ...MAY_NOT, code: 'unauthorized' }]

const makeKey = async (actions: string[], collections: string[]): Promise<string> => {
  const [status, key] = await call('POST', '/keys', { body: { description: '', actions, collections } })
  expect(status).toBe(201)
  return key.value
}

const MODEL = { model_name: 'local/extractive', history_collection: 'talk', max_bytes: 16_384 }
const MISSING = 'Document id referenced in vector query is not found.'
const idOf = ({ document }: { document: { id: string } }) => document.id
const ASSISTANT = { model: 'ours', collections: ['secret'] }

let writer: string

beforeAll(async () => {
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'tenant', type: 'string', facet: true },
    { name: 'vec', type: 'float[]', num_dim: 2, optional: true },
  ]
  for (const name of ['secret', 'pub_x']) {
    expect((await call('POST', '/collections', { body: { name, fields } }))[0]).toBe(201)
    for (const [id, tenant, vec] of [
      ['a', 'one', [1, 0]],
      ['b', 'one', [0.6, 0.8]],
      ['c', 'two', [0, 1]],
    ]) {
      const body = { id, tenant, vec, text: `the ${name} of ${tenant}` }
      expect((await call('POST', `/collections/${name}/documents`, { body }))[0]).toBe(201)
    }
  }
  for (const name of ['talk', 'pub_talk']) await call('POST', '/collections', { body: historySchema(name) })
  expect((await call('POST', '/conversations/models', { body: { ...MODEL, id: 'ours' } }))[0]).toBe(201)
  expect((await call('PUT', '/assistants/help', { body: ASSISTANT }))[0]).toBe(200)
  await call('PUT', '/aliases/prod', { body: { collection_name: 'secret' } })
  await call('PUT', '/aliases/pub_theirs', { body: { collection_name: 'secret' } })
  writer = await makeKey(
    ['documents:search', 'aliases:*', 'assistants:*', 'conversations/models:*', 'collections:*'],
    ['pub_.*'],
  )
})

describe('an alias', () => {
  const point = (name: string, collection_name: string) =>
    call('PUT', `/aliases/${name}`, { key: writer, body: { collection_name } })

  it('points at a collection that its key names, and at no other', async () => {
    expect(await point('pub_y', 'secret')).toEqual(REFUSED)
    expect((await call('GET', '/aliases/pub_y'))[0]).toBe(404)
    expect((await point('pub_y', 'pub_x'))[0]).toBe(200)
    const [, found] = await call('GET', '/collections/pub_y/documents/search?q=the&query_by=text', {
      key: writer,
    })
    expect(found.found).toBe(3)
    // It need not exist yet: what will be made under the name is the key's as well.
    expect((await point('pub_later', 'pub_new'))[0]).toBe(200)
  })

  it('of another name is neither moved, shown nor deleted', async () => {
    expect(await point('prod', 'pub_x')).toEqual(REFUSED)
    expect(await call('GET', '/aliases/prod', { key: writer })).toEqual(REFUSED)
    expect(await call('DELETE', '/aliases/prod', { key: writer })).toEqual(REFUSED)
    expect((await call('GET', '/aliases/prod'))[1].collection_name).toBe('secret')
    const [, { aliases }] = await call('GET', '/aliases', { key: writer })
    expect(aliases.map(({ name }: { name: string }) => name)).not.toContain('prod')
    expect(aliases.map(({ name }: { name: string }) => name)).toContain('pub_y')
  })

  it('that the admin key pointed is searched by its name alone, as in Typesense', async () => {
    const key = await makeKey(['documents:search'], ['pub_theirs'])
    const [status, { found }] = await call(
      'GET',
      '/collections/pub_theirs/documents/search?q=the&query_by=text',
      { key },
    )
    expect([status, found]).toEqual([200, 3])
  })
})

describe('a clone', () => {
  const clone = (key: string, name: string, source: string, copies = true) =>
    call('POST', `/collections?src_name=${source}&copy_documents=${copies}`, { key, body: { name } })

  it('takes no documents that its key may not export', async () => {
    expect(await clone(writer, 'pub_copy', 'pub_x')).toEqual(REFUSED)
    expect((await clone(writer, 'pub_shape', 'pub_x', false))[1]).toMatchObject({ num_documents: 0 })
    const exporter = await makeKey(['collections:*', 'documents:export'], ['pub_.*'])
    expect((await clone(exporter, 'pub_copy', 'pub_x'))[1]).toMatchObject({ num_documents: 3 })
    expect(await clone(exporter, 'pub_stolen', 'secret')).toEqual(REFUSED)
  })
})

describe('a conversation model', () => {
  it('keeps its history in a collection that its key names', async () => {
    const make = (body: Record<string, unknown>) =>
      call('POST', '/conversations/models', { key: writer, body })
    expect(await make({ ...MODEL, id: 'mine' })).toEqual(REFUSED)
    expect((await make({ ...MODEL, id: 'mine', history_collection: 'pub_talk' }))[0]).toBe(201)
    const change = (id: string, body: Record<string, unknown>) =>
      call('PUT', `/conversations/models/${id}`, { key: writer, body })
    expect(await change('mine', { history_collection: 'talk' })).toEqual(REFUSED)
    expect((await change('mine', { system_prompt: 'Be brief.' }))[0]).toBe(200)
    // Nor does it take over a model that keeps its history elsewhere: what is said to it would come here.
    expect(await change('ours', { history_collection: 'pub_talk' })).toEqual(REFUSED)
    expect(await change('mine', { id: 'ours' })).not.toEqual(REFUSED)
    expect(await call('DELETE', '/conversations/models/ours', { key: writer })).toEqual(REFUSED)
    expect((await call('GET', '/conversations/models/ours'))[1].history_collection).toBe('talk')
  })
})

describe('an assistant', () => {
  const put = (name: string, body: Record<string, unknown>) =>
    call('PUT', `/assistants/${name}`, { key: writer, body })

  it('searches collections that its key names', async () => {
    expect(await put('mine', ASSISTANT)).toEqual(REFUSED_HERE)
    expect(await put('mine', { model: 'ours', searches: [{ collection: 'secret' }] })).toEqual(REFUSED_HERE)
    expect((await put('mine', { model: 'ours', collections: ['pub_x'] }))[0]).toBe(200)
  })

  it('of other collections is neither changed nor deleted', async () => {
    expect(await put('help', { model: 'ours', collections: ['pub_x'] })).toEqual(REFUSED_HERE)
    expect(await call('DELETE', '/assistants/help', { key: writer })).toEqual(REFUSED_HERE)
    expect((await call('GET', '/assistants/help'))[1].collections).toEqual(['secret'])
  })
})

describe('a key', () => {
  it('makes keys for its own collections', async () => {
    const maker = await makeKey(['keys:create'], ['pub_.*', 'one'])
    const make = async (collections: unknown) =>
      (
        await call('POST', '/keys', {
          key: maker,
          body: { description: '', actions: ['documents:search'], collections },
        })
      )[0]
    for (const own of [['pub_.*'], ['pub_x', 'one'], ['pub_theirs']]) expect(await make(own)).toBe(201)
    for (const others of [
      ['*'],
      ['.*'],
      ['secret'],
      ['pub_x', 'secret'],
      ['pub_.*|secret'],
      ['pub_x|secret'],
    ]) {
      expect(await make(others)).toBe(401)
    }
    expect(await make('pub_x')).toBe(400)
  })
})

describe('a scoped key', () => {
  const scoped = async (parameters: Record<string, unknown>, collections = ['.*']) =>
    scopedKey(await makeKey(['documents:search'], collections), parameters)
  const searches = [{ collection: 'pub_x', q: 'the', query_by: 'text' }]
  const union = async (key: string, parameters: Record<string, unknown> = {}) =>
    (
      await call('POST', `/multi_search${queryString(parameters)}`, { key, body: { union: true, searches } })
    )[1]

  it('names a collection that its parent may search', async () => {
    const key = await scoped({ collection: 'secret' }, ['pub_.*'])
    expect(await call('POST', '/multi_search', { key, body: { searches } })).toEqual([401, FORBIDDEN])
  })

  it('bounds the pages of a union as those of a search', async () => {
    const two = await scoped({ per_page: 2 })
    expect((await union(two)).hits).toHaveLength(2)
    expect((await union(two, { per_page: 250 })).hits).toHaveLength(2)
    expect((await union(two, { limit: 250 })).hits).toHaveLength(2)
    expect((await union(await scoped({ limit: 2 }), { per_page: 250 })).hits).toHaveLength(2)
    const limited = await scoped({ limit_hits: 2 })
    expect((await union(limited, { per_page: 2 })).hits).toHaveLength(2)
    for (const beyond of [{ per_page: 3 }, { per_page: 2, page: 2 }, { per_page: 3, limit_hits: 100 }]) {
      expect(await union(limited, beyond)).toMatchObject({ code: 422 })
    }
    expect(await union(await scoped({ page: 2, per_page: 2 }), { page: 1 })).toMatchObject({ page: 2 })
  })

  it('bounds the pages of a search, by whichever name', async () => {
    const search = async (key: string, parameters: Record<string, unknown>) =>
      (
        await call('GET', `/collections/pub_x/documents/search${queryString({ q: '*', ...parameters })}`, {
          key,
        })
      )[1]
    expect((await search(await scoped({ limit: 2 }), { per_page: 250 })).hits).toHaveLength(2)
    expect((await search(await scoped({ per_page: 2 }), { limit: 250 })).hits).toHaveLength(2)
    expect((await search(await scoped({ offset: 2 }), { page: 1 })).hits).toHaveLength(1)
  })

  it('bounds a union of several keys by the narrowest of them', async () => {
    const [wide, narrow] = [await scoped({ per_page: 3 }), await scoped({ per_page: 1 })]
    const each = [wide, narrow].map((key) => ({ ...searches[0], 'x-typesense-api-key': key }))
    const body = { union: true, searches: each }
    const [, { hits }] = await call('POST', '/multi_search?per_page=3', { key: null, body })
    expect(hits).toHaveLength(1)
    const pages = await Promise.all(
      [1, 2].map(async (page) => ({ ...searches[0], 'x-typesense-api-key': await scoped({ page }) })),
    )
    expect(
      await call('POST', '/multi_search', { key: null, body: { union: true, searches: pages } }),
    ).toEqual([401, FORBIDDEN])
  })

  it('measures no distance to a document that its filter hides', async () => {
    const key = await scoped({ filter_by: 'tenant:=one' })
    const near = (id: string, asked: string | null = key) =>
      call(
        'GET',
        `/collections/pub_x/documents/search${queryString({
          q: '*',
          vector_query: `vec:([], id: ${id})`,
          ...(asked === null ? { filter_by: 'tenant:=one' } : {}),
        })}`,
        asked === null ? {} : { key: asked },
      )
    const missing = [400, { message: MISSING }]
    expect(await near('none')).toEqual(missing)
    expect(await near('c')).toEqual(missing)
    expect((await near('a'))[1]).toMatchObject({ hits: [{ document: { id: 'b' } }] })
    // A filter of the request alone says what is looked for, and not what may be seen.
    expect((await near('c', null))[1].hits.map(idOf)).toEqual(['b', 'a'])
    const body = (id: string) => ({
      searches: [{ collection: 'pub_x', q: '*', vector_query: `vec:([], id: ${id})` }],
    })
    const each = async (id: string) => (await call('POST', '/multi_search', { key, body: body(id) }))[1]
    expect(await each('c')).toEqual({ results: [{ code: 400, error: MISSING }] })
    const united = { ...body('c'), union: true }
    expect((await call('POST', '/multi_search', { key, body: united }))[1]).toMatchObject({ code: 400 })
    const asking = (id: string) =>
      call('POST', '/conversations', {
        key,
        body: {
          question: 'the',
          model: 'ours',
          searches: [{ collection: 'pub_x', query_by: 'text', vector_query: `vec:([], id: ${id})` }],
        },
      })
    expect((await asking('a'))[1].results[0].hits.map(idOf)).toContain('b')
    expect(await asking('c')).toEqual([400, { message: MISSING, code: 'search_failed' }])
  })
})
