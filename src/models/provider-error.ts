/** Failures of a provider, classified for retries and fallbacks. */
import { ApiError } from '../errors'

/**
 * Kinds of fault. Each calls for a different reaction.
 *
 * - `unreached`: no response: no connection, or a pooled one that the provider had closed
 * - `busy`: overloaded or broken for the moment: 5xx, an overload reported in a stream, Workers AI without capacity
 * - `limited`: too many requests: 429, a rate limit reported in a stream
 * - `failed`: the provider gave up on this request: 408, 424 (Bedrock: the model failed)
 * - `exhausted`: a quota is used up, and a retry cannot help
 * - `silent`: no content for too long
 * - `cut`: the response broke off
 * - `denied`: the key, the payment or the model's name is not accepted: 401, 402, 403, 404, a redirect
 * - `empty`: the reply is complete and has no text
 * - `refused`: the fault is in the request or in the answer to it, so another provider must not be asked
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
  /** milliseconds after which the provider allows another call */
  retryAfterMs?: number | undefined
  /** set if the status does not determine it */
  fault?: Fault | undefined
}

/**
 * Callers see only the wire's error: the provider's own status and `Retry-After` are not passed on as Parley's. Its
 * message is confidential (errors.ts) and is not shown to visitors of a page.
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

/**
 * Faults after the provider had started to work on the request. The prompt is charged even though there is no answer.
 */
const PAID: ReadonlySet<Fault> = new Set<Fault>(['silent', 'cut', 'empty'])

export const isPaid = (error: unknown): boolean => error instanceof ProviderError && PAID.has(error.fault)

/** Faults that pass by themselves: the same request may succeed later. */
const PASSING: ReadonlySet<Fault> = new Set<Fault>([
  'unreached',
  'busy',
  'limited',
  'failed',
  'exhausted',
  'silent',
  'cut',
])

/** Whether an error is a provider's passing fault, whatever status the caller gets. */
export const passes = (error: unknown): boolean => error instanceof ProviderError && PASSING.has(error.fault)

/** OpenAI's type and Workers AI's internal code for a used-up quota. */
const USED_UP = ['insufficient_quota', '3036']
/** Workers AI is out of capacity and says "please try again". Not the caller's fault, whatever the status. */
const OUT_OF_CAPACITY = '3040'

/** Workers AI's codes for a retired model, and for one that needs the Workers Paid plan, whatever the status. */
const NOT_SERVED = ['5028', '5035']

/** The fault for an HTTP status. @param type the error's own code, if it has one */
export function faultOfStatus(status: number, type?: string): Fault {
  if (type === OUT_OF_CAPACITY) return 'busy'
  if (NOT_SERVED.includes(type ?? '')) return 'denied'
  if (status === 429) return USED_UP.includes(type ?? '') ? 'exhausted' : 'limited'
  if (status === 408 || status === 424) return 'failed'
  if (status >= 500) return 'busy'
  if ((status >= 300 && status < 400) || [401, 402, 403, 404].includes(status)) return 'denied'
  return 'refused'
}

const LIMITED = /rate.?limit|throttl/i
const BUSY = /overload|unavailable|server.?error|api_error|timeout/i

/**
 * The fault for an error inside a reply of status 200.
 * @param code the error's code or status: a number or a name
 */
export function faultOfCode(code: unknown, type = ''): Fault {
  if (typeof code === 'number' && code >= 300 && code < 600) return faultOfStatus(code, type)
  const said = `${type} ${typeof code === 'string' ? code : ''}`
  if (LIMITED.test(said)) return 'limited'
  return BUSY.test(said) ? 'busy' : 'refused'
}

/**
 * The delay in a `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). `retry-after-ms`, from OpenAI and Azure, is
 * more precise and wins.
 * @returns milliseconds from now, undefined without a readable header
 */
export function retryAfterOf(headers: Headers, now = Date.now()): number | undefined {
  const fine = headers.get('retry-after-ms')
  if (fine !== null && /^\d+(\.\d+)?$/.test(fine)) return Number(fine)
  const value = headers.get('retry-after')
  if (value === null) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  // Date.parse reads `-1` as a month.
  const at = value.endsWith('GMT') ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
