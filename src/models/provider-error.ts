/** A failure of a provider, for whoever decides whether and when to ask again, and whether to ask somebody else. */
import { ApiError } from '../errors'

/**
 * What went wrong, told apart by what can be done about it.
 *
 * - `unreached`: no response: no connection, or one from the pool that the provider had closed
 * - `busy`: it could not just now: 5xx, an overload told in a stream, Workers AI without room
 * - `limited`: it is asked too often: 429, a rate limit told in a stream
 * - `failed`: it gave this request up: 408, 424 (a model that failed, of Bedrock)
 * - `exhausted`: an allowance is used up, and asking again cannot help
 * - `silent`: it said nothing for too long
 * - `cut`: the response broke off
 * - `denied`: a key, a payment or a model's name that it does not take: 401, 402, 403, 404, a redirect
 * - `empty`: its reply came to its end, and has no text
 * - `refused`: the request itself, or an answer to it: another provider has no business with it
 */
export type Fault =
  | 'unreached'
  | 'busy'
  | 'limited'
  | 'failed'
  | 'exhausted'
  | 'silent'
  | 'cut'
  | 'denied'
  | 'empty'
  | 'refused'

export interface Upstream {
  /** HTTP status of the provider's reply; 408 when it was silent for too long, undefined when it was not reached */
  upstream?: number | undefined
  /** milliseconds after which the provider asked to be called again */
  retryAfterMs?: number | undefined
  /** where the status does not say it */
  fault?: Fault | undefined
}

/**
 * To the caller it is the wire's error and no more: what the provider said of itself is not passed on as Parley's
 * own status or `Retry-After`. Its words are confidential (errors.ts): visitors of a page are not told them.
 */
export class ProviderError extends ApiError {
  readonly upstream: number | undefined
  readonly retryAfterMs: number | undefined
  readonly fault: Fault

  constructor(status: number, message: string, { upstream, retryAfterMs, fault }: Upstream = {}) {
    super(status, message, undefined, true)
    this.upstream = upstream
    this.retryAfterMs = retryAfterMs
    this.fault = fault ?? (upstream === undefined ? 'unreached' : faultOfStatus(upstream))
  }
}

/** Faults of a provider that had taken the request and worked on it: the prompt is paid for, whatever came of it. */
const PAID: ReadonlySet<Fault> = new Set<Fault>(['silent', 'cut', 'empty'])

export const isPaid = (error: unknown): boolean => error instanceof ProviderError && PAID.has(error.fault)

/** Faults that pass by themselves, sooner or later: the same request may succeed then. */
const PASSING: ReadonlySet<Fault> = new Set<Fault>([
  'unreached',
  'busy',
  'limited',
  'failed',
  'exhausted',
  'silent',
  'cut',
])

/** Whether an error is a provider's that will pass, whatever status its caller is told. */
export const passes = (error: unknown): boolean => error instanceof ProviderError && PASSING.has(error.fault)

/** What OpenAI and Workers AI (by its internal code) call an allowance that is used up. */
const USED_UP = ['insufficient_quota', '3036']
/** Workers AI is out of capacity and says "please try again": no fault of the caller's, whatever its status. */
const OUT_OF_CAPACITY = '3040'

/** The fault that an HTTP status stands for. @param type the error's own name for itself, if any */
export function faultOfStatus(status: number, type?: string): Fault {
  if (type === OUT_OF_CAPACITY) return 'busy'
  if (status === 429) return USED_UP.includes(type ?? '') ? 'exhausted' : 'limited'
  if (status === 408 || status === 424) return 'failed'
  if (status >= 500) return 'busy'
  if ((status >= 300 && status < 400) || [401, 402, 403, 404].includes(status)) return 'denied'
  return 'refused'
}

const LIMITED = /rate.?limit|throttl/i
const BUSY = /overload|unavailable|server.?error|api_error|timeout/i

/**
 * The fault of an error that came inside a reply of status 200.
 * @param code what the error gives for a code or a status: a number, or a name
 */
export function faultOfCode(code: unknown, type = ''): Fault {
  if (typeof code === 'number' && code >= 300 && code < 600) return faultOfStatus(code, type)
  const said = `${type} ${typeof code === 'string' ? code : ''}`
  if (LIMITED.test(said)) return 'limited'
  return BUSY.test(said) ? 'busy' : 'refused'
}

/**
 * What a `Retry-After` asks for: seconds, or a date (RFC 9110, 10.2.3); `retry-after-ms` where OpenAI and Azure
 * send it is finer and wins.
 * @returns milliseconds from now, undefined without a readable header
 */
export function retryAfterOf(headers: Headers, now = Date.now()): number | undefined {
  const fine = headers.get('retry-after-ms')
  if (fine !== null && /^\d+(\.\d+)?$/.test(fine)) return Number(fine)
  const value = headers.get('retry-after')
  if (value === null) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  // Date.parse takes `-1` for a month.
  const at = value.endsWith('GMT') ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
