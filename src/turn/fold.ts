/**
 * Folds the events of a turn into a Turn. The record, the history, the trace and every protocol's reply come
 * from it. Pure.
 */

import { addText, contentOf, lasting, type Part, promptText, textOf } from '../lib/parts'
import { type Verdict, verdictOf } from '../models/language-model'
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
  TurnEvent,
  TurnEventBody,
  Usage,
} from './events'

/** `interrupted`: it failed, and the same request may well succeed. */
export type TurnStatus = 'running' | 'done' | 'failed' | 'interrupted'

/** A turn so far: plain data. */
export interface Turn {
  conversationId: string
  turn: number
  status: TurnStatus
  question: Part[]
  /** what was searched, if it is not the question as asked */
  standalone?: string
  /** the prompt's documents, each once: those of the first retrieval come first, and the best of it is 1 */
  passages: Passage[]
  summaries: SearchSummary[]
  /** the engines' own replies, if they were asked for */
  results?: SearchReply[]
  /** documents that did not fit into the prompt whole; absent: none */
  cut?: CutDocument[]
  citations: Citation[]
  /** suggested next questions; absent until there are some */
  suggestions?: string[]
  usage?: Usage
  timings?: Timings
  /** the answer as far as it is written */
  answer: Part[]
  /** where each step after the first one begins: how many passages and parts of the answer were there before it */
  steps: { passages: number; parts: number }[]
  finishReason?: string
  /** what the model says of its answer */
  verdict?: Verdict
  /** the error it failed with */
  error?: TurnError
  history?: HistoryMessage[]
  /** the caller's transcript */
  transcript: HistoryMessage[]
  /** for operators: finished searches and calls */
  searches: { index: number; search: SearchTrace }[]
  calls: { index: number; call: CallTrace }[]
  /** the HTTP request that asked */
  requestId?: string
  /** the assistant that was asked */
  assistant?: string
  /** the conversation from which the answer is copied */
  copyOf?: string
  /** what its message carries besides its question and its answer */
  message?: MessageDetails
}

export const emptyTurn = (): Turn => ({
  conversationId: '',
  turn: 0,
  status: 'running',
  question: [],
  passages: [],
  summaries: [],
  citations: [],
  answer: [],
  steps: [],
  transcript: [],
  searches: [],
  calls: [],
})

/** Adds an event to a turn. @returns the same turn, changed */
export function fold(turn: Turn, event: LogEvent): Turn {
  turn.conversationId = event.conversation_id
  turn.turn = event.turn
  return foldBody(turn, event)
}

/** Does the same for an event without its place. An event that a later version wrote changes nothing. */
export function foldBody(turn: Turn, event: LogEventBody): Turn {
  const change: ((turn: Turn, event: never) => void) | undefined = CHANGES[event.type]
  change?.(turn, event as never)
  return turn
}

/** What each event changes. */
const CHANGES: {
  [Type in LogEventBody['type']]: (turn: Turn, event: Extract<LogEventBody, { type: Type }>) => void
} = {
  begin(turn, { question, request_id, assistant }) {
    turn.question = question
    if (request_id !== undefined) turn.requestId = request_id
    if (assistant !== undefined) turn.assistant = assistant
  },
  transcript: (turn, { messages }) => turn.transcript.push(...messages),
  question(turn, { question, standalone }) {
    turn.question = question
    if (standalone !== undefined) turn.standalone = standalone
  },
  retrieval(turn, { passages, searches, cut }) {
    beginStep(turn)
    addPassages(turn, passages)
    turn.summaries.push(...searches)
    if (cut) turn.cut = [...(turn.cut ?? []), ...cut]
  },
  results(turn, { replies }) {
    turn.results = [...(turn.results ?? []), ...replies]
  },
  delta(turn, { text }) {
    // The text of a new step is a part of its own.
    if (isStepNew(turn)) turn.answer.push(...contentOf(text))
    else addText(turn.answer, text)
  },
  part(turn, { part }) {
    if (part.type === 'tool_result') beginStep(turn)
    turn.answer.push(part)
  },
  resumed(turn, { content }) {
    for (const part of structuredClone(content)) {
      if (part.type === 'tool_result') beginStep(turn)
      turn.answer.push(part)
    }
  },
  citation: (turn, { document_id, collection, start, end, quote }) =>
    turn.citations.push({ document_id, collection, start, end, ...(quote !== undefined && { quote }) }),
  followups(turn, { questions }) {
    turn.suggestions = questions
  },
  usage(turn, { usage, timings }) {
    turn.usage = usage
    turn.timings = timings
  },
  search: (turn, { index, search }) => turn.searches.push({ index, search }),
  call: (turn, { index, call }) => turn.calls.push({ index, call }),
  copy(turn, { source }) {
    turn.copyOf = source
  },
  message(turn, { details }) {
    turn.message = details
  },
  error(turn, { code, status, message, retryable, upstream }) {
    turn.status = retryable ? 'interrupted' : 'failed'
    turn.error = { code, status, message, retryable, ...(upstream !== undefined && { upstream }) }
  },
  done(turn, event) {
    turn.status = 'done'
    // A fold of a log's end alone lacks the beginning of the answer.
    if (promptText(turn.answer) !== promptText(event.answer)) {
      turn.answer = event.answer
      turn.steps = []
    }
    turn.finishReason = event.finish_reason
    turn.verdict = verdictOf(event)
  },
  history(turn, { messages }) {
    turn.history = messages
  },
}

