/** Searches with filters in a collection whose vectors are in Vectorize, which knows nothing of filters. */
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ScannedIndex } from '../../src/search/vectors/vector-index'
import { type FilteredCollection, makeVectors, withFiltered } from './filtered'

beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))

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
const fill = (collection: FilteredCollection, count = COUNT): void =>
  collection.write(...Array.from({ length: count }, (_, n) => makeDocument(n)))

/** How many vectors searches have read at most in one go. */
function countReads(): () => number {
  const searched = vi.spyOn(ScannedIndex.prototype, 'search')
  searched.mockClear()
  return () =>
    Math.max(...searched.mock.calls.map(([, , allowed]) => allowed?.size ?? Number.POSITIVE_INFINITY))
}

async function expectExact(collection: FilteredCollection, filterBy: string): Promise<void> {
  for (const question of QUESTIONS) {
    const found = await collection.nearest(question, { filter_by: filterBy })
    expect(found, filterBy).toEqual(collection.exact(question, filterBy))
    expect(found).toHaveLength(10)
  }
}

describe('a search that few of many documents pass', { timeout: 60_000 }, () => {
  it('compares all of them where too few of the hundred that Vectorize names pass', async () => {
    await withFiltered(async (collection) => {
      fill(collection)
      await collection.settle()
      for (const filterBy of [
        'tag:=tag 3',
        'maker:=[maker-4, maker-9]',
        'year:[1910..1915]',
        'year:<1915 && tag:[0, 3]',
      ]) {
        const reads = countReads()
        await expectExact(collection, filterBy)
        expect(reads(), filterBy).toBeGreaterThan(30)
      }
    })
  })

  it('takes what Vectorize names where enough of it passes, and reads no more', async () => {
    await withFiltered(async (collection) => {
      fill(collection, 300)
      await collection.settle()
      const { calls } = collection.double
      const expected = QUESTIONS.map((question) => collection.exact(question, 'year:>=1930'))
      const reads = countReads()
      const before = calls.query
      for (const [n, question] of QUESTIONS.entries())
        expect(await collection.nearest(question, { filter_by: 'year:>=1930' })).toEqual(expected[n])
      expect(calls.query - before).toBe(QUESTIONS.length)
      expect(reads()).toBeLessThanOrEqual(100)
    })
  })

  it('finds as many as a page has, although Vectorize names too few for it', async () => {
    await withFiltered(async (collection) => {
      fill(collection, 300)
      await collection.settle()
      const params = { filter_by: 'maker:=[maker-1, maker-2, maker-3]', per_page: '60' }
      const found = await collection.nearest(QUESTIONS[0]!, params)
      expect(found).toEqual(collection.exact(QUESTIONS[0]!, params.filter_by, 60))
    })
  })

  it('heeds changed values at once, and sends nothing for them', async () => {
    await withFiltered(async (collection) => {
      fill(collection)
      await collection.settle()
      const [question] = QUESTIONS
      const filterBy = 'tag:=tag 3'
      const before = collection.exact(question!, filterBy)
      collection.write({ id: before[0], tag: 'gone' })
      const [nearest] = collection.exact(question!, 'tag:=tag 2')
      collection.write({ id: nearest, tag: 'tag 3' })
      expect(collection.waiting()).toBe(0)
      const found = await collection.nearest(question!, { filter_by: filterBy })
      expect(found).toEqual(collection.exact(question!, filterBy))
      expect(found).toContain(nearest)
      expect(found).not.toContain(before[0])
    })
  })

  it('does not count on a vector that Vectorize names for what it was', async () => {
    await withFiltered(async (collection) => {
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

  it('works on what a version stored that sent labels with the vectors', async () => {
    await withFiltered(async (collection) => {
      for (const [table, column] of [
        ['vectorize_fields', 'labelled'],
        ['vectorize_fields', 'proven'],
        ['vector_outbox', 'relabelled'],
      ]) {
        collection.sql.exec(`ALTER TABLE ${table} ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0`)
      }
      fill(collection, 300)
      collection.sql.exec('UPDATE vector_outbox SET relabelled = 1 WHERE seq % 2 = 0')
      collection.wake()
      await expectExact(collection, 'tag:=tag 3')
      await collection.settle()
      await expectExact(collection, 'tag:=tag 3')
      expect(await collection.reconcile()).toMatchObject({ missing: 0, stale: 0, extra: 0, waiting: 0 })
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
  const take = async (
    collection: FilteredCollection,
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
  const compare = async (collection: FilteredCollection, filterBy: string, question: number) => {
    const found = await collection.nearest(QUESTIONS[question]!, { filter_by: filterBy, per_page: '8' })
    expect(found).toEqual(collection.exact(QUESTIONS[question]!, filterBy, 8))
  }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), (steps) =>
      withFiltered(
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
})
