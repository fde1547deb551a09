/** What becomes of documents that a collection has no room for, and of vectors where no Vectorize takes them. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { collectionObject } from '../../src/search/collection/handle'
import { MAX_DOCUMENTS, MAX_MATRIX_BYTES } from '../../src/search/limits'
import { writeMeta } from '../../src/search/meta'
import { vectorBytes } from '../../src/search/vectors/packed-vectors'
import { indexName, request } from '../api/opensearch/api'
import { call, send } from '../api/typesense/api'
import { historySchema } from '../history-schema'
import { drained, embedding, found, Provider, summaryOf } from './embedding-stage'
import { importAll, newObject } from './object'

const fields = (model: string) => {
  const field = embedding()
  field.embed.model_config.model_name = model
  return [{ name: 'title', type: 'string' }, field]
}

/** A collection with two documents, and room for one more vector of 384 dimensions. */
async function almostFull(model: string): Promise<CollectionRpc> {
  const { object, objectId } = newObject()
  unwrap(await object.create({ name: 'full', fields: fields(model) }, Math.floor(Date.now() / 1000)))
  await importAll(object, [
    { id: 'a', title: 'first title' },
    { id: 'b', title: 'second title' },
  ])
  await drained(object)
  const room = Math.floor(MAX_MATRIX_BYTES / vectorBytes(1, 384))
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_object, { storage }) => {
      // How many there are is what counts; nothing asks for what is in them.
      storage.sql.exec(
        'INSERT INTO packed_1 (seq, count, vectors) VALUES (?, ?, zeroblob(0))',
        256 * 1_000,
        room - 3,
      )
    },
  )
  // An object that wakes counts anew.
  await abortAllDurableObjects()
  return collectionObject(env, objectId)
}

it('is counted with the zeros that fill a row', () => {
  expect([1, 16, 17, 1_024].map((dimensions) => vectorBytes(2, dimensions))).toEqual([160, 160, 192, 2_176])
})

it('a document past it is refused in its own line, and those that are there can be changed', async () => {
  const object = await almostFull('local/hash-384')
  const [fits, refused, together] = await importAll(object, [
    { id: 'c', title: 'third title' },
    { id: 'd', title: 'fourth title' },
    { id: 'e', title: 'fifth title' },
  ])
  expect(fits).toEqual({ success: true })
  for (const line of [refused, together]) expect(line).toMatchObject({ success: false, code: 422 })
  expect(refused!.error).toMatch(/Bind a Vectorize index of 384 dimensions, or .*`parley move`.*`engine`/)
  expect((await summaryOf(object)).num_documents).toBe(3)
  const changed = [{ id: 'b', title: 'another title' }]
  expect(await importAll(object, changed, { action: 'upsert' })).toEqual([{ success: true }])
  expect(await found(object, { q: 'another', query_by: 'title' })).toEqual(['another title'])
  // What goes makes room.
  unwrap(await object.remove('c', false))
  expect(await importAll(object, [{ id: 'd', title: 'fourth title' }])).toEqual([{ success: true }])
})

it('a document whose vector a model makes later stays without it, and the collection says why', async () => {
  const provider = new Provider()
  const object = await almostFull('cloudflare/@cf/baai/bge-small-en-v1.5')
  provider.reset()
  const lines = await importAll(object, [
    { id: 'c', title: 'third title' },
    { id: 'd', title: 'fourth title' },
  ])
  expect(lines).toEqual([{ success: true }, { success: true }])
  await drained(object)
  const summary = await summaryOf(object)
  expect(summary).toMatchObject({ num_documents: 4, refused_embeddings: 1 })
  expect(summary.embedding_error).toContain('Field `e` takes no more vectors')
  expect(await found(object, { q: 'fourth', query_by: 'title' })).toEqual(['fourth title'])
})

async function idOf(name: string): Promise<string> {
  const query = env.DB.prepare('SELECT object_id AS id FROM collections WHERE name = ?').bind(name)
  return (await query.first<{ id: string }>())!.id
}

/** Has a collection count documents that it does not have, and wakes it. @param room documents that it still takes */
async function leaveRoom(name: string, room: number): Promise<void> {
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(await idOf(name)))
  await runInDurableObject(stub, (_object, { storage }) =>
    writeMeta(storage.sql, 'counters', { nextSeq: MAX_DOCUMENTS, count: MAX_DOCUMENTS - room }),
  )
  await abortAllDurableObjects()
}

const FULL = /takes at most 300000 documents\. .*`parley move`.*`engine`/

it('a document past the most is refused before anything of it is written, in the words of each wire', async () => {
  const name = indexName()
  const fields = [
    { name: 'title', type: 'string' },
    { name: '.*', type: 'auto' },
  ]
  await call('POST', '/collections', { body: { name, fields } })
  const documents = `/collections/${name}/documents`
  await call('POST', documents, { body: { id: 'a', title: 'first' } })
  await leaveRoom(name, 1)
  const lines = ['b', 'c', 'a'].map((id) => JSON.stringify({ id, title: `new ${id}`, [`of_${id}`]: 1 }))
  const response = await send('POST', `${documents}/import?action=upsert`, { body: lines.join('\n') })
  const results = (await response.text()).split('\n').map((line) => JSON.parse(line))
  expect(results).toEqual([
    { success: true },
    expect.objectContaining({ success: false, code: 422, error: expect.stringMatching(FULL) }),
    { success: true },
  ])
  const [status, refused] = await call('POST', documents, { body: { title: 'another' } })
  expect([status, refused]).toEqual([422, { message: expect.stringMatching(FULL) }])
  const [, bulk] = await request('POST', `/${name}/_bulk`, [
    { index: { _id: 'd' } },
    { title: 'd' },
    { update: { _id: 'a' } },
    { doc: { title: 'newer' } },
  ])
  expect(bulk.items[0].index).toMatchObject({
    status: 422,
    error: { reason: expect.stringMatching(FULL) },
  })
  expect(bulk.items[1].update.status).toBe(200)
  const [, collection] = await call('GET', `/collections/${name}`)
  expect(collection.fields.map((field: { name: string }) => field.name)).toEqual(
    expect.arrayContaining(['of_a', 'of_b']),
  )
  expect(JSON.stringify(collection.fields)).not.toContain('of_c')
  // What goes makes room.
  await call('DELETE', `${documents}/b`)
  expect((await call('POST', documents, { body: { title: 'another' } }))[0]).toBe(201)
})

it('a history takes more: its messages expire, and no turn may be lost', async () => {
  const name = indexName()
  await call('POST', '/collections', { body: historySchema(name) })
  const objectId = await idOf(name)
  await collectionObject(env, objectId).keepHistory()
  await leaveRoom(name, 0)
  const said = { conversation_id: 'c', model_id: 'm', timestamp: 1, role: 'user', message: 'hello' }
  expect(await collectionObject(env, objectId).appendTurn('c/1', [said])).toMatchObject({ ok: true })
  expect((await summaryOf(collectionObject(env, objectId))).num_documents).toBe(MAX_DOCUMENTS + 1)
})
