/** Reads a body of the AI Chat Protocol (contract chat-protocols 1.4). Pure. */
import { contentOf, textOf } from '../../lib/parts'
import type { TranscriptMessage } from '../../turn/look-back'
import { LONGEST_QUESTION } from '../../turn/question-length'
import { asRecord, type Dialect } from './dialect'
import { FieldError } from './errors'

const MOST_MESSAGES = 1_000
const LONGEST_SESSION = 512
const LONGEST_USER = 256

export interface ChatRequest {
  question: string
  /** the client's transcript, oldest first, without the question and system messages */
  transcript: TranscriptMessage[]
  /** system messages, for admin keys only */
  instructions: string[]
  /** the conversation to continue */
  session?: string
  /** the user that the context names */
  user?: string
  overrides: Record<string, unknown>
  /** whether the body asks for a stream */
  stream: boolean
  /** whether the client keeps its session in the context */
  contextSession: boolean
}

/**
 * @param json as it was parsed
 * @throws FieldError 400 that names the place of the fault
 */
export function readChat(json: unknown, dialect: Dialect): ChatRequest {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw wrong('', 'The body has to be a JSON object.')
  }
  const body = json as Record<string, unknown>
  const context = optionalObject(body.context, 'context')
  const nested = optionalObject(context.overrides, 'context.overrides')
  const old = ['history', 'question', 'approach'].find((name) => name in body)
  if (body.messages === undefined && old !== undefined) {
    throw wrong(
      'messages',
      `\`${old}\` is of front ends before the AI Chat Protocol. Take a version of 2024 or later, which sends \`messages\`.`,
    )
  }
  const messages = messagesIn(body.messages)
  const session = sessionOf(body, context)
  const user = typeof context.userId === 'string' ? context.userId : ''
  return {
    ...messages,
    ...(session !== undefined && { session }),
    ...(user !== '' && user.length <= LONGEST_USER && { user }),
    // The oldest clients put overrides into the context itself.
    overrides: dialect === 'azure-js' ? { ...context, ...nested } : nested,
    stream: body.stream === true,
    contextSession: 'sessionId' in context || 'userId' in context,
  }
}

const wrong = (field: string, message: string): FieldError =>
  new FieldError(400, 'bad_request', message, field === '' ? undefined : field)

function optionalObject(value: unknown, field: string): Record<string, unknown> {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value))
    throw wrong(field, `\`${field}\` has to be an object.`)
  return value as Record<string, unknown>
}

function messagesIn(value: unknown): Pick<ChatRequest, 'question' | 'transcript' | 'instructions'> {
  if (!Array.isArray(value) || value.length === 0) {
    throw wrong('messages', '`messages` has to be a list with at least one message.')
  }
  if (value.length > MOST_MESSAGES) {
    throw wrong('messages', `\`messages\` has more than ${MOST_MESSAGES} messages.`)
  }
  const transcript: TranscriptMessage[] = []
  const instructions: string[] = []
  value.forEach((message, index) => {
    const { role, content } = checked(message, `messages[${index}]`)
    if (role === 'system') instructions.push(content)
    else transcript.push({ role, content: contentOf(content) })
  })
  const place = `messages[${value.length - 1}]`
  const last = transcript.pop()
  if (asRecord(value.at(-1)).role !== 'user' || !last) {
    throw wrong(`${place}.role`, `\`${place}.role\` has to be user: the last message is the question.`)
  }
  const question = textOf(last.content)
  if (question.trim() === '') throw wrong(`${place}.content`, `\`${place}.content\` has to say something.`)
  if (question.length > LONGEST_QUESTION) {
    throw wrong(`${place}.content`, `\`${place}.content\` is longer than ${LONGEST_QUESTION} characters.`)
  }
  return { question, transcript, instructions }
}

const ROLES = ['user', 'assistant', 'system'] as const

function checked(message: unknown, place: string): { role: (typeof ROLES)[number]; content: string } {
  const { role, content, files } = asRecord(message)
  const known = ROLES.find((each) => each === role)
  if (!known) throw wrong(`${place}.role`, `\`${place}.role\` has to be user or assistant.`)
  if (typeof content !== 'string') throw wrong(`${place}.content`, `\`${place}.content\` has to be a text.`)
  if (Array.isArray(files) && files.length > 0) {
    throw wrong(`${place}.files`, `\`${place}.files\` has to be empty: send files as multipart/form-data.`)
  }
  return { role: known, content }
}

/** The session that a body names, whatever else is wrong with it. */
export function sessionIn(json: unknown): string | undefined {
  const body = asRecord(json)
  return sessionOf(body, asRecord(body.context))
}

/** The session, wherever the dialect has it. A blank one counts as none. */
function sessionOf(body: Record<string, unknown>, context: Record<string, unknown>): string | undefined {
  const given = [body.sessionState, body.session_state, context.sessionId].find(
    (value) => value !== undefined && value !== null && value !== '',
  )
  if (given === undefined) return undefined
  const id = asRecord(given).conversation_id ?? given
  // Replace an id that Parley cannot have made by an unknown one. The turn then fails with the right error.
  return typeof id === 'string' && id.length <= LONGEST_SESSION ? id : UNKNOWN
}

const UNKNOWN = 'unknown'
