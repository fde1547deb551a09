/**
 * A turn is an event log. Every public protocol is an encoder of these events and nothing more.
 *
 * Events cross from the Conversation object to the Worker as lines of JSON (one event a line, UTF-8, LF),
 * numbered from 0 within the turn. `delta` events carry a few milliseconds of text, not a token.
 */
import type { Document, SearchResult } from '../search/types'

/** One search's part of a retrieval: its result, or the error that it ended with. */
export type SearchReply = { result: SearchResult } | { error: string; code: number }

/** A document that went into the prompt. */
export interface SourceReference {
  /** name of the collection */
  collection: string
  /** the document's id there */
  document_id: string
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

export type TurnEventBody =
  | { type: 'question'; question: string; standalone?: string }
  | {
      type: 'retrieval'
      /** in the order of the request's searches */
      replies: SearchReply[]
      /** what went into the prompt, best first */
      sources: SourceReference[]
      /** what did not fit into the prompt whole (`max_bytes`); absent: nothing */
      cut?: CutDocument[]
    }
  | { type: 'delta'; text: string }
  | ({ type: 'citation' } & Citation)
  | { type: 'followups'; questions: string[] }
  | { type: 'usage'; usage: Usage; timings: Timings }
  | {
      type: 'error'
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
      /** all of the conversation up to and with this turn, oldest first; present when it was asked for */
      history?: HistoryMessage[]
    }

/**
 * The number of the error that ends a turn whose object did not live to see its end. Readers are written before the
 * log is, so they may hold events that the log never got: only a number above all that a turn can hand out is one that
 * none of them has. It is the highest that fits the ids of the wire (nine digits); an event every 32 ms would take a
 * year to reach it.
 */
export const INTERRUPTION_SEQ = 999_999_999

/** What a turn ends with that its object did not live to see the end of. */
export const INTERRUPTED = 'The turn was interrupted. Ask again.'

export type TurnEvent = TurnEventBody & { conversation_id: string; turn: number; seq: number }

/** The last event of a turn. After it nothing follows. */
export const isTerminal = (event: TurnEventBody): boolean => event.type === 'done' || event.type === 'error'

export type { Document }
