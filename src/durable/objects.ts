/** What Durable Objects share: where they are, calls that are sent again, and the one alarm. */

import { ApiError, logFailure, reasonOf, storageFull, type Trail } from '../errors'
import { backoff, jittered } from '../lib/waiting'

// =============================================================================
// Hands out Durable Objects. Nothing else asks a namespace for one, so all of them live where the deployment says:
// `JURISDICTION` keeps them inside a region by law, `REGION` asks for them near its users (docs/regions.md).

/**
 * An object's id. It depends on the jurisdiction: with another one, the same name is another object without data.
 * @param env the Worker's; `JURISDICTION` is empty for none
 * @throws the platform's error for a jurisdiction that it does not know
 */
export const objectId = (
  namespace: DurableObjectNamespace,
  env: Pick<Cloudflare.Env, 'JURISDICTION'>,
  name: string,
): DurableObjectId => within(namespace, env).idFromName(name)

/**
 * Makes stubs of one object. Making a stub makes no call.
 * @param env the Worker's; `REGION` is a hint that counts only for the first call ever to an object
 */
export function objectStubs<Rpc>(
  namespace: DurableObjectNamespace,
  env: Pick<Cloudflare.Env, 'JURISDICTION' | 'REGION'>,
  name: string,
): () => Rpc {
  const id = objectId(namespace, env, name)
  // A jurisdiction decides the place, and the platform refuses a hint beside it.
  const options = env.REGION && !env.JURISDICTION ? { locationHint: env.REGION } : undefined
  return () =>
    within(namespace, env).get(id, options as DurableObjectNamespaceGetDurableObjectOptions) as unknown as Rpc
}

const within = (
  namespace: DurableObjectNamespace,
  { JURISDICTION }: Pick<Cloudflare.Env, 'JURISDICTION'>,
): DurableObjectNamespace =>
  JURISDICTION ? namespace.jurisdiction(JURISDICTION as DurableObjectJurisdiction) : namespace

/**
 * The name of the object that runs. All objects here are named. An object whose id has no name was reached by a
 * version of the platform that passes none on, or by its id: it must not write under another name.
 * @throws Error without a name
 */
export function nameOf({ name }: DurableObjectId): string {
  if (name === undefined) throw new Error('This Durable Object was called without its name.')
  return name
}

// =============================================================================
// Retries calls to a Durable Object. During a deployment, or while an object moves to another machine, a call fails
// that would succeed a moment later.
//
// The platform marks its errors with `retryable` and `overloaded`
// (https://developers.cloudflare.com/durable-objects/best-practices/error-handling). A stub that threw stays
// broken, so each attempt after a failure gets a new one.

/** Whether to retry a call that may already have run. `once`: a second run would do or return something else. */
type Repetition = 'repeat' | 'once'

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

// =============================================================================
// A Durable Object has one alarm. All its background work shares it. The alarm is only written when it has to move, because
// each write costs a row.

/** An alarm further ahead is set in steps, because the platform does not take every date. */
const FARTHEST_MS = 30 * 86_400_000
const SOONEST_MS = 2

export class Alarm {
  /** when it fires, if known; undefined when the object has just woken */
  #at: number | undefined

  /** @param trail whose alarm it is, for the log */
  constructor(
    private readonly storage: DurableObjectStorage,
    private readonly trail?: Trail,
  ) {}

  /**
   * @param at milliseconds since 1970
   * @param options.orSooner keeps an alarm that fires sooner
   */
  set(at: number, { orSooner = false }: { orSooner?: boolean } = {}): void {
    // workerd drops an alarm set for the same millisecond as the one now firing, and alarms can fire 1 ms early. So never set
    // one sooner than 2 ms ahead.
    const now = Date.now()
    const near = Math.min(Math.max(Math.ceil(at), now + SOONEST_MS), now + FARTHEST_MS)
    if (this.#at !== undefined && (this.#at === near || (orSooner && this.#at <= near))) return
    this.#at = near
    this.storage.setAlarm(near).catch((error) => {
      // Forget it, so that the next caller sets it again.
      this.#at = undefined
      logFailure('the alarm could not be set', error, this.trail)
    })
  }

  /** Makes it fire within this many milliseconds. An alarm from before the object slept can be moved, but not past that. */
  within(milliseconds: number): void {
    this.set(Date.now() + milliseconds, { orSooner: true })
  }

  /** It has fired or was deleted: no alarm is set. */
  rang(): void {
    this.#at = undefined
  }
}
