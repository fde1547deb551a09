/**
 * Logs requests: one line of JSON when the answer begins, and an audit line for administrators' changes, deleted
 * conversations and traces that were read. Paths, queries, bodies and keys are never logged; the route is its pattern.
 * LOG_CONTENT=on, for debugging, adds the question. A turn has a line of its own (turn/turn-line.ts).
 * Counts them for `/stats.json`, too.
 */
import type { Note } from '../../auth/authenticate'
import { foreignOrigin } from '../../lib/origins'
import type { Origin } from '../../search/fault-log'

/** The data of a request for the log. Each layer adds what it learns. */
export interface RequestRecord extends Note {
  readonly requestId: string
  /** unix milliseconds */
  readonly started: number
  readonly method: string
  /** pattern of the route that took it */
  route?: string
  action?: string
  /** what an audited request was about: an id or a name */
  target?: string
  question?: string
  /** when the time of its searches is over, in unix milliseconds */
  searchedUntil?: number
  /** that the route names */
  collection?: string
}

/** What a collection's object is told of the request, for its own log. */
export const originOf = ({ requestId }: Pick<RequestRecord, 'requestId'>): Origin => ({ requestId })

/** A caller's id is accepted only in this form, because it goes into logs and back into a header. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

export function newRecord(request: Request): RequestRecord {
  const given = request.headers.get('x-request-id') ?? ''
  return {
    requestId: REQUEST_ID.test(given) ? given : crypto.randomUUID(),
    started: Date.now(),
    method: request.method,
    address: request.headers.get('cf-connecting-ip') ?? '',
    origin: foreignOrigin(request),
  }
}

/** Actions on conversations that are audited. The others are everyday use. */
const AUDITED_OF_CONVERSATIONS = ['conversations:delete', 'conversations:trace']

/**
 * Whether an action is audited: administrators' changes (anything but documents, conversations and analytics events), deleting
 * conversations, and reading traces of others' answers.
 */
const isAudited = (action: string, method: string): boolean =>
  AUDITED_OF_CONVERSATIONS.includes(action) ||
  (method !== 'GET' && !/^((documents|conversations):|analytics\/events:create$)/.test(action))

const LONGEST_TEXT = 2_000

/** Writes the lines of a request once its status is known. */
export function logRequest(env: Cloudflare.Env, record: RequestRecord, status: number): void {
  const { requestId: request_id, started, method, route, action, key, denied, target, question } = record
  if (env.LOG_REQUESTS !== 'on' && env.LOG_REQUESTS !== 'audit') return
  const now = Date.now()
  const ts = new Date(now).toISOString()
  if (action !== undefined && key !== undefined && isAudited(action, method)) {
    const line = {
      type: 'audit',
      ts,
      request_id,
      key,
      action,
      target: target?.slice(0, LONGEST_TEXT),
      status,
    }
    console.log(JSON.stringify(line))
  }
  if (env.LOG_REQUESTS === 'audit') return
  // Time until the answer begins. A stream may go on for minutes.
  const ms = now - started
  const content = env.LOG_CONTENT === 'on' &&
    question !== undefined && { question: question.slice(0, LONGEST_TEXT) }
  console.log(
    JSON.stringify({ type: 'request', ts, request_id, method, route, status, ms, key, denied, ...content }),
  )
}

// The requests of the last seconds, as this isolate has served them. Nothing of it is stored or leaves the isolate.

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

/** Counts a request that was answered. Requests with unknown keys are left out, because anybody can make up their paths. */
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
