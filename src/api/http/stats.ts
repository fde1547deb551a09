/** The requests of the last seconds, as this isolate has served them. Nothing of it is stored or leaves the isolate. */
import type { RequestRecord } from './request-log'

/** The window, in seconds. */
const WINDOW = 10
/** The most endpoints counted separately in a second. */
const MOST_ENDPOINTS = 200

interface Tally {
  count: number
  ms: number
}

const LABELS = ['search', 'import', 'write', 'delete', 'overloaded'] as const
type Label = (typeof LABELS)[number]

/** by second since 1970, then by endpoint or label */
const seconds = new Map<number, Map<string, Tally>>()

const DOCUMENTS = '/collections/:collection/documents'

/** The kind under which Typesense counts a request, besides its endpoint. */
function labelOf(method: string, route: string, status: number): Label | undefined {
  if (status === 429 || status === 503) return 'overloaded'
  if (route === '/multi_search' || route === `${DOCUMENTS}/search`) return 'search'
  if (route === `${DOCUMENTS}/import`) return 'import'
  if (route !== DOCUMENTS && route !== `${DOCUMENTS}/:id`) return undefined
  return method === 'DELETE' ? 'delete' : method === 'GET' ? undefined : 'write'
}

/**
 * Counts a request that was answered. Requests with unknown keys are left out, because anybody can make up their
 * paths.
 */
export function countRequest(record: RequestRecord, status: number, now = Date.now()): void {
  const { method, route, key, started, collection } = record
  if (route === undefined || key === undefined) return
  const second = Math.floor(now / 1_000)
  for (const old of seconds.keys()) if (old <= second - WINDOW) seconds.delete(old)
  const tallies = seconds.get(second) ?? new Map<string, Tally>()
  seconds.set(second, tallies)
  const endpoint = `${method} ${collection === undefined ? route : route.replace(':collection', () => collection)}`
  const label = labelOf(method, route, status)
  for (const name of [...(label ? [label] : []), endpoint, TOTAL]) {
    const tally = tallies.get(name) ?? { count: 0, ms: 0 }
    if (tallies.size >= MOST_ENDPOINTS && !tallies.has(name) && name === endpoint) continue
    tally.count++
    tally.ms += now - started
    tallies.set(name, tally)
  }
}

const TOTAL = 'total'

/** The figures of `/stats.json`: requests a second, and milliseconds until an answer begins. */
export function requestStats(now = Date.now()): Record<string, unknown> {
  const sums = new Map<string, Tally>()
  const first = Math.floor(now / 1_000) - WINDOW
  for (const [second, tallies] of seconds) {
    if (second <= first) continue
    for (const [name, { count, ms }] of tallies) {
      const sum = sums.get(name) ?? { count: 0, ms: 0 }
      sums.set(name, { count: sum.count + count, ms: sum.ms + ms })
    }
  }
  const { count: total } = sums.get(TOTAL) ?? { count: 0 }
  const endpoints = [...sums].filter(([name]) => name.includes(' '))
  return {
    ...Object.assign({}, ...LABELS.map((label) => figuresOf(label, sums.get(label)))),
    latency_ms: Object.fromEntries(endpoints.map(([name, { count, ms }]) => [name, ms / count])),
    requests_per_second: Object.fromEntries(endpoints.map(([name, { count }]) => [name, count / WINDOW])),
    total_requests_per_second: total / WINDOW,
    // A write is done when it is answered.
    pending_write_batches: 0,
  }
}

const figuresOf = (label: Label, { count, ms }: Tally = { count: 0, ms: 0 }): Record<string, number> => ({
  ...(label !== 'overloaded' && { [`${label}_latency_ms`]: count === 0 ? 0 : ms / count }),
  [`${label}_requests_per_second`]: count / WINDOW,
})
