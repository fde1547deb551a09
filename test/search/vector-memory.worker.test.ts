/** What becomes of vectors that memory has no room for, where no Vectorize takes them. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { collectionObject } from '../../src/search/collection/handle'
import type { CollectionRpc } from '../../src/search/collection/rpc'
import { MAX_MATRIX_BYTES } from '../../src/search/limits'
import { vectorBytes } from '../../src/search/vectors/packed-vectors'
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
  expect(refused!.error).toContain('Bind a Vectorize index of 384 dimensions')
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
