/**
 * A turn is a log of these events. Its record, its history, its trace and every protocol's reply are folds of the log
 * (fold.ts).
 *
 * Events cross from the Conversation object to the Worker as lines of JSON (one event a line, UTF-8, LF), numbered from
 * 0 within the turn. `delta` events carry a few milliseconds of text, not a token.
 */

import type { ErrorCode } from '../errors'
import type { ChatMessage, GenerationRequest } from '../models/language-model'
import type { SearchParameters, SearchResult } from '../search/types'

/** One search's part of a retrieval: its result, or the error that it ended with. */
export type SearchReply = { result: SearchResult } | { error: string; code: number }

/** A document of a collection. */
export interface SourceReference {
  /** name of the collection */
  collection: string
  /** the document's id there */
  document_id: string
}

/** A document that went into the prompt, in Parley's own terms: whatever engine found it. */
export interface Passage {
  /** name of the collection */
  collection: string
  id: string
  /** place in the prompt; 1 is the best */
  rank: number
  /** how good a hit it was (retrieve.ts) */
  score: number
  /** its texts, cut where they are long */
  text: string
  title?: string
  /** an address that a page may link to */
  url?: string
  /** the document as it stood in the prompt, without its id */
  fields: Record<string, unknown>
}

/** What came of one search, in the order of the request's searches. */
export interface SearchSummary {
  /** name of the collection */
  collection: string
  /** documents that match */
  found?: number
  /** documents that were asked for */
  limit?: number
  /** milliseconds */
  took?: number
  /** what it failed with */
  error?: { status: number; message: string }
}

/** A document that was found and did not fit into the prompt whole. */
export interface CutDocument extends SourceReference {
  /** its passages that went into the prompt; 0: it was left out */
  passages: number
  /** the passages that it has */
  of: number
}

/** A source used, with its place in the answer: UTF-16 offsets, `end` exclusive. */
export interface Citation extends SourceReference {
  start: number
  end: number
  /** the sentence of the source that supports this part, if one can be named */
  quote?: string
}

export interface Usage {
  /** full name of the model that answered */
  model: string
  input_tokens?: number
  output_tokens?: number
  /** true where the provider reported none and the figures are estimated from bytes */
  estimated?: boolean
}

export interface Timings {
  /** milliseconds, each measured from the moment the turn began to run */
  rewritten?: number
  retrieved?: number
  first_token?: number
  finished?: number
}

export interface HistoryMessage {
  role: 'user' | 'assistant'
  message: string
  /** unix seconds */
  timestamp: number
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
  /** it was made before the turn began, and is charged already */
  charged?: true
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

/** What a message of a conversation says besides its question and its answer. */
export interface MessageDetails {
  /** who wrote it */
  origin?: string
  prompt_template?: string
  additional_info?: Record<string, unknown>
}

/** Events for operators. They are kept in the log and shown in the trace, and are never sent to a reader. */
export type OperatorEventBody =
  /** the turn has begun */
  | { type: 'begin'; question: string }
  /** what its caller says was said before: it becomes history with the answer. Oldest first */
  | { type: 'transcript'; messages: HistoryMessage[] }
  /** `index`: its place among the turn's searches, or calls, in the order in which they began */
  | { type: 'search'; index: number; search: SearchTrace }
  | { type: 'call'; index: number; call: CallTrace }
  /** the answer is a copy of the one that this conversation gave to the same request */
  | { type: 'copy'; source: string }
  /** kept with the turn's message */
  | { type: 'message'; details: MessageDetails }

/** Events for readers. */
export type TurnEventBody =
  | { type: 'question'; question: string; standalone?: string }
  | {
      type: 'retrieval'
      /** best first */
      passages: Passage[]
      searches: SearchSummary[]
      /** what did not fit into the prompt whole (`max_bytes`); absent: nothing */
      cut?: CutDocument[]
    }
  /** the engine's own replies, for readers who ask for them: kept beside the log, before the `retrieval` they belong to */
  | { type: 'results'; replies: SearchReply[] }
  | { type: 'delta'; text: string }
  | ({ type: 'citation' } & Citation)
  | { type: 'followups'; questions: string[] }
  | { type: 'usage'; usage: Usage; timings: Timings }
  | {
      type: 'error'
      /** what went wrong (errors.ts): code reads this, and never the message */
      code: ErrorCode
      status: number
      message: string
      retryable: boolean
      /** true where a model's provider failed through no fault of the request */
      upstream?: boolean
    }
  | {
      type: 'done'
      finish_reason: string
      /** the whole answer; deltas joined give the same text */
      answer: string
    }
  /** all of the conversation up to and with this turn, oldest first, for readers who ask for it: just before `done` */
  | { type: 'history'; messages: HistoryMessage[] }

/**
 * The number of the error that ends a turn whose object did not live to see its end. Readers are written before the
 * log is, so they may hold events that the log never got: only a number above all that a turn can hand out is one that
 * none of them has. It is the highest that fits the ids of the wire (nine digits); an event every 32 ms would take a
 * year to reach it.
 */
export const INTERRUPTION_SEQ = 999_999_999

export type LogEventBody = TurnEventBody | OperatorEventBody

export type DoneEvent = Extract<TurnEventBody, { type: 'done' }>
export type ErrorEvent = Extract<TurnEventBody, { type: 'error' }>

const OPERATOR = {
  begin: true,
  transcript: true,
  search: true,
  call: true,
  copy: true,
  message: true,
} satisfies Record<OperatorEventBody['type'], true>

/** Who an event is for. */
export const audienceOf = ({ type }: LogEventBody): 'reader' | 'operator' =>
  type in OPERATOR ? 'operator' : 'reader'

/** Whether an event is kept in the log, and counts there. The others are made for the readers who ask for them. */
export const isNumbered = (event: LogEventBody): boolean =>
  event.type !== 'results' && event.type !== 'history' && audienceOf(event) === 'reader'

/** What a reader asks for besides the events that all readers get. */
export interface Reading {
  results?: boolean
  history?: boolean
}

/** Where an event stands. One that does not count has the number of the next one that does. */
interface Place {
  conversation_id: string
  turn: number
  seq: number
}

/** An event as readers get it. */
export type TurnEvent = TurnEventBody & Place
/** An event as the log has it. */
export type LogEvent = LogEventBody & Place

export const isForReaders = (event: LogEvent): event is TurnEvent => audienceOf(event) === 'reader'

/** A place in a conversation: an event's turn and sequence number. On the wire `turn.seq`. */
export interface Position {
  turn: number
  /** -1: before the turn's first event */
  seq: number
}

/** The last event of a turn. After it nothing follows. */
export const isTerminal = (event: LogEventBody): boolean => event.type === 'done' || event.type === 'error'
