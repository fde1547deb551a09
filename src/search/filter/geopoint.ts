/**
 * Filters on places: a circle, `(lat, lng, 5 km)`, or a polygon, `(lat, lng, lat, lng, lat, lng, ...)`. The same with
 * options: `([lat, lng], radius: 5 km)` and `([lat, lng, lat, lng, ...])`. Distances are always exact, so
 * `exact_filter_radius` changes nothing. A field with polygons is filtered by a point, `(lat, lng)`.
 */
import { ApiError } from '../../errors'
import { balanced, fragment, type SqlFragment } from '../fragment'
import type { Field } from '../types'
import { type PlaceArea, readArea } from './area'
import { type Columns, someValue } from './columns'
import type { FilterContext } from './context'
import type { FilterClause } from './parse'

const MAX_AREAS = 12

/** The mean radius, in metres. */
const EARTH_RADIUS = 6371008.8

/**
 * Metres between a place in the columns and a fixed one: the haversine formula on a sphere of the mean earth radius,
 * 6371008.8 m. Binds the latitude twice, then the longitude, in degrees.
 */
export function distanceSql({ value, norm }: Columns, latitude: number, longitude: number): SqlFragment {
  const halfChord =
    `pow(sin(radians(${value} - ?) / 2), 2)` +
    ` + cos(radians(?)) * cos(radians(${value})) * pow(sin(radians(${norm} - ?) / 2), 2)`
  return fragment(`(2 * ${EARTH_RADIUS} * asin(min(1, sqrt(${halfChord}))))`, latitude, latitude, longitude)
}

/** Documents with a place in one of the circles. Polygons are compared in memory (evaluate.ts). @throws ApiError 400 */
export function circlesClause({ schema }: FilterContext, field: Field, clause: FilterClause): SqlFragment {
  const circles = areasOf(field, clause).filter((area) => 'meters' in area)
  return someValue(schema, field, (columns) =>
    balanced(
      circles.map(({ latitude, longitude, meters }) => {
        const distance = distanceSql(columns, latitude, longitude)
        return { sql: `${distance.sql} <= ?`, bindings: [...distance.bindings, meters] }
      }),
      'OR',
    ),
  )
}

type Circle = Exclude<PlaceArea, { corners: number[] }>

/** @throws ApiError 400 */
function areasOf(field: Field, { values }: FilterClause): PlaceArea[] {
  requireFew(field, values.length)
  return values.map(({ text }) => readArea(field, text))
}

/** Whether a place is inside. */
type IsInside = (latitude: number, longitude: number) => boolean

/** Tests of a place, one for each area of a clause. @throws ApiError 400 */
export const areaTests = (field: Field, clause: FilterClause): IsInside[] =>
  areasOf(field, clause).map((area) => ('meters' in area ? within(area) : contains(area.corners)))

/** The haversine formula of `distanceSql`. */
function within({ latitude, longitude, meters }: Circle): IsInside {
  const radians = (degrees: number) => (degrees * Math.PI) / 180
  return (y, x) => {
    const halfChord =
      Math.sin(radians(y - latitude) / 2) ** 2 +
      Math.cos(radians(latitude)) * Math.cos(radians(y)) * Math.sin(radians(x - longitude) / 2) ** 2
    return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(halfChord))) <= meters
  }
}

/**
 * Whether a polygon contains a place. Even-odd rule: a place is inside if a ray to the east crosses an odd number of edges.
 * @param corners latitudes and longitudes in turn
 */
export function contains(corners: readonly number[]): IsInside {
  const list = Float64Array.from(corners)
  let [south, north, east] = [Infinity, -Infinity, -Infinity]
  for (let at = 0; at < list.length; at += 2) {
    south = Math.min(south, list[at]!)
    north = Math.max(north, list[at]!)
    east = Math.max(east, list[at + 1]!)
  }
  return (y, x) => {
    if (!(y >= south && y <= north && x <= east)) return false
    let isInside = false
    let y1 = list[list.length - 2]!
    let x1 = list[list.length - 1]!
    for (let at = 0; at < list.length; at += 2) {
      const y2 = list[at]!
      const x2 = list[at + 1]!
      if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) isInside = !isInside
      y1 = y2
      x1 = x2
    }
    return isInside
  }
}

/** The points that a clause on polygons asks for. @throws ApiError 400 */
export function pointsOf(field: Field, { values }: FilterClause): [latitude: number, longitude: number][] {
  requireFew(field, values.length)
  return values.map(({ text }) => {
    const [, latitude, longitude] = /^\(([^,]+),([^,]+)\)$/.exec(text) ?? []
    const point = [Number(latitude?.trim() || Number.NaN), Number(longitude?.trim() || Number.NaN)]
    if (!point.every(Number.isFinite)) {
      throw new ApiError(400, 'Value of geopolygon filter field must be in the format `(-44.50, 170.29)`')
    }
    return point as [number, number]
  })
}

function requireFew(field: Field, areas: number): void {
  if (areas > MAX_AREAS) {
    throw new ApiError(400, `Filter field \`${field.name}\` takes at most ${MAX_AREAS} areas.`)
  }
}
