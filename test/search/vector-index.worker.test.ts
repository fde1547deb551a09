import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryBudget } from '../../src/search/memory-budget'
import type { VectorDistance } from '../../src/search/types'
import { type Neighbour, ScannedIndex, type VectorIndex } from '../../src/search/vectors/vector-index'

/** Runs in an object of its own, with an empty table for vectors. */
async function withTable(work: (sql: SqlStorage) => void): Promise<void> {
  const namespace = env.COLLECTION as DurableObjectNamespace
  await runInDurableObject(namespace.getByName(crypto.randomUUID()), (_object, state) => {
    const { sql } = state.storage
    sql.exec('CREATE TABLE vectors_1 (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)')
    work(sql)
  })
}

const createVectorIndex = (
  sql: SqlStorage,
  table: string,
  distance: VectorDistance,
  matrixBytes = 1 << 20,
): VectorIndex => new ScannedIndex(sql, table, { distance, dimensions: 64, matrixBytes })

const cosine = (a: Float32Array, b: Float32Array): number => {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0)
  const norms = Math.sqrt(dot(a, a)) * Math.sqrt(dot(b, b))
  return norms === 0 ? 1 : 1 - dot(a, b) / norms
}

const order = (neighbours: Neighbour[]): Neighbour[] =>
  neighbours.sort((a, b) => a.distance - b.distance || b.seq - a.seq)

/** The same numbers at every run, normally distributed enough. */
function randomVectors(count: number, dimensions: number): Float32Array[] {
  let state = 1
  const next = () => {
    state = (state * 48271) % 2147483647
    return state / 2147483647
  }
  return Array.from({ length: count }, () =>
    Float32Array.from({ length: dimensions }, () => next() + next() + next() - 1.5),
  )
}

