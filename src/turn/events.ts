/**
 * A turn is a log of these events. Its record, its history, its trace and every protocol's reply are folds of the log
 * (fold.ts).
 *
 * Events cross from the Conversation object to the Worker as lines of JSON (one event a line, UTF-8, LF), numbered from
 * 0 within the turn. `delta` events carry a few milliseconds of text, not a token: they are pieces of a part. `part`
 * events carry parts of the answer that are not text.
 */

import type { ErrorCode } from '../errors'
import type { Part, TextPart } from '../lib/parts'
import type { ChatMessage, GenerationRequest, Verdict } from '../models/language-model'
import type { SearchParameters, SearchResult } from '../search/types'
import type { Citation, CutDocument, HitTrace, Timings, Usage } from './facts'

export type { Citation, CutDocument, HitTrace, SourceReference, Timings, Usage } from './facts'

/** One search's part of a retrieval: its result, or the error it ended with. */
export type SearchReply =
  | { result: SearchResult }
  | {
      error: string
      code: number
      detail?: string
      /** seconds after which the same search may succeed */
      retryAfter?: number
    }

/** A document in the prompt, in Parley's own terms, whichever engine found it. */
export interface Passage {
  /** name of the collection */
  collection: string
  id: string
  /** place in the prompt; 1 is the best */
  rank: number
  /** how good the hit was (retrieve.ts) */
  score: number
  /** its texts; long ones are cut */
  text: string
  title?: string
  /** an address that is safe to link to */
  url?: string
  /** the document as the prompt holds it, without its id */
  fields: Record<string, unknown>
}

/** The outcome of one search. Summaries follow the order of the request's searches; those that a model asked for come after. */
export interface SearchSummary {
  /** name of the collection */
  collection: string
  /** documents that match */
  found?: number
  /** documents that the search asked for */
  limit?: number
  /** milliseconds */
  took?: number
  /** the error it failed with */
  error?: { status: number; message: string }
  /** what it searched for, if the model asked for it (tools.ts) */
  q?: string
}

export interface HistoryMessage {
  role: 'user' | 'assistant'
  content: Part[]
  /** unix seconds */
  timestamp: number
}

/** A search as it ran. Times are in milliseconds; `started` counts from the beginning of the turn. */
export interface SearchTrace {
  /** name of the collection; absent if the search failed before it was known */
  collection?: string
  /** the engine that was asked, if it is not Parley's own: `typesense` */
  engine?: string
  /** includes `q`, the question given to this search */
  params: SearchParameters
  /** absent if the search failed, or if it had not ended when the turn did */
  found?: number
  /** best first */
  hits?: HitTrace[]
  error?: { status: number; message: string }
  started: number
  took: number
}

/** A call to a language model. */
export interface CallTrace {
  purpose: GenerationRequest['purpose']
  /** the model that answered, or was meant to */
  model: string
  /**
   * id of its conversation model, if another one than the turn's answered: that one is charged for the tokens
   */
  model_id?: string
  /** attempts that failed before this one, in order: retries and other models */
  failed?: FailedTrace[]
  /** the messages exactly as they were sent */
  prompt: ChatMessage[]
  /** the model's text; absent for a finished `answer`, which the turn holds */
  text?: string
  /** names of the tools that it called */
  tools?: string[]
  finish_reason?: string
  input_tokens: number
  output_tokens: number
  estimated?: true
  error?: string
  started: number
  first_token?: number
  took: number
  /** it was made before the turn began, and is charged already */
  charged?: true
}

/** A failed attempt. It carries tokens only if they must be paid for. */
export interface FailedTrace {
  model: string
  error: string
  /** id of its conversation model */
  model_id?: string
  input_tokens?: number
  output_tokens?: number
}

/** What a message carries besides its question and its answer. */
export interface MessageDetails {
  /** who wrote it */
  origin?: string
  prompt_template?: string
  additional_info?: Record<string, unknown>
}

