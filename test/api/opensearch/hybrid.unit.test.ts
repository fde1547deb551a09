import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { combine } from '../../../src/api/opensearch/search'

const hits = (scores: Record<string, number>) =>
  Object.entries(scores).map(([_id, _score]) => ({ _id, _score }))

const list = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
)

describe('one list of several', () => {
  test('holds each hit once, best first, with scores from 0 to 1', () => {
    const combinations = fc.constantFrom('arithmetic_mean', 'geometric_mean', 'harmonic_mean')
    fc.assert(
      fc.property(
        list,
        list,
        fc.constantFrom('min_max', 'l2'),
        combinations,
        (one, other, technique, combination) => {
          const all = combine([hits(one), hits(other)], { technique, combination })
          expect(new Set(all.map(({ _id }) => _id))).toEqual(
            new Set([...Object.keys(one), ...Object.keys(other)]),
          )
          const scores = all.map(({ _score }) => Number(_score))
          expect(scores).toEqual(scores.toSorted((a, b) => b - a))
          for (const score of scores) expect(score >= 0 && score <= 1 + 1e-9).toBe(true)
        },
      ),
    )
  })

  test("weighs as OpenSearch's documentation has it", () => {
    const lists = [hits({ a: 10, b: 5, c: 0 }), hits({ b: 0.9, d: 0.1 })]
    const weights = [0.3, 0.7]
    const found = combine(lists, { technique: 'min_max', combination: 'arithmetic_mean', weights })
    expect(found.map(({ _id, _score }) => [_id, Number((_score as number).toFixed(4))])).toEqual([
      ['b', 0.85],
      ['a', 0.3],
      ['d', 0.0007],
      ['c', 0.0003],
    ])
    expect(() => combine(lists, { technique: 'l2', combination: 'arithmetic_mean', weights: [1] })).toThrow(
      /number of weights/,
    )
  })
})
