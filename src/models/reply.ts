/** Reads a provider's reply for all adapters, and decides whether it is an answer. */

import type { ToolCallPart } from '../lib/parts'
import type { ProviderCall } from './call'
import type { Delta, FinishReason } from './language-model'

const VISIBLE = /\S/
const LONGEST_REFUSAL = 4_000
/** Calls of tools in a reply, and characters of the arguments of one. */
export const MOST_CALLS = 16
const LONGEST_ARGUMENTS = 32_000

/** What has been seen of a reply, streamed or whole. */
export class Reply {
  /** whether anything has arrived */
  any = false
  usage: Delta | undefined
  /** the model's words of refusal, apart from its text */
  refusal = ''
  readonly #thoughts: ThoughtFilter
  readonly #calls = new Map<unknown, ToolCallPart>()
  /** whether any of it was answer text */
  #answered = false
  #finish: FinishReason | undefined

  /** @param whole the reply comes in one piece, so nobody waits for its first word */
  constructor(
    private readonly call: ProviderCall,
    { whole = false } = {},
  ) {
    this.#thoughts = new ThoughtFilter(whole || call.startsThinking)
  }

  /** the finish reason; undefined without an end marker */
  get finish(): FinishReason | undefined {
    return this.#finish
  }

  set finish(reason: FinishReason | undefined) {
    this.#finish = reason
    this.call.finished()
  }

