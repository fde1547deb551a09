/** Documents of a batch are written together. Nobody sees it, apart from the segments that the full-text indexes have. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { unwrap } from '../../src/errors'
import { changesOf } from '../../src/search/changes'
import { Tidying } from '../../src/search/collection/background'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { openCollection } from '../../src/search/collection/open'
import { KeptReplies } from '../../src/search/run/context'
import { readSchema } from '../../src/search/schema/plan'
import type { SearchParameters, WriteAction } from '../../src/search/types'
import { exportAll, importAll, newCollection, newObject } from './object'

const INDEXES = ['text_index', 'word_index']

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'code', type: 'string', optional: true, infix: true },
  { name: 'tags', type: 'string[]', optional: true, facet: true },
  { name: 'points', type: 'int32', optional: true },
  { name: 'note', type: 'string', optional: true, store: false },
  { name: '.*', type: 'auto' },
]

const inObject = <T>(objectId: string, work: (state: DurableObjectState) => T | Promise<T>): Promise<T> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, state) => work(state))

const segments = (sql: SqlStorage): number[] =>
  INDEXES.map(
    (table) =>
      sql.exec<{ count: number }>(`SELECT count(DISTINCT segid) AS count FROM ${table}_idx`).one().count,
  )

/** What people see of a collection. */
async function seen(object: CollectionRpc): Promise<unknown> {
  const asked: SearchParameters[] = [
    { q: 'wolf', query_by: 'title' },
    { q: 'running wolves', query_by: 'title,code', match_stems: 'true' },
    { q: 'b-1', query_by: 'code', infix: 'always' },
    { q: 'unseen', query_by: 'note' },
    { q: 'wlof', query_by: 'title' },
    { q: '*', facet_by: 'tags', filter_by: 'tags:=[red, blue]', sort_by: 'points:desc' },
    { q: '*', filter_by: 'title:running' },
  ]
  const found = []
  for (const params of asked) {
    const { hits, found: count, facet_counts } = unwrap(await object.search(params))
    found.push({
      count,
      facet_counts,
      ids: hits!.map(({ document, text_match }) => [document.id, text_match]),
    })
  }
  return { found, documents: await exportAll(object) }
}

const words = fc
  .array(fc.constantFrom('wolf', 'Wolves', 'runs', 'running', 'fox', 'wolfs', 'x'), {
    minLength: 1,
    maxLength: 4,
  })
  .map((some) => some.join(' '))

const document = fc.record(
  {
    id: fc.constantFrom('a', 'b', 'c', '1', '2'),
    title: fc.oneof({ weight: 6, arbitrary: words }, { weight: 1, arbitrary: fc.constant(7) }),
    code: fc.constantFrom('ab-123', 'cb-1', 'zz'),
    tags: fc.array(fc.constantFrom('red', 'blue', 'green'), { maxLength: 3 }),
    points: fc.integer({ min: 0, max: 9 }),
    note: fc.constantFrom('unseen', 'other'),
    added: fc.constantFrom('a new field', 'another'),
  },
  { requiredKeys: [] },
)

const batch = fc.record({
  action: fc.constantFrom<WriteAction>('create', 'upsert', 'update', 'emplace'),
  documents: fc.array(document, { minLength: 1, maxLength: 12 }),
})

