/** Searches with filters that a few documents of many pass, through Vectorize's metadata indexes. */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ScannedIndex } from '../../src/search/vectors/vector-index'
import { createMetadataIndexes } from './collections'
import type { Unindexed } from './double'
import { DIMENSIONS, type LabelledCollection, makeVectors, withLabelled } from './labelled'
import { OBJECT_ID } from './stage'

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation((line) => void logged.push(String(line)))
})

const COUNT = 1_300
const VECTORS = makeVectors(COUNT)
const QUESTIONS = makeVectors(4, 77)

/** One in six has a tag: too many to be read. One in thirty a maker: too many to be read quickly. */
const makeDocument = (n: number) => ({
  id: `${n}`,
  tag: `Tag ${n % 6}`,
  maker: `maker-${n % 30}`,
  year: 1900 + (n % 100),
  vector: [...VECTORS[n]!],
})
const fill = (collection: LabelledCollection, count = COUNT): void =>
  collection.write(...Array.from({ length: count }, (_, n) => makeDocument(n)))

/** How many vectors searches have read at most in one go. */
function countReads(): () => number {
  const searched = vi.spyOn(ScannedIndex.prototype, 'search')
  searched.mockClear()
  return () =>
    Math.max(...searched.mock.calls.map(([, , allowed]) => allowed?.size ?? Number.POSITIVE_INFINITY))
}

async function expectExact(collection: LabelledCollection, filterBy: string): Promise<void> {
  for (const question of QUESTIONS) {
    const found = await collection.nearest(question, { filter_by: filterBy })
    expect(found, filterBy).toEqual(collection.exact(question, filterBy))
    expect(found).toHaveLength(10)
  }
}

describe('a search that few of many documents pass', { timeout: 60_000 }, () => {
  it('is answered by Vectorize, as if all of them had been compared', async () => {
    await withLabelled(async (collection) => {
      fill(collection)
      await collection.settle()
      const { calls, filters } = collection.double
      for (const [filterBy, filter] of [
        ['tag:=tag 3', { s0: { $eq: 'tag 3' } }],
        ['maker:=[maker-4, maker-9]', { s1: { $in: ['maker4', 'maker9'] } }],
        ['year:[1910..1915]', { n1: { $gte: 1910, $lte: 1915 } }],
        // Words cannot be said, and are heeded all the same.
        ['year:<1915 && tag:[0, 3]', { n1: { $lt: 1915 } }],
      ] as const) {
        const expected = QUESTIONS.map((question) => collection.exact(question, filterBy))
        const reads = countReads()
        const before = calls.query
        filters.length = 0
        for (const [n, question] of QUESTIONS.entries()) {
          expect(await collection.nearest(question, { filter_by: filterBy })).toEqual(expected[n])
        }
        expect(filters).toEqual(QUESTIONS.map(() => filter))
        expect(calls.query - before).toBe(QUESTIONS.length)
        expect(reads()).toBeLessThanOrEqual(100)
      }
    })
  })

  it('reads all of them where Vectorize has no metadata indexes', async () => {
    await withLabelled(
      async (collection) => {
        fill(collection)
        await collection.settle()
        const { filters } = collection.double
        filters.length = 0
        const reads = countReads()
        await expectExact(collection, 'maker:=[maker-4, maker-9]')
        expect(reads()).toBeGreaterThan(80)
        expect(filters).toEqual([])
      },
      { isIndexed: false },
    )
  })

  it('does not tell Vectorize of a filter that many pass, or where a page needs all that it names', async () => {
    await withLabelled(async (collection) => {
      fill(collection, 300)
      await collection.settle()
      const { filters } = collection.double
      filters.length = 0
      await expectExact(collection, 'year:>=1930')
      const params = { filter_by: 'maker:=[maker-1, maker-2, maker-3]', per_page: '60' }
      const found = await collection.nearest(QUESTIONS[0]!, params)
      expect(found).toEqual(collection.exact(QUESTIONS[0]!, params.filter_by, 60))
      expect(filters).toEqual([])
    })
  })

  it('finds a document by its new labels at once, and not by its old ones', async () => {
    await withLabelled(async (collection) => {
      fill(collection)
      await collection.settle()
      const { calls, metadata } = collection.double
      const [question] = QUESTIONS
      const filterBy = 'tag:=tag 3'
      const before = collection.exact(question!, filterBy)
      const upserts = calls.upsert
      // Nothing about these is another label.
      collection.write({ id: before[0], title: 'Another title', tag: 'TAG 3!', tags: ['x'] })
      expect(collection.waiting()).toBe(0)
      collection.write({ id: before[0], tag: 'gone' })
      const [nearest] = collection.exact(question!, 'tag:=tag 2')
      collection.write({ id: nearest, tag: 'tag 3' })
      expect(collection.waiting()).toBe(2)
      const found = () => collection.nearest(question!, { filter_by: filterBy })
      expect(await found()).toEqual(collection.exact(question!, filterBy))
      expect(await found()).toContain(nearest)
      expect(await found()).not.toContain(before[0])
      await collection.settle()
      expect(calls.upsert).toBe(upserts + 1)
      expect(metadata).not.toEqual(collection.double.metadata)
      expect(await found()).toEqual(collection.exact(question!, filterBy))
    })
  })

  it('does not count on a vector that Vectorize names for what it was', async () => {
    await withLabelled(async (collection) => {
      fill(collection, 300)
      collection.double.isApproximate = false
      const [question] = QUESTIONS
      // Eight of the hundred nearest pass, as many as the page has, and forty others.
      const order = collection.exact(question!, '', 300)
      const passing = [...order.slice(0, 8), ...order.slice(-40)]
      collection.write(...passing.map((id) => ({ id, isNew: true })))
      await collection.settle()
      const params = { filter_by: 'isNew:true', per_page: '8' }
      expect(await collection.nearest(question!, params)).toEqual(order.slice(0, 8))
      collection.write({ id: order[3], vector: [...question!].map((component) => -component) })
      expect(await collection.nearest(question!, params)).toEqual(
        collection.exact(question!, params.filter_by, 8),
      )
    })
  })

  it('is mended where Vectorize shows other labels', async () => {
    await withLabelled(async (collection) => {
      fill(collection, 200)
      await collection.settle()
      collection.double.tamper((stored) => {
        const [first, second] = [...stored.values()]
        first!.metadata.s0 = 'another'
        second!.metadata = {}
      })
      expect(await collection.reconcile()).toMatchObject({ checked: 200, stale: 2, missing: 0 })
      await collection.settle()
      expect(await collection.reconcile()).toMatchObject({ checked: 200, stale: 0 })
    })
  })

  it('finds all while a collection that was sent without labels gets them', async () => {
    await withLabelled(async (collection) => {
      fill(collection)
      await collection.settle()
      collection.sql.exec("DELETE FROM meta WHERE key = 'vector_labels'")
      collection.sql.exec('UPDATE vectorize_fields SET labelled = 0, proven = 0')
      collection.double.tamper((stored) => {
        for (const vector of stored.values()) {
          vector.metadata = {}
          vector.indexed.clear()
        }
      })
      collection.wake()
      expect(collection.waiting()).toBe(COUNT)
      const reads = countReads()
      // What was sent without labels is trusted where there is no filter.
      await collection.nearest(QUESTIONS[0]!, {})
      expect(reads()).toBeLessThanOrEqual(100)
      while (collection.waiting() > 0) {
        await collection.mirror.send()
        await expectExact(collection, 'tag:=tag 3')
        collection.double.runJob()
        await collection.mirror.look()
      }
      collection.double.filters.length = 0
      await expectExact(collection, 'tag:=tag 3')
      expect(collection.double.filters).toHaveLength(QUESTIONS.length)
    })
  })
})

