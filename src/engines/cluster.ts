/**
 * Calls the nodes of a cluster: one after the other, as the cluster's own clients do.
 *
 * A node that does not answer is left alone for a while, twice as long each time (a circuit breaker). What is known of the nodes
 * belongs to the isolate. If all nodes are left alone, calls fail at once and say when to come back.
 */
import { ApiError, attempt, badRequest, coded, type Outcome } from '../errors'
import { withoutSecrets } from '../lib/mask'
import { once } from '../lib/once'
import { readWholeBody } from '../models/call'
import { type Egress, requireAllowed } from '../models/egress'
import { type FilterNode, parseFilter, printFilter } from '../search/filter/parse'
import type { Field, Step } from '../search/types'
import type { Connection } from './config'

/** How long a node that failed is left alone, in milliseconds: first and longest. */
const FIRST_REST_MS = 2_000
const LONGEST_REST_MS = 60_000

/** The most bytes of a reply. A page of 250 large documents has some 30 MB. */
const LARGEST_REPLY = 64 * 1024 * 1024
const LARGEST_ERROR = 64 * 1024

/** Seconds after which a cluster with full queues may take another request. */
const BUSY_SECONDS = 1

/** Times are in milliseconds since 1970. */
interface Health {
  /** failures since its last answer */
  failures: number
  /** when the last failure was counted */
  failedAt: number
  /** 0: not at all */
  restsUntil: number
}

/**
 * What this isolate knows of nodes. A node that cannot be reached is left alone by all. One that was slow is left alone only for what was
 * slow: requests of that kind, to that collection, with that time limit.
 */
const health = new Map<string, Health>()
const MOST_NODES_KNOWN = 1_000

/** Forgets all failures: for tests. */
export const forgetFailures = (): void => health.clear()

/** Where the next call begins, so that nodes share the work. */
let turn = 0

export interface ClusterRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** with a leading slash */
  path: string
  /** those without a value are not sent */
  query?: Record<string, string | undefined>
  body?: string
  /** of the body; default: JSON */
  contentType?: string
  /** whether another node may be asked after one that may have done the work */
  repeatable: boolean
  signal?: AbortSignal | undefined
}

/**
 * About the collection, unless it has a path of its own. Unless it says otherwise, it reads, or can be sent again.
 * `below`: the path below that of the collection
 */
export type Asked = Partial<ClusterRequest> & { below?: string }

interface ClusterOptions {
  /** how messages call it: `The Typesense cluster` */
  label: string
  nodes: readonly string[]
  /** the path of the collection there */
  collection: string
  headers: Record<string, string>
  /** the credentials that it needs: `a token that ...` */
  rights: string
  /** credentials that no message may contain */
  secrets: readonly string[]
  /** milliseconds until the headers of a reply, the same again for its body, and for each piece of one that is streamed */
  timeoutMs: number
  env: Egress
}

/** Nodes asked for one call. */
const MOST_ATTEMPTS = 2

/**
 * A node that is reached but gives no answer so many times in a row is left alone. One such call says little: a single
 * heavy search must not cut off everybody else's.
 */
const FAILURES_IN_A_ROW = 3

/** How a node of a cluster answered just now. */
export interface NodeHealth {
  url: string
  answers: boolean
  took_ms: number
  /** why it does not answer, or refuses to */
  error?: string
}

/** Why a node gave no answer. `unsent`: it certainly did no work. `unreached`: no call can reach it. */
type Trouble = { why: string; unsent: boolean; unreached?: true }

/**
 * A name or an id as one segment of a path.
 * @throws ApiError 400 for `.` and `..`: no encoding keeps the URL parser from reading them as steps, here and in the cluster
 */
export function pathSegment(text: string): string {
  if (/^\.{1,2}$/.test(text)) {
    throw badRequest(`A cluster cannot be asked for \`${text}\`: in an address it has another meaning.`)
  }
  return encodeURIComponent(text)
}

/** An error that only the operator can mend, and may read in full. */
export const ofCluster = (
  message: string,
  code: 'search_unavailable' | 'search_failed' = 'search_unavailable',
): ApiError => new ApiError(503, message, undefined, true, code)

/** The `engine` of the collection is wrong: the same request fails until the operator connects the collection again. */
const ofEngine = (message: string): ApiError => ofCluster(message, 'search_failed')

export class Cluster {
  readonly #options: ClusterOptions
  /** ends the call of a response whose body stalls */
  readonly #ends = new WeakMap<Response, AbortController>()

  constructor(options: ClusterOptions) {
    this.#options = options
  }