describe('a batch', () => {
  it('does what its documents do one by one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 3 }), async (batches) => {
        const [together, apart] = [await newCollection(FIELDS), await newCollection(FIELDS)]
        for (const { action, documents } of batches) {
          const results = await importAll(together, documents, { action })
          const expected = []
          for (const one of documents) expected.push(...(await importAll(apart, [one], { action })))
          expect(results).toEqual(expected)
        }
        expect(await seen(together)).toEqual(await seen(apart))
      }),
      { numRuns: Number(env.FUZZ_CASES) || 15 },
    )
  })

  it('of more documents than a statement has values keeps each with its own', async () => {
    const { object, objectId } = newObject()
    unwrap(await object.create({ name: 'things', fields: FIELDS.slice(0, 5) }, 1))
    const documents = Array.from({ length: 217 }, (_, n) => ({
      id: `d${n}`,
      title: `title ${n}`,
      points: n,
      tags: [`t${n % 7}`],
    }))
    await importAll(object, documents)
    expect(await exportAll(object)).toEqual(documents)
    for (const n of [0, 32, 33, 99, 216]) {
      const { hits } = unwrap(await object.search({ q: `${n}`, query_by: 'title', filter_by: `points:${n}` }))
      expect(hits!.map(({ document: { id } }) => id)).toEqual([`d${n}`])
    }
    expect(await inObject(objectId, ({ storage: { sql } }) => segments(sql))).toEqual([1, 1])
  })
})

