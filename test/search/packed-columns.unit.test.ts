/** Blocks of values as they are stored: every one comes back as it was. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { packed, unpacked } from '../../src/search/schema/packed-columns'

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
      expect(unpacked(packed(block, undefined), () => 0)).toEqual(block)
    }),
    { numRuns: 500 },
  )
  const bytes = (values: number[]) =>
    packed({ values: Float64Array.from(values), starts: undefined }, undefined)
  const widths = [
    [1, Number.NaN],
    [1_000, -5],
    [100_000, 1],
    [0.5, 1],
  ].map((all) => bytes(all).byteLength)
  expect(widths).toEqual([18, 20, 24, 32])
})

test('strings, which another object knows by other numbers', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ unit: 'binary' }).filter((word) => word !== ''),
        { maxLength: 20 },
      ),
      starts,
      fc.infiniteStream(fc.nat(20)),
      (some, from, picks) => {
        const words = ['', ...new Set(some)]
        const values = Uint16Array.from({ length: 30 }, () => picks.next().value! % words.length)
        const others = ['', 'another']
        const idOf = (word: string) => (others.includes(word) ? others.indexOf(word) : others.push(word) - 1)
        const read = unpacked(packed({ values, starts: from }, words), idOf)
        expect(read.starts).toEqual(from)
        expect(Array.from(read.values, (id) => others[id])).toEqual(Array.from(values, (id) => words[id]))
      },
    ),
  )
})
