/** How an answer came about, for whoever debugs it: kept beside the turn, and never holding a key. */
import { ApiError } from '../errors'
import type { ChatMessage, FailedAttempt, GenerationRequest, LanguageModel } from '../models/language-model'
import { isPaid, ProviderError } from '../models/provider-error'
import type { Hit, SearchParameters } from '../search/types'
import type { CutDocument } from './events'
import { type Generated, generate, type TokenUsage, usageOfPart } from './generate'
import type { TurnPorts } from './ports'
import { byteLength } from './serialise'

export interface TurnTrace {
  question: string
  /** what was searched and answered, where it is not the question as it was asked */
  standalone?: string
  searches: SearchTrace[]
  calls: CallTrace[]
  /** what could be asked next, where anything was suggested */
  followups?: string[]
  /** the conversation whose answer to the same request this turn has: nothing was searched or called for it */
  copy_of?: string
  /** what did not fit into the prompt whole */
  cut?: CutDocument[]
  /** true where the whole was too long to be kept: texts in it end early */
  shortened?: true
}

/** A search as it was run. Times in milliseconds, `started` since the turn began. */
export interface SearchTrace {
  /** name of the collection, where the search got so far */
  collection?: string
  /** with `q`: the question that this search was given */
  params: SearchParameters
  found?: number
  /** best first */
  hits?: HitTrace[]
  error?: { status: number; message: string }
  started: number
  took: number
}

export interface HitTrace {
  id?: string
  text_match?: number
  vector_distance?: number
  /** rank fusion's */
  score?: number
}

/** A call to the language model. */
export interface CallTrace {
  purpose: GenerationRequest['purpose']
  /** the one that answered, or that was to */
  model: string
  /** of its conversation model, where that is not the one that was asked: its tokens are charged to this one */
  model_id?: string
  /** attempts that came to nothing before it, retries and other models in their order */
  failed?: FailedTrace[]
  /** the messages exactly as they were sent */
  prompt: ChatMessage[]
  /** what it said; for an `answer` that was finished it stands in the turn */
  text?: string
  finish_reason?: string
  input_tokens: number
  output_tokens: number
  estimated?: true
  error?: string
  started: number
  first_token?: number
  took: number
}

/** An attempt that came to nothing. Its tokens are there where it has to be paid for all the same. */
export interface FailedTrace {
  model: string
  error: string
  /** of its conversation model */
  model_id?: string
  input_tokens?: number
  output_tokens?: number
}

/** What a turn works with: its ports, with every search and every call written down. */
export interface TracedPorts extends Omit<TurnPorts, 'model' | 'rewriter'> {
  /** undefined: the model itself writes what is written beside the answer */
  hasRewriter(): Promise<boolean>

  /** @throws ApiError as generate.ts does */
  generate(
    request: GenerationRequest,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ): Promise<Generated>
}

export class Tracer {
  readonly trace: TurnTrace
  readonly ports: TracedPorts
  /** set when the answer is complete and becomes history: from then on the turn cannot be stopped */
  committed = false
  readonly #ports: TurnPorts
  readonly #started: number
  #writing: ReturnType<TurnPorts['rewriter']> | undefined
  /** what the calls that are under way have used so far */
  readonly #running = new Map<CallTrace, () => TokenUsage>()

  constructor(ports: TurnPorts, question: string) {
    this.trace = { question, searches: [], calls: [] }
    this.#ports = ports
    this.#started = ports.now()
    this.ports = {
      search: (...search) => this.#search(...search),
      generate: (request, signal, onText) => this.#generate(request, signal, onText),
      hasRewriter: async () => (await this.#rewriter()) !== undefined,
      schema: (objectId) => ports.schema(objectId),
      messages: (bytes) => ports.messages(bytes),
      ttls: (ids) => ports.ttls(ids),
      store: (said, finished) => ports.store(said, finished),
      emit: (event) => ports.emit(event),
      now: () => ports.now(),
    }
  }

  /** What the turn has spent so far, by model. @param asked the model that was asked */
  spending(asked: string): [Spending, ...Spending[]] {
    const calls = this.trace.calls.map((call) => {
      const usage = this.#running.get(call)?.()
      return usage ? { ...call, input_tokens: usage.inputTokens, output_tokens: usage.outputTokens } : call
    })
    return spendingOf({ ...this.trace, calls }, asked)
  }

  #rewriter(): ReturnType<TurnPorts['rewriter']> {
    this.#writing ??= this.#ports.rewriter()
    return this.#writing
  }

