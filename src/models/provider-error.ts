/** A failure of a provider, for whoever decides whether and when to ask again. */
import { ApiError } from '../errors'

export interface Upstream {
  /** HTTP status of the provider's reply; undefined when there was none: no connection, or no answer in time */
  upstream?: number | undefined
  /** milliseconds after which the provider asked to be called again */
  retryAfterMs?: number | undefined
}

/**
 * To the caller it is the wire's error and no more: what the provider said of itself is not passed on as Parley's
 * own status or `Retry-After`.
 */
export class ProviderError extends ApiError {
  readonly upstream: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(status: number, message: string, { upstream, retryAfterMs }: Upstream = {}) {
    super(status, message)
    this.upstream = upstream
    this.retryAfterMs = retryAfterMs
  }
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
