/** Places in filters: points, circles and polygons. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'
import { type Block, valuesAt } from '../schema/column'
import type { Field } from '../types'
import type { FilterClause } from './parse'

// =============================================================================
// Reads areas in filters on places: circles and polygons.

const METERS: Record<string, number> = { km: 1000, mi: 1609.344 }

/** Degrees; `corners` alternates latitudes and longitudes. */
type PlaceArea = { latitude: number; longitude: number; meters: number } | { corners: number[] }

/** Reads the value of a clause on places. @throws ApiError 400 */
export function readArea(field: Field, text: string): PlaceArea {
  const inner = /^\((.*)\)$/s.exec(text.trim())
  if (inner?.[1]?.includes('[')) return parseOptions(field, inner[1])
  const parts = inner?.[1]?.split(',').map((part) => part.trim()) ?? []
  const last = RADIUS.exec(parts[2]?.replace(/^radius\s*:\s*/, '') ?? '')
  if (parts.length === 3 && last) {
    const [latitude, longitude, radius] = [toDegrees(field, parts[0]!), toDegrees(field, parts[1]!), last[1]!]
    return { latitude, longitude, meters: toDegrees(field, radius) * unitOf(last[2]!) }
  }
  if (parts.length < 6 || parts.length % 2 !== 0) throw malformed(field)
  return { corners: parts.map((part) => toDegrees(field, part)) }
}

const RADIUS = /^([\d.]+)\s*([a-z]+)$/i

function unitOf(name: string): number {
  const unit = METERS[name.toLowerCase()]
  if (unit === undefined) throw new ApiError(400, 'Unit must be either `km` or `mi`.')
  return unit
}

/** `[lat, lng, ...], radius: 1 km, exact_filter_radius: 100 km` */
function parseOptions(field: Field, text: string): PlaceArea {
  const [, list, rest = ''] = /^\s*\[([^\]]*)\]\s*(?:,(.*))?$/s.exec(text) ?? []
  const numbers = list?.split(',').map((part) => Number(part.trim() || Number.NaN)) ?? []
  if (numbers.length < 2 || numbers.length % 2 !== 0 || !numbers.every(Number.isFinite)) {
    throw malformedOptions(field)
  }
  let radius: number | undefined
  for (const option of splitOutside(rest).filter((part) => part !== '')) {
    const [, name, value = ''] = /^(radius|exact_filter_radius)\s*:\s*(.*)$/s.exec(option) ?? []
    const length = RADIUS.exec(value)
    if (name === undefined || !length) throw malformedOptions(field)
    const meters = Number(length[1]) * unitOf(length[2]!)
    if (!Number.isFinite(meters)) throw malformedOptions(field)
    if (name === 'radius') radius = meters
  }
  if (numbers.length > 2) {
    if (numbers.length < 6) throw malformedOptions(field)
    return { corners: numbers }
  }
  if (radius === undefined) throw malformedOptions(field)
  return { latitude: numbers[0]!, longitude: numbers[1]!, meters: radius }
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

const malformedOptions = (field: Field): ApiError =>
  new ApiError(
    400,
    `Value of filter field \`${field.name}\`: must be in the \`([-44.50, 170.29], radius: 0.75 km, exact_filter_radius: 5 km)\` or ([56.33, -65.97, 23.82, -127.82], exact_filter_radius: 7 km) format.`,
  )

// =============================================================================
// Filters on places: a circle, `(lat, lng, 5 km)`, or a polygon, `(lat, lng, lat, lng, lat, lng, ...)`. The same with
// options: `([lat, lng], radius: 5 km)` and `([lat, lng, lat, lng, ...])`. Distances are always exact, so
// `exact_filter_radius` changes nothing. A field with polygons is filtered by a point, `(lat, lng)`.

const MAX_AREAS = 12

/** The mean radius, in metres. */
const EARTH_RADIUS = 6371008.8

/** Whether a place is inside. */
type IsInside = (latitude: number, longitude: number) => boolean

/** Tests of a place, one for each area of a clause. @throws ApiError 400 */
export function areaTests(field: Field, { values }: FilterClause): IsInside[] {
  requireFew(field, values.length)
  return values.map(({ text }): IsInside => {
    const area = readArea(field, text)
    if ('corners' in area) return contains(area.corners, STRIPS)
    return (y, x) => distance(area.latitude, area.longitude, y, x) <= area.meters
  })
}

const radians = (degrees: number) => (degrees * Math.PI) / 180

/** Metres between two places: the haversine formula on a sphere of the mean earth radius. */
function distance(latitude: number, longitude: number, y: number, x: number): number {
  const halfChord =
    Math.sin(radians(y - latitude) / 2) ** 2 +
    Math.cos(radians(latitude)) * Math.cos(radians(y)) * Math.sin(radians(x - longitude) / 2) ** 2
  return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(halfChord)))
}

