/** Events as lines of JSON: as logs store them, and as they cross from the Conversation object to the Worker. */
import * as v from 'valibot'
import { parseExact } from '../lib/json'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { type LogEvent, type LogEventBody, OPERATOR } from './events'

const TYPES = {
  ...OPERATOR,
  question: true,
  retrieval: true,
  results: true,
  delta: true,
  part: true,
  resumed: true,
  citation: true,
  followups: true,
  usage: true,
  error: true,
  done: true,
  history: true,
} satisfies Record<LogEventBody['type'], true>

function isEvent(value: unknown): value is LogEvent {
  const { type, conversation_id, turn, seq } = (value ?? {}) as Partial<Record<keyof LogEvent, unknown>>
  const placed = typeof conversation_id === 'string' && Number.isInteger(turn) && Number.isInteger(seq)
  return placed && typeof type === 'string' && Object.hasOwn(TYPES, type)
}

const shape = once(() => v.custom<LogEvent>(isEvent))

/**
 * Reads an event. Every piece of an answer passes here, so the schema checks what all events have: a type, and a place.
 * @throws ValiError for a line that no version has written
 */
export const readEvent = (line: string): LogEvent => readStored(shape(), line, parseExact)
