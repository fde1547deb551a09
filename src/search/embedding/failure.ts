/** What a failed call to an embedding model says about the next one. */
import { ApiError, reasonOf } from '../../errors'
import { ProviderError } from '../../models/provider-error'

/**
 * Where a failure comes from: the texts that were sent, the moment (the provider is busy, broken or not reached),
 * or the setup (key, allowance, URL, model), which only its owner can change.
 */
export type Cause = 'texts' | 'moment' | 'setup'

export function causeOf(error: unknown): Cause {
  if (!(error instanceof ProviderError)) return error instanceof ApiError ? 'setup' : 'moment'
  if (error.fault === 'denied' || error.fault === 'exhausted') return 'setup'
  // A reply of status 200 that is no answer says nothing of the texts.
  return error.fault === 'refused' && error.upstream !== 200 ? 'texts' : 'moment'
}

/** What may be said of a failure: the provider's words, which hold no secrets. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.message
  console.error('embedding failed', reasonOf(error))
  return 'The embedding model did not answer.'
}

/** The first and the longest pause, in milliseconds. */
const PAUSES: Record<Exclude<Cause, 'texts'>, readonly [number, number]> = {
  moment: [1_000, 300_000],
  setup: [30_000, 3_600_000],
}

/** No provider has a collection wait for longer. */
const LONGEST_MS = 3_600_000

/**
 * How long to leave a provider alone: exponential, half of it random so that collections do not come back
 * together, and never sooner than it asked.
 * @param failures how many came before this one, in a row
 * @returns milliseconds
 */
export function pauseAfter(error: unknown, failures: number, random: () => number = Math.random): number {
  const [first, longest] = PAUSES[causeOf(error) === 'setup' ? 'setup' : 'moment']
  const whole = Math.min(longest, first * 2 ** failures)
  const asked = error instanceof ProviderError ? (error.retryAfterMs ?? 0) : 0
  return Math.min(LONGEST_MS, Math.max(asked, whole / 2 + (whole / 2) * random()))
}
