/** What a failed call to an embedding model says about the next one. */
import { ApiError } from '../../errors'
import { ProviderError } from '../../models/provider-error'

/**
 * Where the fault lies: in the texts that were sent, in the moment (the provider is busy, broken or not reached),
 * or in the setup (key, URL, model), which only its owner can change.
 */
export type Fault = 'texts' | 'moment' | 'setup'

const TEXTS = new Set([400, 413, 422])
const MOMENT = new Set([200, 408, 409, 425, 429])

export function faultOf(error: unknown): Fault {
  if (error instanceof ProviderError) {
    const { upstream } = error
    if (upstream === undefined || upstream >= 500 || MOMENT.has(upstream)) return 'moment'
    return TEXTS.has(upstream) ? 'texts' : 'setup'
  }
  return error instanceof ApiError ? 'setup' : 'moment'
}

/** What may be said of a failure: the provider's words, which hold no secrets. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.message
  console.error('embedding failed', error)
  return 'The embedding model did not answer.'
}

/** The first and the longest pause, in milliseconds. */
const PAUSES: Record<'moment' | 'setup', readonly [number, number]> = {
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
  const [first, longest] = PAUSES[faultOf(error) === 'setup' ? 'setup' : 'moment']
  const whole = Math.min(longest, first * 2 ** failures)
  const asked = error instanceof ProviderError ? (error.retryAfterMs ?? 0) : 0
  return Math.min(LONGEST_MS, Math.max(asked, whole / 2 + (whole / 2) * random()))
}
