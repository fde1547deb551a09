/** Numbers, times, sizes and names for people, and texts as files. */

const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 })
const dollars = new Intl.NumberFormat(undefined, {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 4,
})
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

const calendarDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A day in UTC. @param date such as `2026-11-22` */
export const day = (date: string): string => calendarDay.format(Date.parse(date))

export const count = (value: number): string => number.format(value)

/** A part of one, as `42%`. */
export const share = (part: number): string => `${Math.round(part * 100)}%`

/** How alike two meanings are, from 0 to 1. @param distance 0 for the same, from 1 on for what has nothing in common */
export const likeness = (distance: number): number => Math.max(0, 1 - distance)

/** Dollars, to the hundredth of a cent. */
export const money = (value: number): string => dollars.format(value)

/** `1 document`, `2 documents`. */
export const many = (value: number, one: string, more = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : more}`

/** Milliseconds as `84 ms` or `2.4 s`. */
export const duration = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`

/** A time in milliseconds since 1970, in full. */
export const when = (time: number): string => moment.format(time)

/** How long ago, in its largest unit. */
export function ago(time: number, now = Date.now()): string {
  const seconds = (time - now) / 1_000
  const units: [Intl.RelativeTimeFormatUnit, number][] = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ]
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  }
  return 'just now'
}

/** What people call the engines of collections. */
const NAMES: Record<string, string> = {
  typesense: 'Typesense',
  opensearch: 'OpenSearch',
  'ai-search': 'AI Search',
}

export const engineName = (engine: string): string => NAMES[engine] ?? engine

/** Rows as CSV. What a spreadsheet would take for a formula is marked as a text: visitors write what is exported. */
export const csv = (rows: readonly (string | number)[][]): string =>
  rows
    .map((row) =>
      row
        .map(
          (cell) =>
            `"${String(cell)
              .replace(/^[=+\-@\t\r]/, "'$&")
              .replaceAll('"', '""')}"`,
        )
        .join(','),
    )
    .join('\r\n')

/** Hands a text to the browser as a file. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}

/** A name for a collection, from that of a folder, a file or a website. */
export const collectionName = (source: string): string =>
  source
    .replace(/\.[a-z0-9]+$/i, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64) || 'content'