/** The log names the collection that Vectorize does not find by labels. */
function expectNamed(): void {
  const lines = logged.map((line) => JSON.parse(line))
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) {
    expect(line).toMatchObject({ type: 'collection', collection: OBJECT_ID })
    expect(line.event).toMatch(/^Vectorize does not (find vectors by their labels|take a filter)/)
  }
}

describe('metadata indexes', { timeout: 60_000 }, () => {
  it.each<Unindexed>(['refused', 'nothing', 'ignored'])(
    'that come after the vectors are used once all are sent again: without one a filter is %s',
    async (unindexed) => {
      await withLabelled(
        async (collection) => {
          const { double } = collection
          double.unindexed = unindexed
          fill(collection)
          await collection.settle()
          await expectExact(collection, 'tag:=tag 3')
          expectNamed()
          createMetadataIndexes(double)
          collection.passAnHour()
          await expectExact(collection, 'tag:=tag 3')
          // Sent again, the first vector is in the new metadata indexes, and no other one is.
          await collection.settle()
          await expectExact(collection, 'tag:=tag 3')
          collection.passAnHour()
          await expectExact(collection, 'tag:=tag 3')
          const { upsert } = double.calls
          await collection.settle()
          expect(double.calls.upsert).toBeGreaterThanOrEqual(upsert + COUNT / 500)
          double.filters.length = 0
          await expectExact(collection, 'tag:=tag 3')
          expect(double.filters).toHaveLength(QUESTIONS.length)
        },
        { isIndexed: false },
      )
    },
  )

  it.each<Unindexed>(['refused', 'nothing', 'ignored'])(
    'that are deleted cost no results: without one a filter is %s',
    async (unindexed) => {
      await withLabelled(async (collection) => {
        collection.double.unindexed = unindexed
        fill(collection)
        await collection.settle()
        await expectExact(collection, 'tag:=tag 3')
        collection.double.deleteMetadataIndex('s0')
        await expectExact(collection, 'tag:=tag 3')
      })
    },
  )

  it('are tried with a vector that can be told from others', async () => {
    await withLabelled(async (collection) => {
      const zero = new Array(DIMENSIONS).fill(0)
      collection.write({ id: 'zero', vector: zero }, { id: 'copied', vector: [...VECTORS[0]!] })
      fill(collection, 300)
      collection.write(
        ...Array.from({ length: 120 }, (_, n) => ({ id: `copy ${n}`, vector: [...VECTORS[0]!] })),
      )
      while ((await collection.mirror.send()) === 0);
      while (collection.double.runJob());
      collection.double.tamper((stored) => {
        // Of equals Vectorize names others.
        const [id, copied] = [...stored][0]!
        stored.delete(id)
        stored.set(id, copied)
      })
      await collection.settle()
      collection.double.filters.length = 0
      await expectExact(collection, 'tag:=tag 3')
      expect(collection.double.filters).toHaveLength(QUESTIONS.length)
    })
  })

  it('are asked again after Vectorize has not answered', async () => {
    await withLabelled(async (collection) => {
      fill(collection, 300)
      collection.double.fail('query', 'refused')
      await collection.settle()
      expect(collection.double.filters).toEqual([])
      await collection.mirror.look()
      collection.double.filters.length = 0
      await collection.nearest(QUESTIONS[0]!, { filter_by: 'tag:=tag 3' })
      expect(collection.double.filters).toEqual([{ s0: { $eq: 'tag 3' } }])
    })
  })
})

