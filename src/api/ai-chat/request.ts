/** Reads a body of the AI Chat Protocol (contract chat-protocols 1.4). Pure. */

import { sha256Bytes } from '../../auth/digest'
import { ApiError } from '../../errors'
import { contentOf, type FilePart, textOf } from '../../lib/parts'
import { isTextFile, isVague, LONGEST_FILE_NAME, MOST_FILES } from '../../lib/text-file'
import type { TranscriptMessage } from '../../turn/look-back'
import { LONGEST_QUESTION } from '../../turn/question-length'
import { bodyBytes, parseJson, readText, tooLarge } from '../http/body'
import { asRecord, type Dialect } from './dialect'
import { FieldError } from './errors'

const MOST_MESSAGES = 1_000
const LONGEST_SESSION = 512
const LONGEST_USER = 256

interface ChatRequest {
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

/** @throws ApiError 413 */
async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge(limit)
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of bodyBytes(request)) {
    size += piece.byteLength
    if (size > limit) throw tooLarge(limit)
    pieces.push(piece)
  }
  const whole = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return whole
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

const CR = 0x0d
const LF = 0x0a
const DASH = 0x2d

const malformed = (why: string): ApiError => new ApiError(400, `The multipart body is malformed: ${why}.`)

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
  const reader = new Reader(bytes, boundary)
  const parts: Part[] = []
  reader.skipPreamble()
  while (!reader.atEnd) {
    if (parts.length === MOST_PARTS) throw malformed(`it has more than ${MOST_PARTS} parts`)
    parts.push(reader.readPart())
  }
  return parts
}

class Reader {
  readonly #bytes: Uint8Array
  readonly #delimiter: Uint8Array
  /** after the last delimiter, before its line break */
  #at = 0

  constructor(bytes: Uint8Array, boundary: string) {
    this.#bytes = bytes
    this.#delimiter = new TextEncoder().encode(`--${boundary}`)
  }

  skipPreamble(): void {
    const start = this.#findDelimiter(0)
    if (start === undefined) throw malformed('its boundary is nowhere in it')
    this.#at = start + this.#delimiter.length
  }

  /** Whether the delimiter before this place was the last one. */
  get atEnd(): boolean {
    return this.#bytes[this.#at] === DASH && this.#bytes[this.#at + 1] === DASH
  }

  readPart(): Part {
    this.#skipLine()
    const head = this.#readHead()
    const start = this.#at
    const end = this.#findDelimiter(start)
    if (end === undefined) throw malformed('it ends before its last boundary')
    this.#at = end + this.#delimiter.length
    return { ...describe(head), bytes: this.#bytes.subarray(start, Math.max(start, this.#beforeBreak(end))) }
  }

  /** The position of the next delimiter. It must be at the start of a line, with nothing else on that line. */
  #findDelimiter(from: number): number | undefined {
    for (let at = from; ; at++) {
      at = this.#bytes.indexOf(DASH, at)
      if (at < 0) return undefined
      if (this.#isDelimiter(at)) return at
    }
  }

  #isDelimiter(at: number): boolean {
    if (at > 0 && this.#bytes[at - 1] !== LF) return false
    if (!this.#delimiter.every((byte, index) => this.#bytes[at + index] === byte)) return false
    const after = this.#bytes[at + this.#delimiter.length]
    const next = this.#bytes[at + this.#delimiter.length + 1]
    if (after === DASH) return next === DASH
    return after === CR || after === LF || after === 0x20 || after === 0x09
  }

  /** The position of the line break before a delimiter. The line break belongs to the delimiter. */
  #beforeBreak(delimiter: number): number {
    const feed = delimiter - 1
    return this.#bytes[feed - 1] === CR ? feed - 1 : feed
  }

  #skipLine(): void {
    const feed = this.#bytes.indexOf(LF, this.#at)
    if (feed < 0) throw malformed('it ends before its last boundary')
    this.#at = feed + 1
  }

  /** The lines before an empty one. */
  #readHead(): string[] {
    const lines: string[] = []
    for (let size = 0; ; ) {
      const feed = this.#bytes.indexOf(LF, this.#at)
      if (feed < 0) throw malformed('it ends before its last boundary')
      const line = new TextDecoder().decode(this.#bytes.subarray(this.#at, feed)).replace(/\r$/, '')
      this.#at = feed + 1
      if (line === '') return lines
      size += line.length
      if (size > LONGEST_HEAD) throw malformed('the headers of a part are too long')
      lines.push(line)
    }
  }
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
