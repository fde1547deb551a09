/** The intervals of `histogram` and `date_histogram`. */
import { floor, later } from '../../lib/dates'
import { illegalArgument, unsupported } from './errors'
import type { Json } from './route'

export interface Histogram {
  /** the key of a value's bucket */
  floor(value: number): number
  /** the key of the next bucket */
  next(key: number): number
  /** what a bucket shows besides its key */
  shown(key: number): Json
  /** documents that a bucket has at least */
  least: number
}

const CALENDAR: Record<string, string> = {
  minute: 'm',
  hour: 'h',
  day: 'd',
  week: 'w',
  month: 'M',
  quarter: 'q',
  year: 'y',
}
const FIXED: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** The characters of an ISO date that a format shows. */
const FORMATS: Record<string, number> = {
  yyyy: 4,
  'yyyy-MM': 7,
  'yyyy-MM-dd': 10,
  strict_date_optional_time: 24,
}

/** @throws ApiError 400 for an interval that is none */
export function parseHistogram(name: string, type: string, options: Json): Histogram {
  const { interval, calendar_interval, fixed_interval, min_doc_count = 0, format } = options
  if (!Number.isInteger(min_doc_count)) throw illegalArgument(`[min_doc_count] of [${name}] takes a number`)
  const least = min_doc_count as number
  if (type === 'histogram') {
    const width = Number(interval)
    if (!(width > 0 && Number.isFinite(width)))
      throw illegalArgument(`[interval] must be >0 for histogram aggregation [${name}]`)
    const of = (place: number) => place * width
    return {
      floor: (value) => of(Math.floor(value / width)),
      next: (key) => of(Math.round(key / width) + 1),
      shown: () => ({}),
      least,
    }
  }
  const length = FORMATS[String(format ?? 'strict_date_optional_time')]
  if (length === undefined) throw unsupported(`[format: ${String(format)}] of [${name}]`)
  const shown = (key: number) => ({ key_as_string: new Date(key).toISOString().slice(0, length) })
  const said = String(calendar_interval ?? interval ?? '').replace(/^1(?=[a-zA-Z])/, '')
  const unit = CALENDAR[said] ?? Object.values(CALENDAR).find((each) => each === said)
  if (unit !== undefined)
    return { floor: (time) => floor(time, unit), next: (key) => later(key, unit), shown, least }
  const [, count, measure = ''] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(String(fixed_interval ?? interval)) ?? []
  const width = Number(count) * (FIXED[measure] ?? 0)
  if (!(width > 0))
    throw illegalArgument(
      `Required one of fields [calendar_interval, fixed_interval] with an interval in [${name}]`,
    )
  return { floor: (time) => Math.floor(time / width) * width, next: (key) => key + width, shown, least }
}
