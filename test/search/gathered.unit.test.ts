/** Matches in memory. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Gathered } from '../../src/search/run/gathered'

const SCORES = fc.array(fc.oneof(fc.constantFrom(-3, -2, -1), fc.double({ min: -50, max: 0, noNaN: true })), {
  maxLength: 60,
})

describe('the leading matches', () => {
  it('are those that can be among the best, equal ones too', () => {
    fc.assert(
      fc.property(SCORES, fc.integer({ min: 1, max: 70 }), fc.boolean(), (scores, count, isFused) => {
        const all = new Gathered()
        for (const [at, score] of scores.entries()) {
          if (isFused) all.add(at, Number.NaN, at / 2, -score)
          else all.add(at, score, Number.NaN, Number.NaN)
        }
        const least = scores.toSorted((a, b) => a - b)[count - 1] ?? 0
        const wanted = [...scores.keys()].filter((at) => scores[at]! <= least)
        const leading = all.leading(count, isFused)
        expect(leading.seqs).toEqual(expect.arrayContaining(wanted))
        for (const [at, seq] of leading.seqs.entries()) {
          expect(scores[seq]!).toBeLessThanOrEqual(least + 1e-9)
          for (const column of ['scores', 'distances', 'fused'] as const) {
            expect(leading[column][at]).toBe(all[column][seq])
          }
        }
      }),
    )
  })

  it('leave out what is worse', () => {
    const all = new Gathered()
    for (let seq = 0; seq < 100; seq++) all.add(seq, -seq, Number.NaN, Number.NaN)
    expect(all.leading(10, false).seqs).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99])
  })
})
