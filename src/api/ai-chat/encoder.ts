/**
 * Writes a turn in a dialect: as one JSON object, or as lines of JSON. Pure.
 *
 * Every line ends with a line break, the last one too, or a client drops it. No line is longer than 64 KB, and only an
 * error has a key `error` (contract chat-protocols 1.6).
 */

import { textOf } from '../../lib/parts'
import { type Wording, writeDelta } from '../../turn/events'
import type { Turn } from '../../turn/fold'
import { HEARTBEAT_MS, type TurnEncoder, turnEncoder } from '../shared/stream'
import type { ErrorForm } from './dialect'
import { errorBody, turnFault } from './errors'
import { answerThought, type Context, dataPointsOf, type Shown, thoughtsOf, type Words } from './words'

/** Characters of the answer in a line. Each takes six bytes of JSON at most. */
const LONGEST_PIECE = 8_000
const MOST_SUGGESTIONS = 10
const LONGEST_SUGGESTION = 500

/** The options for writing an answer. */
export interface Writing extends Shown {
  words: Words
  errorForm: ErrorForm
  /** whether suggestions are in the text too */
  inlineSuggestions: boolean
  contextSession: boolean
}

/** The whole answer. */
export function encodeAnswer(turn: Turn, writing: Writing): unknown {
  const { words } = writing
  const context: Context = {
    data_points: dataPointsOf(turn, writing),
    thoughts: [...thoughtsOf(turn, writing), ...answerThought(turn)],
    followup_questions: suggestionsOf(turn) ?? null,
    ...sessionIn(turn, writing),
  }
  return words.whole(
    textOf(turn.answer) + inlined(turn, writing),
    context,
    turn.conversationId,
    finishOf(turn),
  )
}

/** How the pieces of an answer are written. */
export function pieceWording(words: Words): Wording {
  const mark = '\u0000'
  const [before, after] = line(words.piece(mark)).split(JSON.stringify(mark).slice(1, -1)) as [string, string]
  return {
    line: [before, { slot: 'text' }, after],
    escapes: 'json',
    longest: LONGEST_PIECE,
    heartbeat: HEARTBEAT,
    heartbeatMs: HEARTBEAT_MS,
  }
}

/** A line break by itself. Clients would treat anything else as a line of the answer. */
export const HEARTBEAT = '\n'

/** Encodes an answer as a stream of lines. */
export const lineEncoder = (writing: Writing): TurnEncoder => {
  const { words } = writing
  const wording = pieceWording(words)
  return turnEncoder((turn) => {
    const pieces = (text: string): string => {
      const { conversationId: conversation_id, turn: number } = turn
      return writeDelta(wording, { text, conversation_id, turn: number, seq: 0 })
    }
    return {
      retrieval: (event) => {
        const context: Context = {
          data_points: dataPointsOf(turn, writing),
          thoughts: thoughtsOf(turn, writing),
          ...sessionIn(turn, writing),
        }
        return line(words.open(context, event.conversation_id))
      },
      delta: ({ text }) => pieces(text),
      done: (event) => {
        const suggestions = suggestionsOf(turn)
        const context: Context = {
          // All thoughts again, because clients replace the first list with this one.
          thoughts: [...thoughtsOf(turn, writing), ...answerThought(turn)],
          ...(suggestions && { followup_questions: suggestions }),
          ...sessionIn(turn, writing),
        }
        const more = inlined(turn, writing)
        return (more && pieces(more)) + line(words.close(context, event.conversation_id, finishOf(turn)))
      },
      fail: (fault) => line(errorBody(turnFault(fault), writing.errorForm)),
    }
  })
}

const line = (value: unknown): string => `${JSON.stringify(value)}\n`

const finishOf = ({ finishReason = 'stop' }: Turn): string => finishReason

const suggestionsOf = ({ suggestions }: Turn): string[] | undefined =>
  suggestions?.slice(0, MOST_SUGGESTIONS).map((question) => question.slice(0, LONGEST_SUGGESTION))

/** Suggestions in the text, where some clients look for them. */
const inlined = (turn: Turn, { inlineSuggestions }: Writing): string =>
  inlineSuggestions ? (suggestionsOf(turn) ?? []).map((question) => `<<${question}>>`).join('') : ''

const sessionIn = ({ conversationId }: Turn, { contextSession }: Writing): Partial<Context> =>
  contextSession ? { sessionId: conversationId } : {}
