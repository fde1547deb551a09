/** Vectors as int8: what is found among them after any changes, of any length. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BoundedHeap, PackedVectors, Query, spanOf } from '../../../src/search/vectors/packed-vectors'

const vectorOf = (dimensions: number) =>
  fc
    .array(fc.integer({ min: -127, max: 126 }), { minLength: dimensions - 1, maxLength: dimensions - 1 })
    // With 127 as the largest component each step is 1, so no component is rounded.
    .map((components) => Float32Array.from([127, ...components]))

const product = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)

const squared = (a: Float32Array, b: Float32Array) =>
  a.reduce((sum, value, at) => sum + (value - b[at]!) ** 2, 0)

describe('a block of int8', () => {
  it('has the most similar of those that are allowed, after any changes', () => {
    const change = (dimensions: number) =>
      fc.array(fc.tuple(fc.nat(30), fc.option(vectorOf(dimensions), { nil: null })), { maxLength: 30 })
    const given = fc.integer({ min: 1, max: 40 }).chain((dimensions) =>
      fc.record({
        batches: fc.array(change(dimensions), { minLength: 1, maxLength: 5 }),
        allowed: fc.option(fc.array(fc.nat(30)), { nil: undefined }),
        query: vectorOf(dimensions),
        k: fc.integer({ min: 1, max: 40 }),
        distance: fc.constantFrom('cosine' as const, 'ip' as const, 'l2' as const),
      }),
    )
    fc.assert(
      fc.property(given, ({ batches, allowed, query, k, distance }) => {
        const measure = { distance, dimensions: query.length }
        const first = 7 * spanOf(measure)
        let block: PackedVectors | undefined
        const rows = new Map<number, Float32Array>()
        for (const batch of batches) {
          const changes = new Map(batch.map(([at, vector]) => [first + at, vector]))
          for (const [seq, vector] of changes) {
            if (vector === null) rows.delete(seq)
            else rows.set(seq, vector)
          }
          block = PackedVectors.with(block, first, changes, measure)
          expect(block?.count ?? 0).toBe(rows.size)
          // As it is read again.
          block &&= new PackedVectors(first, block.bytes.slice(0), measure)
        }
        const among = allowed && new Set(allowed.map((at) => first + at))
        const likeness = (seq: number) => {
          const vector = rows.get(seq)!
          if (distance === 'l2') return -squared(query, vector)
          return product(query, vector) / (distance === 'cosine' ? Math.sqrt(product(vector, vector)) : 1)
        }
        const expected = [...rows.keys()]
          .filter((seq) => among === undefined || among.has(seq))
          .map(likeness)
          .sort((a, b) => b - a)
          .slice(0, k)
        const best = new BoundedHeap(1_000)
        block?.offer(new Query(query, measure), best, among)
        const found = best.likely(k)
        expect(new Set(found).size).toBe(found.length)
        const likenesses = found.map(likeness).sort((a, b) => b - a)
        for (const [at, value] of expected.entries()) expect(likenesses[at]).toBeCloseTo(value, 3)
      }),
    )
  })

  it('is compared as a whole, also if its rows are longer than what is compared at once', () => {
    for (const [rows, dimensions] of [
      [256, 24],
      [40, 9_000],
      [2, 200_000],
    ] as const) {
      const measure = { distance: 'cosine', dimensions } as const
      const vectorAt = (seq: number) =>
        new Float32Array(dimensions).fill(seq === rows - 1 ? 1 : -1).fill(seq === 0 ? 1 : 0, 1, 5)
      const changes = new Map(Array.from({ length: rows }, (_, seq) => [seq, vectorAt(seq)]))
      const best = new BoundedHeap(1)
      const query = new Query(new Float32Array(dimensions).fill(1), measure)
      PackedVectors.with(undefined, 0, changes, measure)!.offer(query, best, undefined)
      expect(best.likely(1), `${rows} rows of ${dimensions}`).toEqual([rows - 1])
    }
    const spans = [24, 384, 4_096, 9_000, 200_000, 2_000_000]
    expect(spans.map((dimensions) => spanOf({ distance: 'ip', dimensions }))).toEqual([
      256, 256, 256, 116, 5, 1,
    ])
  })
})
