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
  /** who comes after the first, in this order; asked for when they are needed */
  others?: () => Promise<Candidate[]>
  /** whether a fault of the first is one for the others; by default one that another provider could cure */
  cures?: (error: unknown) => boolean
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
  { others = async () => [], cures = isCurable, clock = systemClock }: Resilience,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const begun = { value: false }
  let failure: unknown
  try {
    return yield* persist(first, clock, request, signal, begun)
  } catch (error) {
    if (begun.value || signal.aborted || !cures(error)) throw error
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