  #elapsed(): number {
    return this.#ports.now() - this.#started
  }

  /** What is written beside the answer may have a model of its own; the request's settings are for its answer. */
  async #modelFor(purpose: GenerationRequest['purpose']): Promise<LanguageModel> {
    const ports = this.#ports
    if (purpose === 'answer') return ports.answerer ?? ports.model
    return ((purpose === 'standalone' || purpose === 'followups') && (await this.#rewriter())) || ports.model
  }

  async #search(...search: Parameters<TurnPorts['search']>): ReturnType<TurnPorts['search']> {
    const [, params] = search
    const started = this.#elapsed()
    const entry: SearchTrace = { params: withoutKeys(params), started, took: 0 }
    this.trace.searches.push(entry)
    try {
      const outcome = await this.#ports.search(...search)
      if (outcome.ok) {
        const { found, hits = [], grouped_hits = [], request_params } = outcome.value
        entry.collection = request_params?.collection_name
        entry.found = found
        entry.hits = [...hits, ...grouped_hits.flatMap((group) => group.hits)].map(hitTrace)
      } else {
        entry.error = { status: outcome.error.status, message: outcome.error.message }
      }
      return outcome
    } finally {
      entry.took = this.#elapsed() - started
    }
  }

  async #generate(
    request: GenerationRequest,
    signal: AbortSignal,
    onText: (text: string) => void = () => {},
  ): Promise<Generated> {
    const started = this.#elapsed()
    const model = await this.#modelFor(request.purpose)
    const entry: CallTrace = {
      purpose: request.purpose,
      model: model.name,
      prompt: request.messages,
      input_tokens: 0,
      output_tokens: 0,
      started,
      took: 0,
    }
    this.trace.calls.push(entry)
    const pieces: string[] = []
    let thoughts = 0
    let reported: TokenUsage | undefined
    const soFar = () => reported ?? usageOfPart(request, byteLength(pieces.join('')) + thoughts)
    this.#running.set(entry, soFar)
    try {
      const generated = await generate(model, request, signal, {
        onText: (text) => {
          entry.first_token ??= this.#elapsed()
          pieces.push(text)
          onText(text)
        },
        onThought: (text) => {
          thoughts += byteLength(text)
        },
        onUsage: (usage) => {
          reported = usage
        },
        onModel: ({ name, id }) => {
          entry.model = name
          entry.model_id = id
        },
        onFailed: (attempt) => {
          entry.failed = [...(entry.failed ?? []), failedTrace(request, attempt)]
        },
      })
      entry.finish_reason = generated.finish
      if (request.purpose !== 'answer') entry.text = generated.text
      count(entry, generated.usage)
      return generated
    } catch (error) {
      entry.error = error instanceof ApiError ? error.message : 'The call did not come to its end.'
      entry.text = pieces.join('')
      // What was sent and said before it broke off has to be paid for; what a provider refused has not.
      const isStopped = signal.aborted && !(error instanceof ProviderError)
      const isOwed = reported !== undefined || pieces.length > 0 || thoughts > 0
      if (isOwed || isStopped || isPaid(error)) count(entry, soFar())
      throw error
    } finally {
      this.#running.delete(entry)
      entry.took = this.#elapsed() - started
    }
  }
}

/** @returns what the trace tells of it, and what it cost: a prompt that was taken, and what came until it failed */
function failedTrace(request: GenerationRequest, { model, id, error, received }: FailedAttempt): FailedTrace {
  if (id === undefined || received === undefined) return { model, error }
  const { inputTokens, outputTokens } = usageOfPart(request, received)
  return { model, error, model_id: id, input_tokens: inputTokens, output_tokens: outputTokens }
}

/** Tokens that a conversation model spent. */
export interface Spending {
  modelId: string
  inputTokens: number
  outputTokens: number
}

/**
 * All that a turn has spent, on calls that failed too, by model.
 * @param asked the model that was asked, which comes first, even where others did all the work
 */
export function spendingOf({ calls }: TurnTrace, asked: string): [Spending, ...Spending[]] {
  const first: Spending = { modelId: asked, inputTokens: 0, outputTokens: 0 }
  const byModel = new Map([[asked, first]])
  const spent = calls.flatMap((call) => [...(call.failed ?? []), call])
  for (const { model_id: modelId = asked, input_tokens = 0, output_tokens = 0 } of spent) {
    const sum = byModel.get(modelId) ?? { modelId, inputTokens: 0, outputTokens: 0 }
    sum.inputTokens += input_tokens
    sum.outputTokens += output_tokens
    byModel.set(modelId, sum)
  }
  byModel.delete(asked)
  return [first, ...byModel.values()]
}

// Protocols strip their own keys off a search; a key under any other name has no business here either.
const withoutKeys = (params: SearchParameters): SearchParameters =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !/api[-_]?key|secret|token$/i.test(name)))

function count(entry: CallTrace, usage: TokenUsage): void {
  entry.input_tokens = usage.inputTokens
  entry.output_tokens = usage.outputTokens
  if (usage.estimated) entry.estimated = true
}

const hitTrace = (hit: Hit): HitTrace => ({
  ...(typeof hit.document.id === 'string' && { id: hit.document.id }),
  ...(hit.text_match !== undefined && { text_match: hit.text_match }),
  ...(hit.vector_distance !== undefined && { vector_distance: hit.vector_distance }),
  ...(hit.hybrid_search_info !== undefined && { score: hit.hybrid_search_info.rank_fusion_score }),
})
