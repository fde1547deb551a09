/** Reads a body of the AI Chat Protocol (contract chat-protocols 1.4). Pure. */

import { sha256Bytes } from '../../db/sealing'
import { type ApiError, badRequest } from '../../errors'
import { contentOf, type FilePart, textOf } from '../../lib/parts'
import { isTextFile, isVague, LONGEST_FILE_NAME, MOST_FILES } from '../../lib/text-file'
import type { TranscriptMessage } from '../../turn/look-back'
import { LONGEST_QUESTION } from '../../turn/question-length'
import { parseJson, readBytes, readText } from '../http/body'
import { asRecord, type Dialect } from './dialect'
import { FieldError } from './errors'

const MOST_MESSAGES = 1_000
const LONGEST_SESSION = 512
const LONGEST_USER = 256

/** @param json as it was parsed @throws FieldError 400 that names the place of the fault */
export function readChat(json: unknown, dialect: Dialect) {
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
    /** the conversation to continue */
    ...(session !== undefined && { session }),
    /** the user that the context names */
    ...(user !== '' && user.length <= LONGEST_USER && { user }),
    // The oldest clients put overrides into the context itself.
    overrides: dialect === 'azure-js' ? { ...context, ...nested } : nested,
    stream: body.stream === true,
    /** whether the client keeps its session in the context */
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

/** @returns the transcript without the question and system messages, oldest first */
function messagesIn(value: unknown) {
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

// =============================================================================
// Reads the body of a request: JSON, or a form with JSON and files.

/** Bytes of JSON: enough for a long transcript. */
const JSON_LIMIT = 1024 * 1024
/** Bytes of a form. Large enough that an image can be read, and refused by its name, without breaking the connection. */
const FORM_LIMIT = 10 * 1024 * 1024

interface ChatBody {
  json: unknown
  files: FilePart[]
  /** everything that was sent, as one text for the request's fingerprint */
  text: string
}

/** @throws ApiError 400, 413, 415 */
export async function readChatBody(request: Request): Promise<ChatBody> {
  const contentType = request.headers.get('content-type') ?? 'application/json'
  const mediaType = contentType.split(';')[0]!.trim().toLowerCase()
  if (mediaType === 'application/json') {
    const text = await readText(request, JSON_LIMIT)
    return { json: parseJson(text), files: [], text }
  }
  if (mediaType === 'multipart/form-data') return readForm(request, boundaryOf(contentType))
  throw new FieldError(
    415,
    'unsupported_media_type',
    `\`Content-Type: ${mediaType}\` is not supported: send application/json, or multipart/form-data with files.`,
  )
}

async function readForm(request: Request, boundary: string): Promise<ChatBody> {
  const parts = readMultipart(await readBytes(request, FORM_LIMIT), boundary)
  const json = parts.find(({ name }) => name === 'json')
  if (!json) throw new FieldError(400, 'bad_request', 'The form has no part `json`.', 'json')
  const text = decode(json, 'json')
  const value = parseJson(text)
  const files = parts.filter(({ name }) => name !== 'json')
  requireOrder(files, value)
  if (files.length > MOST_FILES) {
    throw new FieldError(400, 'too_many_files', `A question takes ${MOST_FILES} files at most.`)
  }
  const digests = await Promise.all(files.map(({ bytes }) => sha256Bytes(bytes)))
  return {
    json: value,
    files: files.map(fileOf),
    text: [text, ...files.map(({ name }, index) => `${name} ${digests[index]}`)].join('\n'),
  }
}

const FILE = /^messages\[(\d{1,4})\]\.files\[(\d{1,4})\]$/

/** Every file has to belong to an existing message, numbered from 0 without gaps. @throws FieldError 400 */
function requireOrder(files: Part[], value: unknown): void {
  const messages = (value as { messages?: unknown } | null)?.messages
  const count = Array.isArray(messages) ? messages.length : 0
  const indices = new Map<number, number[]>()
  for (const { name } of files) {
    const [, message, file] = FILE.exec(name) ?? []
    if (message === undefined || file === undefined) {
      throw new FieldError(
        400,
        'bad_request',
        `The form has a part \`${name.slice(0, 100)}\`, which is not known.`,
      )
    }
    if (Number(message) >= count) {
      throw new FieldError(400, 'bad_request', `\`${name}\` is a file of no message.`, name)
    }
    const known = indices.get(Number(message)) ?? []
    indices.set(Number(message), [...known, Number(file)])
  }
  for (const [message, numbers] of indices) {
    const missing = numbers.findIndex((_, index) => !numbers.includes(index))
    if (missing >= 0) {
      const name = `messages[${message}].files[${missing}]`
      throw new FieldError(400, 'bad_request', `\`${name}\` is missing.`, name)
    }
  }
}

/** The text of a file. @throws FieldError 400 if it is not text */
function fileOf(part: Part): FilePart {
  const { name, filename, type } = part
  const shown = (filename ?? name).slice(0, LONGEST_FILE_NAME)
  if (!isTextFile(shown, type)) {
    throw new FieldError(
      400,
      'unsupported_file',
      `\`${name}\` (${shown}${isVague(type) ? '' : `, ${type}`}) is not supported: attachments have to be text.`,
      name,
    )
  }
  return { type: 'file', name: shown, text: decode(part, name) }
}

function decode({ bytes }: Part, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw new FieldError(400, 'unsupported_file', `\`${name}\` is not text in UTF-8.`, name)
  }
}

// =============================================================================
// A reader of multipart/form-data (RFC 7578) that accepts what clients really send. Pure.
//
// workerd's own parser does not work here. It refuses the body of Microsoft's client, which does not quote the name
// of its first part, and it decodes parts without a file name as text, which damages binary ones.

interface Part {
  name: string
  filename?: string
  /** its media type without parameters, in lower case; '' where it has none */
  type: string
  bytes: Uint8Array
}

const LONGEST_HEAD = 16_384
const MOST_PARTS = 100
const LONGEST_BOUNDARY = 200

const malformed = (why: string): ApiError => badRequest(`The multipart body is malformed: ${why}.`)

/** The boundary that a content type names. @throws ApiError 400 without one */
export function boundaryOf(contentType: string): string {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? bare ?? ''
  if (boundary === '' || boundary.length > LONGEST_BOUNDARY)
    throw malformed('its content type names no boundary')
  return boundary
}

/** @throws ApiError 400 */
export function readMultipart(bytes: Uint8Array, boundary: string): Part[] {
  // A character for each byte: places are the same in both.
  const latin = (given: Uint8Array): string => new TextDecoder('latin1').decode(given)
  const text = latin(bytes)
  const mark = latin(new TextEncoder().encode(`--${boundary}`))
  /** The place of the next delimiter. It must be at the start of a line, with nothing else on that line. */
  const next = (from: number): number => {
    let found = text.indexOf(mark, from)
    while (found >= 0) {
      const isAtStart = found === 0 || text[found - 1] === '\n'
      if (isAtStart && /^(?:--|[\r\n \t])/.test(text.slice(found + mark.length, found + mark.length + 2)))
        return found
      found = text.indexOf(mark, found + 1)
    }
    return -1
  }
  let at = next(0) + mark.length
  const takeLine = (): string => {
    const end = text.indexOf('\n', at)
    if (end < 0) throw malformed('it ends before its last boundary')
    const line = new TextDecoder().decode(bytes.subarray(at, end)).replace(/\r$/, '')
    at = end + 1
    return line
  }
  const parts: Part[] = []
  if (at < mark.length) throw malformed('its boundary is nowhere in it')
  while (!text.startsWith('--', at)) {
    if (parts.length === MOST_PARTS) throw malformed(`it has more than ${MOST_PARTS} parts`)
    takeLine()
    const head: string[] = []
    for (let line = takeLine(), size = 0; line !== ''; line = takeLine()) {
      size += line.length
      if (size > LONGEST_HEAD) throw malformed('the headers of a part are too long')
      head.push(line)
    }
    const end = next(at)
    if (end < 0) throw malformed('it ends before its last boundary')
    // The line break before a delimiter belongs to it.
    const last = end - (text[end - 2] === '\r' ? 2 : 1)
    parts.push({ ...describe(head), bytes: bytes.subarray(at, Math.max(at, last)) })
    at = end + mark.length
  }
  return parts
}

/** What a part's headers say. @throws ApiError 400 for a part without a name */
function describe(head: string[]): Omit<Part, 'bytes'> {
  const header = (name: string): string => {
    const line = head.find((each) => each.toLowerCase().startsWith(`${name}:`))
    return line?.slice(name.length + 1).trim() ?? ''
  }
  const disposition = header('content-disposition')
  const name = parameter(disposition, 'name')
  if (name === undefined) throw malformed('a part of it has no name')
  const filename = parameter(disposition, 'filename')
  const type = header('content-type').split(';')[0]!.trim().toLowerCase()
  return { name, ...(filename !== undefined && { filename }), type }
}

/** A parameter of a header, quoted or not. Browsers write a quote in a file's name as `%22`, others as `\"`. */
function parameter(header: string, name: string): string | undefined {
  const [, quoted, bare] =
    new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(header) ?? []
  return quoted?.replace(/\\(.)/g, '$1').replaceAll('%22', '"') ?? bare
}
