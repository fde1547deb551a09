/** What a provider did wrong, told apart by what can be done about it. */
import { ApiError } from '../errors'

/**
 * - `unreached`: no response: no connection, or one from the pool that the provider had closed
 * - `busy`: it could not just now: 408, 429, 5xx, an overload told in a stream
 * - `exhausted`: an allowance is used up, and asking again cannot help
 * - `silent`: it said nothing for too long
 * - `cut`: the response broke off
 * - `denied`: a key, a payment or a model's name that it does not take: 401, 402, 403, 404, a redirect
 * - `refused`: the request itself, or a reply that is no answer: another provider has no business with it
 */
export type Fault = 'unreached' | 'busy' | 'exhausted' | 'silent' | 'cut' | 'denied' | 'refused'

/** An ApiError that a provider caused, in the contract's words. */
export class ProviderError extends ApiError {
  /** @param retryAfter seconds that the provider asked to be left alone for */
  constructor(
    status: number,
    message: string,
    readonly fault: Fault,
    retryAfter?: number,
  ) {
    super(status, message, retryAfter)
  }
}

/** The fault that an HTTP status other than 200 stands for. @param type the error's own name for itself, if any */
export function faultOfStatus(status: number, type?: string): Fault {
  if (status === 429 && type === 'insufficient_quota') return 'exhausted'
  if (status === 408 || status === 429 || status >= 500) return 'busy'
  if ((status >= 300 && status < 400) || [401, 402, 403, 404].includes(status)) return 'denied'
  return 'refused'
}

const BUSY = /overload|rate.?limit|throttl|unavailable|server.?error|api_error|timeout/i

/**
 * The fault of an error that came inside a reply of status 200.
 * @param code what the error gives for a code or a status: a number, or a name
 */
export function faultOfCode(code: unknown, type?: string): Fault {
  if (typeof code === 'number' && code >= 300 && code < 600) return faultOfStatus(code, type)
  return BUSY.test(`${type ?? ''} ${typeof code === 'string' ? code : ''}`) ? 'busy' : 'refused'
}

/**
 * The seconds that a response asks to wait for: `Retry-After` as seconds or as a date, or OpenAI's own
 * `retry-after-ms`.
 * @param now unix milliseconds
 */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const milliseconds = Number(headers.get('retry-after-ms') ?? Number.NaN)
  if (milliseconds >= 0) return milliseconds / 1000
  const text = headers.get('retry-after')?.trim()
  if (!text) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined
}
