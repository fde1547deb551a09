/** Spans of time: ISO 8601, and date math as in `now-7d/d` and `2024-01-31||+1M`. */

const ISO = /^(\d{4})(-\d\d)?(-\d\d)?(?:T(\d\d)(:\d\d)?(:\d\d)?(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?$/
const STEP = /([+-])(\d{0,9})([yMwdhHms])|\/([yMwdhHms])/y
/** Units by how many of the groups of ISO a date has: what `2024-02` says is a month. */
const UNITS = ['y', 'M', 'd', 'h', 'm', 's']
const SECOND = 1000
const DAY = 86_400 * SECOND
const MS: Record<string, number> = { s: SECOND, m: 60 * SECOND, h: DAY / 24, H: DAY / 24, d: DAY, w: 7 * DAY }
const MONTHS: Record<string, number> = { y: 12, q: 3, M: 1 }
/** The first day of 1970 was a Thursday, and weeks begin on Mondays. */
const TO_MONDAY = 3 * DAY

/** The time of a date that is kept as text, in milliseconds since 1970. NaN for any other text: V8 reads "Chapter 5" as May 2001. */
export const timeOf = (text: string): number => (/^\d{4}(?:-|$)/.test(text) ? Date.parse(text) : Number.NaN)

/** The beginning of a year, a quarter, a month and so on, in milliseconds since 1970, UTC. */
export function floor(time: number, unit: string): number {
  const months = MONTHS[unit]
  if (months !== undefined) {
    const date = new Date(time)
    return Date.UTC(date.getUTCFullYear(), Math.floor(date.getUTCMonth() / months) * months)
  }
  const shift = unit === 'w' ? TO_MONDAY : 0
  return Math.floor((time + shift) / MS[unit]!) * MS[unit]! - shift
}

/** A time so many units later. A day that its month does not have becomes the last one. */
export function later(time: number, unit: string, count = 1): number {
  const months = MONTHS[unit]
  if (months === undefined) return time + count * MS[unit]!
  const date = new Date(time)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + count * months + 1, 0)
  date.setUTCDate(Math.min(day, date.getUTCDate()))
  return date.getTime()
}

const CALENDAR = /^1?(?:minute|hour|day|week|month|quarter|year|[mhdwMqy])$/

/**
 * Parts time into intervals, in UTC.
 * @param calendar a unit of the calendar, as `month` or `1M` @param fixed else a fixed length, as `90m`
 * @returns `floor`: the first millisecond of a time's interval. `next`: that of the interval behind one. undefined: neither is known
 */
export function intervalsOf(calendar: string, fixed: string) {
  if (CALENDAR.test(calendar)) {
    const said = calendar.replace(/^1/, '')
    const unit = said === 'month' ? 'M' : said[0]!
    return { floor: (time: number) => floor(time, unit), next: (start: number) => later(start, unit) }
  }
  const [, count, unit = ''] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(fixed) ?? []
  const width = Number(count) * (unit === 'ms' ? 1 : MS[unit]!)
  if (!(width > 0)) return undefined
  return {
    floor: (time: number) => Math.floor(time / width) * width,
    next: (start: number) => start + width,
  }
}

/**
 * The times that a text means: its first millisecond and the one after its last.
 * @param zone of texts that name none, as `+01:00`
 * @returns undefined for another text
 */
export function spanOf(text: string, zone = 'Z'): [from: number, end: number] | undefined {
  const [anchor = '', ...rest] = text.startsWith('now') ? ['now', text.slice(3)] : text.split('||')
  const parts = ISO.exec(anchor)
  let from = Date.now()
  let unit: string | undefined
  if (parts !== null) {
    const [, , , , hour, minute, , fraction, own] = parts
    const isWhole = hour !== undefined && minute === undefined
    from = Date.parse(own || hour === undefined ? anchor : `${anchor}${isWhole ? ':00' : ''}${zone}`)
    unit = fraction === undefined ? UNITS[parts.slice(1, 7).filter(Boolean).length - 1] : undefined
  } else if (anchor !== 'now') return undefined
  const math = rest.join('||')
  for (STEP.lastIndex = 0; STEP.lastIndex < math.length; ) {
    const step = STEP.exec(math)
    if (step === null) return undefined
    const [, sign, count, moved, rounded] = step
    unit = rounded ?? unit
    if (rounded !== undefined) from = floor(from, rounded)
    else from = later(from, moved!, Number(`${sign}${count || 1}`))
  }
  if (Number.isNaN(from)) return undefined
  return [from, unit === undefined ? from + 1 : later(from, unit)]
}
