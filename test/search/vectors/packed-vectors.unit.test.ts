/** Vectors as int8: what is found among them after any puts and removals, of any length. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Int8Matrix } from '../../../src/search/vectors/int8-matrix'

const vectorOf = (dimensions: number) =>
  fc
    .array(fc.integer({ min: -127, max: 126 }), { minLength: dimensions - 1, maxLength: dimensions - 1 })
    // With 127 as the largest component each step is 1, so no component is rounded.
    .map((components) => Float32Array.from([127, ...components]))

const product = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)

describe('a matrix of int8', () => {
  it('finds the most similar rows among those that are allowed', () => {
    const given = fc.integer({ min: 1, max: 40 }).chain((dimensions) =>
      fc.record({
        puts: fc.array(fc.tuple(fc.nat(30), vectorOf(dimensions)), { minLength: 1, maxLength: 60 }),
        removed: fc.array(fc.nat(30)),
        allowed: fc.option(fc.array(fc.nat(30)), { nil: undefined }),
        query: vectorOf(dimensions),
        k: fc.integer({ min: 1, max: 40 }),
        distance: fc.constantFrom('cosine' as const, 'ip' as const),
      }),
    )
    fc.assert(
      fc.property(given, ({ puts, removed, allowed, query, k, distance }) => {
        const matrix = new Int8Matrix()
        const rows = new Map<number, Float32Array>()
        for (const [seq, vector] of puts) {
          matrix.put(seq, vector)
          rows.set(seq, vector)
        }
        for (const seq of removed) {
          matrix.remove(seq)
          rows.delete(seq)
        }
        const among = allowed && new Set(allowed)
        const likeness = (seq: number) => {
          const vector = rows.get(seq)!
          return product(query, vector) / (distance === 'cosine' ? Math.sqrt(product(vector, vector)) : 1)
        }
        const expected = [...rows.keys()]
          .filter((seq) => among === undefined || among.has(seq))
          .map(likeness)
          .sort((a, b) => b - a)
          .slice(0, k)
        const found = matrix.nearest(query, k, distance, among)
        expect(new Set(found).size).toBe(expected.length)
        const likenesses = found.map(likeness).sort((a, b) => b - a)
        for (const [at, value] of expected.entries()) expect(likenesses[at]).toBeCloseTo(value, 3)
      }),
    )
  })

  it('compares all blocks of many rows, and rows longer than what is compared at once', () => {
    for (const [rows, dimensions] of [
      [1_000, 24],
      [40, 9_000],
      [2, 200_000],
    ] as const) {
      const matrix = new Int8Matrix()
      for (let seq = 0; seq < rows; seq++) {
        matrix.put(
          seq,
          new Float32Array(dimensions).fill(seq === rows - 1 ? 1 : -1).fill(seq === 0 ? 1 : 0, 1, 5),
        )
      }
      const found = matrix.nearest(new Float32Array(dimensions).fill(1), 1, 'cosine', undefined)
      expect(found, `${rows} rows of ${dimensions}`).toEqual([rows - 1])
    }
  })
})