  /**
   * @returns the response of the first node that answers, whatever its status below 500
   * @throws ApiError 503 if no node answers, with the seconds after which to try again
   */
  async fetch(request: ClusterRequest): Promise<Response> {
    const now = Date.now()
    const nodes = this.#ready(request, now)
    if (nodes.length === 0) throw this.#resting(request, now)
    let trouble: Trouble | undefined
    for (const node of nodes.slice(0, MOST_ATTEMPTS)) {
      const outcome = await this.#ask(node, request)
      if (outcome instanceof Response) return this.#ofCluster(outcome, request)
      trouble = outcome
      if (!request.repeatable && !outcome.unsent) break
    }
    const { why } = trouble!
    const seconds = this.#ready(request, Date.now()).length > 0 ? 1 : this.#wait(request, Date.now())
    throw this.#unavailable(`${this.#options.label} does not answer (${why}).`, seconds)
  }

  /** As `fetch`. */
  ask({ below = '', ...request }: Asked): Promise<Response> {
    return this.fetch({ method: 'GET', path: this.#options.collection + below, repeatable: true, ...request })
  }

  /**
   * What does not depend on the kind of cluster: it refuses the credentials, is busy, something before it
   * takes no request so large, or something else has its address.
   * @throws ApiError 503
   */
  async #ofCluster(response: Response, { body = '' }: ClusterRequest): Promise<Response> {
    const { headers, status } = response
    const { label, rights } = this.#options
    const type = headers.get('content-type') ?? ''
    const wrong =
      status === 401 || status === 403
        ? `refuses the credentials. Connect again with ${rights}.`
        : status >= 300 && status < 400
          ? 'answers with a redirect. Give the address it leads to.'
          : status === 413 && !type.includes('json')
            ? `refuses a request of ${new TextEncoder().encode(body).byteLength} bytes as too large (HTTP status 413). Raise the limit of the proxy before it.`
            : type.startsWith('text/html') &&
              status !== 429 &&
              `answers with a web page (HTTP status ${status}). Correct its address.`
    if (!wrong && status !== 429) return response
    await response.body?.cancel().catch(() => {})
    throw wrong ? ofEngine(`${label} ${wrong}`) : this.#unavailable(`${label} is busy.`, BUSY_SECONDS)
  }

  /** Asks every node once, also those that are left alone. One that answers is asked again from now on. */
  probe(request: ClusterRequest): Promise<NodeHealth[]> {
    return Promise.all(
      this.#options.nodes.map(async (url) => {
        const started = Date.now()
        const outcome = await this.#ask(url, request).catch((error: unknown) => {
          // The variable with the allowed hosts has changed.
          if (error instanceof ApiError) return { why: error.message }
          throw error
        })
        const took_ms = Date.now() - started
        if (!(outcome instanceof Response)) return { url, answers: false, took_ms, error: outcome.why }
        await outcome.body?.cancel().catch(() => {})
        const { ok, status } = outcome
        return { url, answers: ok, took_ms, ...(!ok && { error: `HTTP status ${status}` }) }
      }),
    )
  }

  /** The whole body of a reply. @throws ApiError 503 if it breaks off or is too large */
  async text(response: Response): Promise<string> {
    const { text, complete } = await this.#body(response, LARGEST_REPLY)
    if (complete) return text
    throw this.#unavailable(`${this.#options.label} broke off its reply, or sent one that is too large.`, 1)
  }

  /**
   * The body of a reply as text, piece by piece.
   * @throws ApiError 503 if it breaks off, or if the next piece takes longer than the time limit. A reader that is slow itself is waited for.
   */
  async *pieces(response: Response): AsyncGenerator<string, void, undefined> {
    if (!response.body) return
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    try {
      while (true) {
        const { done, value } = await this.#inTime(response, () => reader.read())
        if (done) return
        if (value !== '') yield value
      }
    } catch {
      throw this.#unavailable(`${this.#options.label} broke off its reply.`, 1)
    } finally {
      await reader.cancel().catch(() => {})
    }
  }

  /** The body of a reply as far as it came, if it breaks off. It may last, as long as the next piece comes within the time limit. */
  async begun(response: Response): Promise<{ text: string; complete: boolean }> {
    let text = ''
    try {
      for await (const piece of this.pieces(response)) {
        text += piece
        if (text.length > LARGEST_REPLY) return { text, complete: false }
      }
      return { text, complete: true }
    } catch {
      return { text, complete: false }
    }
  }

  /** The start of a body that tells of an error, without credentials. */
  async errorText(response: Response): Promise<string> {
    const { text } = await this.#body(response, LARGEST_ERROR)
    return withoutSecrets(text, this.#options.secrets)
  }

  /** Reads a body, up to a number of bytes and within the time limit. */
  async #body(response: Response, most: number): Promise<{ text: string; complete: boolean }> {
    try {
      return await this.#inTime(response, () => readWholeBody(response.body, most))
    } catch {
      return { text: '', complete: false }
    }
  }

  /** Reads of a body, which is ended at the time limit. */
  async #inTime<Read>(response: Response, read: () => Promise<Read>): Promise<Read> {
    const timer = setTimeout(() => this.#ends.get(response)?.abort(), this.#options.timeoutMs)
    try {
      return await read()
    } finally {
      clearTimeout(timer)
    }
  }

  /** What is known of a node that concerns a request: that it cannot be reached, and that it was slow for the like. */
  #keys(node: string, { method, path }: ClusterRequest): { node: string; work: string } {
    const kind = path.endsWith('search') ? 'search' : method
    const { timeoutMs, collection } = this.#options
    // Spaces keep the parts apart: neither URLs nor encoded names contain any.
    return { node, work: `${node} ${timeoutMs} ${collection} ${kind}` }
  }

  /** @returns when a node may be asked, in milliseconds since 1970; 0: at once */
  #restsUntil(node: string, request: ClusterRequest): number {
    const keys = Object.values(this.#keys(node, request))
    return Math.max(...keys.map((key) => health.get(key)?.restsUntil ?? 0))
  }

  /** The nodes that are not left alone, each call beginning with another one. */
  #ready(request: ClusterRequest, now: number): string[] {
    const { nodes } = this.#options
    const first = turn++ % nodes.length
    const rotated = [...nodes.slice(first), ...nodes.slice(0, first)]
    return rotated.filter((node) => this.#restsUntil(node, request) <= now)
  }

  /** Seconds until a node is asked again. */
  #wait(request: ClusterRequest, now: number): number {
    const until = Math.min(...this.#options.nodes.map((node) => this.#restsUntil(node, request)))
    return Math.max(1, Math.ceil((until - now) / 1_000))
  }

  #resting(request: ClusterRequest, now: number): ApiError {
    const seconds = this.#wait(request, now)
    return this.#unavailable(
      `${this.#options.label} did not answer lately. It is asked again in ${seconds} seconds.`,
      seconds,
    )
  }

  #unavailable(message: string, seconds: number): ApiError {
    return coded('search_unavailable', 503, message, seconds)
  }

  async #ask(node: string, request: ClusterRequest): Promise<Response | Trouble> {
    const { env, headers, timeoutMs } = this.#options
    // The variable may have changed since the node was named.
    requireAllowed(node, env, 'The URL of the node')
    const url = new URL(`${node}${request.path}`)
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value) url.searchParams.set(name, value)
    }
    const startedAt = Date.now()
    this.#claim(node, request, startedAt + timeoutMs)
    const late = new AbortController()
    const end = () => late.abort()
    const timer = setTimeout(end, timeoutMs)
    // `AbortSignal.any` takes three times as long.
    request.signal?.addEventListener('abort', end)
    if (request.signal?.aborted) end()
    try {
      const response = await fetch(url, {
        method: request.method,
        headers: {
          ...headers,
          ...(request.body !== undefined && { 'content-type': request.contentType ?? 'application/json' }),
        },
        ...(request.body !== undefined && { body: request.body }),
        // A redirect could carry the credentials to another host.
        redirect: 'manual',
        signal: late.signal,
      })
      if (response.status < 500) {
        for (const key of Object.values(this.#keys(node, request))) health.delete(key)
        this.#ends.set(response, late)
        return response
      }
      await response.body?.cancel().catch(() => {})
      // The node is up. If one caller's search makes it fail, the searches of others must still reach it.
      if (response.status === 500) {
        this.#claim(node, request, 0)
        return { why: 'HTTP status 500', unsent: false }
      }
      // 503: a node of Typesense that lags behind or starts, or an index of OpenSearch that has lost shards. It has done nothing.
      return this.#failed(node, request, startedAt, {
        why: `HTTP status ${response.status}`,
        unsent: response.status === 503,
      })
    } catch (error) {
      if (request.signal?.aborted) {
        this.#claim(node, request, 0)
        throw error
      }
      return this.#failed(
        node,
        request,
        startedAt,
        late.signal.aborted
          ? { why: `no reply within ${timeoutMs} ms`, unsent: false }
          : { why: 'it could not be reached', unsent: true, unreached: true },
      )
    } finally {
      clearTimeout(timer)
    }
  }

  /** After its rest a node is tried by one call. The others leave it alone until that has ended. @param until milliseconds since 1970 */
  #claim(node: string, request: ClusterRequest, until: number): void {
    for (const key of Object.values(this.#keys(node, request))) {
      const known = health.get(key)
      if (known && known.restsUntil > 0) known.restsUntil = Math.max(1, until)
    }
  }

  #failed(node: string, request: ClusterRequest, startedAt: number, trouble: Trouble): Trouble {
    const keys = this.#keys(node, request)
    const [key, other] = trouble.unreached ? [keys.node, keys.work] : [keys.work, keys.node]
    // The call had reserved both entries, but its failure tells about one of them only. So free the other.
    const claimed = health.get(other)
    if (claimed?.restsUntil === startedAt + this.#options.timeoutMs) claimed.restsUntil = 1
    const known = health.get(key)
    // Calls that were under way together fail together: a burst is one failure.
    if (known && startedAt < known.failedAt) return trouble
    const now = Date.now()
    const failures = (known?.failures ?? 0) + 1
    const rests = trouble.unsent || failures >= FAILURES_IN_A_ROW
    const rest = Math.min(FIRST_REST_MS * 2 ** Math.min(failures - 1, 10), LONGEST_REST_MS)
    if (health.size >= MOST_NODES_KNOWN) health.clear()
    health.set(key, { failures, failedAt: now, restsUntil: rests ? now + rest : 0 })
    return trouble
  }
}

