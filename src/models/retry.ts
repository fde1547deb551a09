/** When to retry a failed provider. Pure, except for the clock it is given. */
import { ProviderError, passes } from './provider-error'

/** Time, waiting and randomness, replaceable in tests. */
export interface Clock {
  /** milliseconds since some moment */
  now(): number
  /** @throws the signal's reason when it aborts */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** from 0 to 1, 1 exclusive */
  random(): number
}

export const MOST_ATTEMPTS = 3

/** The last attempt has to begin within this many milliseconds after the first. */
export const RETRY_BUDGET = 5_000

/** Milliseconds before the second attempt, before jitter. It doubles with each attempt. */
const FIRST_WAIT = 500

/**
 * Whether the same provider may be asked again. Not after a 4xx, except for a rate limit that says when it ends: an
 * early guess hits the limit again, and repeated guesses can keep the limit in force.
 */
export function isRetriable(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false
  if (error.fault === 'limited') return error.retryAfterMs !== undefined
  return error.fault === 'unreached' || error.fault === 'busy'
}

/** Whether another provider may succeed. Its key and models are its own, so `denied` counts too. */
export const isCurable = (error: unknown): boolean =>
  passes(error) || (error instanceof ProviderError && error.fault === 'denied')

/**
 * Milliseconds before an attempt: what the provider asked for plus some jitter, or a back-off of which half is
 * jitter, so that callers who failed together do not retry together.
 * @param attempt 2 for the second
 */
export function waitBefore(attempt: number, retryAfterMs: number | undefined, random: number): number {
  if (retryAfterMs !== undefined) return retryAfterMs + (random * FIRST_WAIT) / 2
  const step = FIRST_WAIT * 2 ** (attempt - 2)
  return step / 2 + (random * step) / 2
}

/**
 * How long to wait for the next attempt.
 * @param attempts made so far
 * @param elapsed milliseconds since the first one began
 * @param patience milliseconds of silence that the model is allowed
 * @returns undefined for no further attempt
 */
export function nextWait(
  error: unknown,
  attempts: number,
  elapsed: number,
  patience: number,
  random: number,
): number | undefined {
  if (!isRetriable(error) || attempts >= MOST_ATTEMPTS) return undefined
  const wait = waitBefore(attempts + 1, error.retryAfterMs, random)
  return elapsed + wait < Math.min(RETRY_BUDGET, patience) ? wait : undefined
}

/**
 * Repeats work after passing faults.
 * @param patience milliseconds of silence that the model is allowed
 * @param most attempts, MOST_ATTEMPTS at most
 * @throws what the last attempt threw
 */
export async function withRetries<T>(
  work: () => Promise<T>,
  patience: number,
  clock: Clock = systemClock,
  most = MOST_ATTEMPTS,
): Promise<T> {
  const started = clock.now()
  for (let attempts = 1; ; attempts++) {
    try {
      return await work()
    } catch (error) {
      if (attempts >= most) throw error
      const wait = nextWait(error, attempts, clock.now() - started, patience, clock.random())
      if (wait === undefined) throw error
      await clock.wait(wait)
    }
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  wait: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, milliseconds)
      if (signal?.aborted) stop()
      else signal?.addEventListener('abort', stop, { once: true })
    }),
  random: () => Math.random(),
}
