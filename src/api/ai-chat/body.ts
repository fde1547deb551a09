/** Reads the body of a request: JSON, or a form with JSON and files. */
import { sha256Bytes } from '../../auth/digest'
import type { FilePart } from '../../lib/parts'
import { isTextFile, isVague, LONGEST_FILE_NAME, MOST_FILES } from '../../lib/text-file'
import { bodyBytes, parseJson, readText, tooLarge } from '../http/body'
import { FieldError } from './errors'
import { boundaryOf, type Part, readMultipart } from './multipart'

/** Bytes of JSON: enough for a long transcript. */
const JSON_LIMIT = 1024 * 1024
/** Bytes of a form. Large enough that an image can be read, and refused by its name, without breaking the connection. */
const FORM_LIMIT = 10 * 1024 * 1024

export interface ChatBody {
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