/** Events for operators. The log keeps them and the trace shows them; readers never get them. */
type OperatorEventBody =
  /** the turn has begun. `request_id`: of the HTTP request that asked */
  | { type: 'begin'; question: Part[]; request_id?: string; assistant?: string }
  /** the caller's transcript, oldest first; it becomes history together with the answer */
  | { type: 'transcript'; messages: HistoryMessage[] }
  /** `index` is its place among the turn's searches (or calls), in the order they began */
  | { type: 'search'; index: number; search: SearchTrace }
  | { type: 'call'; index: number; call: CallTrace }
  /** the answer is a copy: another conversation, `source`, answered the same request */
  | { type: 'copy'; source: string }
  /** stored with the turn's message */
  | { type: 'message'; details: MessageDetails }

/** Why a turn failed. */
export interface TurnError {
  /** what went wrong (errors.ts): code reads this, and never the message */
  code: ErrorCode
  status: number
  message: string
  /** whether the same request may succeed */
  retryable: boolean
  /** true where a model's provider failed through no fault of the request */
  upstream?: boolean
}

/** Events for readers. */
export type TurnEventBody =
  /** files in the question are named, without their texts */
  | { type: 'question'; question: Part[]; standalone?: string }
  | {
      type: 'retrieval'
      /** best first */
      passages: Passage[]
      searches: SearchSummary[]
      /** documents that did not fit into the prompt whole (`max_bytes`); absent: none */
      cut?: CutDocument[]
    }
  /**
   * the engines' own replies, for readers who ask for them. Kept beside the log; they come just before their
   * `retrieval`
   */
  | { type: 'results'; replies: SearchReply[] }
  | { type: 'delta'; text: string }
  | { type: 'part'; part: Exclude<Part, TextPart> }
  /** the turn goes on from one that waited for its visitor: the answer so far, which its readers have */
  | { type: 'resumed'; content: Part[] }
  | ({ type: 'citation' } & Citation)
  | { type: 'followups'; questions: string[] }
  | { type: 'usage'; usage: Usage; timings: Timings }
  | ({ type: 'error' } & TurnError)
  | ({
      type: 'done'
      finish_reason: string
      /** the whole answer: all deltas and parts together */
      answer: Part[]
    } & Verdict)
  /**
   * the conversation up to and including this turn, oldest first, for readers who ask for it; comes just before
   * `done`
   */
  | { type: 'history'; messages: HistoryMessage[] }

/**
 * The number of the error that ends a turn whose object died before the end. Readers are written before the log
 * is, so they may hold events that the log never got. Only a number higher than any a turn can hand out is new
 * to all of them. This is the highest that fits the ids of the wire (nine digits). A turn with an event every
 * 32 ms would need a year to reach it.
 */
export const INTERRUPTION_SEQ = 999_999_999

/**
 * Where the numbers of an answer begin that a turn writes in its second run, after its object was reset; a third run's begin at
 * twice that. What comes before an answer has the same numbers in each run. So a number tells which answer its reader has
 * read of.
 */
export const RUN_SEQ = 100_000_000

/** The answer that an event's number belongs to: 0 for a turn's first one. */
export const answerOf = (seq: number): number => Math.floor(seq / RUN_SEQ)

export type LogEventBody = TurnEventBody | OperatorEventBody

export type DoneEvent = Extract<TurnEventBody, { type: 'done' }>
export type ErrorEvent = Extract<TurnEventBody, { type: 'error' }>

/** The types of events for operators. */
export const OPERATOR = {
  begin: true,
  transcript: true,
  search: true,
  call: true,
  copy: true,
  message: true,
} satisfies Record<OperatorEventBody['type'], true>

/** Says who an event is for. */
export const audienceOf = ({ type }: LogEventBody): 'reader' | 'operator' =>
  type in OPERATOR ? 'operator' : 'reader'

/**
 * Whether an event has a number of its own. Operator events are logged without one; `results` and `history` are made for
 * readers who ask for them.
 */
export const isNumbered = (event: LogEventBody): boolean =>
  event.type !== 'results' && event.type !== 'history' && audienceOf(event) === 'reader'

/** What a reader asks for besides the events that every reader gets. */
export interface Reading {
  results?: boolean
  history?: boolean
}

