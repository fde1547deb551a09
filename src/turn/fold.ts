/** What the events of a turn add up to. The record, the history, the trace and every protocol's reply come from here: pure. */
import type {
  CallTrace,
  Citation,
  CutDocument,
  HistoryMessage,
  LogEvent,
  LogEventBody,
  SearchReply,
  SearchTrace,
  SourceReference,
  Timings,
  Usage,
} from './events'

/** `interrupted`: it failed, and the same request may well succeed. */
export type TurnStatus = 'running' | 'done' | 'failed' | 'interrupted'

export interface TurnError {
  status: number
  message: string
  retryable: boolean
  /** true where a model's provider failed through no fault of the request */
  upstream?: boolean
}

/** A turn so far: plain data. */
export interface Turn {
  conversationId: string
  turn: number
  status: TurnStatus
  question: string
  /** what was searched, where it is not the question as it was asked */
  standalone?: string
  replies: SearchReply[]
  /** what went into the prompt, best first */
  sources: SourceReference[]
  /** what did not fit into the prompt whole; absent: nothing */
  cut?: CutDocument[]
  citations: Citation[]
  /** absent until some were suggested */
  followups?: string[]
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
}

export const emptyTurn = (): Turn => ({
  conversationId: '',
  turn: 0,
  status: 'running',
  question: '',
  replies: [],
  sources: [],
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
      turn.replies.push(...event.replies)
      turn.sources.push(...event.sources)
      if (event.cut) turn.cut = [...(turn.cut ?? []), ...event.cut]
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
      turn.followups = event.questions
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
    case 'error': {
      const { status, message, retryable, upstream } = event
      turn.status = retryable ? 'interrupted' : 'failed'
      turn.error = { status, message, retryable, ...(upstream !== undefined && { upstream }) }
      break
    }
    case 'done':
      turn.status = 'done'
      turn.answer = event.answer
      turn.finishReason = event.finish_reason
      if (event.history) turn.history = event.history
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
export const allFailed = ({ replies }: Turn): boolean =>
  replies.length > 0 && replies.every((reply) => 'error' in reply)

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
  const { standalone, followups, usage = { model }, timings = {}, finishReason } = turn
  return {
    turn: turn.turn,
    question: turn.question,
    ...(standalone !== undefined && { standalone }),
    // Half an answer is none.
    answer: turn.status === 'done' ? turn.answer : '',
    citations: turn.citations,
    ...(followups && { followups }),
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
  /** true where the whole was too long to be kept: texts in it end early */
  shortened?: true
}

/** A turn with its trace, as operators read it. */
export interface TracedTurn extends RecordedTurn {
  /** what it failed with; absent where it was answered */
  error?: TurnError
  trace: TurnTrace
}

export function traceOf({ question, standalone, searches, calls, followups, copyOf, cut }: Turn): TurnTrace {
  return {
    question,
    ...(standalone !== undefined && { standalone }),
    searches: inOrder(searches).map(({ search }) => search),
    calls: inOrder(calls).map(({ call }) => call),
    ...(followups && { followups }),
    ...(copyOf !== undefined && { copy_of: copyOf }),
    ...(cut && { cut }),
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
