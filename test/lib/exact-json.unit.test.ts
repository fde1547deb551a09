import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exactNumber, integer, isInt64, parseExact } from '../../src/lib/json'

/** A JSON text, and what it says. */
interface Written {
  text: string
  value: unknown
}

const written = (text: string, value: unknown = JSON.parse(text)): Written => ({ text, value })

const whole = (value: bigint): Written =>
  written(String(value), Number.isSafeInteger(Number(value)) ? Number(value) : value)

const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(whole),
  fc.bigInt({ min: -(10n ** 300n), max: 10n ** 300n }).map(whole),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }).map(whole),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => {
    const text = String(value)
    return /^-?\d+$/.test(text) ? whole(BigInt(text)) : written(text)
  }),
  fc
    .constantFrom(
      ...['0', '1.0', '1e18', '1712345678901234567.0', '1712345678901234567e2', '1E-1234567890123456'],
      ...['0.12345678901234567890', '-12345678901234567890.12345678901234567890'],
    )
    .map((text) => written(text)),
)
const string = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '1712345678901234567',
    ':1712345678901234567,',
    '\\',
    '"',
    '\\"1712345678901234567',
    '[-1712345678901234567]',
  ),
)
// V8 13.6 takes the name `"` for `\\` where it has met that one before in the same place.
const name = fc.oneof(
  string.filter((each) => !/["\\]/.test(each)),
  fc.constant('__proto__'),
)
const space = fc.constantFrom('', ' ', '\n', '\t \r\n')

const json = fc.letrec<{ any: Written }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    number,
    string.map((value) => written(JSON.stringify(value), value)),
    fc.constantFrom(true, null).map((value) => written(String(value), value)),
    fc.tuple(fc.array(tie('any')), space).map(([all, gap]) =>
      written(
        `[${gap}${all.map(({ text }) => text).join(`${gap},${gap}`)}${gap}]`,
        all.map(({ value }) => value),
      ),
    ),
    fc
      .tuple(fc.array(fc.tuple(name, tie('any'))), space)
      .map(([all, gap]) =>
        written(
          `{${all.map(([name, { text }]) => `${gap}${JSON.stringify(name)}${gap}:${gap}${text}${gap}`).join(',')}}`,
          Object.fromEntries(all.map(([name, { value }]) => [name, value])),
        ),
      ),
  ),
})).any

describe('exact JSON', () => {
  it('reads every whole number as it is written, and all else as JSON.parse does', () => {
    fc.assert(
      fc.property(json, ({ text, value }) => {
        expect(parseExact(text)).toStrictEqual(value)
      }),
      { numRuns: 2_000 },
    )
  })

  it('writes the digits that it has read', () => {
    const line =
      '{"a":1712345678901234567,"b":[-9223372036854775808,[{"c":99999999999999999999999999}]],"d":"1"}'
    expect(JSON.stringify(parseExact(line))).toBe(line)
  })

  it('takes the last of two values, and __proto__ for a name like others', () => {
    const text =
      '{"a":1712345678901234567,"a":5,"__proto__":1712345678901234568,"b":{"__proto__":{"c":9007199254740993}}}'
    const parsed = parseExact(text)
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype)
    expect(JSON.stringify(parsed)).toBe(text.replace('"a":1712345678901234567,', ''))
  })

  it('refuses what is no JSON in the words of JSON.parse', () => {
    for (const text of [
      '{1712345678901234567:1}',
      '[01712345678901234567]',
      '[1712345678901234567',
      '{"a":"1712345678901234567}',
      '--1712345678901234567',
    ]) {
      let message = ''
      try {
        JSON.parse(text)
      } catch (error) {
        message = (error as Error).message
      }
      expect(message).not.toBe('')
      expect(() => parseExact(text)).toThrow(message)
    }
  })

  it('gives numbers wherever they are exact', () => {
    expect(parseExact('[9007199254740991,9007199254740992,-9007199254740991]')).toEqual([
      9007199254740991,
      9007199254740992n,
      -9007199254740991,
    ])
    expect(parseExact(' -1712345678901234567\n')).toBe(-1712345678901234567n)
    expect(parseExact('1712345678901234567.5')).toBe(Number('1712345678901234567.5'))
    expect(exactNumber('-42')).toBe(-42)
    expect(exactNumber('9223372036854775807')).toBe(9223372036854775807n)
    expect(exactNumber('9.22337203685478e+18')).toBe(9.22337203685478e18)
    expect(integer('+00000000000000000000007')).toBe(7)
  })

  it('refuses a number that no double can come near', () => {
    expect(parseExact(`[${'9'.repeat(308)}]`)).toEqual([10n ** 308n - 1n])
    expect(() => parseExact(`[${'9'.repeat(309)}]`)).toThrow('more than 308 digits')
  })

  it('knows the bounds of 64 bits', () => {
    expect([2n ** 63n - 1n, -(2n ** 63n), -(2 ** 63), 5, 0n].map(isInt64)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ])
    expect([2n ** 63n, -(2n ** 63n) - 1n, 2 ** 63, 1.5, '1', Number.NaN].map(isInt64)).toEqual(
      Array.from({ length: 6 }, () => false),
    )
  })
})
