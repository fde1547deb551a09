/** Ranges of numbers and of dates. */
import { spanOf } from '../../lib/dates'
import { shardError, unsupported } from './errors'
import type { Target } from './fields'
import { dated, type Filter, plain, present } from './filter'
import type { Json } from './route'

const LIMITS: Record<string, number> = {
  int32: 2 ** 31 - 1,
  int64: Number.MAX_SAFE_INTEGER,
  float: Number.MAX_VALUE,
}

/**
 * A range as one condition. So a single value of a list must satisfy both ends.
 * @throws ApiError 400 for a field without an order
 */
export function rangeFilter(target: Target, bounds: Json, negated: boolean): Filter {
  if (target.isDate || isOfDates(target, bounds)) {
    const [from, to] = timesOf(target.name, bounds)
    return from > to ? negated : dated(target.name, from, to, negated)
  }
  if (target.kind !== 'number') {
    throw unsupported(`[range] on [${target.name}], which is neither a number nor a date: it`)
  }
  const type = target.field.type.replace('[]', '')
  const most = LIMITS[type]!
  const isWhole = type !== 'float'
  let from = -Infinity
  let to = Infinity
  for (const [name, value] of Object.entries(bounds)) {
    if (value === null || !/^[gl]te?$/.test(name)) continue
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) {
      throw shardError(`failed to create query: [range] on [${target.name}]: [${name}] has to be a number`)
    }
    if (name === 'gte') from = Math.max(from, isWhole ? Math.ceil(number) : number)
    if (name === 'gt') from = Math.max(from, isWhole ? Math.floor(number) + 1 : next(number, 1))
    if (name === 'lte') to = Math.min(to, isWhole ? Math.floor(number) : number)
    if (name === 'lt') to = Math.min(to, isWhole ? Math.ceil(number) - 1 : next(number, -1))
  }
  if (from > to || from > most || to < -most) return negated
  const isOpen = from === -Infinity && to === Infinity
  if (isOpen) return present(target.name, negated)
  // Adding 0 turns minus zero into zero.
  const text = (number: number): string => String(Math.min(most, Math.max(-most, number)) + 0)
  return plain(target.name, `${text(from)}..${text(to)}`, negated)
}

/** Whether a text that no mapping names is asked for dates. OpenSearch makes such a field a date. */
const isOfDates = ({ kind, hasValues }: Target, { gte, gt, lte, lt }: Json): boolean =>
  kind === 'text' &&
  hasValues &&
  [gte, gt, lte, lt].every(
    (bound) =>
      bound === undefined || bound === null || (typeof bound === 'string' && spanOf(bound) !== undefined),
  )

const bits = new DataView(new ArrayBuffer(8))

/** The nearest other float64. @param step 1 upwards, -1 downwards */
function next(number: number, step: 1 | -1): number {
  if (number === 0) return step * Number.MIN_VALUE
  bits.setFloat64(0, number)
  bits.setBigInt64(0, bits.getBigInt64(0) + BigInt(number > 0 ? step : -step))
  return bits.getFloat64(0)
}

/** The first and the last millisecond of a range. @throws ApiError 400 for a bound that is no date */
function timesOf(name: string, bounds: Readonly<Record<string, unknown>>): [number, number] {
  const { time_zone: zone, format: _, boost: __, ...ends } = bounds
  let [from, to] = [-Infinity, Infinity]
  for (const [key, given] of Object.entries(ends)) {
    if (given === null) continue
    const span = typeof given === 'number' ? [given, given + 1] : spanOf(String(given), zone as string)
    if (span === undefined)
      throw shardError(`failed to parse date field [${String(given)}] of [${name}]`, 'parse_exception')
    const [first, end] = span as [number, number]
    if (key === 'gte') from = Math.max(from, first)
    if (key === 'gt') from = Math.max(from, end)
    if (key === 'lte') to = Math.min(to, end - 1)
    if (key === 'lt') to = Math.min(to, first - 1)
  }
  return [from, to]
}