/** Metres from a place to the nearest of a document's places; undefined if it has none. */
export function metersTo(
  { latitude, longitude }: { latitude: number; longitude: number },
  block: Block,
  at: number,
): number | undefined {
  const places = valuesAt(block, at) as number[]
  let nearest: number | undefined
  for (let index = 0; index < places.length; index += 2) {
    const meters = distance(latitude, longitude, places[index]!, places[index + 1]!)
    if (nearest === undefined || meters < nearest) nearest = meters
  }
  return nearest
}

/**
 * Whether a polygon contains a place. An edge takes the shorter way around the earth, so a polygon may lie over the 180th
 * meridian, and its corners may come in either order. A place is inside if the way from it to the north crosses an odd number of
 * edges; or an even number, if the north pole itself is inside. Of a polygon around the earth, the smaller part is inside.
 * @param corners latitudes and longitudes in turn
 * @param strips from north to south, each with a list of the edges in it. With 1, the test is made soonest; with more, it is
 *   quicker for many places, as most edges of a polygon with many corners are short.
 */
export function contains(corners: readonly number[], strips = 1): IsInside {
  const edges: Edge[] = []
  let [south, north, lean] = [Infinity, -Infinity, 0]
  let [along, west, east] = [0, 0, 0]
  for (let at = 0; at < corners.length; at += 2) {
    const [y1, x1] = [corners[at]!, corners[at + 1]!]
    const [y2, x2] = [corners[(at + 2) % corners.length]!, corners[(at + 3) % corners.length]!]
    const width = shorter(x2 - x1)
    lean += width * (y1 + y2)
    south = Math.min(south, y1)
    north = Math.max(north, y1)
    if (width > 0) edges.push({ along, west: x1, width, first: y1, last: y2 })
    else if (width < 0) edges.push({ along: along + width, west: x2, width: -width, first: y2, last: y1 })
    along += width
    west = Math.min(west, along)
    east = Math.max(east, along)
  }
  const isAround = Math.abs(along) > 180
  const hasNorthPole = isAround && lean * along > 0
  if (isAround) [south, north] = [-Infinity, Infinity]
  const inStrip = byStrip(edges, west, east - west, strips)
  return (y, x) => {
    if (!(y >= south && y <= north)) return false
    let isInside = hasNorthPole
    for (const edge of inStrip(x - corners[1]!)) {
      const past = eastOf(x - edge.west)
      if (past < edge.width && edge.first + ((edge.last - edge.first) * past) / edge.width > y)
        isInside = !isInside
    }
    return isInside
  }
}

/** An edge of a polygon: degrees. */
interface Edge {
  /** its western end, as the way from the polygon's first corner */
  along: number
  /** its western end */
  west: number
  width: number
  /** latitude of the western end */
  first: number
  /** latitude of the eastern end */
  last: number
}

/** Strips for the areas of a filter, which many places are compared with. */
const STRIPS = 64
/** Strips that an edge lies in at most on the average: lists of long edges would be large, and hardly quicker. */
const MOST_IN = STRIPS / 4
/** Degrees: more than what rounding can move a place by. */
const MARGIN = 1e-6

/**
 * Lists edges by strips of the polygon. An edge that ends on the border between two is in both.
 * @param west of the polygon, as the way from its first corner
 * @param width of the polygon; more than 360 if it goes around the earth
 * @returns the edges that may be north of a place, by its way from the polygon's first corner
 */
function byStrip(
  edges: readonly Edge[],
  west: number,
  width: number,
  strips: number,
): (along: number) => readonly Edge[] {
  if (strips === 1) return () => edges
  const begin = west - 2 * MARGIN
  const scale = strips / Math.min(360, width + 4 * MARGIN)
  const lists: Edge[][] = Array.from({ length: strips }, () => [])
  let listed = 0
  for (const edge of edges) {
    const first = Math.floor((edge.along - MARGIN - begin) * scale)
    const last = Math.floor((edge.along + edge.width + MARGIN - begin) * scale)
    const some = Math.min(strips, last - first + 1)
    listed += some
    if (!(listed <= MOST_IN * edges.length)) return byStrip(edges, west, width, 1)
    for (let at = 0; at < some; at++) lists[(first + at) % strips]!.push(edge)
  }
  return (along) => lists[Math.floor(eastOf(along - begin) * scale)] ?? []
}

/** A longitude as degrees from 0 up to 360. */
const eastOf = (degrees: number): number => degrees - 360 * Math.floor(degrees / 360)

/** A difference of longitudes by the shorter way. A whole turn stays one: it is an edge of the whole map. */
const shorter = (degrees: number): number =>
  Math.abs(degrees) <= 180 || Math.abs(degrees) === 360 ? degrees : degrees - 360 * Math.round(degrees / 360)

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
