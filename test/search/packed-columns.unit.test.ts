/** Blocks of values as they are stored: every one comes back as it was. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { packed, unpacked, Words } from '../../src/search/schema/column'

const FORMS = { form: (text: string) => text, long: () => '' }

const number = fc.oneof(
  fc.integer({ min: -129, max: 128 }),
  fc.integer({ min: -32_769, max: 32_768 }),
  fc.integer({ min: -2_147_483_649, max: 2_147_483_648 }),
  fc.constantFrom(0, -0, Number.NaN, 1e300, Number.MIN_VALUE, 2 ** 53 - 1, -(2 ** 53) + 1),
  fc.double(),
)
const numbers = fc.oneof(
  fc.array(number, { maxLength: 40 }),
  ...[130, 33_000, 2 ** 31].map((most) =>
    fc.array(fc.oneof(fc.integer({ min: -most, max: most }), fc.constant(Number.NaN)), { maxLength: 40 }),
  ),
)
const starts = fc.option(
  fc.array(fc.nat(1_000), { minLength: 1, maxLength: 9 }).map((all) => Uint32Array.from(all)),
  { nil: undefined },
)

test('numbers of every size, fractions and gaps', () => {
  fc.assert(
    fc.property(numbers, starts, (all, from) => {
      const block = { values: Float64Array.from(all), starts: from }
      expect(unpacked(packed(block)!, FORMS)).toEqual(block)
    }),
    { numRuns: 500 },
  )
})

test('strings, and the places of long ones', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.nat(1_000_000))
  fc.assert(
    fc.property(fc.array(text, { maxLength: 20 }), starts, fc.boolean(), (some, from, isWide) => {
      const all = Array.from({ length: 30 }, (_, at) => at % (some.length + 1))
      const values = isWide ? Uint32Array.from(all) : Uint16Array.from(all)
      const read = unpacked(packed({ values, starts: from, words: new Words(['', ...some], FORMS) })!, FORMS)
      expect({ ...read, words: read.words!.texts }).toEqual({ values, starts: from, words: ['', ...some] })
    }),
  )
})

test('whole numbers of 64 bits, and places', () => {
  const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  fc.assert(
    fc.property(
      fc.array(long),
      starts,
      fc.array(fc.tuple(fc.double(), fc.double())),
      (some, from, places) => {
        for (const block of [
          { values: BigInt64Array.from(some), starts: from },
          {
            ...{ values: Float64Array.from(places, ([latitude]) => latitude), starts: from },
            longitudes: Float64Array.from(places, ([, longitude]) => longitude),
          },
        ])
          expect(unpacked(packed(block)!, FORMS)).toEqual(block)
      },
    ),
  )
})

test('more than a row takes is not packed', () => {
  const words = new Words(['', ...Array.from({ length: 1_000 }, (_, n) => String(n).padEnd(2_000))], FORMS)
  expect(packed({ values: new Uint16Array(4_096), starts: undefined, words })).toBeUndefined()
})
