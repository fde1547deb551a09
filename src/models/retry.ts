/** When a provider that failed is asked again: pure but for the clock that it is given. */
import { ProviderError, passes } from './provider-error'

/** Time, waiting and chance, so that tests can have their own. */
export interface Clock {
  /** milliseconds since some moment */
  now(): number
  /** @throws the signal's reason when it aborts */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** from 0 to 1, 1 exclusive */
  random(): number
}

export const MOST_ATTEMPTS = 3

/** Milliseconds after the first attempt began in which the last one has to begin. */
export const RETRY_BUDGET = 5_000

/** The wait before the second attempt, in milliseconds, before chance has cut it. It doubles. */
const FIRST_WAIT = 500

/**
 * Whether the same provider may be asked again. One that answered with a 4xx may not, but for a rate limit that says
 * when it ends: whoever guesses that moment runs into the limit again, and many of them keep it from ending.
 */
export function isRetriable(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false
  if (error.fault === 'limited') return error.retryAfterMs !== undefined
  return error.fault === 'unreached' || error.fault === 'busy'
}

/** Whether another provider may succeed. It has its own key and models, so that is also so where this one denied access. */
export const isCurable = (error: unknown): boolean =>
  passes(error) || (error instanceof ProviderError && error.fault === 'denied')

/**
 * Milliseconds to wait before an attempt: what the provider asked for and a little by chance, else a back-off of
 * which half is chance, so that callers who failed together do not come back together.
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
 * @param patience milliseconds that the model may be silent for
 * @returns undefined when there is to be no other
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
 * Work that is done again after a passing fault.
 * @param patience milliseconds that the model may be silent for
 * @throws what the last attempt threw
 */
export async function withRetries<T>(
  work: () => Promise<T>,
  patience: number,
  clock: Clock = systemClock,
): Promise<T> {
  const started = clock.now()
  for (let attempts = 1; ; attempts++) {
    try {
      return await work()
    } catch (error) {
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
