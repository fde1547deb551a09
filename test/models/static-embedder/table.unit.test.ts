/** The table of the built-in embedder: what its vectors say, how long they are, and what is no table. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StaticTable } from '../../../src/models/static-embedder/reader'
import { readTable, tableBytes } from './read-table'
import reference from './reference-cosines.json'

const table = readTable()

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, index) => sum + value * b[index]!, 0)

const near = (a: string, b: string): number => dot(table.embed(a), table.embed(b))

describe('the static embedder', () => {
  it.each(reference)('puts $a and $b as close as the reference does', ({ a, b, cosine }) => {
    expect(near(a, b)).toBeCloseTo(cosine, 3)
  })

  it('puts texts of one meaning closer than texts of another, though they share no word', () => {
    expect(near('physician', 'doctor')).toBeGreaterThan(near('physician', 'bread') + 0.3)
    expect(near('How do I cancel my holiday?', 'vacation cancellation')).toBeGreaterThan(
      near('How do I cancel my holiday?', 'network configuration') + 0.2,
    )
  })

  it('gives vectors of length one, of as many dimensions as are asked for, and none to a text without words', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 8, max: 1100 }), (text, dimensions) => {
        const vector = table.embed(`word ${text}`, dimensions)
        expect(vector).toHaveLength(dimensions)
        expect(dot(vector, vector)).toBeCloseTo(1, 4)
        expect(vector.subarray(table.dimensions).every((value) => value === 0)).toBe(true)
      }),
    )
    expect(table.embed(' \u0000 ').every((value) => value === 0)).toBe(true)
  })

  it('gives a text the vector of its words added one by one', () => {
    // The weight of a word in the sum is the length of its own vector before scaling.
    const words = ['doctor', 'bread', 'holiday', 'network', 'river', 'invoice', 'piano']
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...words), { minLength: 1 }), (chosen) => {
        const sum = new Float64Array(table.dimensions)
        for (const word of chosen) {
          const weight = table.length(word)
          for (const [at, value] of table.embed(word).entries()) sum[at]! += weight * value
        }
        const length = Math.hypot(...sum)
        const vector = table.embed(chosen.join(' '))
        for (const [at, value] of vector.entries()) expect(value).toBeCloseTo(sum[at]! / length, 5)
      }),
    )
    // A second text finds nothing of the first.
    expect(table.embed('doctor doctor bread')).toEqual(readTable().embed('doctor doctor bread'))
  })

  it('keeps every cosine where there are more dimensions than it has', () => {
    const [a, b] = ['a doctor in a hospital', 'the physician treats patients'].map((text) =>
      table.embed(text, 768),
    )
    expect(dot(a!, b!)).toBeCloseTo(near('a doctor in a hospital', 'the physician treats patients'), 5)
  })

  it('is not read from bytes that are another thing, or cut off', () => {
    expect(() => new StaticTable(new ArrayBuffer(4))).toThrow('Not a table')
    expect(() => new StaticTable(new TextEncoder().encode('<!doctype html>').buffer as ArrayBuffer)).toThrow(
      'Not a table',
    )
    expect(() => new StaticTable(tableBytes().slice(0, -1))).toThrow('cut off')
  })
})