it('finds the nearest that pass after any history', { timeout: 120_000 }, async () => {
  const at = fc.nat(299)
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('tag' as const), at, tag: fc.nat(9), count: fc.nat(30) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('turn' as const), at, to: at }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), at }) },
    {
      weight: 6,
      arbitrary: fc.constantFrom({ do: 'send' as const }, { do: 'look' as const }, { do: 'job' as const }),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom({ do: 'crash' as const }, { do: 'crash while sending' as const }),
    },
    { weight: 1, arbitrary: fc.constantFrom({ do: 'drop' as const }, { do: 'add' as const }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('search' as const), tag: fc.nat(9), question: fc.nat(3) }),
    },
  )
  const other = { name: 'other', type: 'string', facet: true, optional: true }
  let told = 0
  const take = async (
    collection: LabelledCollection,
    given: typeof step extends fc.Arbitrary<infer T> ? T : never,
  ) => {
    const { mirror, double, store } = collection
    if (given.do === 'tag') {
      const documents = Array.from({ length: given.count }, (_, n) => ({
        id: `${(given.at + n) % 300}`,
        tag: `tag ${given.tag}`,
        other: `o${given.tag}`,
      }))
      collection.write(...documents)
    }
    if (given.do === 'turn') collection.write({ id: `${given.at}`, vector: [...VECTORS[given.to]!] })
    if (given.do === 'remove') {
      const seq = store.find([`${given.at}`]).get(`${given.at}`)
      if (seq !== undefined) store.remove(seq, `${given.at}`)
    }
    if (given.do === 'send') await mirror.send()
    if (given.do === 'look') await mirror.look()
    if (given.do === 'job') double.runJob(2)
    if (given.do === 'crash') collection.wake()
    if (given.do === 'crash while sending') {
      const sending = mirror.send()
      collection.wake()
      await sending
    }
    const has = store.schema.fields.some(({ name }) => name === 'other')
    if (given.do === 'drop' && has) await collection.alter([{ name: 'other', drop: true }])
    if (given.do === 'add' && !has) await collection.alter([other])
    if (given.do === 'search') await compare(collection, `tag:=tag ${given.tag}`, given.question)
  }
  const compare = async (collection: LabelledCollection, filterBy: string, question: number) => {
    const before = collection.double.filters.length
    const found = await collection.nearest(QUESTIONS[question]!, { filter_by: filterBy, per_page: '8' })
    told += collection.double.filters.length - before
    expect(found).toEqual(collection.exact(QUESTIONS[question]!, filterBy, 8))
  }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), (steps) =>
      withLabelled(
        async (collection) => {
          // A hundred of three hundred are named: what is last among them must not hang on rounding.
          collection.double.isApproximate = false
          fill(collection, 300)
          collection.write(...Array.from({ length: 300 }, (_, n) => ({ id: `${n}`, tag: `tag ${n % 10}` })))
          await collection.settle()
          for (const given of steps) await take(collection, given)
          await collection.settle()
          for (let tag = 0; tag < 10; tag++) await compare(collection, `tag:=tag ${tag}`, 0)
          expect(await collection.reconcile()).toMatchObject({ missing: 0, stale: 0, extra: 0, waiting: 0 })
        },
        { exact: 5 },
      ),
    ),
    { numRuns: 20 },
  )
  expect(told).toBeGreaterThan(env.FULL ? 100 : 25)
})
