/** Memories and their messages as OpenSearch shows them, read from rows of D1. */
import * as v from 'valibot'
import type { ConversationRow } from '../db/conversations'
import type { MessageTurn } from '../db/memories'
import { once } from '../lib/once'

const Info = once(() => v.record(v.string(), v.unknown()))

export const Details = once(() =>
  v.object({
    name: v.nullish(v.string()),
    application_type: v.optional(v.string()),
    additional_info: v.optional(Info()),
    version: v.optional(v.number()),
  }),
)

const More = once(() =>
  v.object({
    origin: v.optional(v.string()),
    prompt_template: v.optional(v.string()),
    additional_info: v.optional(Info()),
    version: v.optional(v.number()),
    updated: v.optional(v.number()),
  }),
)

const Trace = once(() =>
  v.object({
    ...More().entries,
    input: v.optional(v.string()),
    response: v.optional(v.string()),
    trace_number: v.number(),
    created: v.number(),
  }),
)

/** A memory as it describes itself. Times are in milliseconds since 1970. */
export interface MemoryView {
  id: string
  /** null: it was created without one */
  name: string | null
  info: Record<string, unknown> | undefined
  applicationType: string | undefined
  version: number
  owner: string
  created: number
  updated: number
}

export interface MessageView {
  memoryId: string
  /** its turn; 0 together with `before` for messages from before the first turn */
  turn: number
  before?: number
  /** for a trace: its place, from 0 */
  trace?: number
  traceNumber?: number
  input?: string | undefined
  response?: string | undefined
  promptTemplate?: string | undefined
  origin?: string | undefined
  info?: Record<string, unknown> | undefined
  version: number
  created: number
  updated?: number | undefined
}

export function memoryOf(row: ConversationRow): MemoryView {
  // A conversation begun by another protocol is named after its first question.
  const details =
    row.details === null ? { name: row.name ?? row.title } : v.parse(Details(), JSON.parse(row.details))
  return {
    id: row.id,
    name: details.name ?? null,
    info: 'additional_info' in details ? details.additional_info : undefined,
    applicationType: 'application_type' in details ? details.application_type : undefined,
    version: ('version' in details ? details.version : undefined) ?? 1,
    owner: row.owner,
    created: row.createdAt,
    updated: row.updatedAt,
  }
}

export type NewTrace = Omit<v.InferInput<ReturnType<typeof Trace>>, 'created' | 'version' | 'updated'>

/** Pairs questions with their answers, as messages. */
export function pairs(
  memoryId: string,
  said: { role: string; message: string; timestamp: number }[],
): MessageView[] {
  const messages: MessageView[] = []
  for (const { role, message, timestamp } of said) {
    const last = messages.at(-1)
    if (role !== 'user' && last !== undefined && last.response === undefined) last.response = message
    else {
      const part = role === 'user' ? { input: message } : { response: message }
      const created = timestamp * 1000
      messages.push({ memoryId, turn: 0, before: messages.length, version: 1, created, ...part })
    }
  }
  return messages
}

export function messageOf(row: MessageTurn): MessageView {
  const more = row.more === null ? {} : v.parse(More(), JSON.parse(row.more))
  return {
    memoryId: row.conversationId,
    turn: row.turn,
    input: row.question,
    response: row.answer,
    promptTemplate: more.prompt_template,
    origin: more.origin,
    info: more.additional_info,
    version: more.version ?? 1,
    created: row.createdAt,
    updated: more.updated,
  }
}

export function tracesOf(row: MessageTurn): MessageView[] {
  const list = row.traces === null ? [] : v.parse(v.array(Trace()), JSON.parse(row.traces))
  return list.map(
    ({ input, response, prompt_template, origin, additional_info, trace_number, created }, trace) => ({
      memoryId: row.conversationId,
      turn: row.turn,
      trace,
      traceNumber: trace_number,
      input,
      response,
      promptTemplate: prompt_template,
      origin,
      info: additional_info,
      version: 1,
      created,
    }),
  )
}
