/** Reads request bodies: whatever their content type, gzipped or not, up to a limit. */
import type { Gunzip } from 'node:zlib'
import * as v from 'valibot'
import { ApiError, badRequest, detailed } from '../../errors'
import { type ByteReader, byteReader } from '../../lib/byte-reader'
import { describeFault, parseExact, requireShallow } from '../../lib/json'
import { namesOf, nearest } from '../../lib/nearest'
import { Pauses, pause } from '../../lib/waiting'
import { parseFilter } from '../../search/filter/parse'
import { splitOutside } from '../../search/fragment'
import { isObject } from '../../search/schema/values'
import type { SearchParameters } from '../../search/types'

/** Bytes of a JSON body after inflating: a document, a schema, a set of searches. */
const BODY_LIMIT = 4 * 1024 * 1024

const GZIP_MAGIC = [0x1f, 0x8b]

/** Bytes of a body that is read ahead. */
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
  const begun = early.get(request)
  const body = begun ? new Response(await begun).body : request.body
  if (!body) return
  const reader = byteReader(body as ReadableStream<Uint8Array>)
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
      throw badRequest('The request body is not valid gzip.')
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

/** The whole body as text. @throws as `readBytes` */
export const readText = async (request: Request, limit = BODY_LIMIT): Promise<string> =>
  new TextDecoder().decode(await readBytes(request, limit))

/** The whole body. @param limit bytes. A larger body is refused before all of it is read @throws ApiError 413 */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const tooLarge = () => new ApiError(413, `The request body exceeds the maximum of ${limit} bytes.`)
  if (lengthOf(request) > limit) throw tooLarge()
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of bodyBytes(request)) {
    size += piece.byteLength
    if (size > limit) throw tooLarge()
    pieces.push(piece)
  }
  return pieces.length === 1 ? pieces[0]! : new Uint8Array(await new Blob(pieces).arrayBuffer())
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
async function* inflate(head: Uint8Array, reader: ByteReader): AsyncGenerator<Uint8Array, void, undefined> {
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
 * @param whole what the message calls the value itself; null: nothing
 * @param refusal the error for a fault, and for its place in the value
 * @throws ApiError 400 that names the place of the first fault
 */
export function shaped<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  whole: string | null = 'body',
  refusal = (message: string, _place: string | null): ApiError => badRequest(message),
): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value, { abortEarly: true })
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  const place = v.getDotPath(issue)
  const named = place ?? whole
  throw refusal(named === null ? issue.message : `\`${named}\`: ${issue.message}`, place)
}

// =============================================================================
// Reads request parameters from a query string, and joins parameters from several sources.

/**
 * Parses a query string as Typesense does (contract 0). Values are decoded, keys are not. If a key is given twice, the
 * last value counts, but filters add up. An unencoded `&&` belongs to its value.
 *
 * @param query with or without its leading question mark
 */
export function parseQuery(query: string): SearchParameters {
  const parameters: SearchParameters = {}
  for (const pair of query.replace(/^\?/, '').split(/(?<!&)&(?!&)/)) {
    const equals = pair.indexOf('=')
    const key = (equals < 0 ? pair : pair.slice(0, equals)).replace(/^&+/, '')
    if (key === '' || key === '__proto__') continue
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
    parameters[key] =
      key === 'filter_by' && parameters[key] !== undefined ? `${parameters[key]}&&${value}` : value
  }
  return parameters
}

const decode = (value: string): string =>
  value
    .replaceAll('+', ' ')
    .replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
      new TextDecoder().decode(
        Uint8Array.from(escapes.slice(1).split('%'), (digits) => Number.parseInt(digits, 16)),
      ),
    )

/** True iff the parameter is exactly `true`. */
export const isTrue = (value: string | undefined): boolean => value === 'true'

/** Names in a comma-separated list. A join such as `$authors(name, bio)` is one of them, commas and all. */
export const listed = (value: string | undefined): string[] => splitOutside(value ?? '').filter(Boolean)

/** A value of a JSON body as a parameter. @returns undefined for a list, an object or null */
export function parameterValue(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return ['number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** The properties of a JSON body as parameters. */
export const asParameters = (given: Record<string, unknown>): SearchParameters =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]))

/** Parameters of a scoped key that are for its conversation and not for its searches. */
const CONVERSATION = ['q', 'user_id', 'x-typesense-user-id']

