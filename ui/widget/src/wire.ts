/** What goes over the wire, as openapi.json has it. */

/** An event of a turn. `turn` and `seq` are its place in the conversation. */
export interface TurnEvent {
  turn: number
  seq: number
  type: string
  // biome-ignore lint/suspicious/noExplicitAny: the data of each type is in openapi.json
  data: any
}

/** Why a turn failed. `status` is 0 where the server could not be reached. */
export interface TurnFault {
  status: number
  message: string
  /** the server's own, where it answered */
  code?: string | undefined
}

export interface Citation {
  collection: string
  document_id: string
  start: number
  end: number
  quote?: string
}

/** Whether the sources support a sentence of an answer that a language model wrote. */
export interface SentenceSupport {
  /** its place in the answer, in UTF-16 units */
  start: number
  end: number
  support: 'supported' | 'partly' | 'not_found'
  /** numbers and names that the sources lack */
  missing?: string[]
}

export type Rating = 'up' | 'down'

/** What a visitor says of an answer. */
export interface Feedback {
  rating?: Rating
  comment?: string
  /** what is wrong with it, of REASONS (feedback-view.ts) or in somebody's own words */
  reasons?: string[]
}

/** A call of a tool in an answer. */
export interface CalledTool {
  id: string
  name: string
  /** what it does, for people */
  title?: string
  /** JSON */
  arguments: string
  /** it waits for the visitor's leave, or for the page to run it */
  awaits?: 'leave' | 'page'
  /** what the tool replied; absent while it has not */
  result?: string
  failed?: true
}

export interface StoredTurn {
  turn: number
  question: string
  answer: string
  calls?: CalledTool[]
  citations: Citation[]
  /** whether the documents do not answer the question */
  declined?: true
  followups?: string[]
  support?: SentenceSupport[]
  feedback?: (Feedback & { own: boolean })[]
  /** turns that answered the same question, oldest first; absent: this one alone */
  versions?: number[]
  /** the person who wrote it: there is no question */
  author?: string
}

export interface ConversationSummary {
  id: string
  title: string
  updated_at: number
}

/** What a page may know of an assistant. */
export interface Front {
  name: string
  questions: string[]
  followups: boolean
  title_field?: string
  url_field?: string
  citation_field?: string
  /** absent: questions bring no files */
  attachments?: FileLimits
  /** absent: nobody is reached from here. Either an address or a form; `after`: answers declined until it is offered; `outside`: what is said outside of office hours */
  handover?: { url?: string; form?: boolean; after?: number; outside?: string }
}

/** A document that is found while somebody types. */
export interface Found {
  collection: string
  document_id: string
  title: string
  url?: string
  /** the part of its text that matches; `mark`: a word that was found */
  snippet: { text: string; mark?: true }[]
}

export interface FileLimits {
  /** files of one question, at most */
  files: number
  /** bytes of UTF-8 of their names and texts together, at most */
  bytes: number
  /** characters of base64 of its pictures together, at most; absent: it brings none */
  pictures?: number
}

export interface AttachedFile {
  name: string
  text?: string
  /** a picture in base64, in the place of a text, and what kind it is */
  data?: string
  type?: string
}

export interface Asking {
  /** absent with `decisions`: that of the turn which goes on */
  question?: string
  /** about calls that the turn `replaces` waits for */
  decisions?: Record<string, boolean | { result: string; failed?: true }>
  conversation_id?: string
  replaces?: number
  followups?: boolean
  files?: AttachedFile[]
}
