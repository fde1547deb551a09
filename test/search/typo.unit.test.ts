import { describe, expect, it } from 'vitest'
import { typosAllowed } from '../../src/search/text/similar'

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
