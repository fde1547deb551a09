/** Reads areas in filters on places: circles and polygons. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'
import type { Field } from '../types'

const METERS: Record<string, number> = { km: 1000, mi: 1609.344 }

/** Degrees; `corners` alternates latitudes and longitudes. */
export type PlaceArea = { latitude: number; longitude: number; meters: number } | { corners: number[] }

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
  for (const option of splitOutside(rest, ',').filter((part) => part !== '')) {
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
