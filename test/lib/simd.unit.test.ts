/** WebAssembly for int8 vectors: that it is made of its source, and computes what JavaScript would. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assembled } from '../../scripts/simd.mjs'
import { Simd, wholeLanes } from '../../src/lib/simd'

const byte = fc.integer({ min: -127, max: 127 })
const float = fc.float({ noNaN: true, min: -8, max: 8 })
const tiny = fc.float({ noNaN: true, min: Math.fround(-1e-37), max: Math.fround(1e-37) })
/** A vector of some multiple of 16 components. */
const whole = <T>(component: fc.Arbitrary<T>, lanes: number) =>
  fc.array(component, { minLength: 16 * lanes, maxLength: 16 * lanes })
const lanes = fc.integer({ min: 1, max: 5 })

/** Puts values into memory, one after the other from address 0, at multiples of 16. @returns their addresses and the end */
function put(simd: Simd, ...values: (Int8Array | Float32Array)[]): number[] {
  const addresses = [0]
  for (const value of values) {
    const at = addresses.at(-1)!
    new Uint8Array(simd.memory).set(new Uint8Array(value.buffer), at)
    addresses.push(at + wholeLanes(value.byteLength))
  }
  return addresses
}

describe('the functions in WebAssembly', () => {
  it('are made of their source as it is', async () => {
    const made = readFileSync(join(import.meta.dirname, '../../src/lib/simd.wasm'))
    expect(Buffer.from(await assembled()).equals(made), 'run `node scripts/simd.mjs`').toBe(true)
  })

  it('multiply a vector with rows exactly', () => {
    const simd = new Simd(65_536)
    const given = lanes.chain((n) =>
      fc.tuple(whole(byte, n), fc.array(whole(byte, n), { minLength: 1, maxLength: 9 })),
    )
    fc.assert(
      fc.property(given, ([vector, rows]) => {
        const [, start, out] = put(simd, Int8Array.from(vector), Int8Array.from(rows.flat()))
        simd.products(0, start!, rows.length, vector.length, out!)
        const expected = rows.map((row) => row.reduce((sum, value, at) => sum + value * vector[at]!, 0))
        expect([...new Float64Array(simd.memory, out!, rows.length)]).toEqual(expected)
      }),
    )
  })

  it('multiply the longest vector that a row of SQLite holds without an overflow', () => {
    const length = 2_000_000 / 4
    const simd = new Simd(3 * length)
    new Int8Array(simd.memory, 0, 2 * length).fill(-127)
    simd.products(0, length, 1, length, 2 * length)
    expect(new Float64Array(simd.memory, 2 * length, 1)[0]).toBe(127 * 127 * length)
  })

  it('add rows times their factors, each sum rounded to float32', () => {
    const simd = new Simd(65_536)
    const given = lanes.chain((n) =>
      fc.array(fc.tuple(whole(byte, n), float), { minLength: 1, maxLength: 9 }),
    )
    fc.assert(
      fc.property(given, (rows) => {
        const length = rows[0]![0].length
        const [, terms, out] = put(
          simd,
          Int8Array.from(rows.flatMap(([row]) => row)),
          new Float32Array(2 * rows.length),
        )
        for (const [at, [, factor]] of rows.entries()) {
          new Int32Array(simd.memory)[terms! / 4 + 2 * at] = at * length
          new Float32Array(simd.memory)[terms! / 4 + 2 * at + 1] = factor
        }
        simd.sum(terms!, terms! + 8 * rows.length, length, out!)
        const expected = new Float32Array(length)
        for (const [row, factor] of rows)
          for (const [at, value] of row.entries()) expected[at] = expected[at]! + Math.fround(value * factor)
        const summed = new Float32Array(simd.memory, out!, length)
        expect(summed.every((value, at) => value === expected[at])).toBe(true)
      }),
    )
  })

  it('multiply a vector of floats with a row', () => {
    const simd = new Simd(65_536)
    const given = lanes.chain((n) => fc.tuple(whole(float, n), whole(byte, n)))
    fc.assert(
      fc.property(given, ([vector, row]) => {
        const [, at] = put(simd, Float32Array.from(vector), Int8Array.from(row))
        const expected = row.reduce((sum, value, index) => sum + value * vector[index]!, 0)
        expect(simd.product(0, at!, row.length)).toBeCloseTo(expected, 1)
      }),
    )
  })

  it('write a vector as int8, in steps of a 127th of the largest component', () => {
    const simd = new Simd(65_536)
    fc.assert(
      fc.property(
        fc.oneof(
          lanes.chain((n) => whole(float, n)),
          whole(tiny, 1),
        ),
        (vector) => {
          const [, out] = put(simd, Float32Array.from(vector))
          const largest = Math.max(...vector.map(Math.abs))
          const most = largest === 0 ? 0 : Math.max(largest, 2 ** -120)
          expect(simd.quantize(0, vector.length, out!)).toBe(most)
          for (const [at, value] of new Int8Array(simd.memory, out!, vector.length).entries()) {
            const exact = most === 0 ? 0 : (vector[at]! * 127) / most
            expect(Math.abs(value - exact)).toBeLessThan(0.5001)
          }
        },
      ),
    )
  })
})
