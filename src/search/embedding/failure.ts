/** Decides from a failed call to an embedding model what to do next. */
import { ApiError, logFailure } from '../../errors'
import { ProviderError } from '../../models/provider-error'

/**
 * The cause of a failure: the texts; the moment (the provider is busy, broken or unreachable); or the setup (key,
 * quota, URL, model), which only the owner can change.
 */
export type Cause = 'texts' | 'moment' | 'setup'

export function causeOf(error: unknown): Cause {
  if (!(error instanceof ProviderError)) return error instanceof ApiError ? 'setup' : 'moment'
  if (error.fault === 'denied' || error.fault === 'exhausted') return 'setup'
  // An invalid reply with status 200 says nothing about the texts.
  return error.fault === 'refused' && error.upstream !== 200 ? 'texts' : 'moment'
}

/**
 * A failure's message for the owner: the provider's words, which contain no secrets.
 * @param collection its name, for the log
 */
export function messageOf(error: unknown, collection: string): string {
  if (error instanceof ApiError) return error.message
  logFailure('embedding failed', error, { collection })
  return 'The embedding model did not answer.'
}

/** The first and the longest pause, in milliseconds. */
const PAUSES: Record<Exclude<Cause, 'texts'>, readonly [number, number]> = {
  moment: [1_000, 300_000],
  setup: [30_000, 3_600_000],
}

/** The longest pause, even if a provider asks for more. */
const LONGEST_MS = 3_600_000

/**
 * How long to leave a provider alone: exponential backoff with jitter over half of it, and at least as long as the
 * provider asked.
 * @param failures consecutive ones before this
 * @returns milliseconds
 */
export function pauseAfter(error: unknown, failures: number, random: () => number = Math.random): number {
  const [first, longest] = PAUSES[causeOf(error) === 'setup' ? 'setup' : 'moment']
  const whole = Math.min(longest, first * 2 ** failures)
  const asked = error instanceof ProviderError ? (error.retryAfterMs ?? 0) : 0
  return Math.min(LONGEST_MS, Math.max(asked, whole / 2 + (whole / 2) * random()))
}
