/** Bodies, pages and shapes of memories and messages, in the wording of both generations. */
import type { MemoryView, MessageView } from '../../../conversation/memories'
import { byteLength } from '../../../turn/prompt'
import type { Call } from '../../http/route'
import { illegalArgument, OpenSearchError } from '../errors'
import { isObject, type Json, readObject } from '../route'
import { messageIdOf } from './ids'

/** Bytes of one message. A row of the database holds 2 MB, including everything beside the message. */
const MOST_BYTES = 1_000_000
/** OpenSearch's `index.max_result_window`. */
const WINDOW = 10_000

const parseError = (message: string): OpenSearchError => new OpenSearchError(400, 'parse_exception', message)

/** Reads a body whose values are texts; numbers and booleans become text. @throws ApiError 400 */
export async function readTexts(request: Request): Promise<Record<string, string>> {
  return textsIn(await readObject(request, {}))
}

function textsIn(body: Json, except = ''): Record<string, string> {
  return Object.fromEntries(
    Object.entries(body).flatMap(([key, value]) => {
      if (key === except || value === null) return []
      if (typeof value === 'object') throw parseError(`Can't get text on a START_OBJECT at [${key}]`)
      return [[key, String(value)]]
    }),
  )
}

/** `additional_info` of the second generation. @param nested whether its values may be anything */
export function infoIn(value: unknown, nested: boolean): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined
  // OpenSearch's own tests send a text. It is stored where the RAG processor stores its own.
  if (typeof value === 'string') return { metadata: value }
  if (!isObject(value)) throw parseError('[additional_info] has to be an object')
  return nested ? value : textsIn(value)
}

export interface NewMessage {
  input: string
  response: string
  prompt_template?: string
  origin?: string
  info?: Record<string, unknown>
  parent?: string
  traceNumber?: number
}

/** @throws ApiError 400, 413 */
export function messageIn(body: Json, generation: 1 | 2): NewMessage {
  const { additional_info: given, trace_number: number, ...rest } = body
  const { input = '', response = '', prompt_template, origin, parent_message_id: parent } = textsIn(rest)
  if (generation === 1 && isObject(given))
    throw parseError("Can't get text on a START_OBJECT at [additional_info]")
  const info = infoIn(
    generation === 1 && given !== undefined && given !== null ? String(given) : given,
    false,
  )
  const texts = [input, response, prompt_template, origin]
  const isEmpty =
    texts.every((text) => text === undefined || text.trim() === '') && Object.keys(info ?? {}).length === 0
  if (generation === 2 && isEmpty) {
    throw illegalArgument(
      'At least one of the following parameters must be non-empty: input, prompt_template, response, origin, additional_info',
    )
  }
  if (byteLength(JSON.stringify([texts, info])) > MOST_BYTES) {
    throw new OpenSearchError(413, 'illegal_argument_exception', `A message may hold ${MOST_BYTES} bytes.`)
  }
  const traceNumber = number === undefined || number === null ? undefined : Number(number)
  if (traceNumber !== undefined && !Number.isSafeInteger(traceNumber)) throw numberFormat(String(number))
  return {
    input,
    response,
    ...(prompt_template !== undefined && { prompt_template }),
    ...(origin !== undefined && { origin }),
    ...(info !== undefined && { info }),
    // Only both together make a trace.
    ...(parent !== undefined && traceNumber !== undefined && { parent, traceNumber }),
  }
}

const numberFormat = (text: string): OpenSearchError =>
  new OpenSearchError(400, 'number_format_exception', `For input string: "${text}"`)

function whole(query: Record<string, string>, name: string, otherwise: number): number {
  const text = query[name]
  if (text === undefined) return otherwise
  if (!/^[+-]?\d{1,10}$/.test(text)) throw numberFormat(text)
  return Number(text)
}

export interface Page {
  limit: number
  offset: number
}

/** The page that a request asks for. @throws ApiError 400 in the words of its list */
export function pageOf({ query }: Pick<Call, 'query'>, list: 'memories' | 'messages'): Page {
  const limit = whole(query, 'max_results', 10)
  const offset = whole(query, 'next_token', 0)
  const faults: string[] = []
  if (list === 'memories') {
    if (limit < 1) faults.push("Can't list 0 or negative conversations")
    if (limit > 0 && offset < 0)
      throw illegalArgument(`[from] parameter cannot be negative but was [${offset}]`)
  } else {
    if (limit < 1) faults.push('The number of interactions to retrieve must be positive')
    if (offset < 0) faults.push('The starting position must be nonnegative')
  }
  if (faults.length > 0) {
    const numbered = faults.map((fault, at) => `${at + 1}: ${fault};`).join('')
    throw new OpenSearchError(400, 'action_request_validation_exception', `Validation Failed: ${numbered}`)
  }
  if (limit + offset > WINDOW) {
    throw illegalArgument(
      `Result window is too large, from + size must be less than or equal to: [${WINDOW}] but was [${limit + offset}].`,
    )
  }
  return { limit, offset }
}

/** A full page has a token, whether or not anything follows. */
export const listed = (name: string, items: Json[], { limit, offset }: Page): Json => ({
  [name]: items,
  ...(items.length === limit && { next_token: offset + limit }),
})

const time = (milliseconds: number): string => new Date(milliseconds).toISOString()

/** The owner, if it is an API key and not the admin key. */
const userOf = ({ owner }: MemoryView): Json => (owner === 'admin' ? {} : { user: owner })

export const conversationShown = (memory: MemoryView): Json => ({
  conversation_id: memory.id,
  create_time: time(memory.created),
  name: memory.name ?? '',
  ...userOf(memory),
})

export const memoryShown = (memory: MemoryView): Json => ({
  memory_id: memory.id,
  create_time: time(memory.created),
  updated_time: time(memory.updated),
  name: memory.name,
  ...(memory.info !== undefined && { additional_info: memory.info }),
  ...userOf(memory),
})

export const interactionShown = (message: MessageView): Json => {
  const { info } = message
  return {
    conversation_id: message.memoryId,
    interaction_id: messageIdOf(message),
    create_time: time(message.created),
    input: message.input ?? null,
    prompt_template: message.promptTemplate ?? null,
    response: message.response ?? null,
    origin: message.origin ?? null,
    ...(info !== undefined && {
      additional_info:
        Object.keys(info).length === 1 && typeof info.metadata === 'string'
          ? info.metadata
          : JSON.stringify(info),
    }),
  }
}

export const messageShown = (message: MessageView): Json => {
  const { memoryId, turn, trace, traceNumber, created, updated, info } = message
  const texts = {
    input: message.input,
    prompt_template: message.promptTemplate,
    response: message.response,
    origin: message.origin,
  }
  return {
    memory_id: memoryId,
    message_id: messageIdOf(message),
    create_time: time(created),
    updated_time: time(updated ?? created),
    ...Object.fromEntries(
      Object.entries(texts).filter(([, text]) => text !== undefined && text.trim() !== ''),
    ),
    ...(info !== undefined && { additional_info: info }),
    ...(trace !== undefined && {
      parent_message_id: messageIdOf({ memoryId, turn }),
      trace_number: traceNumber,
    }),
  }
}
