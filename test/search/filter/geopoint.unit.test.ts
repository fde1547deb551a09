/** The test of a polygon says what crossing its edges says on a plane, wherever the map is cut. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { contains } from '../../../src/search/filter/area'

// Whole degrees lie due north of corners and on edges.
const degree = (most: number) =>
  fc.oneof(
    fc.integer({ min: -most, max: most }),
    fc.integer({ min: -1e6, max: 1e6 }).map((part) => (most * part) / 1e6),
  )
const place = fc.tuple(degree(80), degree(80))
const polygon = fc.array(place, { minLength: 3, maxLength: 40 })

/** Counts the edges due north of a place; undefined where one is too near to tell. */
function crossing(corners: readonly (readonly [number, number])[], y: number, x: number) {
  let isInside = false
  for (const [at, [y1, x1]] of corners.entries()) {
    const [y2, x2] = corners[(at + 1) % corners.length]!
    if (x1 > x === x2 > x) {
      if (Math.abs(x1 - x) < 1e-9 || Math.abs(x2 - x) < 1e-9) return undefined
      continue
    }
    const edge = y1 + ((y2 - y1) * (x - x1)) / (x2 - x1)
    if (Math.abs(edge - y) < 1e-6) return undefined
    if (edge > y) isInside = !isInside
  }
  return isInside
}

it('a place is inside as on a plane, also where the map is cut elsewhere', () => {
  let inside = 0
  fc.assert(
    fc.property(
      polygon,
      fc.array(place, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: -3, max: 3 }),
      (corners, places, turns) => {
        const test = contains(corners.flat())
        const moved = contains(corners.flatMap(([y, x]) => [y, x + 360 * turns]))
        for (const [y, x] of places) {
          const wanted = crossing(corners, y, x)
          if (wanted === undefined) continue
          expect([test(y, x), moved(y, x), test(y, x - 360 * turns)]).toEqual([wanted, wanted, wanted])
          if (wanted) inside++
        }
      },
    ),
    { numRuns: 500 },
  )
  expect(inside).toBeGreaterThan(100)
})

it('a polygon far off the map is tested too', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 6, maxLength: 6 }),
      (corners) => {
        expect(typeof contains(corners)(10, 20)).toBe('boolean')
      },
    ),
  )
})