describe('the segments of the full-text indexes', () => {
  /** A collection that was written so many times. */
  async function written(times: number): Promise<{ object: CollectionRpc; objectId: string }> {
    const { object, objectId } = newObject()
    unwrap(await object.create({ name: 'things', fields: FIELDS.slice(0, 3) }, 1))
    for (let n = 0; n < times; n++) await importAll(object, [{ id: `${n}`, title: `wolf number ${n}` }])
    return { object, objectId }
  }

  /** Opens a collection that counts no texts itself, as it is after a sleep. @returns what writes a document into it */
  function woken({ storage, id }: Pick<DurableObjectState, 'storage' | 'id'>) {
    const alarm = new Alarm(storage)
    const { store, writer } = openCollection(
      { storage, env, objectId: String(id), alarm },
      readSchema(storage.sql)!,
    )
    const counts = store.onTexts
    store.onTexts = () => {}
    const write = (n: number) =>
      writer.write([{ document: { id: `${n}`, title: `wolf number ${n}` }, action: 'create' }])
    return { store, write, counts }
  }

  it('are merged once nobody writes: the same documents are found, and caches stay valid', async () => {
    const { objectId } = await written(0)
    const merged = await inObject(objectId, async (state) => {
      const { storage } = state
      vi.useFakeTimers({ now: Date.now(), toFake: ['Date'] })
      try {
        const { store, write } = woken(state)
        const tidying = new Tidying(storage, store)
        for (let n = 0; n < 14; n++) write(n)
        const found = () =>
          INDEXES.map((table) =>
            storage.sql.exec(`SELECT rowid, rank FROM ${table} WHERE ${table} MATCH 'wolf 1'`).toArray(),
          )
        const before = found()
        const many = segments(storage.sql)
        const replies = new KeptReplies()
        replies.keep(storage.sql, 'wolf', changesOf(storage.sql), { text: '{}', on: [], seconds: 600 })
        tidying.wrote()
        const rests = tidying.step()
        vi.setSystemTime(Date.now() + 1_000)
        // A search that goes on meets a step only once it has taken long.
        const meets: unknown[] = []
        await tidying.during(async () => {
          meets.push(tidying.step(), segments(storage.sql))
          vi.setSystemTime(Date.now() + 250)
          meets.push(tidying.step())
        })
        vi.setSystemTime(Date.now() + 1_000)
        while (tidying.step() !== undefined);
        const isKept = replies.find(storage.sql, 'wolf', [], 600) !== undefined
        const after = found()
        store.closed = true
        const last = tidying.step()
        return { rests, meets, many, few: segments(storage.sql), before, after, isKept, last }
      } finally {
        vi.useRealTimers()
      }
    })
    expect(merged.rests).toBe(20)
    expect(merged.meets).toEqual([5, merged.many, 100])
    // The last one is still in FTS5's memory.
    for (const count of merged.many) expect(count).toBeGreaterThanOrEqual(13)
    expect(merged.few).toEqual([1, 1])
    expect(merged.last).toBeUndefined()
    expect(merged.isKept).toBe(true)
    expect(merged.before.map((rows) => rows.length)).toEqual([1, 1])
    expect(merged.after).toEqual(merged.before)
  })

  it('are left alone by a write, however many there are, and merged between writes that go on', async () => {
    const { objectId } = await written(0)
    const [alone, between] = await inObject(objectId, async (state) => {
      const { storage } = state
      vi.useFakeTimers({ now: Date.now(), toFake: ['Date'] })
      try {
        const { store, write } = woken(state)
        const tidying = new Tidying(storage, store)
        for (let n = 0; n < 40; n++) write(n)
        const alone = segments(storage.sql)
        store.onTexts = () => tidying.wrote()
        const rests: unknown[] = []
        for (let n = 40; n < 80; n++) {
          write(n)
          rests.push(tidying.step())
        }
        return [alone, { rests, count: segments(storage.sql) }]
      } finally {
        vi.useRealTimers()
      }
    })
    // The last one is still in FTS5's memory.
    for (const count of alone) expect(count).toBeGreaterThanOrEqual(39)
    expect(between.rests.slice(0, 8)).toEqual([20, 20, 20, 5, 20, 20, 20, 5])
    for (const count of between.count) expect(count).toBeLessThan(20)
  })

  it('are merged into one once many documents were removed or replaced, and lose what they had of those', async () => {
    const { object, objectId } = await written(0)
    const documents = (from: number, to: number, word: string) =>
      Array.from({ length: to - from }, (_, n) => ({
        id: `${from + n}`,
        title: `${word} number ${from + n}`,
      }))
    const bytes = (sql: SqlStorage) =>
      INDEXES.map(
        (table) => sql.exec<{ sum: number }>(`SELECT sum(length(block)) AS sum FROM ${table}_data`).one().sum,
      )
    /** Waits for one segment of each index, which has to be of fewer bytes where merges of fewer segments leave one, too. */
    const settled = (most = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]) =>
      vi.waitFor(
        async () => {
          const [counts, sizes] = await inObject(objectId, ({ storage: { sql } }) => [
            segments(sql),
            bytes(sql),
          ])
          expect(counts).toEqual([1, 1])
          for (const [index, size] of sizes.entries()) expect(size).toBeLessThan(most[index]!)
          return sizes
        },
        { timeout: 30_000, interval: 200 },
      )
    await importAll(object, documents(0, 400, 'wolf'))
    for (let n = 0; n < 10; n++)
      await importAll(object, documents(n * 40, n * 40 + 40, 'bear'), { action: 'upsert' })
    const before = await settled()
    for (let from = 100; from < 400; from += 40) {
      unwrap(
        await object.removeWhere(
          `title:number && id:[${documents(from, from + 40, '').map(({ id }) => id)}]`,
          { batchSize: 40, returnDocuments: false, returnIds: false },
        ),
      )
    }
    await settled(before.map((size) => size * 0.8))
  })

  it('are merged also if the object sleeps after each write', async () => {
    const { objectId } = await written(0)
    const counts = await inObject(objectId, async (state) => {
      const { storage } = state
      for (let n = 0; n < 12; n++) {
        const { store, write, counts } = woken(state)
        if (n === 11) store.onTexts = counts
        write(n)
      }
      const before = segments(storage.sql)
      await vi.waitFor(() => expect(Math.max(...segments(storage.sql))).toBeLessThan(4), { timeout: 20_000 })
      return before
    })
    for (const count of counts) expect(count).toBeGreaterThanOrEqual(11)
  })

  it('are merged by the object itself', async () => {
    const { objectId } = await written(8)
    await vi.waitFor(
      async () => {
        const counts = await inObject(objectId, ({ storage: { sql } }) => segments(sql))
        // Three of a level stay.
        for (const count of counts) expect(count).toBeLessThanOrEqual(3)
      },
      { timeout: 30_000, interval: 200 },
    )
  })
})
