/**
 * Retries a model after a passing fault, then tries other models, until the first piece of a reply. After that
 * nothing is repeated: the reply is charged, and somebody may have read part of it.
 */
import { ApiError } from '../errors'
import type { Delta, FailedAttempt, GenerationRequest, LanguageModel } from './language-model'
import { isPaid, ProviderError, passes } from './provider-error'

export interface Candidate {
  /** of its conversation model */
  id: string
  model: LanguageModel
  /** milliseconds of silence that it is allowed */
  patience: number
}

export interface Resilience {
  /**
   * Asked before the first model. Its reply is passed on only once it is complete. If it fails in any way, the first model is asked.
   */
  ahead?: Candidate
  /** asked in order after the first fails, if another provider may succeed; read when needed */
  others?: () => Promise<Candidate[]>
  clock?: Clock
}

/**
 * If all fail before their first piece, the error is that of the first: the model that was asked for.
 * @returns a model with the name of the first, which emits a `model` delta if another model answers in its place
 */
export const resilient = (first: Candidate, resilience: Resilience = {}): LanguageModel => ({
  name: first.model.name,
  generate: (request, signal) => handOver(open(first, resilience, request, signal)),
})

/** Yields what comes up to the first piece, and returns the rest of the reply. */
type Opening = AsyncGenerator<Delta, AsyncIterator<Delta> | undefined>

/**
 * Yields an opening, then its reply without a generator in between: passing a piece through a generator costs about
 * as much as the piece itself.
 */
function handOver(opening: Opening): AsyncIterableIterator<Delta> {
  let reply: AsyncIterator<Delta> | undefined
  const begin = async (): Promise<IteratorResult<Delta>> => {
    const step = await opening.next()
    if (!step.done) return step
    reply = step.value
    return reply ? reply.next() : { done: true, value: undefined }
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: () => (reply ? reply.next() : begin()),
    async return() {
      await opening.return(undefined)
      await reply?.return?.()
      return { done: true, value: undefined }
    },
  }
}

async function* open(
  first: Candidate,
  { ahead, others = async () => [], clock = systemClock }: Resilience,
  request: GenerationRequest,
  signal: AbortSignal,
): Opening {
  if (ahead) {
    const said = await whole(ahead, clock, request, signal)
    yield* said
    if (said.at(-1)?.type !== 'failed') return undefined
  }
  let failure: unknown
  try {
    return yield* persist(first, clock, request, signal)
  } catch (error) {
    if (signal.aborted || !isCurable(error)) throw error
    failure = error
  }
  let failed: Delta = failedAttempt(first, failure)
  for (const candidate of await others()) {
    yield failed
    try {
      return yield* persist(candidate, clock, request, signal, true)
    } catch (error) {
      if (signal.aborted) throw error
      failed = failedAttempt(candidate, error)
    }
  }
  throw failure
}

/** All deltas of a model, or its failed attempts. @throws only when the caller has stopped */
async function whole(
  candidate: Candidate,
  clock: Clock,
  request: GenerationRequest,
  signal: AbortSignal,
): Promise<Delta[]> {
  const said: Delta[] = []
  let received = 0
  try {
    for await (const delta of handOver(persist(candidate, clock, request, signal, true))) {
      said.push(delta)
      if (delta.type === 'text' || delta.type === 'reasoning') received += byteLength(delta.text)
    }
    return said
  } catch (error) {
    if (signal.aborted) throw error
    return [...said.filter(({ type }) => type === 'failed'), failedAttempt(candidate, error, received)]
  }
}

/** @param received bytes before it failed */
const failedAttempt = ({ id, model }: Candidate, error: unknown, received = 0): FailedAttempt => ({
  type: 'failed',
  model: model.name,
  error: error instanceof ApiError ? error.message : 'The call did not come to its end.',
  ...((received > 0 || isPaid(error)) && { id, received }),
})

const encoder = new TextEncoder()
const byteLength = (text: string): number => encoder.encode(text).length

/**
 * Asks one model, with retries after passing faults, until its first piece.
 * @param standsIn it answers in another model's place, and must emit a `model` delta
 */
async function* persist(
  candidate: Candidate,
  clock: Clock,
  request: GenerationRequest,
  signal: AbortSignal,
  standsIn = false,
): Opening {
  const { id, model, patience } = candidate
  const started = clock.now()
  for (let attempts = 1; ; attempts++) {
    const reply = model.generate(request, signal)[Symbol.asyncIterator]()
    let first: IteratorResult<Delta>
    try {
      first = await reply.next()
    } catch (error) {
      if (signal.aborted) throw error
      const wait = nextWait(error, attempts, clock.now() - started, patience, clock.random())
      if (wait === undefined) throw error
      yield failedAttempt(candidate, error)
      await clock.wait(wait, signal)
      continue
    }
    if (first.done) return undefined
    let handedOver = false
    try {
      if (standsIn) yield { type: 'model', name: model.name, id }
      yield first.value
      handedOver = true
    } finally {
      // A reader who stops at the first piece also ends the call to the provider.
      if (!handedOver) await reply.return?.()
    }
    return reply
  }
}

// =============================================================================
// When to retry a failed provider. Pure, except for the clock it is given.

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

// =============================================================================
// Limits how long a provider may keep its caller waiting: the time without content, and the whole call. Without the
// second limit, a provider that sends a little now and then could prolong a call for ever.

/** Seconds that a call or a turn may take, in addition to the silence that its model is allowed. */
const LONGEST_CALL = 1_800

/** The most seconds that a call or a turn may take. @param silence that its model is allowed, in seconds */
export const overallLimit = (silence: number): number => LONGEST_CALL + silence

export class SilenceWatch {
  readonly #controller = new AbortController()
  readonly #limit: number
  readonly #end: number
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param seconds of silence until `signal` aborts */
  constructor(seconds: number) {
    this.#limit = seconds * 1000
    this.#end = this.#last + overallLimit(seconds) * 1000
    this.#timer = setTimeout(this.#check, this.#limit)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get expired(): boolean {
    return this.#controller.signal.aborted
  }

  /** Records content. Cheap enough for every piece: the timer is not reset, it checks this when it fires. */
  touch = (): void => {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check = (): void => {
    const left = Math.min(this.#last + this.#limit, this.#end) - Date.now()
    if (left > 0) this.#timer = setTimeout(this.#check, left)
    else this.#controller.abort()
  }
}