/** The parameters that a scoped key fixes for its searches. */
export function searchParametersOf(embedded: Readonly<SearchParameters>): SearchParameters {
  const left = { ...embedded }
  for (const name of CONVERSATION) delete left[name]
  return left
}

/** `parameters`, with missing ones from `lower`. Filters of both apply. @throws ApiError 400 for a bad filter */
export const fill = (parameters: SearchParameters, lower: SearchParameters): SearchParameters => ({
  ...lower,
  ...parameters,
  ...bothFilters(parameters, lower),
})

/** Two names for the same parameter: fixing one fixes both. */
const TWINS = [
  ['per_page', 'limit'],
  ['page', 'offset'],
] as const

/**
 * `parameters`, overridden by `upper`. Filters of both apply, to pinned documents too: a caller who cannot lift a filter
 * must not get around it by pinning.
 * @throws ApiError 400 as `fill` does
 */
export const override = (
  parameters: SearchParameters,
  upper: Readonly<SearchParameters>,
): SearchParameters => ({
  ...withoutTwins(parameters, upper),
  ...(upper.filter_by && { filter_curated_hits: 'true' }),
  ...upper,
  ...bothFilters(parameters, upper),
})

function withoutTwins(parameters: SearchParameters, upper: Readonly<SearchParameters>): SearchParameters {
  const left = { ...parameters }
  for (const twins of TWINS) {
    if (twins.some((name) => upper[name] !== undefined)) for (const name of twins) delete left[name]
  }
  return left
}

function bothFilters(a: Readonly<SearchParameters>, b: Readonly<SearchParameters>): SearchParameters {
  const only = a.filter_by || b.filter_by
  if (!only) return {}
  if (!a.filter_by || !b.filter_by) return { filter_by: only }
  // Each has to be valid by itself. An open quote or parenthesis in one could otherwise swallow the other, which may be the
  // filter of a scoped key.
  parseFilter(a.filter_by)
  parseFilter(b.filter_by)
  return { filter_by: `(${a.filter_by}) && (${b.filter_by})` }
}

/** @returns 0 for none @throws ApiError 400 with this message */
export function unsigned(value: string | undefined, message: string): number {
  if (value === undefined) return 0
  if (!/^\d{1,9}$/.test(value)) throw badRequest(message)
  return Number(value)
}

// Adds to a refusal which name may have been mistyped, on wires that fix the message and ignore unknown names.

/** Search parameters whose mistyped name does most harm: a search without its filter finds everything. */
export const COMMON_PARAMETERS = namesOf(`
  query_by filter_by sort_by per_page include_fields exclude_fields vector_query
`)

/** Names that an operation requires, by their place. A mistyped one gets the request refused. */
export const NEEDED = {
  collection: ['name', 'fields'],
  field: ['name', 'type'],
  key: ['description', 'actions', 'collections'],
  model: ['model_name', 'max_bytes', 'history_collection'],
  alias: ['collection_name'],
  preset: ['value'],
  stopwords: ['stopwords'],
  set: ['items'],
  search: COMMON_PARAMETERS,
} as const

/**
 * Runs an operation. If it is refused with 400, the error's `detail` names a property that is near a needed one which is
 * missing.
 * @param given the body or parameters of the request; if there are several objects, each is checked
 * @param needed names that the operation needs
 * @throws what `run` throws
 */
export async function hinting<T>(
  given: unknown | unknown[],
  needed: readonly string[],
  run: () => T | Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || error.detail !== undefined) throw error
    const hint = hintFor([given].flat(), needed)
    if (hint === undefined) throw error
    const { status, message, retryAfter, confidential, code } = error
    throw new ApiError(status, message, retryAfter, confidential, code, hint)
  }
}

/** Reads the body of an operation, and runs it in the same way. */
export async function hintingBody<T>(
  request: Request,
  needed: readonly string[],
  run: (body: unknown) => T | Promise<T>,
): Promise<T> {
  const body = await readJson(request)
  return hinting(body, needed, () => run(body))
}

function hintFor(given: unknown[], needed: readonly string[]): string | undefined {
  for (const each of given.filter(isObject)) {
    const names = Object.keys(each)
    const missing = needed.filter((name) => !names.includes(name))
    for (const name of names.filter((one) => !needed.includes(one))) {
      const meant = nearest(name, missing)
      if (meant !== undefined) return `Unknown property \`${name}\`; did you mean \`${meant}\`?`
    }
  }
  return undefined
}
