/** What a turn reaches outside of itself, and the record of each search and each model call for operators. */
import { ApiError, coded, type Outcome } from '../errors'
import type { Part, ToolCallPart, ToolResultPart } from '../lib/parts'
import {
  type FailedAttempt,
  type FinishReason,
  type GenerationRequest,
  type LanguageModel,
  type Verdict,
  verdictOf,
} from '../models/language-model'
import { isPaid, ProviderError } from '../models/provider-error'
import type {
  CollectionPlace,
  CollectionSchema,
  Hit,
  RecentMessages,
  SearchParameters,
  SearchResult,
  SearchScope,
} from '../search/types'
import type { CallTrace, DoneEvent, FailedTrace, HitTrace, LogEventBody, SearchTrace } from './events'
import { byteLength } from './prompt'

// =============================================================================
// What a turn needs from outside. The Conversation object provides these ports; tests provide their own.

export interface TurnPorts {
  model: LanguageModel
  /**
   * the same model with the request's own settings, which apply to its answer only; absent if there are none
   */
  answerer?: LanguageModel | undefined
  /** the model that writes standalone questions and suggestions; undefined: `model` writes them */
  rewriter(): Promise<LanguageModel | undefined>
  /** @param scope what the search's key may see */
  search(
    place: CollectionPlace,
    params: SearchParameters,
    scope?: SearchScope,
  ): Promise<Outcome<SearchResult>>
  schema(place: CollectionPlace): Promise<Outcome<CollectionSchema>>
  /** Where a collection of this name is now, in case the turn was given a place that is gone. */
  placeOf?(collection: string): Promise<CollectionPlace | undefined>
  /** The result of `messages` for the model's `max_bytes`, if it was read before the turn began. */
  known?: RecentMessages | undefined
  /**
   * The messages of this conversation, oldest first, including expired ones.
   * @param bytes of text after which older messages are left out; undefined: everything
   */
  messages(bytes?: number): Promise<RecentMessages>
  /** ttls of models in seconds, deleted models included; unknown models are left out */
  ttls(modelIds: string[]): Promise<Map<string, number>>
  /**
   * Stores a finished turn: the fold of its events so far and its last one (fold.ts). A failure means that the
   * history refuses it.
   * @param done its last event, emitted once the turn is stored
   * @param now when it ended, in milliseconds since 1970
   */
  store(done: DoneEvent, now: number): Promise<Outcome<void>>
  emit(event: LogEventBody): void
  /** Runs a tool of the server. Never throws, but for a stop: what went wrong is told to the model. Absent: there are none */
  callTool?: ((call: ToolCallPart, signal: AbortSignal) => Promise<ToolResultPart>) | undefined
  /**
   * Called once, when the turn begins. `spent` returns what the turn has spent so far, including calls still
   * running.
   */
  spends?(spent: () => Spending[]): void
  /** milliseconds since 1970 */
  now(): number
}

// =============================================================================
// Reports each search and each model call of a turn, for operators. The events never hold a key.

/** A turn's ports, wrapped so that every search and every call is recorded. */
export interface TracedPorts extends Omit<TurnPorts, 'model' | 'rewriter'> {
  /** false: the model itself writes standalone questions and suggestions */
  hasRewriter(): Promise<boolean>

  /** @throws ApiError as `generate` does */
  generate(
    request: GenerationRequest,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ): Promise<Generated>
}

/** A call that is running. */
interface Running {
  /** what it has used so far */
  usage: () => TokenUsage
  /** its text so far */
  text: () => string
}

const UNFINISHED = 'The call did not come to its end.'

export class Tracer {
  readonly ports: TracedPorts
  /** set once the answer is complete and being stored: the turn can no longer be stopped */
  committed = false
  readonly #ports: TurnPorts
  readonly #started: number
  #writing: ReturnType<TurnPorts['rewriter']> | undefined
  /** all calls so far */
  readonly #calls: CallTrace[] = []
  /** calls still running */
  readonly #running = new Map<CallTrace, Running>()
  /** searches so far */
  #searches = 0
  /** searches still running, by their place among the turn's */
  readonly #searching = new Map<number, SearchTrace>()
  /** true: report nothing more */
  #closed = false

