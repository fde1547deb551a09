/** The test of a polygon by strips of the map says what the test of all its edges says. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { contains } from '../../../src/search/filter/area'

// Whole degrees lie on the borders of strips, due north of corners and on edges.
const degree = (most: number) =>
  fc.oneof(
    fc.integer({ min: -most, max: most }),
    fc.double({ min: -most, max: most, noNaN: true }),
    fc.double({ min: -1e6, max: 1e6, noNaN: true }),
  )
const place = fc.tuple(degree(90), degree(360))

it.each([2, 7, 64])('a place is inside by %i strips as by one', (strips) => {
  let inside = 0
  fc.assert(
    fc.property(
      fc.array(place, { minLength: 3, maxLength: 40 }),
      fc.array(place, { minLength: 1, maxLength: 20 }),
      (corners, places) => {
        const [whole, inStrips] = [contains(corners.flat()), contains(corners.flat(), strips)]
        for (const [y, x] of [...places, ...corners]) {
          expect(inStrips(y, x)).toBe(whole(y, x))
          if (whole(y, x)) inside++
        }
      },
    ),
  )
  expect(inside).toBeGreaterThan(100)
})

it('a polygon far off the map is tested too', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 6, maxLength: 6 }),
      (corners) => {
        expect(typeof contains(corners, 64)(10, 20)).toBe('boolean')
      },
    ),
  )
})
