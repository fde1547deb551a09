/** Searches answer the same with next to no memory to keep anything in. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { openCollection } from '../../src/search/collection/open'
import { Memory } from '../../src/search/memory'
import { KeptReplies } from '../../src/search/run/context'
import { executeSearch } from '../../src/search/run/search'
import { ColumnMemory } from '../../src/search/schema/column-memory'
import { readSchema } from '../../src/search/schema/plan'
import type { Field, SearchParameters } from '../../src/search/types'
import { ScannedIndex } from '../../src/search/vectors/vector-index'
import { makeCollection } from './make-collection'

const WORDS = ['wolf', 'wolves', 'hare', 'harbour', 'owl', 'moss', 'mossy', 'river', 'rivers', 'stone']
const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'kind', type: 'string', facet: true },
  { name: 'tags', type: 'string[]', facet: true },
  { name: 'points', type: 'int32' },
  { name: 'vector', type: 'float[]', num_dim: 8 },
]
const vectorOf = (n: number) => Array.from({ length: 8 }, (_, at) => Math.sin(n * (at + 1)))
const documents = Array.from({ length: 700 }, (_, n) => ({
  ...{ id: `d${n}`, kind: `k${n % 11}`, points: (n * 37) % 101, vector: vectorOf(n) },
  title: Array.from({ length: 1 + (n % 5) }, (_, at) => WORDS[(n + at * at) % 10]).join(' '),
  tags: Array.from({ length: n % 4 }, (_, at) => `t${(n + at) % 7}`),
}))

const searches = fc.record({
  q: fc.constantFrom('*', 'wolf', 'wolv', 'harw', 'river stone', 'where is the mossy river', 'rivrs moss'),
  query_by: fc.constant('title'),
  filter_by: fc.constantFrom('', 'points:>50', 'kind:=[k1,k4] || tags:t3'),
  facet_by: fc.constantFrom('', 'kind,tags'),
  sort_by: fc.constantFrom('', 'points:desc'),
  vector_query: fc.oneof(
    fc.constant(''),
    fc.nat(900).map((n) => `vector:([${vectorOf(n)}], k:40)`),
  ),
})

it.each([0, 3_000, 40_000])('of %d bytes', async (most) => {
  const { objectId } = await makeCollection(FIELDS, documents)
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const memory = new Memory(most)
      const index = new ScannedIndex(
        storage.sql,
        context.schema.slots.vector!,
        { distance: 'cosine', dimensions: 8 },
        memory,
      )
      const kept = {
        columns: new ColumnMemory(memory),
        replies: new KeptReplies(memory),
        vectors: (_: Field) => index,
      }
      const little = Object.create(context, Object.getOwnPropertyDescriptors(kept))
      const run = async (of: typeof context, given: SearchParameters) => {
        const params = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
        return { ...(await executeSearch(of, { ...params, per_page: '60' })), search_time_ms: 0 }
      }
      await fc.assert(
        fc.asyncProperty(searches, async (params) => {
          expect(await run(little, params)).toEqual(await run(context, params))
          expect(memory.bytes).toBeLessThanOrEqual(most)
        }),
        { numRuns: 120 },
      )
    },
  )
})