describe('a vector index', () => {
  it.each([
    ['with a matrix', 1 << 20],
    ['without one', 0],
  ])('finds the exact nearest of thousands %s', async (_, matrixBytes) => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'cosine', matrixBytes)
      const vectors = randomVectors(3000, 64)
      for (const [seq, vector] of vectors.entries()) index.put(seq, vector)
      for (const query of randomVectors(10, 64)) {
        const expected = order(vectors.map((vector, seq) => ({ seq, distance: cosine(query, vector) })))
        const found = index.nearest(query, 20)
        expect(found.map(({ seq }) => seq)).toEqual(expected.slice(0, 20).map(({ seq }) => seq))
        for (const [place, { distance }] of found.entries()) {
          expect(distance).toBeCloseTo(expected[place]!.distance, 5)
        }
        const odd = new Set(vectors.flatMap((_, seq) => (seq % 2 === 1 ? [seq] : [])))
        expect(index.nearest(query, 5, odd).map(({ seq }) => seq)).toEqual(
          expected
            .filter(({ seq }) => odd.has(seq))
            .map(({ seq }) => seq)
            .slice(0, 5),
        )
      }
    })
  })

  it('loads in steps, and finds what is written between them', async () => {
    await withTable((sql) => {
      const vectors = randomVectors(4_100, 64)
      const before = createVectorIndex(sql, 'vectors_1', 'cosine')
      for (const [at, vector] of vectors.entries()) before.put(at * 2, vector)
      const index = createVectorIndex(sql, 'vectors_1', 'cosine')
      const [query, near] = randomVectors(4_102, 64).slice(-2) as [Float32Array, Float32Array]
      expect(index.load!()).toBe(2_000)
      // Of the rows that are loaded, and of those that are not.
      for (const seq of [20, 8_000]) index.remove(seq)
      for (const seq of [1, 40, 7_001, 8_040]) index.put(seq, near)
      const others = [1, 40, 7_001, 8_040, 20, 8_000]
      expect([index.load!(), index.load!(), index.load!()]).toEqual([2_000, 0, 0])
      const expected = order([
        ...[1, 40, 7_001, 8_040].map((seq) => ({ seq, distance: cosine(near, near) })),
        ...vectors
          .map((vector, at) => ({ seq: at * 2, distance: cosine(near, vector) }))
          .filter(({ seq }) => !others.includes(seq)),
      ])
      const seqs = (found: Neighbour[]) => found.map(({ seq }) => seq)
      expect(seqs(index.nearest(near, 30))).toEqual(seqs(expected).slice(0, 30))
      const fresh = createVectorIndex(sql, 'vectors_1', 'cosine')
      expect(fresh.nearest(query, 30)).toEqual(index.nearest(query, 30))
      expect(createVectorIndex(sql, 'vectors_1', 'cosine', 0).load!()).toBe(0)
    })
  })

  it('makes room for others in the isolate, and finds the same afterwards', async () => {
    await withTable((sql) => {
      sql.exec('CREATE TABLE vectors_2 (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)')
      const measure = { distance: 'cosine', dimensions: 64, matrixBytes: 1 << 20 } as const
      // Room for one of the two.
      const budget = new MemoryBudget(300 * (64 + 64))
      const evicted: string[] = []
      class Watched extends ScannedIndex {
        readonly table: string
        constructor(table: string) {
          super(sql, table, measure, budget)
          this.table = table
        }
        override evict(): void {
          evicted.push(this.table)
          super.evict()
        }
      }
      const [one, two] = [new Watched('vectors_1'), new Watched('vectors_2')]
      const vectors = randomVectors(200, 64)
      for (const [seq, vector] of vectors.entries()) {
        one.put(seq, vector)
        two.put(seq + 1_000, vector)
      }
      expect(evicted).toEqual([])
      const [query] = randomVectors(1, 64)
      const found = one.nearest(query!, 1)
      expect(two.nearest(query!, 1)).toEqual([{ ...found[0], seq: found[0]!.seq + 1_000 }])
      expect(one.nearest(query!, 1)).toEqual(found)
      expect(evicted).toEqual(['vectors_1', 'vectors_2'])
      // One that grows past the room makes the other give way, too.
      two.nearest(query!, 1)
      for (const [seq, vector] of vectors.entries()) two.put(seq + 2_000, vector)
      expect(evicted).toEqual(['vectors_1', 'vectors_2', 'vectors_1'])
    })
  })

  it('measures inner products for ip', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'ip')
      index.put(1, Float32Array.of(1, 0))
      index.put(2, Float32Array.of(3, 0))
      index.put(3, Float32Array.of(0, 9))
      expect(index.nearest(Float32Array.of(1, 0), 3)).toEqual([
        { seq: 2, distance: -2 },
        { seq: 1, distance: 0 },
        { seq: 3, distance: 1 },
      ])
    })
  })

  it.each([
    ['with a matrix', 1 << 20],
    ['without one', 0],
  ])('measures Euclidean distances of vectors of all lengths %s', async (_, matrixBytes) => {
    const squared = (a: Float32Array, b: Float32Array) =>
      a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0)
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'l2', matrixBytes)
      const vectors = randomVectors(3000, 64).map((vector, n) => vector.map((part) => part * (1 + (n % 7))))
      for (const [seq, vector] of vectors.entries()) index.put(seq, vector)
      for (const query of [
        ...randomVectors(5, 64).map((each) => each.map((part) => part * 3)),
        new Float32Array(64),
      ]) {
        const expected = order(vectors.map((vector, seq) => ({ seq, distance: squared(query, vector) })))
        const found = index.nearest(query, 20)
        expect(found.map(({ seq }) => seq)).toEqual(expected.slice(0, 20).map(({ seq }) => seq))
        for (const [place, { distance }] of found.entries()) {
          expect((1 + distance) / (1 + expected[place]!.distance)).toBeCloseTo(1, 4)
        }
      }
    })
  })

  it('tells vectors apart that are close together, and far from zero', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'l2')
      const far = randomVectors(3000, 64).map((vector) => vector.map((part) => 100 + part))
      const [query, ...vectors] = far
      for (const [seq, vector] of vectors.entries()) index.put(seq, vector)
      const squared = (a: Float32Array, b: Float32Array) =>
        a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0)
      const expected = order(vectors.map((vector, seq) => ({ seq, distance: squared(query!, vector) })))
      const nearest = () => index.nearest(query!, 10).map(({ seq }) => seq)
      expect(nearest()).toEqual(expected.slice(0, 10).map(({ seq }) => seq))
      index.put(9999, query!)
      expect(nearest()[0]).toBe(9999)
    })
  })

  it('restricts to what is allowed, puts the newest first among equals, and survives zeros', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'cosine')
      for (const seq of [1, 2, 3]) index.put(seq, Float32Array.of(2, 0))
      index.put(4, Float32Array.of(0, 0))
      const query = Float32Array.of(1, 0)
      expect(index.nearest(query, 9).map(({ seq }) => seq)).toEqual([3, 2, 1, 4])
      expect(index.nearest(query, 9, new Set([1, 4, 77])).map(({ seq }) => seq)).toEqual([1, 4])
      expect(index.nearest(query, 0)).toEqual([])
      expect(index.nearest(query, 5, new Set())).toEqual([])
      expect(index.nearest(Float32Array.of(0, 0), 1)).toEqual([{ seq: 4, distance: 1 }])
      expect(createVectorIndex(sql, 'vectors_1', 'cosine').nearest(query, 1)).toEqual([
        { seq: 3, distance: 0 },
      ])
    })
  })

  it('keeps memory in step with the table', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), seq: fc.nat(12), x: fc.integer({ min: -9, max: 9 }) }),
      fc.record({ kind: fc.constant('remove' as const), seq: fc.nat(12), x: fc.constant(0) }),
      fc.record({ kind: fc.constant('clear' as const), seq: fc.constant(0), x: fc.constant(0) }),
    )
    await withTable((sql) => {
      const query = Float32Array.of(1, 1)
      const all = (index: VectorIndex) => index.nearest(query, 20)
      fc.assert(
        fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
          sql.exec('DELETE FROM vectors_1')
          const index = createVectorIndex(sql, 'vectors_1', 'cosine')
          all(index)
          for (const { kind, seq, x } of steps) {
            if (kind === 'put') index.put(seq, Float32Array.of(x, 1))
            if (kind === 'remove') index.remove(seq)
            if (kind === 'clear') index.clear()
          }
          const fresh = createVectorIndex(sql, 'vectors_1', 'cosine')
          expect(all(index)).toEqual(all(fresh))
          expect(index.size).toBe(fresh.size)
        }),
        { numRuns: 60 },
      )
    })
  })

  it('gives back the vector that was put', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'vectors_1', 'cosine')
      index.put(5, Float32Array.of(0.1, -2.5))
      expect(index.get(5)).toEqual(Float32Array.of(0.1, -2.5))
      expect(index.get(6)).toBeUndefined()
      index.put(5, Float32Array.of(1, 2))
      expect(index.get(5)).toEqual(Float32Array.of(1, 2))
      index.remove(5)
      expect(index.get(5)).toBeUndefined()
    })
  })
})
