/** What the events of a turn add up to. The record, the history, the trace and every protocol's reply come from here: pure. */
import type {
  CallTrace,
  Citation,
  CutDocument,
  HistoryMessage,
  LogEvent,
  LogEventBody,
  MessageDetails,
  Passage,
  SearchReply,
  SearchSummary,
  SearchTrace,
  Timings,
  TurnError,
  Usage,
} from './events'

/** `interrupted`: it failed, and the same request may well succeed. */
export type TurnStatus = 'running' | 'done' | 'failed' | 'interrupted'

/** A turn so far: plain data. */
export interface Turn {
  conversationId: string
  turn: number
  status: TurnStatus
  question: string
  /** what was searched, where it is not the question as it was asked */
  standalone?: string
  /** what went into the prompt, best first */
  passages: Passage[]
  summaries: SearchSummary[]
  /** the engine's own replies, where they were asked for */
  results?: SearchReply[]
  /** what did not fit into the prompt whole; absent: nothing */
  cut?: CutDocument[]
  citations: Citation[]
  /** what could be asked next; absent until some were suggested */
  suggestions?: string[]
  usage?: Usage
  timings?: Timings
  /** as far as it was written */
  answer: string
  finishReason?: string
  /** what it failed with */
  error?: TurnError
  history?: HistoryMessage[]
  /** what its caller said was said before */
  transcript: HistoryMessage[]
  /** for operators: its searches and calls that have ended */
  searches: { index: number; search: SearchTrace }[]
  calls: { index: number; call: CallTrace }[]
  /** the conversation that its answer is copied from */
  copyOf?: string
  /** what its message says besides its question and its answer */
  message?: MessageDetails
}

export const emptyTurn = (): Turn => ({
  conversationId: '',
  turn: 0,
  status: 'running',
  question: '',
  passages: [],
  summaries: [],
  citations: [],
  answer: '',
  transcript: [],
  searches: [],
  calls: [],
})

/** Adds an event of a turn to it. @returns the same turn, changed */
export function fold(turn: Turn, event: LogEvent): Turn {
  turn.conversationId = event.conversation_id
  turn.turn = event.turn
  return foldBody(turn, event)
}

/** The same for an event without its place. */
export function foldBody(turn: Turn, event: LogEventBody): Turn {
  switch (event.type) {
    case 'begin':
      turn.question = event.question
      break
    case 'transcript':
      turn.transcript.push(...event.messages)
      break
    case 'question':
      turn.question = event.question
      if (event.standalone !== undefined) turn.standalone = event.standalone
      break
    case 'retrieval':
      turn.passages.push(...event.passages)
      turn.summaries.push(...event.searches)
      if (event.cut) turn.cut = [...(turn.cut ?? []), ...event.cut]
      break
    case 'results':
      turn.results = [...(turn.results ?? []), ...event.replies]
      break
    case 'delta':
      turn.answer += event.text
      break
    case 'citation': {
      const { document_id, collection, start, end, quote } = event
      turn.citations.push({ document_id, collection, start, end, ...(quote === undefined ? {} : { quote }) })
      break
    }
    case 'followups':
      turn.suggestions = event.questions
      break
    case 'usage':
      turn.usage = event.usage
      turn.timings = event.timings
      break
    case 'search':
      turn.searches.push({ index: event.index, search: event.search })
      break
    case 'call':
      turn.calls.push({ index: event.index, call: event.call })
      break
    case 'copy':
      turn.copyOf = event.source
      break
    case 'message':
      turn.message = event.details
      break
    case 'error': {
      const { code, status, message, retryable, upstream } = event
      turn.status = retryable ? 'interrupted' : 'failed'
      turn.error = { code, status, message, retryable, ...(upstream !== undefined && { upstream }) }
      break
    }
    case 'done':
      turn.status = 'done'
      turn.answer = event.answer
      turn.finishReason = event.finish_reason
      break
    case 'history':
      turn.history = event.messages
      break
  }
  return turn
}

/** A whole turn at once. @param events from its first one on */
export function foldTurn(events: Iterable<LogEvent>): Turn {
  const turn = emptyTurn()
  for (const event of events) fold(turn, event)
  return turn
}

/** Whether no search succeeded: such a turn has results, but no answer. */
export const allFailed = ({ summaries }: Pick<Turn, 'summaries'>): boolean =>
  summaries.length > 0 && summaries.every(({ error }) => error !== undefined)

/** A turn as it is kept and shown once it has ended. */
export interface RecordedTurn {
  turn: number
  question: string
  /** what was searched and answered, where it is not the question as it was asked */
  standalone?: string
  answer: string
  citations: Citation[]
  /** what could be asked next, where anything was suggested */
  followups?: string[]
  usage: Usage
  timings: Timings
  finish_reason: string
  /** milliseconds since 1970 */
  created_at: number
}

/** @param createdAt milliseconds since 1970, in the second that its messages carry @param model the one that was asked */
export function recordOf(turn: Turn, createdAt: number, model = ''): RecordedTurn {
  const { standalone, suggestions, usage = { model }, timings = {}, finishReason } = turn
  return {
    turn: turn.turn,
    question: turn.question,
    ...(standalone !== undefined && { standalone }),
    // Half an answer is none.
    answer: turn.status === 'done' ? turn.answer : '',
    citations: turn.citations,
    ...(suggestions && { followups: suggestions }),
    usage,
    timings,
    finish_reason: finishReason ?? 'error',
    created_at: createdAt,
  }
}

/** What was said in a turn, and before it by its caller's word: the messages of its history. @param timestamp unix seconds */
export const messagesOf = ({ transcript, question, answer }: Turn, timestamp: number): HistoryMessage[] => [
  ...transcript,
  { role: 'user', message: question, timestamp },
  { role: 'assistant', message: answer, timestamp },
]

/** How an answer came about, for whoever debugs it. It never holds a key. */
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
  /** what the turn's message says besides its question and its answer */
  message?: MessageDetails
  /** true where the whole was too long to be kept: texts in it end early */
  shortened?: true
}

/** A turn with its trace, as operators read it. */
export interface TracedTurn extends RecordedTurn {
  /** what it failed with; absent where it was answered */
  error?: TurnError
  trace: TurnTrace
}

export function traceOf({
  question,
  standalone,
  searches,
  calls,
  suggestions,
  copyOf,
  cut,
  message,
}: Turn): TurnTrace {
  return {
    question,
    ...(standalone !== undefined && { standalone }),
    searches: inOrder(searches).map(({ search }) => search),
    calls: inOrder(calls).map(({ call }) => call),
    ...(suggestions && { followups: suggestions }),
    ...(copyOf !== undefined && { copy_of: copyOf }),
    ...(cut && { cut }),
    ...(message && { message }),
  }
}

/** A turn that has ended as operators read it. @param createdAt milliseconds since 1970 */
export const tracedTurn = (turn: Turn, createdAt: number): TracedTurn => ({
  ...recordOf(turn, createdAt),
  ...(turn.error && { error: turn.error }),
  trace: traceOf(turn),
})

/** They are told of when they end, and shown in the order in which they began. */
const inOrder = <Entry extends { index: number }>(entries: Entry[]): Entry[] =>
  entries.toSorted((a, b) => a.index - b.index)
