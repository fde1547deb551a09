/** `ext.generative_qa_parameters`: what a search asks of the language model, in the wording of both generations. */
import { illegalArgument, OpenSearchError, parsingError } from './errors'
import { isObject, type Json } from './route'

export interface Generative {
  question: string
  llmModel?: string
  memoryId?: string
  /** hits whose texts go into the prompt; undefined: all */
  contextSize?: number
  /** earlier turns that go into the prompt */
  turns: number
  /** seconds until the answer must be there */
  timeout: number
  /** present: replaces the pipeline's, even if empty */
  system?: string
  instructions?: string
  responseField?: string
  /** whether a follow-up is rewritten before it is searched */
  rewrites: boolean
}

const DEFAULT_TURNS = 10
const DEFAULT_TIMEOUT = 30
const LONGEST_TIMEOUT = 600
const NOT_POSITIVE = 'The number of interactions to retrieve must be positive'

/** @throws ApiError 400 in OpenSearch's words */
export function parseGenerative(ext: unknown): Generative {
  const given = isObject(ext) ? ext.generative_qa_parameters : undefined
  if (!isObject(given)) {
    throw illegalArgument(
      'generative_qa_parameters not found. Please provide ext.generative_qa_parameters to proceed. For more info, refer: https://opensearch.org/docs/latest/search-plugins/conversational-search/',
    )
  }
  const said = questionIn(given.llm_messages)
  const question = text(given, 'llm_question') || said
  if (question === '') throw illegalArgument('At least one of llm_question or llm_messages must be provided.')
  const contextSize = whole(given, 'context_size')
  const timeout = whole(given, 'timeout') ?? DEFAULT_TIMEOUT
  if (timeout < 1 || timeout > LONGEST_TIMEOUT) {
    throw illegalArgument(`[timeout] has to be from 1 to ${LONGEST_TIMEOUT} seconds`)
  }
  const optional = {
    llmModel: text(given, 'llm_model'),
    memoryId: memoryIn(given),
    contextSize: contextSize === undefined ? undefined : Math.max(0, contextSize),
    system: text(given, 'system_prompt'),
    instructions: text(given, 'user_instructions'),
    responseField: text(given, 'llm_response_field'),
  }
  return {
    question,
    turns: turnsIn(given),
    timeout,
    rewrites: given.rewrite_question === true,
    ...(Object.fromEntries(
      Object.entries(optional).filter(([, value]) => value !== undefined),
    ) as Partial<Generative>),
  }
}

function text(given: Json, name: string): string | undefined {
  const value = given[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string')
    throw parsingError(`[generative_qa_parameters] ${name} doesn't support values of type: ${typeof value}`)
  return value
}

/** A whole number, which may be given as text; -1 means none. */
function whole(given: Json, name: string): number | undefined {
  const value = given[name]
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && /^[+-]?\d+$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
    throw new OpenSearchError(400, 'number_format_exception', `For input string: "${String(value)}"`)
  }
  return number === -1 ? undefined : number
}

/** The value of two names for the same parameter. @throws ApiError 400 if they differ */
function either<T>(old: T | undefined, later: T | undefined, names: string): T | undefined {
  if (old !== undefined && later !== undefined && old !== later) {
    throw illegalArgument(`${names} are two names for the same: give one of them`)
  }
  return later ?? old
}

function memoryIn(given: Json): string | undefined {
  const id = either(
    text(given, 'conversation_id'),
    text(given, 'memory_id'),
    '[conversation_id] and [memory_id]',
  )
  if (id?.trim() === '') throw illegalArgument('Empty conversation_id is not allowed.')
  return id
}

function turnsIn(given: Json): number {
  const turns = either(
    whole(given, 'interaction_size'),
    whole(given, 'message_size'),
    '[interaction_size] and [message_size]',
  )
  if (turns !== undefined && turns < 1) {
    throw new OpenSearchError(
      400,
      'action_request_validation_exception',
      `Validation Failed: 1: ${NOT_POSITIVE};`,
    )
  }
  return turns ?? DEFAULT_TURNS
}

/** The texts of `llm_messages`, which replace the question. */
function questionIn(messages: unknown): string {
  if (messages === undefined || messages === null) return ''
  if (!Array.isArray(messages)) throw parsingError('[llm_messages] has to be a list')
  return messages.flatMap(textsIn).join('\n')
}

function textsIn(message: unknown): string[] {
  if (!isObject(message) || typeof message.role !== 'string') throw illegalArgument('message must have role.')
  const { content } = message
  if (!Array.isArray(content) || content.length === 0) throw illegalArgument('message must have content.')
  return content.map((block) => {
    if (isObject(block) && block.type === 'text' && typeof block.text === 'string') return block.text
    if (isObject(block) && isObject(block.image) && !block.image.data && !block.image.url) {
      throw illegalArgument('data or url not found in imageBlock.')
    }
    const kind =
      isObject(block) && (block.image !== undefined || block.type === 'image') ? 'image' : 'document'
    throw illegalArgument(
      `[${kind}] of [llm_messages] is not supported here: send its text, or index it and let the search find it`,
    )
  })
}