  /** The deltas of a piece: text, reasoning, or both. Anything but text is ignored. */
  *said(piece: unknown, reasoning?: unknown): Generator<Delta> {
    // Some servers write a token that is JSON by itself without quotes.
    const text = typeof piece === 'number' || typeof piece === 'boolean' ? String(piece) : piece
    if (typeof text === 'string' && text !== '') {
      if (VISIBLE.test(text)) this.call.alive()
      yield* this.#sorted(this.#thoughts.push(text))
    }
    if (typeof reasoning === 'string' && reasoning !== '') {
      if (VISIBLE.test(reasoning)) this.call.alive()
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

  /** Begins the call of a tool, or adds to one. @param key tells calls apart; @param piece of its arguments */
  calls(key: unknown, { id, name, piece }: { id?: unknown; name?: unknown; piece?: unknown }): void {
    if (!this.call.takesCalls) return
    this.call.alive()
    const known = this.#calls.get(key)
    const call = known ?? { type: 'tool_call', id: '', name: '', arguments: '' }
    if (!known) {
      if (this.#calls.size === MOST_CALLS) throw this.call.failed('the model calls too many tools at once')
      this.#calls.set(key, call)
    }
    if (typeof id === 'string' && id !== '') call.id = id
    if (typeof name === 'string' && name !== '') call.name = name
    call.arguments += typeof piece === 'string' ? piece : piece === undefined ? '' : JSON.stringify(piece)
    if (call.arguments.length > LONGEST_ARGUMENTS) {
      throw this.call.failed(`the arguments of a tool exceed ${LONGEST_ARGUMENTS} characters`)
    }
  }

  /** Adds a piece of the model's refusal. */
  refuses(piece: string): void {
    if (VISIBLE.test(piece)) this.call.alive()
    if (this.refusal.length < LONGEST_REFUSAL) this.refusal += piece
  }

  /**
   * The last deltas: cost and finish reason.
   * @throws ProviderError, with the reason, for a refusal, a reply that broke off, or one without text
   */
  *end(): Generator<Delta> {
    const { any, finish, usage, refusal } = this
    // Text held back from a reply that broke off may be half a tag, or thoughts without their end.
    if (!refusal && !finish) throw any ? this.call.cut() : this.call.malformed()
    yield* this.#sorted(this.#thoughts.end())
    // Tokens of a failed reply are charged too.
    if (usage) yield usage
    if (refusal) throw this.call.failed(`the model refused to answer: ${refusal}`)
    const calls = [...this.#calls.values()].filter(({ name }) => name !== '')
    if (!this.#answered && calls.length === 0) throw withoutText(this.call, finish!)
    // Some servers give calls no id, or all the same one.
    const isNamed = new Set(calls.map(({ id }) => id)).size === calls.length && calls.every(({ id }) => id)
    for (const call of calls) {
      const id = isNamed ? call.id : `call_${crypto.randomUUID()}`
      yield { type: 'call', call: { ...call, id, arguments: call.arguments || '{}' } }
    }
    // Providers have a reason of their own for calls. What the reply holds says it already.
    yield { type: 'finish', reason: calls.length > 0 ? 'stop' : finish! }
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

// =============================================================================
// Separates a model's thoughts from its answer where both are in one text: `<think>so...</think>Yes.`, and how other families
// of models write that.
//
// Thoughts extend from an opening tag to a closing one, or to the end of the text. Tags in code, in backticks or
// fences, are text: an answer may be about them. The result does not depend on how the text is split into pieces.
// Only what may be the beginning of a tag is held back.
//
// Some chat templates open the thoughts in the prompt, so the reply begins inside them and has only the closing tag.
// Text that was shown cannot be taken back, and waiting for a tag that hardly any reply has would delay every first
// word. So text is held back only in replies that come in one piece, where it costs nothing, and from models that are
// known to begin like this. Elsewhere a lone closing tag is removed, and the text before it stays.

interface Sorted {
  text: string
  thoughts: string
}

/** How a family of models marks its thoughts: lower case stands for both cases. */
interface Family {
  opening: string[]
  closing: string[]
}

/** gpt-oss writes to channels, and only one is the answer's. Behind its name may stand whom a message is for, and its form. */
const CHANNEL = '<|channel|>'
const MESSAGE = '<|message|>'
const FINAL = `${CHANNEL}final${MESSAGE}`
const ANALYSIS = `${CHANNEL}analysis${MESSAGE}`
/** The most characters between the two, with them. */
const MOST_HEAD = 200
/** A message ends in one of these. */
const HARMONY_MARKS = ['<|end|>', '<|return|>', '<|call|>', '<|start|>assistant', FINAL]
const HARMONY: Family = { opening: [ANALYSIS], closing: HARMONY_MARKS }
/** What may stand around an answer, and says nothing. */
const MARKS = [
  ...HARMONY_MARKS,
  '<|start_response|>',
  '<|end_response|>',
  '<|begin_of_box|>',
  '<|end_of_box|>',
]
/** The same as the first word after thoughts, with its end. Elsewhere an answer may be about it. */
const WRAPS = ['<answer>', '<response>']
/** Their closing tag may also come alone. */
const PAIRED: Family[] = [
  { opening: ['<think>', '<thinking>'], closing: ['</think>', '</thinking>'] },
  { opening: ['<thought>', '<thoughts>'], closing: ['</thought>', '</thoughts>'] },
  { opening: ['<reasoning>'], closing: ['</reasoning>'] },
  { opening: ['<seed:think>'], closing: ['</seed:think>'] },
  // In lower case it may be a link.
  { opening: ['[THINK]'], closing: ['[/THINK]'] },
  { opening: ['\u25c1think\u25b7'], closing: ['\u25c1/think\u25b7'] },
  { opening: ['<|begin_of_thought|>'], closing: ['<|end_of_thought|>'] },
  { opening: ['<|start_thinking|>'], closing: ['<|end_thinking|>'] },
  { opening: ['<|channel>thought'], closing: ['<channel|>'] },
  { opening: ['<unused94>thought'], closing: ['<unused95>'] },
]
const FAMILIES = [...PAIRED, HARMONY]
const CLOSING = PAIRED.flatMap(({ closing }) => closing)
const OUTSIDE = [...FAMILIES.flatMap(({ opening }) => opening), ...CLOSING, ...MARKS]

/** White space before the first word is held back up to this many characters, since thoughts may follow it. */
const MOST_SPACE = 1_000
/** The most characters held back while it is undecided whether they are thoughts. No answer is longer. */
const MOST_HELD = 500_000

const SPACE = /^\s$/
/** Text that can neither begin a tag nor change whether it is code. */
const PLAIN = /[^<[\u25c1`~\s]+/y
const HEAD_OF_ANSWER = /^<\|channel\|>\s*final\b/
/** How tags begin. */
const FIRST = ['<', '[', '\u25c1']

export class ThoughtFilter {
  #mode: 'held' | 'answer' | 'thoughts'
  /** of the mode `held`: what may turn out to be thoughts */
  #held = ''
  /** the beginning of what may be a tag */
  #tag = ''
  /** white space before the first word of the answer */
  #space: string | undefined = ''
  #thought = false
  /** the end of what the answer is wrapped in, if it is */
  #wrap: string | undefined
  /** the family whose thoughts these are */
  #family = PAIRED[0]!
  readonly #code = new CodeTracker()
  #sorted: Sorted = { text: '', thoughts: '' }

  /** @param held whether the text may begin within thoughts */
  constructor(held: boolean) {
    this.#mode = held ? 'held' : 'answer'
  }

  /** @returns what of the text so far is certain, and was not returned before */
  push(piece: string): Sorted {
    for (let at = 0; at < piece.length; ) {
      PLAIN.lastIndex = at
      const run = this.#tag === '' ? PLAIN.exec(piece)?.[0] : undefined
      if (run !== undefined) {
        this.#add(run)
        at += run.length
      } else if (this.#read(piece[at]!)) at += 1
    }
    return this.#take()
  }

  /** Call this if the provider sends thoughts apart from the text. All of the text is then answer. */
  apart(): Sorted {
    if (this.#mode === 'held') this.#release('answer')
    return this.#take()
  }

  /** Ends the text. @returns what was held back */
  end(): Sorted {
    this.#add(this.#tag)
    this.#tag = ''
    if (this.#mode === 'held') this.#release('answer')
    // White space alone is not an answer. After thoughts it is dropped as well.
    if (this.#space !== undefined && !this.#thought) this.#sorted.text += this.#space
    this.#space = undefined
    return this.#take()
  }

  #take(): Sorted {
    const sorted = this.#sorted
    this.#sorted = { text: '', thoughts: '' }
    return sorted
  }

  /** Reads a character that may belong to a tag. @returns false if it must be read again */
  #read(letter: string): boolean {
    if (this.#tag === '') {
      if (FIRST.includes(letter) && this.#mayBeTag()) this.#tag = letter
      else this.#add(letter)
      return true
    }
    const tag = this.#tag + letter
    const known = this.#known()
    const lower = tag.toLowerCase()
    const isHead = this.#mayBeHead(lower)
    const found =
      isHead && lower.endsWith(MESSAGE)
        ? HEAD_OF_ANSWER.test(lower)
          ? FINAL
          : ANALYSIS
        : known.find((other) => other === tag || other === lower)
    if (found !== undefined) {
      this.#tag = ''
      this.#turn(found)
      return true
    }
    if (isHead || known.some((other) => other.startsWith(tag) || other.startsWith(lower))) {
      this.#tag = tag
      return true
    }
    this.#add(this.#tag)
    this.#tag = ''
    return false
  }

  /** The tags that count here. */
  #known(): string[] {
    if (this.#mode === 'thoughts') return this.#family.closing
    if (this.#wrap !== undefined) return [...OUTSIDE, this.#wrap]
    return this.#thought && this.#space !== undefined ? [...OUTSIDE, ...WRAPS] : OUTSIDE
  }

  /** Whether this may be the head of a message to a channel. */
  #mayBeHead(tag: string): boolean {
    const isElsewhere = this.#mode === 'thoughts' && this.#family !== HARMONY
    return tag.startsWith(CHANNEL) && tag.length <= MOST_HEAD && !tag.endsWith('\n') && !isElsewhere
  }

  #mayBeTag(): boolean {
    if (this.#mode === 'thoughts' || !this.#code.inside) return true
    // Thoughts sometimes leave code open. So a closing tag at the beginning of a line ends them even within code.
    return this.#mode === 'held' && this.#code.atLineStart
  }

  /** Handles a complete tag. */
  #turn(tag: string): void {
    const isThought = this.#mode === 'thoughts'
    if (isThought ? tag === ANALYSIS : MARKS.includes(tag)) return
    if (!isThought && (WRAPS.includes(tag) || tag === this.#wrap)) {
      this.#wrap = tag === this.#wrap ? undefined : tag.replace('<', '</')
      return
    }
    const opened = isThought ? undefined : FAMILIES.find(({ opening }) => opening.includes(tag))
    if (this.#mode === 'held') this.#release(opened ? 'answer' : 'thoughts')
    if (opened) {
      this.#thought = true
      this.#mode = 'thoughts'
      this.#family = opened
    } else {
      this.#thought ||= this.#mode === 'thoughts'
      this.#mode = 'answer'
      if (this.#space !== undefined) this.#code.reset()
    }
  }

  /** Releases the held text, once it is known whether it is answer or thoughts. */
  #release(as: 'answer' | 'thoughts'): void {
    const held = this.#held
    this.#held = ''
    this.#mode = as
    this.#put(held)
  }

  #add(text: string): void {
    if (text === '') return
    if (this.#mode !== 'thoughts') this.#code.read(text)
    if (this.#mode === 'held') {
      this.#held += text
      if (this.#held.length > MOST_HELD) this.#release('answer')
    } else this.#put(text)
  }

  #put(text: string): void {
    if (this.#mode === 'thoughts') {
      this.#sorted.thoughts += text
    } else if (this.#space === undefined) {
      this.#sorted.text += text
    } else {
      const first = text.trimStart()
      const space = this.#space + text.slice(0, text.length - first.length)
      this.#space = space
      if (first === '' && space.length <= MOST_SPACE) return
      this.#sorted.text += (this.#thought ? '' : space) + first
      this.#space = undefined
    }
  }
}

/** Tracks whether a position in Markdown is code, judging by the text before it. */
class CodeTracker {
  #atLineStart = true
  /** a run of backticks or tildes that may continue, and whether it begins its line */
  #run = ''
  #runAtLineStart = false
  #fence = ''
  /** backticks that opened code within a line */
  #inline = 0

  get inside(): boolean {
    this.#endRun()
    return this.#fence !== '' || this.#inline > 0
  }

  get atLineStart(): boolean {
    this.#endRun()
    return this.#atLineStart
  }

  reset(): void {
    this.#atLineStart = true
    this.#run = ''
    this.#fence = ''
    this.#inline = 0
  }

  /** @param text one backtick, tilde or line break; or any text without these */
  read(text: string): void {
    if (text === '`' || text === '~') {
      if (this.#run !== '' && this.#run[0] !== text) this.#endRun()
      if (this.#run === '') this.#runAtLineStart = this.#atLineStart
      this.#run += text
      this.#atLineStart = false
      return
    }
    this.#endRun()
    if (text === '\n') {
      this.#atLineStart = true
      this.#inline = 0
    } else if (!SPACE.test(text)) this.#atLineStart = false
  }

  #endRun(): void {
    const run = this.#run
    if (run === '') return
    this.#run = ''
    const mark = run[0]!
    if (this.#runAtLineStart && run.length >= 3) {
      if (this.#fence === '') this.#fence = mark
      else if (this.#fence === mark) this.#fence = ''
    } else if (mark === '`' && this.#fence === '') {
      if (this.#inline === 0) this.#inline = run.length
      else if (this.#inline === run.length) this.#inline = 0
    }
  }
}