/** Whether the latest step has no part of the answer yet. */
const isStepNew = ({ steps, answer }: Turn): boolean => steps.at(-1)?.parts === answer.length

/** Begins a step: what the model gets after it has written goes into its next call. */
function beginStep(turn: Turn): void {
  const last = turn.answer.at(-1)
  if (!last || last.type === 'tool_result' || isStepNew(turn)) return
  turn.steps.push({ passages: turn.passages.length, parts: turn.answer.length })
}

/** A document that an earlier step found keeps its place. */
function addPassages({ passages }: Turn, found: readonly Passage[]): void {
  const nameOf = ({ collection, id }: Passage) => JSON.stringify([collection, id])
  const known = new Set(passages.map(nameOf))
  for (const passage of found) {
    if (known.has(nameOf(passage))) continue
    known.add(nameOf(passage))
    passages.push({ ...passage, rank: passages.length + 1 })
  }
}

/** One call of the answering model: its new input and its output. */
export interface Step {
  /** documents that no earlier step had */
  passages: Passage[]
  /** results of tools, and then what the model wrote: text and calls of tools */
  content: Part[]
}

/** The steps of a turn, in order. A turn without tools and with one retrieval has one. */
export const stepsOf = ({ steps, passages, answer }: Turn): Step[] =>
  [{ passages: 0, parts: 0 }, ...steps].map((from, at) => ({
    passages: passages.slice(from.passages, steps[at]?.passages),
    content: answer.slice(from.parts, steps[at]?.parts),
  }))

/** Folds a whole turn. @param events from its first one on */
export function foldTurn(events: Iterable<LogEvent>): Turn {
  const turn = emptyTurn()
  for (const event of events) fold(turn, event)
  return turn
}

/** Events that fold to a turn that has ended: what its encoders would have written stands again. */
export function eventsOf(turn: Turn): TurnEvent[] {
  const { question, standalone, passages, summaries, citations, suggestions, usage, timings, answer, error } =
    turn
  const bodies: TurnEventBody[] = [
    { type: 'question', question, ...(standalone !== undefined && { standalone }) },
    { type: 'retrieval', passages, searches: summaries },
    ...answer.map(
      (part): TurnEventBody =>
        part.type === 'text' ? { type: 'delta', text: part.text } : { type: 'part', part },
    ),
    ...citations.map((citation): TurnEventBody => ({ type: 'citation', ...citation })),
    ...(suggestions ? [{ type: 'followups' as const, questions: suggestions }] : []),
    ...(usage ? [{ type: 'usage' as const, usage, timings: timings ?? {} }] : []),
    error
      ? { type: 'error', ...error }
      : { type: 'done', finish_reason: turn.finishReason ?? 'stop', ...turn.verdict, answer },
  ]
  return bodies.map((body, seq) => ({ ...body, conversation_id: turn.conversationId, turn: turn.turn, seq }))
}

/** Whether every search failed. Such a turn has results but no answer. */
export const allFailed = ({ summaries }: Pick<Turn, 'summaries'>): boolean =>
  summaries.length > 0 && summaries.every(({ error }) => error !== undefined)

/** A call of a tool as readers are told of it. */
export interface CalledTool {
  id: string
  name: string
  title?: string
  /** JSON, as the model wrote it */
  arguments: string
  /** it waits for the visitor's leave, or for their page to run it */
  awaits?: 'leave' | 'page'
  /** what the tool replied; absent while it has not */
  result?: string
  failed?: true
}