/** Where an event stands. An event without a number of its own carries that of the next numbered one. */
interface Place {
  conversation_id: string
  turn: number
  seq: number
}

/** An event as readers get it. */
export type TurnEvent = TurnEventBody & Place
/** An event as the log holds it. */
export type LogEvent = LogEventBody & Place

export const isForReaders = (event: LogEvent): event is TurnEvent => audienceOf(event) === 'reader'

/** A place in a conversation: an event's turn and sequence number, `turn.seq` on the wire. */
export interface Position {
  turn: number
  /** -1: before the turn's first event */
  seq: number
}

/** Whether this event ends its turn. Nothing follows it. */
export const isTerminal = (event: LogEventBody): boolean => event.type === 'done' || event.type === 'error'

// =============================================================================
// How a protocol writes the pieces of an answer, as data. With it the conversation's object writes them itself, and the Worker
// passes the bytes on without running JavaScript for each piece: reading, encoding and writing a piece there takes 0.1 ms,
// and the Free plan allows a request 10 ms. A heartbeat fills the silence between pieces.

type Slot =
  | { slot: 'text' | 'conversation' | 'turn' | 'seq' }
  /** the number of the piece among the pieces of its turn, counted from `from` */
  | { slot: 'piece'; from: number }

export interface LineWording {
  /** what is written for a piece, in order: a string as it is, or the value of a slot */
  line: (string | Slot)[]
  /** how texts are written: as the inside of a JSON string, the same in ASCII, or as they are */
  escapes: 'json' | 'ascii' | 'nothing'
  /** characters of text in a line; longer pieces are written as several lines */
  longest?: number
}

export interface Wording extends LineWording {
  /** written after a silence */
  heartbeat: string
  /** milliseconds of silence before a heartbeat */
  heartbeatMs: number
}

/** The place of a piece. */
interface PiecePlace {
  conversation_id: string
  turn: number
  seq: number
  /** 0 for the first piece of the turn */
  piece: number
}

const ESCAPES: Record<LineWording['escapes'], (text: string) => string> = {
  json: (text) => JSON.stringify(text).slice(1, -1),
  ascii: (text) => asciiJson(text).slice(1, -1),
  nothing: (text) => text,
}

/** Writes a piece of an answer. */
export function writePiece({ line, escapes, longest }: LineWording, text: string, place: PiecePlace): string {
  if (longest !== undefined && text.length > longest) {
    return splitText(text, longest)
      .map((part) => writePiece({ line, escapes }, part, place))
      .join('')
  }
  const escaped = ESCAPES[escapes]
  let written = ''
  for (const part of line) {
    if (typeof part === 'string') written += part
    else if (part.slot === 'text') written += escaped(text)
    else if (part.slot === 'conversation') written += escaped(place.conversation_id)
    else if (part.slot === 'piece') written += place.piece + part.from
    else written += place[part.slot]
  }
  return written
}

/** The same in the Worker: the first piece, and all for readers whom the object gives none. @param piece its number */
export const writeDelta = (wording: LineWording, { text, ...place }: Delta, piece = 0): string =>
  writePiece(wording, text, { ...place, piece })

type Delta = Omit<PiecePlace, 'piece'> & { text: string }

/**
 * Writes something whenever nothing else was written for a while, so that neither a client nor a proxy takes a silent
 * connection for a dead one.
 */
export class Heartbeat {
  readonly #ms: number
  readonly #beat: () => void
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param ms the longest silence, in milliseconds */
  constructor(ms: number, beat: () => void) {
    this.#ms = ms
    this.#beat = beat
    this.#timer = this.#after(ms)
  }

  /** Call this whenever something is written. */
  written(): void {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  // To set the timer again for each piece would cost more than to look at the clock.
  #after(ms: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      const left = this.#last + this.#ms - Date.now()
      this.#timer = this.#after(left > 0 ? left : this.#ms)
      if (left > 0) return
      this.written()
      this.#beat()
    }, ms)
  }
}

/** JSON in ASCII, on one line. */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Splits a text into pieces of at most this many UTF-16 units, never within a character. */
export function splitText(text: string, longest: number): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + longest)
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}
