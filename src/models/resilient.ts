/**
 * Retries a model after a passing fault, then tries other models, until the first piece of a reply. After that
 * nothing is repeated: the reply is charged, and somebody may have read part of it.
 */
import { ApiError } from '../errors'
import type { Delta, FailedAttempt, GenerationRequest, LanguageModel } from './language-model'
import { isPaid } from './provider-error'
import { type Clock, isCurable, nextWait, systemClock } from './retry'

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
