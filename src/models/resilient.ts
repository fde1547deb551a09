/**
 * A model that survives its provider: asked again after a passing fault, and then replaced by others, until the
 * first piece of its reply. From then on nothing is repeated: it was paid for, and somebody may have read it.
 */
import { ApiError } from '../errors'
import type { Delta, GenerationRequest, LanguageModel } from './language-model'
import { type Clock, isCurable, nextWait, systemClock } from './retry'

export interface Candidate {
  model: LanguageModel
  /** milliseconds that it may be silent for */
  patience: number
}

export interface Resilience {
  /**
   * Who is asked before the first. Its reply is given on when it is whole, and whatever keeps it from that is a case
   * for the first.
   */
  ahead?: Candidate
  /** who comes after the first, in this order, where another provider could cure its fault; fetched when needed */
  others?: () => Promise<Candidate[]>
  clock?: Clock
}

/**
 * When all fail before their first piece, the error is that of the first: it is the model that was asked for.
 * @returns a model that goes by the name of the first, and says with a `model` delta who answers in its place
 */
export const resilient = (first: Candidate, resilience: Resilience = {}): LanguageModel => ({
  name: first.model.name,
  generate: (request, signal) => generate(first, resilience, request, signal),
})

async function* generate(
  first: Candidate,
  { ahead, others = async () => [], clock = systemClock }: Resilience,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  if (ahead) {
    const said = await whole(ahead, clock, request, signal)
    yield* said
    if (said.at(-1)?.type !== 'failed') return
  }
  const begun = { value: false }
  let failure: unknown
  try {
    return yield* persist(first, clock, request, signal, begun)
  } catch (error) {
    if (begun.value || signal.aborted || !isCurable(error)) throw error
    failure = error
  }
  let failed: Delta = failedAttempt(first, failure)
  for (const candidate of await others()) {
    yield failed
    try {
      return yield* persist(candidate, clock, request, signal, begun, candidate.model.name)
    } catch (error) {
      if (begun.value || signal.aborted) throw error
      failed = failedAttempt(candidate, error)
    }
  }
  throw failure
}

/** All that a model says, or its failed attempts. @throws only when the caller has stopped */
async function whole(
  candidate: Candidate,
  clock: Clock,
  request: GenerationRequest,
  signal: AbortSignal,
): Promise<Delta[]> {
  const said: Delta[] = []
  try {
    const { name } = candidate.model
    for await (const delta of persist(candidate, clock, request, signal, { value: false }, name)) {
      said.push(delta)
    }
    return said
  } catch (error) {
    if (signal.aborted) throw error
    return [...said.filter(({ type }) => type === 'failed'), failedAttempt(candidate, error)]
  }
}

const failedAttempt = ({ model }: Candidate, error: unknown): Delta => ({
  type: 'failed',
  model: model.name,
  error: error instanceof ApiError ? error.message : 'The call did not come to its end.',
})

/** One model, asked again while its faults are passing ones. @param begun set with its first piece */
async function* persist(
  candidate: Candidate,
  clock: Clock,
  request: GenerationRequest,
  signal: AbortSignal,
  begun: { value: boolean },
  standIn?: string,
): AsyncGenerator<Delta> {
  const { model, patience } = candidate
  const started = clock.now()
  for (let attempts = 1; ; attempts++) {
    try {
      for await (const delta of model.generate(request, signal)) {
        if (!begun.value && standIn !== undefined) yield { type: 'model', name: standIn }
        begun.value = true
        yield delta
      }
      return
    } catch (error) {
      if (begun.value || signal.aborted) throw error
      const wait = nextWait(error, attempts, clock.now() - started, patience, clock.random())
      if (wait === undefined) throw error
      yield failedAttempt(candidate, error)
      await clock.wait(wait, signal)
    }
  }
}
