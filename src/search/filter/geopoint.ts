/** Filters on places: within a circle, `(lat, lng, 5 km)`, or a polygon, `(lat, lng, lat, lng, lat, lng, ...)`. */
import { ApiError } from '../../errors'
import { balanced, fragment, type SqlFragment } from '../fragment'
import type { Field } from '../types'
import { type Columns, someValue } from './columns'
import type { FilterContext } from './context'
import type { FilterClause } from './parse'

const METERS: Record<string, number> = { km: 1000, mi: 1609.344 }
const MAX_AREAS = 12

/**
 * Metres between a place in the columns and a fixed one, by the haversine formula on a sphere of the mean
 * earth radius, 6371008.8 m. Binds the latitude twice and then the longitude, in degrees.
 */
export function distanceSql({ value, norm }: Columns, latitude: number, longitude: number): SqlFragment {
  const halfChord =
    `pow(sin(radians(${value} - ?) / 2), 2)` +
    ` + cos(radians(?)) * cos(radians(${value})) * pow(sin(radians(${norm} - ?) / 2), 2)`
  return fragment(`(2 * 6371008.8 * asin(min(1, sqrt(${halfChord}))))`, latitude, latitude, longitude)
}

export function geopointClause(context: FilterContext, field: Field, clause: FilterClause): SqlFragment {
  if (clause.values.length > MAX_AREAS) {
    throw new ApiError(400, `Filter field \`${field.name}\` takes at most ${MAX_AREAS} areas.`)
  }
  const areas = clause.values.map(({ text }) => parseArea(field, text))
  return someValue(context.schema, field, (columns) =>
    balanced(
      areas.map((area) => area(columns)),
      'OR',
    ),
  )
}

type Area = (columns: Columns) => SqlFragment

function parseArea(field: Field, text: string): Area {
  const inner = /^\((.*)\)$/s.exec(text.trim())
  const parts = inner?.[1]?.split(',').map((part) => part.trim()) ?? []
  const last = /^(?:radius\s*:\s*)?([\d.]+)\s*([a-z]+)$/i.exec(parts[2] ?? '')
  if (parts.length === 3 && last) {
    const [latitude, longitude, radius] = [toDegrees(field, parts[0]!), toDegrees(field, parts[1]!), last[1]!]
    const unit = METERS[last[2]!.toLowerCase()]
    if (unit === undefined) throw new ApiError(400, 'Unit must be either `km` or `mi`.')
    return circle(latitude, longitude, toDegrees(field, radius) * unit)
  }
  if (parts.length < 6 || parts.length % 2 !== 0) throw malformed(field)
  const numbers = parts.map((part) => toDegrees(field, part))
  const corners = numbers.flatMap((latitude, index) =>
    index % 2 === 0 ? [[latitude, numbers[index + 1]!] as const] : [],
  )
  return polygon(corners)
}

const circle =
  (latitude: number, longitude: number, meters: number): Area =>
  (columns) => {
    const distance = distanceSql(columns, latitude, longitude)
    return { sql: `${distance.sql} <= ?`, bindings: [...distance.bindings, meters] }
  }

/** Even-odd rule: a place is inside when a ray to the east crosses an odd number of edges. */
const polygon =
  (corners: (readonly [number, number])[]): Area =>
  ({ value, norm }) => {
    const edges = corners.map(([y1, x1], index) => {
      const [y2, x2] = corners[(index + 1) % corners.length]!
      return { y1, x1, y2, x2 }
    })
    const [y1, x1, y2, x2] = ['y1', 'x1', 'y2', 'x2'].map((name) => `(e.value ->> '${name}')`)
    const crossed =
      `(${y1} > ${value}) <> (${y2} > ${value})` +
      ` AND ${norm} < (${x2} - ${x1}) * (${value} - ${y1}) / (${y2} - ${y1}) + ${x1}`
    // 1.0: whole degrees come out of JSON as integers, and integers divide without a fraction.
    return fragment(
      `(SELECT count(*) FROM json_each(?) e WHERE ${crossed.replace(' / ', ' * 1.0 / ')}) % 2 = 1`,
      JSON.stringify(edges),
    )
  }

function toDegrees(field: Field, text: string): number {
  const value = Number(text)
  if (text === '' || !Number.isFinite(value)) throw malformed(field)
  return value
}

const malformed = (field: Field): ApiError =>
  new ApiError(
    400,
    `Value of filter field \`${field.name}\`: must be in the \`(-44.50, 170.29, 0.75 km)\` or (56.33, -65.97, 23.82, -127.82) format.`,
  )
