/** The intervals of `date_histogram`. */
import { floor, later } from '../../lib/dates'
import { illegalArgument, unsupported } from './errors'
import type { Json } from './route'

export interface Histogram {
  /** the key of a time's bucket: its first millisecond */
  floor(time: number): number
  /** the key of the next bucket */
  next(key: number): number
  /** characters of an ISO date that are shown */
  length: number
  /** documents that a bucket has at least */
  least: number
}

const CALENDAR = 'minute hour day week month quarter year m h d w M q y'.split(' ')
const FIXED: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORMATS = ['yyyy', 'yyyy-MM', 'yyyy-MM-dd']

/** @throws ApiError 400 for an interval that is none */
export function parseHistogram(name: string, options: Json): Histogram {
  const { calendar_interval, fixed_interval, min_doc_count: least = 0, format } = options
  if (typeof least !== 'number') throw illegalArgument(`[min_doc_count] of [${name}] takes a number`)
  if (format !== undefined && !FORMATS.includes(String(format)))
    throw unsupported(`[format: ${String(format)}] of [${name}], which is none of ${FORMATS.join(', ')},`)
  const shown = { length: format === undefined ? 24 : String(format).length, least }
  const said = String(calendar_interval).replace(/^1/, '')
  if (CALENDAR.includes(said)) {
    const unit = said === 'month' ? 'M' : said[0]!
    return { floor: (time) => floor(time, unit), next: (key) => later(key, unit), ...shown }
  }
  const [, count, measure = ''] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(String(fixed_interval)) ?? []
  const width = Number(count) * (FIXED[measure] ?? 0)
  if (!(width > 0))
    throw illegalArgument(`Invalid interval specified, [${name}] takes a calendar_interval or fixed_interval`)
  return { floor: (time) => Math.floor(time / width) * width, next: (key) => key + width, ...shown }
}