/** The calls of tools in an answer, each with its result. */
export function callsOf(content: readonly Part[]): CalledTool[] {
  const results = new Map(content.flatMap((part) => (part.type === 'tool_result' ? [[part.id, part]] : [])))
  return content.flatMap((part) => {
    if (part.type !== 'tool_call') return []
    const { type: _, awaits, ...call } = part
    const result = results.get(part.id)
    if (!result) return [{ ...call, ...(awaits && { awaits }) }]
    return [{ ...call, result: result.text, ...(result.failed && { failed: true as const }) }]
  })
}

/** A finished turn as it is stored and shown. */
export interface RecordedTurn extends Verdict {
  turn: number
  question: string
  /** what was searched and answered, if it is not the question as asked */
  standalone?: string
  answer: string
  citations: Citation[]
  /** calls of tools, if there were any */
  calls?: CalledTool[]
  /** suggested next questions, if there are any */
  followups?: string[]
  usage: Usage
  timings: Timings
  finish_reason: string
  /** milliseconds since 1970 */
  created_at: number
}

/**
 * @param createdAt milliseconds since 1970, within the second that its messages carry @param model the one that
 *   was asked
 */
export function recordOf(turn: Turn, createdAt: number, model = ''): RecordedTurn {
  const { standalone, suggestions, usage = { model }, timings = {}, finishReason, verdict } = turn
  const calls = callsOf(turn.answer)
  return {
    turn: turn.turn,
    question: textOf(turn.question),
    ...(standalone !== undefined && { standalone }),
    // Half an answer counts as none.
    answer: turn.status === 'done' ? textOf(turn.answer) : '',
    citations: turn.citations,
    ...(calls.length > 0 && { calls }),
    ...(suggestions && { followups: suggestions }),
    usage,
    timings,
    finish_reason: finishReason ?? 'error',
    ...verdict,
    created_at: createdAt,
  }
}

/**
 * The messages of a turn for the history: the caller's transcript, the question without its files, the answer.
 * @param timestamp unix seconds
 */
export const messagesOf = (
  { transcript, question, answer }: Pick<Turn, 'transcript' | 'question' | 'answer'>,
  timestamp: number,
): HistoryMessage[] => [
  ...transcript,
  { role: 'user', content: lasting(question), timestamp },
  { role: 'assistant', content: answer, timestamp },
]

/** How an answer came about, for debugging. It never holds a key. */
export interface TurnTrace {
  /** the assistant that was asked; absent if the request named none, and in traces of versions before */
  assistant?: string
  question: string
  /** what was searched and answered, if it is not the question as asked */
  standalone?: string
  searches: SearchTrace[]
  calls: CallTrace[]
  /** suggested next questions, if there are any */
  followups?: string[]
  /**
   * the conversation whose answer to the same request this turn copies; nothing was searched or called for it
   */
  copy_of?: string
  /** documents that did not fit into the prompt whole */
  cut?: CutDocument[]
  /** what the turn's message carries besides its question and its answer */
  message?: MessageDetails
  /** the turn's steps, if its answer holds more than text */
  steps?: Step[]
  /** true if the whole was too long to store: some texts in it end early */
  shortened?: true
}

/** A turn with its trace, for operators. */
export interface TracedTurn extends RecordedTurn {
  /** the error it failed with; absent if it was answered */
  error?: TurnError
  trace: TurnTrace
}

export function traceOf(turn: Turn): TurnTrace {
  const { assistant, question, standalone, searches, calls, suggestions, copyOf, cut, message, answer } = turn
  return {
    ...(assistant !== undefined && { assistant }),
    question: textOf(question),
    ...(standalone !== undefined && { standalone }),
    searches: inOrder(searches).map(({ search }) => search),
    calls: inOrder(calls).map(({ call }) => call),
    ...(suggestions && { followups: suggestions }),
    ...(copyOf !== undefined && { copy_of: copyOf }),
    ...(cut && { cut }),
    ...(message && { message }),
    ...(answer.some(({ type }) => type !== 'text') && { steps: stepsOf(turn) }),
  }
}

/** A finished turn for operators. @param createdAt milliseconds since 1970 */
export function tracedTurn(turn: Turn, createdAt: number): TracedTurn {
  const { message: _, ...trace } = traceOf(turn)
  return { ...recordOf(turn, createdAt), ...(turn.error && { error: turn.error }), trace }
}

/** Searches and calls are reported when they end, and shown in the order they began. */
const inOrder = <Entry extends { index: number }>(entries: Entry[]): Entry[] =>
  entries.toSorted((a, b) => a.index - b.index)