  constructor(ports: TurnPorts) {
    this.#ports = ports
    this.#started = ports.now()
    this.ports = {
      search: (...search) => this.#search(...search),
      generate: (request, signal, onText) => this.#generate(request, signal, onText),
      hasRewriter: async () => (await this.#rewriter()) !== undefined,
      schema: (place) => ports.schema(place),
      placeOf: async (collection) => ports.placeOf?.(collection),
      known: ports.known,
      messages: (bytes) => ports.messages(bytes),
      ttls: (ids) => ports.ttls(ids),
      store: (done, now) => ports.store(done, now),
      emit: (event) => ports.emit(event),
      callTool: ports.callTool && ((...call) => ports.callTool!(...call)),
      now: () => ports.now(),
    }
  }

  /** Records a call made for the turn before it began. */
  add(call: CallTrace): void {
    this.#ports.emit({ type: 'call', index: this.#calls.push(call) - 1, call })
  }

  /** What the turn has spent so far, by model. @param asked the model that was asked */
  spending(asked: string): [Spending, ...Spending[]] {
    return spendingOf(this.#counted(), asked)
  }

  /** The sum of what it has spent. */
  get usage(): TokenUsage {
    return sumOf(attemptsOf(owedOf(this.#counted())))
  }

  /** The calls so far, running ones with what they have used. */
  #counted(): CallTrace[] {
    return this.#calls.map((call) => {
      const usage = this.#running.get(call)?.usage()
      const counted = { ...call }
      if (usage) count(counted, usage)
      return counted
    })
  }

  /** Milliseconds since the turn began to run. */
  elapsed(): number {
    return this.#ports.now() - this.#started
  }

  /**
   * Reports the searches and calls still running, as far as they got, because the turn ends before they do. The search of a
   * question's own wording may be one of them, where its rewritten form was found first.
   */
  close(): void {
    for (const [index, search] of this.#searching) {
      const entry = { ...search, took: this.elapsed() - search.started }
      this.#ports.emit({ type: 'search', index, search: entry })
    }
    for (const [call, { usage, text }] of this.#running) {
      const entry = { ...call, text: text(), error: UNFINISHED, took: this.elapsed() - call.started }
      count(entry, usage())
      this.#ports.emit({ type: 'call', index: this.#calls.indexOf(call), call: entry })
    }
    this.#closed = true
  }

  #rewriter(): ReturnType<TurnPorts['rewriter']> {
    this.#writing ??= this.#ports.rewriter()
    return this.#writing
  }

  /** Standalone questions, searches and suggestions may have their own model. The request's settings apply to the answer only. */
  async #modelFor(purpose: GenerationRequest['purpose']): Promise<LanguageModel> {
    const ports = this.#ports
    if (purpose === 'answer' || purpose === 'task') return ports.answerer ?? ports.model
    const isAside = purpose === 'standalone' || purpose === 'followups'
    return (isAside && (await this.#rewriter())) || ports.model
  }

  async #search(...search: Parameters<TurnPorts['search']>): ReturnType<TurnPorts['search']> {
    const [{ engine }, params] = search
    const started = this.elapsed()
    const index = this.#searches++
    const entry: SearchTrace = {
      ...(engine !== 'object' && { engine }),
      params: withoutKeys(params),
      started,
      took: 0,
    }
    this.#searching.set(index, entry)
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
      entry.took = this.elapsed() - started
      this.#searching.delete(index)
      if (!this.#closed) this.#ports.emit({ type: 'search', index, search: entry })
    }
  }

  async #generate(
    request: GenerationRequest,
    signal: AbortSignal,
    onText: (text: string) => void = () => {},
  ): Promise<Generated> {
    const started = this.elapsed()
    const model = await this.#modelFor(request.purpose)
    const entry: CallTrace = {
      purpose: request.purpose,
      model: model.name,
      prompt: request.messages.map(({ pictures: _, ...message }) => message),
      input_tokens: 0,
      output_tokens: 0,
      started,
      took: 0,
    }
    const index = this.#calls.push(entry) - 1
    const pieces: string[] = []
    let thoughts = 0
    let reported: TokenUsage | undefined
    const soFar = () => reported ?? usageOfPart(request, byteLength(pieces.join('')) + thoughts)
    this.#running.set(entry, { usage: soFar, text: () => pieces.join('') })
    try {
      const generated = await generate(model, request, signal, {
        onText: (text) => {
          entry.first_token ??= this.elapsed()
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
      if (request.purpose !== 'answer' || request.keepsText) entry.text = generated.text
      if (generated.calls) entry.tools = generated.calls.map(({ name }) => name)
      count(entry, generated.usage)
      return generated
    } catch (error) {
      entry.error = error instanceof ApiError ? error.message : UNFINISHED
      entry.text = pieces.join('')
      // What was sent and received before the call broke off must be paid for. A call that the provider refused
      // costs nothing.
      const isStopped = signal.aborted && !(error instanceof ProviderError)
      const isOwed = reported !== undefined || pieces.length > 0 || thoughts > 0
      if (isOwed || isStopped || isPaid(error)) count(entry, soFar())
      throw error
    } finally {
      entry.took = this.elapsed() - started
      this.#running.delete(entry)
      if (!this.#closed) this.#ports.emit({ type: 'call', index, call: entry })
    }
  }
}

/**
 * @returns the trace of a failed attempt, with its cost if the provider took the prompt: that, and what came
 *   back
 */
function failedTrace(request: GenerationRequest, { model, id, error, received }: FailedAttempt): FailedTrace {
  if (id === undefined || received === undefined) return { model, error }
  const { inputTokens, outputTokens } = usageOfPart(request, received)
  return { model, error, model_id: id, input_tokens: inputTokens, output_tokens: outputTokens }
}

// Protocols strip their own keys off a search. This drops keys under any other name too.
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

// =============================================================================
// One call to a language model: its text and its cost, and what all calls of a turn cost.

export interface Generated {
  text: string
  /** calls of tools that it asks for; absent: none */
  calls?: ToolCallPart[]
  /** of an answer: its text, and the calls of tools and their results on the way to it */
  content?: Part[]
  finish: FinishReason
  usage: TokenUsage
  /** full name of the model that wrote the text */
  model: string
  verdict: Verdict
}

/** Callbacks while a call runs. */
export interface Progress {
  /** called with each piece of text as it arrives */
  onText?: (text: string) => void
  /** called with each piece of the model's reasoning, which is paid for and shown to nobody */
  onThought?: (text: string) => void
  /** called with the cost that the provider reports */
  onUsage?: (usage: TokenUsage) => void
  /** called before the first piece if another model answers instead of the one asked */
  onModel?: (model: { name: string; id: string }) => void
  /** called for an attempt that failed before its first piece and is followed by another */
  onFailed?: (attempt: FailedAttempt) => void
}

export interface TokenUsage {
  inputTokens: number
  outputTokens: number
  estimated: boolean
}

/** Characters of an answer. A row of history can hold more; this leaves room to spare. */
const LONGEST_ANSWER = 500_000

// About right for English with the common tokenizers. Wherever the figure is shown, it is flagged as an
// estimate.
const BYTES_A_TOKEN = 4

/** @throws ApiError for any fault of the provider, including an answer without text */
export async function generate(
  model: LanguageModel,
  request: GenerationRequest,
  signal: AbortSignal,
  { onText, onThought, onUsage, onModel, onFailed }: Progress = {},
): Promise<Generated> {
  const pieces: string[] = []
  let length = 0
  let finish: FinishReason | undefined
  let usage: TokenUsage | undefined
  let verdict: Verdict = {}
  let thoughts = 0
  const calls: ToolCallPart[] = []
  let { name } = model
  for await (const delta of model.generate(request, signal)) {
    switch (delta.type) {
      case 'text':
        length += delta.text.length
        if (length > LONGEST_ANSWER) {
          throw coded(
            'answer_too_long',
            400,
            `The answer exceeds the maximum of ${LONGEST_ANSWER} characters.`,
          )
        }
        pieces.push(delta.text)
        onText?.(delta.text)
        break
      case 'usage':
        usage = { inputTokens: delta.inputTokens, outputTokens: delta.outputTokens, estimated: false }
        onUsage?.(usage)
        break
      case 'reasoning':
        thoughts += byteLength(delta.text)
        onThought?.(delta.text)
        break
      case 'call':
        calls.push(delta.call)
        thoughts += byteLength(delta.call.arguments)
        break
      case 'finish':
        finish = delta.reason
        verdict = verdictOf(delta)
        break
      case 'model':
        name = delta.name
        onModel?.(delta)
        break
      case 'failed':
        onFailed?.(delta)
        break
    }
  }
  const text = pieces.join('')
  if (!finish || (text.trim() === '' && calls.length === 0)) {
    throw malformedBy(name)
  }
  return {
    text,
    ...(calls.length > 0 && { calls }),
    finish,
    usage: usage ?? usageOfPart(request, byteLength(text) + thoughts),
    model: name,
    verdict,
  }
}

/** The error for an answer without text. @param name full name of the model; only the operator may see it */
export const malformedBy = (name: string): ApiError =>
  new ProviderError(400, `Got malformed response from ${name}.`, { upstream: 200, fault: 'empty' })

/**
 * Estimates what a call has used so far from the length of its texts.
 * @param received bytes of its answer and its reasoning
 */
export const usageOfPart = (request: GenerationRequest, received: number): TokenUsage => ({
  inputTokens: tokens(
    request.messages.reduce(
      (sum, { content, results = [] }) =>
        sum + byteLength(content) + results.reduce((bytes, { text }) => bytes + byteLength(text), 0),
      0,
    ),
  ),
  outputTokens: tokens(received),
  estimated: true,
})

const tokens = (bytes: number): number => Math.ceil(bytes / BYTES_A_TOKEN)

// What a turn spends on language models.

/** Tokens that one conversation model spent. */
export interface Spending {
  modelId: string
  inputTokens: number
  outputTokens: number
}

/** Whether nothing has been spent. */
export const isNothing = (spent: Spending[]): boolean =>
  spent.every(({ inputTokens, outputTokens }) => inputTokens + outputTokens === 0)

/** Calls, and before each the attempts that failed in its place. What those cost is an estimate. */
export const attemptsOf = (calls: readonly CallTrace[]) =>
  calls.flatMap((call) => [
    ...(call.failed ?? []).map((attempt) => ({ ...attempt, estimated: (attempt.input_tokens ?? 0) > 0 })),
    call,
  ])

type Tokens = { input_tokens?: number; output_tokens?: number; estimated?: boolean }

/** @returns whether any part is an estimate, too */
export const sumOf = (attempts: readonly Tokens[]) =>
  attempts.reduce<TokenUsage>(
    (sum, { input_tokens = 0, output_tokens = 0, estimated }) => ({
      inputTokens: sum.inputTokens + input_tokens,
      outputTokens: sum.outputTokens + output_tokens,
      estimated: sum.estimated || estimated === true,
    }),
    { inputTokens: 0, outputTokens: 0, estimated: false },
  )

/** The calls that a turn pays for: not those that were charged before it began. */
const owedOf = (calls: readonly CallTrace[]): CallTrace[] => calls.filter(({ charged }) => !charged)

/**
 * Sums what a turn has spent, by model, including failed calls.
 * @param asked the model that was asked; it comes first, even if others did all the work
 */
export function spendingOf(calls: readonly CallTrace[], asked: string): [Spending, ...Spending[]] {
  const attempts = attemptsOf(owedOf(calls))
  const spentOn = (modelId: string): Spending => {
    const { inputTokens, outputTokens } = sumOf(
      attempts.filter(({ model_id = asked }) => model_id === modelId),
    )
    return { modelId, inputTokens, outputTokens }
  }
  const others = new Set(attempts.map(({ model_id = asked }) => model_id))
  others.delete(asked)
  return [spentOn(asked), ...[...others].map(spentOn)]
}
