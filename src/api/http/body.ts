/** Reads request bodies: whatever their content type, gzipped or not, up to a limit. */

import type { Gunzip } from 'node:zlib'
import * as v from 'valibot'
import { ApiError, detailed } from '../../errors'
import { type ByteReader, byteReader } from '../../lib/byte-reader'
import { parseExact } from '../../lib/exact-json'
import { requireShallow } from '../../lib/json-depth'
import { describeFault } from '../../lib/json-fault'
import { Pauses, pause } from '../../lib/pause'

/** Bytes of a JSON body after inflating: a document, a schema, a set of searches. */
const BODY_LIMIT = 4 * 1024 * 1024

const GZIP_MAGIC = [0x1f, 0x8b]

/** Bytes of a body that is read in one piece. */
const SMALL = 64 * 1024

/** Bytes of an unwanted body that are read and dropped: the most that any plan of the platform lets through. */
const DRAIN_LIMIT = 512 * 1024 * 1024

/** Bytes to read between pauses when dropping a body. */
const DRAINED_A_PAUSE = 4 * 1024 * 1024

/**
 * The bytes of a body as they arrive, inflated if they begin like gzip. If the reader stops early, the rest is read and
 * dropped.
 *
 * @throws ApiError 400 for invalid gzip
 */
export async function* bodyBytes(request: Request): AsyncGenerator<Uint8Array, void, undefined> {
  if (!request.body) return
  const body = request.body as ReadableStream<Uint8Array>
  const reader = lengthOf(request) <= SMALL ? wholeReader(request) : byteReader(body)
  try {
    const head = await reader.read()
    if (head.done) return
    // Gzip is not detected if the first read is a single byte. No client or server sends a body that way.
    if (GZIP_MAGIC.some((byte, index) => head.value[index] !== byte)) {
      yield head.value
      for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
      return
    }
    try {
      yield* inflate(head.value, reader)
    } catch {
      throw new ApiError(400, 'The request body is not valid gzip.')
    }
  } finally {
    await drain(reader)
  }
}

/** Bytes that a request says its body has. NaN: it does not say. Chunks may be longer than it says (RFC 9112, 6.3). */
const lengthOf = ({ headers }: Request): number =>
  headers.has('transfer-encoding') ? Number.NaN : Number(headers.get('content-length') ?? Number.NaN)

/** Bodies that `readSmallAhead` has begun to read. */
const early = new WeakMap<Request, Promise<ArrayBuffer>>()

/**
 * Begins to read a body, before it is known whether anybody wants it. `readText` takes it from there. Call it once.
 * @returns undefined for a body that is large or compressed. Never rejects
 */
export async function readSmallAhead(request: Request): Promise<string | undefined> {
  if (!request.body || !(lengthOf(request) <= SMALL)) return undefined
  try {
    const reading = request.arrayBuffer()
    early.set(request, reading)
    const bytes = new Uint8Array(await reading)
    return bytes[0] === GZIP_MAGIC[0] ? undefined : new TextDecoder().decode(bytes)
  } catch {
    return undefined
  }
}

/** A small body comes in one call of the platform. Reads of a stream are two at least, each a turn of the event loop. */
function wholeReader(request: Request): ByteReader {
  let isRead = false
  return {
    read: async () => {
      const value = isRead
        ? new Uint8Array()
        : new Uint8Array(await (early.get(request) ?? request.arrayBuffer()))
      isRead = true
      return value.length > 0 ? { done: false, value } : { done: true, value: undefined }
    },
    cancel: async () => {},
  }
}

/**
 * The whole body as text.
 *
 * @param limit bytes. A larger body is refused before all of it is read
 * @throws ApiError 413
 */
export async function readText(request: Request, limit = BODY_LIMIT): Promise<string> {
  if (lengthOf(request) > limit) throw tooLarge(limit)
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for await (const bytes of bodyBytes(request)) {
    size += bytes.byteLength
    if (size > limit) throw tooLarge(limit)
    text += decoder.decode(bytes, { stream: true })
  }
  return text + decoder.decode()
}

/** The body as JSON. @throws ApiError 400 `Bad JSON.`, or 413 */
export const readJson = async (request: Request, limit = BODY_LIMIT): Promise<unknown> =>
  parseJson(await readText(request, limit))