// =============================================================================
// What all stores of documents in clusters share.

/** The searches that are under way are known, so that one that nobody waits for any more can be ended. */
export abstract class StoreElsewhere<Opened> {
  readonly #running = new Map<string, AbortController>()
  protected readonly open: () => Promise<Opened>

  /** @param connect called once, by the first request */
  constructor(connect: () => Promise<Connection>, opened: (connection: Connection) => Opened) {
    this.open = once(async () => opened(await connect()))
  }

  /** The cluster indexes by itself. */
  async reindex(): Promise<Step> {
    return { count: 0, done: true }
  }

  /**
   * Runs a search.
   * @param ticket names it for `abandon`; undefined: nobody will
   * @param work is given the signal that ends its calls
   */
  protected searching<Result>(
    ticket: string | undefined,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Outcome<Result>> {
    const abort = new AbortController()
    if (ticket !== undefined) this.#running.set(ticket, abort)
    return attempt(async () => {
      try {
        return await work(abort.signal)
      } catch (error) {
        if (abort.signal.aborted) throw new ApiError(499, 'The caller has gone.')
        throw error
      } finally {
        if (ticket !== undefined) this.#running.delete(ticket)
      }
    })
  }

  async abandon(ticket: string): Promise<void> {
    this.#running.get(ticket)?.abort()
  }
}

// =============================================================================
// What a key fixes for a search that runs in a cluster.

/** A join, `$other(...)`. The cluster would read another collection, which the caller's key may not open. Its name may have spaces. */
const JOIN = /\$[^$():,&|`]*\(/
const NO_JOINS = 'Joins are not available for a collection in a cluster.'

/** @throws ApiError 400 if a parameter names a join */
export function requireNoJoin(text = ''): void {
  if (!JOIN.test(text)) return
  throw badRequest(NO_JOINS)
}

/**
 * Both filters, written anew from their trees: the cluster then reads them as they were checked here.
 * @throws ApiError 400 for a filter that does not parse, or that Typesense could read in another way
 */
export function scopedFilter(filterBy: string | undefined, scope: string): string {
  const [own, asked] = [parseFilter(scope)!, parseFilter(filterBy ?? '')]
  if (asked) requireSameReading(asked)
  return asked ? `(${printFilter(own)}) && (${printFilter(asked)})` : printFilter(own)
}

/** What ends a clause in Typesense: it knows backticks in names too, and no double quotes. */
const ENDS = /[`()]|&&|\|\|/

/** @throws ApiError 400 */
function requireSameReading(node: FilterNode): void {
  if (node.kind === 'join') throw badRequest(NO_JOINS)
  if (node.kind === 'object') requireSameReading(node.child)
  if (node.kind === 'and' || node.kind === 'or') for (const child of node.children) requireSameReading(child)
  const names = node.kind === 'clause' || node.kind === 'object' ? [node.field] : []
  const values = node.kind === 'clause' ? node.values : []
  const phrases = values.filter(({ phrase, exact, text }) => phrase || (!exact && text.includes('`')))
  const unsafe = [...names, ...phrases.map(({ text }) => text)].find((text) => ENDS.test(text))
  if (unsafe === undefined) return
  throw badRequest(`Could not parse the filter query: signs in ${unsafe} are not in backticks.`)
}

// =============================================================================
// A field of a collection that lives elsewhere.

/** @param given what is known of it; the rest is as Typesense describes a field by default */
export const plainField = (given: Partial<Field> & Pick<Field, 'name' | 'type'>): Field => ({
  facet: false,
  optional: false,
  index: true,
  sort: false,
  infix: false,
  locale: '',
  stem: false,
  store: true,
  stem_dictionary: '',
  ...given,
})
