import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Memory } from '../../src/search/memory'
import { createVectorsTable } from '../../src/search/schema/tables'
import type { VectorDistance } from '../../src/search/types'
import { type Neighbour, ScannedIndex, type VectorIndex } from '../../src/search/vectors/vector-index'

/** Runs in an object of its own, with empty tables for vectors. */
async function withTable(work: (sql: SqlStorage) => void): Promise<void> {
  const namespace = env.COLLECTION as DurableObjectNamespace
  await runInDurableObject(namespace.getByName(crypto.randomUUID()), (_object, state) => {
    const { sql } = state.storage
    createVectorsTable(sql, SLOT)
    work(sql)
  })
}

const SLOT = { slot: 1 }
/** Room for a block of 256 vectors of 64 dimensions, and for no second one. */
const LITTLE = 30_000

const createVectorIndex = (sql: SqlStorage, distance: VectorDistance, most = 1 << 20): VectorIndex =>
  new ScannedIndex(sql, SLOT, { distance, dimensions: 64 }, new Memory(most))

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
    ['in memory', 1 << 20],
    ['with little memory', LITTLE],
    ['without memory', 0],
  ])('finds the exact nearest of thousands %s', async (_, most) => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'cosine', most)
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

  it('reads in steps, few rows, and finds what is written between them', async () => {
    await withTable((sql) => {
      const vectors = randomVectors(4_100, 64)
      const before = createVectorIndex(sql, 'cosine')
      for (const [at, vector] of vectors.entries()) before.put(at * 2, vector)
      before.flush()
      const index = createVectorIndex(sql, 'cosine')
      const [near] = randomVectors(4_101, 64).slice(-1) as [Float32Array]
      const steps = index.search(near, 30)
      for (let step = 0; step < 5; step++)
        expect(steps.next().value).toBeCloseTo((128 * 73) / 512 + (128 * 73) / 2_048)
      // Of the blocks that are read, of those that are not, and of new ones.
      const [removed, put] = [
        [20, 8_000],
        [1, 40, 7_001, 8_040, 9_000],
      ]
      for (const seq of removed) index.remove(seq)
      for (const seq of put) index.put(seq, near)
      index.flush()
      let found = steps.next()
      while (!found.done) found = steps.next()
      expect(found.value.slice(0, 3).map(({ seq }) => seq)).toEqual([9_000, 8_040, 7_001])
      const expected = order([
        ...put.map((seq) => ({ seq, distance: cosine(near, near) })),
        ...vectors
          .map((vector, at) => ({ seq: at * 2, distance: cosine(near, vector) }))
          .filter(({ seq }) => ![...put, ...removed].includes(seq)),
      ])
      const fresh = createVectorIndex(sql, 'cosine')
      for (const each of [index, fresh]) {
        expect(each.nearest(near, 30).map(({ seq }) => seq)).toEqual(
          expected.slice(0, 30).map(({ seq }) => seq),
        )
        expect(each.size).toBe(4_101)
      }
      // One that has all blocks in memory only compares them.
      const rows = (of: VectorIndex) => [...of.search(near, 30)].reduce((sum, step) => sum + step, 0)
      const [packed] = sql.exec<{ bytes: number }>('SELECT sum(length(vectors)) AS bytes FROM packed_1')
      expect(rows(createVectorIndex(sql, 'cosine')) - rows(fresh)).toBeCloseTo(packed!.bytes / 512)
    })
  })

  it('writes each block once a batch, and none for what is put and removed again', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'cosine')
      const packed = () => [...sql.exec('SELECT seq, count FROM packed_1').raw()]
      const written = (work: () => void) => {
        const before = sql.exec<{ changes: number }>('SELECT total_changes() AS changes').one().changes
        work()
        return sql.exec<{ changes: number }>('SELECT total_changes() AS changes').one().changes - before
      }
      for (const [seq, vector] of randomVectors(300, 64).entries()) index.put(seq, vector)
      expect(written(() => index.flush())).toBe(2)
      expect(packed()).toEqual([
        [0, 256],
        [256, 44],
      ])
      for (const seq of [3, 4, 5]) index.remove(seq)
      index.put(4, Float32Array.of(1))
      expect(written(() => index.flush())).toBe(1)
      expect(packed()[0]).toEqual([0, 254])
      for (let seq = 256; seq < 300; seq++) index.remove(seq)
      index.flush()
      expect(packed()).toEqual([[0, 254]])
      // After a rollback, what was put is not packed later.
      index.put(500, Float32Array.of(1))
      index.reset()
      index.flush()
      expect(packed()).toEqual([[0, 254]])
    })
  })

  it('measures inner products for ip', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'ip')
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
    ['in memory', 1 << 20],
    ['with little memory', LITTLE],
    ['without memory', 0],
  ])('measures Euclidean distances of vectors of all lengths %s', async (_, most) => {
    const squared = (a: Float32Array, b: Float32Array) =>
      a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0)
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'l2', most)
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
      const index = createVectorIndex(sql, 'l2')
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
      const index = createVectorIndex(sql, 'cosine')
      for (const seq of [1, 2, 3]) index.put(seq, Float32Array.of(2, 0))
      index.put(4, Float32Array.of(0, 0))
      const query = Float32Array.of(1, 0)
      expect(index.nearest(query, 9).map(({ seq }) => seq)).toEqual([3, 2, 1, 4])
      expect(index.nearest(query, 9, new Set([1, 4, 77])).map(({ seq }) => seq)).toEqual([1, 4])
      expect(index.nearest(query, 0)).toEqual([])
      expect(index.nearest(query, 5, new Set())).toEqual([])
      expect(index.nearest(Float32Array.of(0, 0), 1)).toEqual([{ seq: 4, distance: 1 }])
      index.flush()
      expect(createVectorIndex(sql, 'cosine').nearest(query, 1)).toEqual([{ seq: 3, distance: 0 }])
    })
  })

  it('keeps memory in step with the table', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), seq: fc.nat(12), x: fc.integer({ min: -9, max: 9 }) }),
      fc.record({ kind: fc.constant('remove' as const), seq: fc.nat(12), x: fc.constant(0) }),
      fc.record({
        kind: fc.constantFrom('clear' as const, 'flush' as const),
        seq: fc.constant(0),
        x: fc.constant(0),
      }),
    )
    await withTable((sql) => {
      const query = Float32Array.of(1, 1)
      const all = (index: VectorIndex) => index.nearest(query, 20)
      fc.assert(
        fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
          for (const table of ['vectors_1', 'packed_1']) sql.exec(`DELETE FROM ${table}`)
          const index = createVectorIndex(sql, 'cosine')
          all(index)
          for (const { kind, seq, x } of steps) {
            if (kind === 'put') index.put(seq, Float32Array.of(x, 1))
            if (kind === 'remove') index.remove(seq)
            if (kind === 'clear') index.clear()
            if (kind === 'flush') index.flush()
          }
          index.flush()
          const fresh = createVectorIndex(sql, 'cosine')
          expect(all(index)).toEqual(all(fresh))
          expect(index.size).toBe(fresh.size)
        }),
        { numRuns: 60 },
      )
    })
  })

  it('gives back the vector that was put', async () => {
    await withTable((sql) => {
      const index = createVectorIndex(sql, 'cosine')
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
