import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editDistance } from '../../src/lib/nearest'
import { typosAllowed } from '../../src/search/text/typo'

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['fox', 'fox', 0],
    ['fox', 'foxs', 1],
    ['fox', 'fx', 1],
    ['fox', 'fix', 1],
    ['fox', 'ofx', 1],
    ['database', 'databaes', 1],
    ['kitten', 'sitting', 3],
  ])('%s to %s is %i', (a, b, distance) => {
    expect(editDistance(a, b, 5)).toBe(distance)
  })

  it('stops past its limit', () => {
    expect(editDistance('abcdef', 'uvwxyz', 2)).toBe(3)
    expect(editDistance('a', 'abcdef', 2)).toBe(3)
  })

  it('is symmetric, and the same with any limit that holds', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 7 })
    fc.assert(
      fc.property(word, word, fc.nat(8), (a, b, limit) => {
        const distance = editDistance(a, b, 99)
        expect(editDistance(b, a, 99)).toBe(distance)
        expect(editDistance(a, b, limit)).toBe(Math.min(distance, limit + 1))
      }),
    )
  })
})

describe('typosAllowed', () => {
  const rules = { maxTypos: 2, minLengthOneTypo: 4, minLengthTwoTypos: 7, withDigits: true, numbers: true }
  it.each([
    ['fox', 0],
    ['foxy', 1],
    ['foxish', 1],
    ['foxlike', 2],
  ])('%s: %i', (word, typos) => {
    expect(typosAllowed(word, rules)).toBe(typos)
    expect(typosAllowed(word, { ...rules, maxTypos: 0 })).toBe(0)
  })

  it('can leave out words with digits', () => {
    expect(typosAllowed('ab1234567', rules)).toBe(2)
    expect(typosAllowed('ab1234567', { ...rules, withDigits: false })).toBe(0)
    expect(typosAllowed('abcdefgh', { ...rules, withDigits: false })).toBe(2)
    expect(typosAllowed('123456789', { ...rules, withDigits: false })).toBe(2)
    expect(typosAllowed('123456789', { ...rules, numbers: false })).toBe(0)
  })
})
