/** Reads a provider's reply for all adapters, and decides whether it is an answer. */
import type { ProviderCall } from './call'
import type { Delta, FinishReason } from './language-model'
import { type Sorted, ThoughtFilter } from './thoughts'

const VISIBLE = /\S/
const LONGEST_REFUSAL = 4_000

/** What has been seen of a reply, streamed or whole. */
export class Reply {
  /** whether anything has arrived */
  any = false
  usage: Delta | undefined
  /** the model's words of refusal, apart from its text */
  refusal = ''
  readonly #call: ProviderCall
  readonly #thoughts: ThoughtFilter
  /** whether any of it was answer text */
  #answered = false
  #finish: FinishReason | undefined

  /** @param whole the reply comes in one piece, so nobody waits for its first word */
  constructor(call: ProviderCall, { whole = false } = {}) {
    this.#call = call
    this.#thoughts = new ThoughtFilter(whole || call.startsThinking)
  }

  /** the finish reason; undefined without an end marker */
  get finish(): FinishReason | undefined {
    return this.#finish
  }

  set finish(reason: FinishReason | undefined) {
    this.#finish = reason
    this.#call.finished()
  }

  /** The deltas of a piece: text, reasoning, or both. Anything but text is ignored. */
  *said(piece: unknown, reasoning?: unknown): Generator<Delta> {
    // Some servers write a token that is JSON by itself without quotes.
    const text = typeof piece === 'number' || typeof piece === 'boolean' ? String(piece) : piece
    if (typeof text === 'string' && text !== '') {
      if (VISIBLE.test(text)) this.#call.alive()
      yield* this.#sorted(this.#thoughts.push(text))
    }
    if (typeof reasoning === 'string' && reasoning !== '') {
      if (VISIBLE.test(reasoning)) this.#call.alive()
      yield* this.#sorted(this.#thoughts.apart())
      yield { type: 'reasoning', text: reasoning }
    }
  }

  *#sorted({ text, thoughts }: Sorted): Generator<Delta> {
    if (thoughts !== '') yield { type: 'reasoning', text: thoughts }
    if (text === '') return
    this.#answered = true
    yield { type: 'text', text }
  }

  /** Adds a piece of the model's refusal. */
  refuses(piece: string): void {
    if (VISIBLE.test(piece)) this.#call.alive()
    if (this.refusal.length < LONGEST_REFUSAL) this.refusal += piece
  }

  /**
   * The last deltas: cost and finish reason.
   * @throws ProviderError, with the reason, for a refusal, a reply that broke off, or one without text
   */
  *end(): Generator<Delta> {
    const { any, finish, usage, refusal } = this
    // Text held back from a reply that broke off may be half a tag, or thoughts without their end.
    if (!refusal && !finish) throw any ? this.#call.cut() : this.#call.malformed()
    yield* this.#sorted(this.#thoughts.end())
    // Tokens of a failed reply are charged too.
    if (usage) yield usage
    if (refusal) throw this.#call.failed(`the model refused to answer: ${refusal}`)
    if (!this.#answered) throw withoutText(this.#call, finish!)
    yield { type: 'finish', reason: finish! }
  }
}

/**
 * The error for a reply without text. It depends on the finish reason: a model that only reasoned is not at fault.
 */
function withoutText(call: ProviderCall, finish: FinishReason): Error {
  switch (finish) {
    case 'content_filter':
      return call.failed('a content filter or the model itself withheld the answer')
    case 'length':
      return call.failed(
        'the model reached its limit of tokens before its answer began: raise `max_tokens`',
        'empty',
      )
    default:
      return call.malformed('empty')
  }
}

/** Maps a provider's finish reason; `other` for an unknown one. */
export const finishReasonIn = (known: Record<string, FinishReason>, reason: unknown): FinishReason =>
  typeof reason === 'string' && Object.hasOwn(known, reason) ? known[reason]! : 'other'

/**
 * The cost of a reply; undefined if the provider does not report it.
 * @param cached counts of tokens read from a cache or written to it, if `input` excludes them
 */
export function usageOf(input: unknown, output: unknown, cached: unknown[] = []): Delta | undefined {
  if (!isCount(input) || !isCount(output)) return undefined
  const inputTokens = cached.filter(isCount).reduce((sum, tokens) => sum + tokens, input)
  return { type: 'usage', inputTokens, outputTokens: output }
}

/** No call has more tokens. A larger number is not a count, and its sums would not be exact. */
const MOST_TOKENS = 1e12

/** Whether a provider's number can be a count of tokens. Budgets add these up, so no other number may pass. */
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS
