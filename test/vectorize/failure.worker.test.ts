/** What a search answers when Vectorize does not, and what becomes of vectors whose collection or field goes. */
import { abortAllDurableObjects } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { createCollection, dropCollection, findCollection } from '../../src/registry/collections'
import { collectionObject } from '../../src/search/collection/handle'
import { BYTES } from '../../src/vectorize/vectorize-index'
import { idsOf } from '../search/make-collection'
import {
  bindDouble,
  embedVectors,
  FIELDS,
  importMany,
  type MirroredCollection,
  makeDocuments,
  newMirrored,
  query,
  ring,
  search,
  settle,
} from './collections'
import type { VectorizeDouble } from './double'

let double: VectorizeDouble
const { exact } = BYTES

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  double = bindDouble()
  BYTES.exact = 512 << 10
})
afterEach(() => {
  BYTES.exact = exact
  embedVectors()
})

const QUESTION = { q: 'word7 word90 word400' }
/** More than are searched in the object without asking Vectorize. */
const MANY = 600

async function visible(count: number): Promise<MirroredCollection> {
  const collection = await newMirrored()
  await importMany(collection.object, makeDocuments(count))
  await settle(collection, double)
  return collection
}

describe('a search that Vectorize does not answer', { timeout: 60_000 }, () => {
  it('is answered exactly by reading the rows', async () => {
    const collection = await visible(MANY)
    const params = { ...QUESTION, query_by: 'embedding' }
    const expected = idsOf(await search(collection, params))
    const { calls } = double
    double.fail('query', 'refused')
    expect(idsOf(await search(collection, params))).toEqual(expected)
    const asked = calls.query
    // For a moment nobody is made to wait for it again.
    expect(idsOf(await search(collection, params))).toEqual(expected)
    expect(calls.query).toBe(asked)
  })

  it('does not wait for an answer that never comes', async () => {
    const collection = await visible(MANY)
    double.fail('query', 'silent')
    const { hits } = await search(collection, { ...QUESTION, query_by: 'title,embedding' })
    expect(hits).toHaveLength(10)
  })

  it('is answered by its words, or told to come back, where the rows are too many to read', async () => {
    const collection = await visible(20)
    // As many rows as need half a second to read; what is in them does not matter.
    await query(collection, 'INSERT INTO packed_3 (seq, count, vectors) VALUES (256000, 100000, zeroblob(0))')
    await abortAllDurableObjects()
    collection.object = collectionObject(env, collection.objectId)
    double.fail('query', 'refused')
    const written: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void written.push(String(line)))
    const params = { ...QUESTION, query_by: 'title,embedding', exclude_fields: 'embedding' }
    const { hits } = unwrap(await collection.object.search(params, { requestId: 'front-7' }))
    // The log says so, and names the request.
    const lines = written.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    expect(lines).toMatchObject([
      { type: 'collection', request_id: 'front-7', collection: 'things', event: 'vectorize' },
    ])
    expect(written.join()).not.toContain('word7')
    expect(hits!.length).toBeGreaterThan(0)
    expect(hits![0]).not.toHaveProperty('vector_distance')
    const alone = await collection.object.search({ ...QUESTION, query_by: 'embedding' })
    expect(alone).toEqual({
      ok: false,
      error: { status: 503, message: 'Vectorize did not answer. Ask again in a moment.', retryAfter: 5 },
    })
  })
})

describe('vectors in Vectorize', { timeout: 60_000 }, () => {
  it('go with their collection, however often that fails', async () => {
    await createCollection(env, { name: 'going', fields: FIELDS })
    const { objectId } = await findCollection(env, 'going')
    const collection = { objectId, object: collectionObject(env, objectId) }
    await importMany(collection.object, makeDocuments(250))
    await settle(collection, double)
    expect(double.visible.size).toBe(250)
    double.fail('deleteByIds', 'refused', 'unanswered')
    await dropCollection(env, 'going')
    await expect
      .poll(
        async () => {
          await ring(collection)
          while (double.runJob());
          return double.visible.size
        },
        { timeout: 20_000 },
      )
      .toBe(0)
    await expect
      .poll(() => query(collection, `SELECT 1 FROM sqlite_master WHERE name = 'documents'`))
      .toEqual([])
  })

  it('go with their field, and come with a new one', async () => {
    const collection = await visible(150)
    await collection.object.alter({ fields: [{ name: 'embedding', drop: true }] })
    await settle(collection, double)
    expect(double.visible.size).toBe(0)
    await collection.object.alter({ fields: [FIELDS[3]] })
    while (!(await collection.object.reindex()).done);
    await settle(collection, double)
    expect(double.visible.size).toBe(150)
  })

  it('go with a truncation', async () => {
    const collection = await visible(130)
    await collection.object.truncate()
    await settle(collection, double)
    expect(double.visible.size).toBe(0)
  })

  it('stay out where their distance is not the cosine or no index has their dimensions', async () => {
    const collection = await newMirrored([
      { name: 'inner', type: 'float[]', num_dim: 1024, vec_dist: 'ip' },
      { name: 'small', type: 'float[]', num_dim: 2 },
    ])
    await importMany(collection.object, [{ id: 'a', inner: new Array(1024).fill(1), small: [1, 2] }])
    expect(idsOf(await search(collection, { q: '*', vector_query: 'small:([1, 2])' }))).toEqual(['a'])
    expect(await query(collection, 'SELECT * FROM vector_outbox')).toEqual([])
  })
})

describe('POST /operations/vectorize/reconcile', () => {
  const reconcile = async (parameters: string) => {
    const response = await exports.default.fetch(
      new Request(`http://parley/operations/vectorize/reconcile${parameters}`, {
        method: 'POST',
        headers: { 'x-typesense-api-key': 'xyz' },
      }),
    )
    return { status: response.status, body: await response.json() }
  }

  it('counts and mends what differs', { timeout: 60_000 }, async () => {
    await createCollection(env, { name: 'compared', fields: FIELDS })
    const { objectId } = await findCollection(env, 'compared')
    const collection = { objectId, object: collectionObject(env, objectId) }
    await importMany(collection.object, makeDocuments(1_100))
    await settle(collection, double)
    double.tamper((stored) => {
      for (const id of [...stored.keys()].slice(0, 7)) stored.delete(id)
    })
    const found = { checked: 1_100, missing: 7, stale: 0, extra: 0, waiting: 0, mended: 7, done: true }
    expect(await reconcile('?collection=compared')).toEqual({ status: 200, body: found })
    await settle(collection, double)
    expect(double.visible.size).toBe(1_100)
    const after = await reconcile('?collection=compared&after=3:1080')
    expect(after.body).toMatchObject({ checked: 20, missing: 0, done: true })
  })

  it('says what is wrong', async () => {
    expect(await reconcile('')).toEqual({
      status: 400,
      body: {
        message: '`collection`: It is missing.',
        code: 'bad_request',
      },
    })
    expect((await reconcile('?collection=nowhere')).status).toBe(404)
    await createCollection(env, { name: 'asked', fields: FIELDS })
    expect((await reconcile('?collection=asked&after=x')).body).toEqual({
      message: 'Parameter `after` takes the `cursor` of the last answer.',
      code: 'bad_request',
    })
    embedVectors()
    expect((await reconcile('?collection=asked')).status).toBe(400)
  })
})
