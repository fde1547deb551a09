import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeFault, faultOf } from '../../src/lib/json'

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const json = fc
  .tuple(fc.json(), fc.nat(4))
  .map(([text, space]) => JSON.stringify(JSON.parse(text), null, space))

describe('the place of a fault', () => {
  it.each([
    ['{', 'line 1, column 2: the text ends too soon'],
    ['', 'line 1, column 1: the text ends too soon'],
    ['{"a": 1,}', 'line 1, column 9: unexpected "}"'],
    ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: unexpected "\\""'],
    ['{\n  "a": [1, 2}\n}', 'line 2, column 13: unexpected "}"'],
    ["{'a': 1}", 'line 1, column 2: unexpected "\'"'],
    ['{"a": tru}', 'line 1, column 10: unexpected "}"'],
    ['{"a": "b\nc"}', 'line 1, column 9: unexpected "\\n"'],
    ['{"a": "\\x"}', 'line 1, column 8: unexpected "\\\\"'],
    ['{"a": "b', 'line 1, column 9: the text ends too soon'],
    ['01', 'line 1, column 2: unexpected "1"'],
    ['[1] x', 'line 1, column 5: unexpected "x"'],
    ['undefined', 'line 1, column 1: unexpected "u"'],
    ['{"a": 😀}', 'line 1, column 7: unexpected "😀"'],
  ])('is told: %j', (text, told) => {
    expect(describeFault(text)).toBe(told)
  })

  it('is found in exactly the texts that the parser refuses', () => {
    const piece = fc.constantFrom(...'{}[]:,"\\-.0129eEtrufalsn \n', '\u0001', 'true', 'null', '"a"', '1.5')
    const changed = fc
      .tuple(json, fc.nat(), fc.nat(3), fc.array(piece, { maxLength: 3 }))
      .map(([text, from, length, pieces]) => {
        const at = from % (text.length + 1)
        return text.slice(0, at) + pieces.join('') + text.slice(at + length)
      })
    fc.assert(
      fc.property(
        fc.oneof(
          json,
          changed,
          fc.array(piece).map((all) => all.join('')),
        ),
        (text) => {
          expect(faultOf(text) === undefined).toBe(isJson(text))
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it('is where a character stands that JSON never has', () => {
    fc.assert(
      fc.property(json, fc.nat(), (text, from) => {
        const index = from % (text.length + 1)
        const fault = faultOf(`${text.slice(0, index)}\u0001${text.slice(index)}`)!
        expect(fault).toBeLessThanOrEqual(index)
        // A number or an escape that was begun is refused from its beginning on.
        expect(fault).toBeGreaterThanOrEqual(index - 5)
      }),
    )
  })

  it('of a text that was cut is its end, or the last token', () => {
    fc.assert(
      fc.property(json, fc.nat(), (text, from) => {
        const cut = text.slice(0, from % (text.length + 1))
        const fault = faultOf(cut)
        if (isJson(cut)) expect(fault).toBeUndefined()
        else expect(fault).toBeGreaterThanOrEqual(cut.length - 6)
      }),
    )
  })

  it('is found in a long text at once', () => {
    const long = `[${'"x\\n", '.repeat(200_000)}]`
    expect(faultOf(long)).toBe(long.length - 1)
    expect(faultOf(`"${'x'.repeat(4_000_000)}`)).toBe(4_000_001)
  })
})