/** The body as JSON, with whole numbers that a double cannot hold as BigInt. @throws ApiError as `readJson` does */
export const readExactJson = async (request: Request): Promise<unknown> =>
  parseJson(await readText(request), parseExact)

/** A body that was read as JSON. @throws ApiError 400 `Bad JSON.` */
export function parseJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  requireShallow(text)
  try {
    return parse(text)
  } catch (error) {
    throw badJson(text, error)
  }
}

/** The error for a text that is not JSON. It names the place of the fault. */
export function badJson(text: string, error: unknown): ApiError {
  const fault = text.trim() === '' ? 'the body is empty' : (describeFault(text) ?? (error as Error).message)
  return detailed(
    400,
    'Bad JSON.',
    `${fault[0]!.toUpperCase()}${fault.slice(1)}${/[.]$/.test(fault) ? '' : '.'}`,
  )
}

export const tooLarge = (limit: number): ApiError =>
  new ApiError(413, `The request body exceeds the maximum of ${limit} bytes.`)

/**
 * Reads and drops a body that nobody wants. Answering without reading it, or cancelling it, resets the connection of a
 * client that is still sending: the client never sees the answer. It also ends the development server.
 */
export async function discardBody(request: Request): Promise<void> {
  // One that is being read must arrive as well.
  await early.get(request)?.catch(() => {})
  if (!request.body || request.body.locked || early.has(request)) return
  await drain(byteReader(request.body as ReadableStream<Uint8Array>))
}

async function drain(reader: ByteReader): Promise<void> {
  try {
    let size = 0
    const pauses = new Pauses(DRAINED_A_PAUSE)
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength
      if (size > DRAIN_LIMIT) return await reader.cancel()
      if (pauses.due(read.value.byteLength)) await pause()
    }
  } catch {
    // The sender has disconnected: nothing is left to drain.
  }
}

// Gzip, inflated no faster than it is read.
//
// workerd's DecompressionStream has no back-pressure: it inflates whatever it is given, which may be a thousand times
// as large, in one step that nothing interrupts, and keeps all of it. `node:zlib` stops after each piece of its
// output until that has been read. It is part of the runtime too, and weighs nothing in the bundle.

/** Bytes of a piece of output. Two of them at most are inflated before they are read. */
const PIECE_BYTES = 64 * 1024

/**
 * Inflates a body whose first bytes have been read.
 *
 * @param head the bytes that have been read
 * @param reader the rest. No read of it is under way any more when the generator has ended
 * @throws whatever is wrong with the gzip, or with reading it
 */
export async function* inflate(
  head: Uint8Array,
  reader: ByteReader,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Load this when the first body needs it. At the start of an isolate it would delay every request by some
  // milliseconds.
  const { createGunzip } = await import('node:zlib')
  const gunzip = createGunzip({
    chunkSize: PIECE_BYTES,
    readableHighWaterMark: PIECE_BYTES,
    // A piece of input waits until the piece before has been inflated completely.
    writableHighWaterMark: 1,
  })
  const fed = feed(gunzip, head, reader)
  try {
    yield* gunzip
  } finally {
    gunzip.destroy()
    await fed
  }
}

/** Writes the input as fast as it is taken. An error of the reader is passed on to the output. */
async function feed(gunzip: Gunzip, head: Uint8Array, reader: ByteReader): Promise<void> {
  const closed = new Promise<void>((resolve) => gunzip.once('close', resolve))
  try {
    for (let bytes: Uint8Array | undefined = head; bytes; bytes = (await reader.read()).value) {
      if (gunzip.destroyed) return
      const drained = new Promise<void>((resolve) => gunzip.once('drain', resolve))
      if (!gunzip.write(bytes)) await Promise.race([drained, closed])
    }
    gunzip.end()
  } catch (error) {
    gunzip.destroy(error as Error)
  }
}

// Checks what a client sent against a schema.

/**
 * @param whole what the message calls the value itself
 * @throws ApiError 400 that names the place of the first fault
 */
export function shaped<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  whole = 'body',
): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value, { abortEarly: true })
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw new ApiError(400, `\`${v.getDotPath(issue) ?? whole}\`: ${issue.message}`)
}
