/**
 * Filters on places: a circle, `(lat, lng, 5 km)`, or a polygon, `(lat, lng, lat, lng, lat, lng, ...)`. The same with
 * options: `([lat, lng], radius: 5 km)` and `([lat, lng, lat, lng, ...])`. Distances are always exact, so
 * `exact_filter_radius` changes nothing. A field with polygons is filtered by a point, `(lat, lng)`.
 */
import { ApiError } from '../../errors'
import { balanced, fragment, type SqlFragment } from '../fragment'
import type { Field } from '../types'
import { readArea } from './area'
import { type Columns, someValue } from './columns'
import type { FilterContext } from './context'
import type { FilterClause } from './parse'

const MAX_AREAS = 12

/**
 * Metres between a place in the columns and a fixed one: the haversine formula on a sphere of the mean earth radius,
 * 6371008.8 m. Binds the latitude twice, then the longitude, in degrees.
 */
export function distanceSql({ value, norm }: Columns, latitude: number, longitude: number): SqlFragment {
  const halfChord =
    `pow(sin(radians(${value} - ?) / 2), 2)` +
    ` + cos(radians(?)) * cos(radians(${value})) * pow(sin(radians(${norm} - ?) / 2), 2)`
  return fragment(`(2 * 6371008.8 * asin(min(1, sqrt(${halfChord}))))`, latitude, latitude, longitude)
}

export function geopointClause(context: FilterContext, field: Field, clause: FilterClause): SqlFragment {
  return someValue(context.schema, field, areasTest(field, clause))
}

/** The condition that a place in the columns is in one of the areas. @throws ApiError 400 */
export function areasTest(field: Field, { values }: FilterClause): Area {
  requireFew(field, values.length)
  const areas = values.map(({ text }) => parseArea(field, text))
  return (columns) =>
    balanced(
      areas.map((area) => area(columns)),
      'OR',
    )
}

function requireFew(field: Field, areas: number): void {
  if (areas > MAX_AREAS) {
    throw new ApiError(400, `Filter field \`${field.name}\` takes at most ${MAX_AREAS} areas.`)
  }
}

/** Documents whose polygon contains one of the points. */
export function geopolygonClause(
  context: FilterContext,
  field: Field,
  { values }: FilterClause,
): SqlFragment {
  requireFew(field, values.length)
  const points = values.map(({ text }) => {
    const [, latitude, longitude] = /^\(([^,]+),([^,]+)\)$/.exec(text) ?? []
    const point = [Number(latitude?.trim() || Number.NaN), Number(longitude?.trim() || Number.NaN)]
    if (!point.every(Number.isFinite)) {
      throw new ApiError(400, 'Value of geopolygon filter field must be in the format `(-44.50, 170.29)`')
    }
    return point as [number, number]
  })
  return someValue(context.schema, field, ({ value }) =>
    balanced(
      points.map(([latitude, longitude]) => contained(value, '?', '?', latitude, longitude)),
      'OR',
    ),
  )
}

export type Area = (columns: Columns) => SqlFragment

function parseArea(field: Field, text: string): Area {
  const area = readArea(field, text)
  return 'meters' in area ? circle(area.latitude, area.longitude, area.meters) : polygon(area.corners)
}

const circle =
  (latitude: number, longitude: number, meters: number): Area =>
  (columns) => {
    const distance = distanceSql(columns, latitude, longitude)
    return { sql: `${distance.sql} <= ?`, bindings: [...distance.bindings, meters] }
  }

const polygon =
  (corners: number[]): Area =>
  ({ value, norm }) =>
    contained('?', value, norm, JSON.stringify(corners))

/**
 * Whether a polygon, a JSON list of latitudes and longitudes, contains a place. Even-odd rule: a place is inside if a
 * ray to the east crosses an odd number of edges.
 * @param bindings values for the `?` among the other parameters, which repeat: the polygon's once, or a latitude and
 *   a longitude
 */
function contained(
  polygon: string,
  latitude: string,
  longitude: string,
  ...bindings: [string] | [number, number]
): SqlFragment {
  // The index of an edge's first latitude is even. The last edge leads back to the first corner.
  const at = (offset: number): string => `(g.list ->> ((e.key + ${offset}) % json_array_length(g.list)))`
  const [y1, x1, y2, x2] = [at(0), at(1), at(2), at(3)]
  const [point, list] = bindings.length === 1 ? [[], bindings] : [bindings, []]
  return fragment(
    // JSON gives whole degrees as integers, and SQLite's integer division drops the fraction: hence * 1.0.
    `(SELECT count(*) FROM (SELECT ${polygon} AS list, ${latitude} AS y, ${longitude} AS x) g, json_each(g.list) e
       WHERE e.key % 2 = 0 AND (${y1} > g.y) <> (${y2} > g.y)
         AND g.x < (${x2} - ${x1}) * (g.y - ${y1}) * 1.0 / (${y2} - ${y1}) + ${x1}) % 2 = 1`,
    ...list,
    ...point,
  )
}
