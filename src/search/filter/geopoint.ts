/**
 * Filters on places: a circle, `(lat, lng, 5 km)`, or a polygon, `(lat, lng, lat, lng, lat, lng, ...)`. The same with
 * options: `([lat, lng], radius: 5 km)` and `([lat, lng, lat, lng, ...])`. Distances are always exact, so
 * `exact_filter_radius` changes nothing. A field with polygons is filtered by a point, `(lat, lng)`.
 */
import { ApiError } from '../../errors'
import { type Block, valuesAt } from '../schema/block'
import type { Field } from '../types'
import { type PlaceArea, readArea } from './area'
import type { FilterClause } from './parse'

const MAX_AREAS = 12

/** The mean radius, in metres. */
const EARTH_RADIUS = 6371008.8

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
  areasOf(field, clause).map((area) => ('meters' in area ? within(area) : contains(area.corners, STRIPS)))

const within =
  ({ latitude, longitude, meters }: Circle): IsInside =>
  (y, x) =>
    distance(latitude, longitude, y, x) <= meters

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
 * @param strips of the map from north to south, each with a list of its edges. With 1, the test is made soonest; with many, it
 *   is quick for many places, as most edges of a polygon with many corners are short.
 */
export function contains(corners: readonly number[], strips = 1): IsInside {
  /** of each edge: its western end, its width, and its latitudes in the west and in the east */
  const edges: number[] = []
  let [south, north, turned, lean] = [Infinity, -Infinity, 0, 0]
  for (let at = 0; at < corners.length; at += 2) {
    const [y1, x1] = [corners[at]!, corners[at + 1]!]
    const [y2, x2] = [corners[(at + 2) % corners.length]!, corners[(at + 3) % corners.length]!]
    const width = shorter(x2 - x1)
    turned += width
    lean += width * (y1 + y2)
    south = Math.min(south, y1)
    north = Math.max(north, y1)
    if (width > 0) edges.push(x1, width, y1, y2)
    else if (width < 0) edges.push(x2, -width, y2, y1)
  }
  const isAround = Math.abs(turned) > 180
  const hasNorthPole = isAround && lean * turned > 0
  if (isAround) [south, north] = [-Infinity, Infinity]
  const lists = edgesByStrip(edges, strips)
  return (y, x) => {
    if (!(y >= south && y <= north)) return false
    let isInside = hasNorthPole
    const list = lists[Math.floor(stripOf(x, strips)) % strips]!
    for (let at = 0; at < list.length; at += 4) {
      const past = x - list[at]!
      const east = past - 360 * Math.floor(past / 360)
      const width = list[at + 1]!
      const [first, last] = [list[at + 2]!, list[at + 3]!]
      if (east < width && first + ((last - first) * east) / width > y) isInside = !isInside
    }
    return isInside
  }
}

/** Strips for the areas of a filter, which many places are compared with. */
const STRIPS = 360

/** The edges that touch each strip. An edge that ends on the border between two is in both. */
function edgesByStrip(edges: readonly number[], strips: number): Float64Array[] {
  const lists: number[][] = Array.from({ length: strips }, () => [])
  for (let at = 0; at < edges.length; at += 4) {
    const west = stripOf(edges[at]!, strips)
    const width = (edges[at + 1]! / 360) * strips
    const first = Math.floor(west - BORDER)
    const last = Math.min(Math.floor(west + width + BORDER), first + strips - 1)
    for (let strip = first; strip <= last; strip++) lists[strip % strips]!.push(...edges.slice(at, at + 4))
  }
  return lists.map((list) => Float64Array.from(list))
}

/** More than what rounding can move a place by, in strips. */
const BORDER = 1e-6

/** The strip of a longitude, and how far it is in it, counted on from any full turn so that it is above 0. */
const stripOf = (longitude: number, strips: number): number => ((longitude % 360) / 360 + 2) * strips

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
