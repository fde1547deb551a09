/** A provider's reply as an adapter reads it, with one judgement for all of them of what is an answer and what is not. */
import type { ProviderCall } from './call'
import type { Delta, FinishReason } from './language-model'
import { type Sorted, ThoughtFilter } from './thoughts'

const VISIBLE = /\S/
const LONGEST_REFUSAL = 4_000

/** What was seen of a reply, streamed or whole. */
export class Reply {
  /** whether anything came at all */
  any = false
  /** why the model ended; undefined for a reply without its end marker */
  finish: FinishReason | undefined
  usage: Delta | undefined
  /** the model's own words where it said no, apart from its text */
  refusal = ''
  readonly #call: ProviderCall
  readonly #thoughts: ThoughtFilter
  /** whether some of it was text of an answer */
  #answered = false

  /** @param whole whether it comes in one piece, so that nobody waits for its first word */
  constructor(call: ProviderCall, { whole = false } = {}) {
    this.#call = call
    this.#thoughts = new ThoughtFilter(whole || call.startsThinking)
  }

  /** What a piece says: text of the answer, reasoning, or both. Whatever is no text says nothing. */
  *said(text: unknown, reasoning?: unknown): Generator<Delta> {
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

  /** The model says no, in a piece of its own words. */
  refuses(piece: string): void {
    if (VISIBLE.test(piece)) this.#call.alive()
    if (this.refusal.length < LONGEST_REFUSAL) this.refusal += piece
  }

  /**
   * The last deltas, when nothing more is to come: what the reply cost and why it ended.
   * @throws ProviderError for a refusal, for a reply that broke off, and for one without text, with the reason of it
   */
  *end(): Generator<Delta> {
    const { any, finish, usage, refusal } = this
    // What is held back of a reply that broke off may be half a tag, or thoughts without their end.
    if (!refusal && !finish) throw any ? this.#call.cut() : this.#call.malformed()
    yield* this.#sorted(this.#thoughts.end())
    // What was written in vain is paid for as well.
    if (usage) yield usage
    if (refusal) throw this.#call.failed(`the model refused to answer: ${refusal}`)
    if (!this.#answered) throw withoutText(this.#call, finish!)
    yield { type: 'finish', reason: finish! }
  }
}

/** Whether a text is missing is said by the reason to end: a model that only reasoned has done nothing wrong. */
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

/** A provider's reason in the words of all; `other` for one that nobody here knows. */
export const finishReasonIn = (known: Record<string, FinishReason>, reason: unknown): FinishReason =>
  typeof reason === 'string' && Object.hasOwn(known, reason) ? known[reason]! : 'other'

/**
 * What a reply cost; undefined where the provider did not say.
 * @param cached counts of tokens read from a cache, or written to it, where they are not among `input`
 */
export function usageOf(input: unknown, output: unknown, cached: unknown[] = []): Delta | undefined {
  if (!isCount(input) || !isCount(output)) return undefined
  const inputTokens = cached.filter(isCount).reduce((sum, tokens) => sum + tokens, input)
  return { type: 'usage', inputTokens, outputTokens: output }
}

/** More tokens than any call has: a larger number is no count, and sums of it would not be exact. */
const MOST_TOKENS = 1e12

/** Whether a provider's number counts tokens. Budgets are made of these: no other number may get into them. */
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS
