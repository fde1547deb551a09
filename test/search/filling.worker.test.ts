/**
 * Searches while fields are indexed again after a change of the schema: a part of the documents is never the answer. Most changes let
 * searches read fields as they were meanwhile (former.worker.test.ts). These bring a new text as well, so they do not.
 */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { Reindex } from '../../src/search/collection/reindex'
import { exportAll, idsWhere, importAll, newCollection, newObject } from './object'

const COUNT = 450
const TITLE = { name: 'title', type: 'string', infix: true }
const GENRE = { name: 'genre', type: 'string', facet: true }
const YEAR = { name: 'year', type: 'int32' }
const TAGS = { name: 'tags', type: 'string[]', facet: true }
const VECTOR = { name: 'vector', type: 'float[]', num_dim: 2 }
const BODY = { name: 'body', type: 'string' }
const FIELDS = [TITLE, GENRE, YEAR, TAGS, VECTOR, BODY]

const documents = Array.from({ length: COUNT }, (_, n) => ({
  id: `d${n}`,
  title: 'ships at sea',
  genre: 'travel',
  year: n,
  tags: ['blue'],
  vector: [1, n],
  body: 'a harbour',
}))

async function ships(): Promise<CollectionRpc> {
  const object = await newCollection(FIELDS)
  await importAll(object, documents)
  return object
}

/** A PATCH that changes fields, as the Worker begins it: the first documents are indexed again, and the caller is gone. */
async function beginChange(object: CollectionRpc, ...fields: { name: string }[]): Promise<void> {
  const drops = fields.map(({ name }) => ({ name, drop: true }))
  const note = { name: `note on ${fields[0]!.name}`, type: 'string', optional: true }
  unwrap(await object.alter({ fields: [...drops, ...fields, note] }))
  expect(await object.reindex()).toEqual({ count: 200, done: false })
}

const found = async (object: CollectionRpc, params: Record<string, string>): Promise<number | undefined> =>
  unwrap(await object.search({ q: '*', per_page: '0', ...params })).found

/** Searches, and the field that each of them uses. */
const SEARCHES: [string, { name: string }, Record<string, string>][] = [
  ['query_by', { ...TITLE, stem: true } as { name: string }, { q: 'ship', query_by: 'title' }],
  ['query_by of several fields', TITLE, { q: 'ships', query_by: 'body,title' }],
  ['a part of a word', TITLE, { q: 'hip', query_by: 'title', infix: 'always' }],
  ['filter_by of a facet', GENRE, { filter_by: 'genre:=travel' }],
  ['filter_by of a text', TITLE, { filter_by: 'title:ships' }],
  ['filter_by of a number', YEAR, { filter_by: 'year:>=0' }],
  ['filter_by of a list', TAGS, { filter_by: 'tags:=blue' }],
  ['vector_query', VECTOR, { vector_query: `vector:([1,1], k:${COUNT})` }],
]

describe('while a field is indexed again', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it.each(SEARCHES)('%s finds all documents', async (_, field, params) => {
    const object = await ships()
    await beginChange(object, field)
    expect(await found(object, params)).toBe(COUNT)
  })

  it('facets, groups and the order have all documents', async () => {
    const object = await ships()
    await beginChange(object, GENRE)
    expect(unwrap(await object.search({ q: '*', facet_by: 'genre' })).facet_counts).toMatchObject([
      { counts: [{ value: 'travel', count: COUNT }] },
    ])
    await beginChange(object, TAGS)
    const { grouped_hits } = unwrap(await object.search({ q: '*', group_by: 'tags' }))
    expect(grouped_hits).toMatchObject([{ group_key: [['blue']], found: COUNT }])
    await beginChange(object, YEAR)
    const { hits } = unwrap(await object.search({ q: '*', sort_by: 'year:desc', per_page: '1' }))
    expect(hits).toMatchObject([{ document: { id: `d${COUNT - 1}` } }])
  })

  it('is refused if it takes long, and so is a change by a filter; other searches go on', async () => {
    const object = await ships()
    await beginChange(object, { ...TITLE, stem: true } as { name: string }, GENRE)
    vi.spyOn(Reindex.prototype, 'step').mockReturnValue({ count: 0, done: false })
    const refused = (field: string) => ({
      ok: false,
      error: {
        status: 503,
        message: `The field \`${field}\` is being indexed again after a change of the schema, so a part of the documents would be missing. Ask again in a moment: \`GET /operations/schema_changes\` shows how far it is.`,
        retryAfter: 5,
      },
    })
    const searches: [string, Record<string, string>][] = [
      ['title', { q: 'ship', query_by: 'title' }],
      ['title', { q: 'harbour', query_by: 'body,title' }],
      ['genre', { q: 'harbour', query_by: 'body', filter_by: 'genre:=travel' }],
      ['genre', { q: '*', facet_by: 'genre' }],
      ['genre', { q: '*', facet_by: 'gen*' }],
      ['genre', { q: '*', group_by: 'genre' }],
      ['genre', { q: '*', sort_by: '_eval(genre:=travel):desc' }],
    ]
    for (const [field, params] of searches) expect(await object.search(params)).toEqual(refused(field))
    const none = { returnDocuments: false, returnIds: false, batchSize: 1_000 }
    expect(await object.removeWhere('genre:=travel', none)).toEqual(refused('genre'))
    expect(await object.updateWhere('title:ships', '{"year":-1}', 0)).toEqual(refused('title'))
    expect(await object.exportPage({ filterBy: 'genre:!=x', include: '', exclude: '' }, 0)).toEqual(
      refused('genre'),
    )
    expect(await found(object, {})).toBe(COUNT)
    expect(await found(object, { q: 'harbour', query_by: 'body', filter_by: 'year:>=0' })).toBe(COUNT)
    expect(unwrap(await object.search({ q: '*', facet_by: 'tags' })).facet_counts).toMatchObject([
      { counts: [{ value: 'blue', count: COUNT }] },
    ])
    expect(await exportAll(object)).toEqual(documents)
    vi.restoreAllMocks()
    while (!(await object.reindex()).done);
    expect(await found(object, { q: 'ship', query_by: 'title', filter_by: 'genre:=travel' })).toBe(COUNT)
  })

  it('knows it after the object was lost, and finishes by itself', async () => {
    const { object, objectId } = newObject()
    await object.create({ name: 'c', fields: FIELDS }, 0)
    await importAll(object, documents)
    await beginChange(object, GENRE)
    await evictDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect(await idsWhere(object, 'genre:=travel')).toHaveLength(COUNT)
    expect(unwrap(await object.schema())).not.toHaveProperty('filling')
  })

  it('ends even if an earlier version ended the work', async () => {
    const { object, objectId } = newObject()
    await object.create({ name: 'c', fields: FIELDS }, 0)
    await importAll(object, documents)
    await beginChange(object, GENRE)
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    const filling = await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const { value } = sql.exec<{ value: string }>(`SELECT value FROM meta WHERE key = 'schema'`).one()
      return JSON.parse(value).filling
    })
    expect(filling).toEqual(['genre'])
    while (!(await object.reindex()).done);
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      sql.exec(`UPDATE meta SET value = json_set(value, '$.filling', json('["genre"]')) WHERE key = 'schema'`)
    })
    await evictDurableObject(stub)
    await object.search({ q: '*', filter_by: 'genre:=travel' })
    expect(await found(object, { filter_by: 'genre:=travel' })).toBe(COUNT)
  })

  it('takes writes for both halves of the documents', async () => {
    const object = await ships()
    await beginChange(object, { ...TITLE, stem: true } as { name: string })
    for (const id of ['d3', 'd333']) {
      unwrap(await object.patch(id, '{"title":"boats"}'))
      unwrap(await object.remove(id.replace('3', '4'), false))
    }
    await importAll(object, [{ ...documents[0]!, id: 'new', title: 'boat' }])
    expect(await found(object, { q: 'boat', query_by: 'title' })).toBe(3)
    expect(await found(object, { q: 'ship', query_by: 'title' })).toBe(COUNT - 4)
  })

  it('shows and keeps vectors, those that are written meanwhile as well', async () => {
    const vector = { ...VECTOR, optional: true }
    for (const again of [[{ ...vector, vec_dist: 'ip' }], [{ ...vector, num_dim: 3 }], []]) {
      const object = await newCollection([TITLE, vector])
      await importAll(object, documents)
      unwrap(await object.alter({ fields: [{ name: 'vector', drop: true }, ...again] }))
      await object.reindex()
      const [isOther] = again.map(({ num_dim }) => num_dim === 3)
      const kept = isOther ? documents.map(({ vector: _, ...rest }) => rest) : documents
      expect(await exportAll(object)).toEqual(kept)
      const given = isOther ? [7, 8, 9] : [8, 9]
      for (const id of ['d3', 'd333']) {
        unwrap(await object.patch(id, JSON.stringify({ vector: given })))
        unwrap(await object.patch(id.replace('3', '4'), '{"title":"boats"}'))
      }
      await importAll(object, [{ id: 'd400', title: 'none' }], { action: 'upsert' })
      const expected = kept.map((document) => {
        if (document.id === 'd400') return { id: 'd400', title: 'none' }
        if (document.id === 'd3' || document.id === 'd333') return { ...document, vector: given }
        return document.id === 'd4' || document.id === 'd433' ? { ...document, title: 'boats' } : document
      })
      expect(await exportAll(object)).toEqual(expected)
      while (!(await object.reindex()).done);
      expect(await exportAll(object)).toEqual(expected)
    }
  })

  it('does not hold up searches of the present fields for a new one', async () => {
    const object = await newCollection([TITLE])
    await importAll(object, documents)
    unwrap(await object.alter({ fields: [GENRE, BODY] }))
    await object.reindex()
    expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(COUNT)
    expect(await found(object, { filter_by: 'genre:=travel' })).toBe(200)
    while (!(await object.reindex()).done);
    expect(await found(object, { filter_by: 'genre:=travel' })).toBe(COUNT)
  })

  it('waits for all texts when so many fields come that the index of words begins anew', async () => {
    const object = await newCollection([TITLE])
    await importAll(object, documents)
    const many = Array.from({ length: 40 }, (_, n) => ({ name: `f${n}`, type: 'string', optional: true }))
    unwrap(await object.alter({ fields: many }))
    await object.reindex()
    expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(COUNT)
  })
})
