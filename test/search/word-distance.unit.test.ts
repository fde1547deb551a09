import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editDistance } from '../../src/lib/nearest'
import { wordDistance } from '../../src/search/text/word-distance'

describe('wordDistance', () => {
  it.each([
    ['strems', 'streams', 1, 1],
    ['strea', 'streaming', 3, 0],
    ['straem', 'streaming', 3, 1],
    ['fox', 'wolf', 3, 2],
    ['xf', 'fox', 3, 1],
  ])('%s to %s: whole %i, beginning %i', (typed, word, whole, beginning) => {
    expect(wordDistance(typed, word, 2)).toEqual({ whole, beginning })
  })

  it('is the distance of editDistance to the word, and to its nearest beginning', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(letters, letters, fc.integer({ min: 1, max: 3 }), (typed, word, limit) => {
        const beginnings = Array.from({ length: word.length }, (_, length) => word.slice(0, length + 1))
        expect(wordDistance(typed, word, limit)).toEqual({
          whole: editDistance(typed, word, limit),
          beginning: Math.min(...beginnings.map((each) => editDistance(typed, each, limit))),
        })
      }),
      { numRuns: 2_000 },
    )
  })
})
