/**
 * Retries calls to a Durable Object. During a deployment, or while an object moves to another machine, a call fails
 * that would succeed a moment later.
 *
 * The platform marks its errors with `retryable` and `overloaded`
 * (https://developers.cloudflare.com/durable-objects/best-practices/error-handling). A stub that threw stays
 * broken, so each attempt after a failure gets a new one.
 */

import { ApiError, logFailure, reasonOf, storageFull } from '../errors'
import { backoff, jittered } from '../lib/waiting'

/** Whether to retry a call that may already have run. `once`: a second run would do or return something else. */
export type Repetition = 'repeat' | 'once'

/** One entry for each method of an object. The type ensures that none is missing. */
export type Repetitions<Rpc> = Readonly<Record<keyof Rpc & string, Repetition>>

/** Attempts of a call, and the wait before the second in milliseconds. The wait doubles each time. */
const MOST_ATTEMPTS = 4
const FIRST_WAIT_MS = 100

/** `Retry-After` in seconds: for an overloaded object, and for one that was moved. */
const OVERLOADED_SECONDS = 5
const LOST_SECONDS = 1

/**
 * A handle on an object. Like a stub, it sends the first attempt of a call before the call returns.
 *
 * Methods throw an ApiError 503 with `retryAfter` if the object is overloaded (never retried), or if every attempt
 * lost its connection. Other errors pass through.
 * @param connect makes a stub; called again after each failure
 */
export function objectCalls<Rpc extends object>(connect: () => Rpc, methods: Repetitions<Rpc>): Rpc {
  let stub: Rpc | undefined
  const call = async (name: keyof Rpc & string, args: unknown[]): Promise<unknown> => {
    for (let failures = 0; ; failures++) {
      stub ??= connect()
      try {
        return await (stub[name] as (...args: unknown[]) => unknown)(...args)
      } catch (error) {
        stub = undefined
        const { retryable, overloaded } = faultOf(error)
        const full = storageFull(error)
        if (full) throw full
        if (OUT_OF_MEMORY.test(reasonOf(error))) {
          logFailure(`an object ran out of memory in ${name}`, error)
          throw outOfMemory()
        }
        if (overloaded) throw busy()
        if (!retryable) throw error
        if (methods[name] === 'once') throw unsure()
        if (failures + 1 === MOST_ATTEMPTS) throw lost()
        await new Promise((resolve) => setTimeout(resolve, jittered(backoff(failures, FIRST_WAIT_MS))))
      }
    }
  }
  return new Proxy({} as Rpc, {
    // Only methods exist here: when a promise resolves to this object, it looks for `then`.
    get: (_, name) =>
      Object.hasOwn(methods, name)
        ? (...args: unknown[]) => call(name as keyof Rpc & string, args)
        : undefined,
  })
}

/** How the platform says that it reset an object for the memory that it took. It marks that as an overload. */
const OUT_OF_MEMORY = /exceeded (?:its |the )?(?:isolate )?memory/i

const faultOf = (error: unknown): { retryable?: boolean; overloaded?: boolean } =>
  typeof error === 'object' && error !== null ? error : {}

const busy = (): ApiError =>
  new ApiError(503, 'Too many requests at once for this data. Try again later.', OVERLOADED_SECONDS)

const outOfMemory = (): ApiError =>
  new ApiError(
    503,
    'This needed more memory than the object of this data has, which was started anew; nothing that was stored is lost. Ask for less at once: smaller pages and imports, fewer facets. If it comes again, divide the collection (docs/limits.md).',
    LOST_SECONDS,
  )

const lost = (): ApiError =>
  new ApiError(503, 'The server was interrupted. Send the request again.', LOST_SECONDS)

const unsure = (): ApiError =>
  new ApiError(
    503,
    'The server was interrupted. What was asked for may have been done: look before you send the request again.',
    LOST_SECONDS,
  )
