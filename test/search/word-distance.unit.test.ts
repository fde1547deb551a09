import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wordDistance } from '../../src/lib/nearest'

/** Letters to change, tried in every way: slow, and right. */
function plainDistance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const isSwapped = a.length > 1 && b.length > 1 && a[0] === b[1] && a[1] === b[0]
  return Math.min(
    plainDistance(a.slice(1), b.slice(1)) + (a[0] === b[0] ? 0 : 1),
    plainDistance(a.slice(1), b) + 1,
    plainDistance(a, b.slice(1)) + 1,
    isSwapped ? plainDistance(a.slice(2), b.slice(2)) + 1 : Number.POSITIVE_INFINITY,
  )
}

describe('wordDistance', () => {
  it.each([
    ['strems', 'streams', 1, 1],
    ['strea', 'streaming', 3, 0],
    ['straem', 'streaming', 3, 1],
    ['fox', 'wolf', 3, 2],
    ['xf', 'fox', 3, 1],
    ['', '', 0, 3],
    ['fox', 'foxs', 1, 0],
    ['fox', 'ofx', 1, 1],
    ['database', 'databaes', 1, 1],
    ['kitten', 'sitting', 3, 2],
    ['abcdef', 'uvwxyz', 3, 3],
    ['a', 'abcdef', 3, 0],
    ['a'.repeat(700), `${'a'.repeat(350)}b${'a'.repeat(350)}`, 1, 1],
  ])('%s to %s: whole %i, beginning %i', (typed, word, whole, beginning) => {
    expect(wordDistance(typed, word, 2)).toEqual({ whole, beginning })
  })

  it('is the distance to the word, and to its nearest beginning, up to a limit', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(letters, letters, fc.nat(8), (typed, word, limit) => {
        const beginnings = Array.from({ length: word.length }, (_, length) => word.slice(0, length + 1))
        const atMost = (distance: number) => Math.min(distance, limit + 1)
        expect(wordDistance(typed, word, limit)).toEqual({
          whole: atMost(plainDistance(typed, word)),
          beginning: atMost(Math.min(...beginnings.map((each) => plainDistance(typed, each)))),
        })
      }),
      { numRuns: 500 },
    )
  })
})
