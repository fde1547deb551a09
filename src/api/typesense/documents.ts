/** Documents: one by one, by filter, and imported line by line. */
import { type DocumentStore, steps } from '../../engines/port'
import { badRequest, unwrap } from '../../errors'
import { Pauses, pause } from '../../lib/waiting'
import { findCollection } from '../../registry/collections'
import { documentsOf } from '../../registry/engines'
import type { CollectionRpc } from '../../search/collection/handle'
import type { Origin } from '../../search/fault-log'
import { insteadOf, passes, type Refused, refused } from '../../search/refused'
import type {
  DirtyValues,
  ImportOptions,
  SearchParameters,
  Step,
  WriteAction,
  WriteOptions,
} from '../../search/types'
import { byteLength } from '../../turn/prompt'
import { bodyBytes, isTrue, readText } from '../http/body'
import { type FailedRequest, failureOf, json } from '../http/deliver'
import { joinScope } from '../http/plan'
import { originOf, type RequestRecord } from '../http/request-log'
import { type Call, type Route, route } from '../http/router'
import { openCollection } from './collections'
import { plainText, streamText } from './encoder'

const DELETE_BATCH = 1_000

async function createDocument({ env, request, path, query, record }: Call): Promise<Response> {
  const options = { ...writeOptions(query), ...originOf(record) }
  const collection = await openCollection(env, path.collection!)
  return json(unwrap(await collection.write(await readText(request), options)), 201)
}

async function getDocument({ env, path, query, access, record }: Call): Promise<object> {
  const collection = await openCollection(env, path.collection!)
  const { include_fields: include = '', exclude_fields: exclude = '' } = query
  const scope = { ...(await joinScope(env, access, query, 'documents:get')), ...originOf(record) }
  return unwrap(await collection.get(path.id!, include, exclude, scope))
}

async function patchDocument({ env, request, path, query, record }: Call): Promise<object> {
  const collection = await openCollection(env, path.collection!)
  const { dirtyValues: dirty } = dirtyValues(query)
  return unwrap(await collection.patch(path.id!, await readText(request), dirty, originOf(record)))
}

async function deleteDocument({ env, path, query, record }: Call): Promise<object> {
  const collection = await openCollection(env, path.collection!)
  return unwrap(await collection.remove(path.id!, isTrue(query.ignore_not_found), originOf(record)))
}

async function patchDocuments({ env, request, path, query, access, record }: Call): Promise<object> {
  const filterBy = requireFilter(query.filter_by)
  requireKnownFields(query)
  const { dirtyValues: dirty } = dirtyValues(query)
  const collection = await openCollection(env, path.collection!)
  const scope = { ...(await joinScope(env, access, query)), ...originOf(record) }
  const body = await readText(request)
  const step = (after: number) => collection.updateWhere(filterBy, body, after, scope, dirty).then(unwrap)
  // An empty filter names no document; `*` names all.
  return { num_updated: filterBy === '' ? 0 : await counted(steps(step)) }
}

async function deleteDocuments({ env, path, query, access, record }: Call): Promise<object> {
  if (isTrue(query.truncate)) return truncate(await openCollection(env, path.collection!), originOf(record))
  const filterBy = requireFilter(query.filter_by)
  requireKnownFields(query)
  const options = {
    batchSize: deleteBatch(query.batch_size),
    returnDocuments: isTrue(query.return_doc),
    returnIds: isTrue(query.return_id),
  }
  const collection = await openCollection(env, path.collection!)
  const scope = { ...(await joinScope(env, access, query)), ...originOf(record) }
  const step = (after: number) => collection.removeWhere(filterBy, { ...options, after }, scope).then(unwrap)
  const removed: Step[] = []
  if (filterBy !== '') for await (const taken of steps(step)) removed.push(taken)
  return {
    num_deleted: await counted(removed),
    ...(options.returnDocuments && { documents: removed.flatMap(({ documents = [] }) => documents) }),
    ...(options.returnIds && { ids: removed.flatMap(({ ids = [] }) => ids) }),
  }
}

async function counted(taken: AsyncIterable<Step> | Iterable<Step>): Promise<number> {
  let all = 0
  for await (const { count } of taken) all += count
  return all
}

const truncate = async (collection: DocumentStore, origin: Origin): Promise<object> => ({
  num_deleted: await counted(steps(() => collection.truncate(origin))),
})

function requireFilter(filterBy: string | undefined): string {
  if (filterBy === undefined) throw badRequest('Parameter `filter_by` must be provided.')
  return filterBy.trim()
}

function deleteBatch(batchSize: string | undefined): number {
  if (batchSize === undefined) return DELETE_BATCH
  if (!/^0*[1-9]\d*$/.test(batchSize)) {
    throw badRequest('Parameter `batch_size` must be a positive integer.')
  }
  return Math.min(Number(batchSize), DELETE_BATCH)
}

async function exportDocuments({ env, path, query, access, record }: Call): Promise<Response> {
  requireKnownFields(query)
  const collection = await openCollection(env, path.collection!)
  const options = {
    filterBy: query.filter_by ?? '',
    include: query.include_fields ?? '',
    exclude: query.exclude_fields ?? '',
  }
  const scope = { ...(await joinScope(env, access, query, 'documents:export')), ...originOf(record) }
  return plainText(await streamText(toItsEnd(unwrap(await collection.exportLines(options, scope)), record)))
}

/** A body that breaks off looks complete to its reader (encoder.ts), so a last line reports the error. */
async function* toItsEnd(
  lines: AsyncIterable<string>,
  record: RequestRecord,
): AsyncGenerator<string, void, undefined> {
  let begun = false
  try {
    for await (const piece of lines) {
      yield piece
      begun = true
    }
  } catch (error) {
    const { status, message } = failureOf(error, record)
    yield `${begun ? '\n' : ''}${JSON.stringify({ error: message, code: status })}`
  }
}

const DOCUMENTS = '/collections/:collection/documents'

export const documentRoutes: Route[] = [
  route('POST', `${DOCUMENTS}/import`, 'documents:import', importDocuments),
  route('GET', `${DOCUMENTS}/export`, 'documents:export', exportDocuments),
  route('POST', DOCUMENTS, 'documents:create', createDocument),
  route('PATCH', DOCUMENTS, 'documents:update', patchDocuments),
  route('DELETE', DOCUMENTS, 'documents:delete', deleteDocuments),
  route('GET', `${DOCUMENTS}/:id`, 'documents:get', getDocument),
  route('PATCH', `${DOCUMENTS}/:id`, 'documents:update', patchDocument),
  route('DELETE', `${DOCUMENTS}/:id`, 'documents:delete', deleteDocument),
]

// =============================================================================
// POST /collections/:collection/documents/import: JSONL in, a result line for every document out, in order.
//
// The body is never in memory as a whole. While the collection writes one batch, the next one is read. A batch is one
// transaction, which delays searches, so batches shrink while somebody searches.

const FULL_SIZE: BatchSize = { lines: 500, characters: 512 * 1024 }
const SMALL_SIZE: BatchSize = { lines: 50, characters: 24 * 1024 }

/**
 * For a cluster: each batch is a request, of which a Worker may make only so many. A batch is kept until it is answered, so that
 * another node can be asked.
 */
const CLUSTER_SIZE: BatchSize = { lines: 10_000, characters: 2 * 1024 * 1024, inBytes: true }

/** Bytes of results kept for a client that sends everything before it reads: some two million lines without documents. */
const READ_AHEAD = 32 * 1024 * 1024

async function importDocuments({ env, request, path, query, record }: Call): Promise<Response> {
  const options: ImportOptions = {
    ...writeOptions(query),
    ...originOf(record),
    returnDocument: isTrue(query.return_doc),
    returnId: isTrue(query.return_id),
  }
  // Checked because callers send it, but not used: the size of a batch depends on bytes and on who is waiting.
  if (query.batch_size !== undefined && !/^0*[1-9]\d*$/.test(query.batch_size)) {
    throw badRequest('Parameter `batch_size` must be a positive integer.')
  }
  const place = await findCollection(env, path.collection!)
  const size = place.engine === 'object' ? FULL_SIZE : CLUSTER_SIZE
  const results = importResults(documentsOf(env, place), bodyBytes(request), options, record, size)
  return plainText(await streamText(results, READ_AHEAD))
}

/** Result lines, a few at a time. Joined they are the body of the reply. */
export async function* importResults(
  collection: Pick<CollectionRpc, 'importLines'>,
  body: AsyncIterable<Uint8Array>,
  options: ImportOptions,
  record?: FailedRequest,
  full = FULL_SIZE,
): AsyncGenerator<string, void, undefined> {
  let size = full
  let separator = ''
  const send = async (batch: Batch): Promise<string> => {
    if ('tooLong' in batch) return failure(`Document exceeds the maximum of ${LINE_LIMIT} characters.`, 413)
    try {
      const { results, busy } = unwrap(await collection.importLines(batch.lines, options))
      size = busy ? SMALL_SIZE : full
      return results
    } catch (error) {
      // The first batch decides the status. After it the reply has begun, and every document gets a line.
      if (separator === '') throw error
      const { status, message } = failureOf(error, record)
      return batch.lines.map(() => failure(message, status)).join('\n')
    }
  }

  let sent: Promise<string> | undefined
  try {
    for await (const batch of batches(splitLines(body), () => size)) {
      if (sent) {
        yield separator + (await sent)
        separator = '\n'
        // If the body arrives faster than it is written, every read is ready at once, and so is every call inside one
        // process: without a pause the event loop would serve nobody else.
        await pause()
      }
      sent = send(batch)
      // If reading the next batch fails first, ignore this batch's own failure.
      sent.catch(() => {})
    }
    if (sent) yield separator + (await sent)
  } catch (error) {
    if (separator === '') throw error
    const { status, message } = failureOf(error, record)
    yield separator + failure(message, status)
  }
}

const failure = (error: string, code: number): string => JSON.stringify({ success: false, error, code })

// =============================================================================
// The parameters that every way of writing documents shares.

const ACTIONS = new Set<string>(['create', 'update', 'upsert', 'emplace'] satisfies WriteAction[])
const DIRTY_VALUES = new Set<string>([
  'coerce_or_reject',
  'coerce_or_drop',
  'drop',
  'reject',
] satisfies DirtyValues[])

/** Parameters that are refused for changing, deleting and exporting documents. */
export const REFUSED_OF_DOCUMENTS: Readonly<Record<string, Refused>> = {
  validate_field_names: refused('A filter names fields of the schema alone.', '', 'true'),
}

/** @throws ApiError 400 for a filter whose unknown fields are to be passed over */
function requireKnownFields(query: SearchParameters): void {
  for (const [name, refusal] of Object.entries(REFUSED_OF_DOCUMENTS)) {
    const value = query[name]
    if (value === undefined || passes(refusal, value)) continue
    throw badRequest(`Parameter \`${name}\` is not supported here. ${insteadOf(refusal)}`)
  }
}

/** @throws ApiError 400 for an unknown action */
function writeOptions(query: SearchParameters): WriteOptions {
  const action = query.action ?? 'create'
  if (!ACTIONS.has(action)) {
    throw badRequest('Parameter `action` must be a create|update|upsert.')
  }
  return { action: action as WriteAction, ...dirtyValues(query) }
}

/** An unknown value means the default, which depends on the schema. */
function dirtyValues(query: SearchParameters): { dirtyValues?: DirtyValues } {
  const value = query.dirty_values?.toLowerCase() ?? ''
  return DIRTY_VALUES.has(value) ? { dirtyValues: value as DirtyValues } : {}
}

// =============================================================================
// Reads JSONL in bounded memory: lines from bytes, batches from lines. Blank lines and overlong lines make no batch, and there
// can be any number of them, so reading pauses by the bytes and lines read.

/** UTF-16 units of the longest line: a row of SQLite holds 2 MB. */
export const LINE_LIMIT = 2 * 1024 * 1024

/** Bytes, and lines, to read between pauses. Both take a few milliseconds. */
const BYTES_A_PAUSE = 512 * 1024
const LINES_A_PAUSE = 10_000

const LINE_FEED = 0x0a

const [TAB, CARRIAGE_RETURN, SPACE] = [0x09, 0x0d, 0x20]

/** Lines that are written together, or a line that is too long. */
type Batch = { lines: string[] } | { tooLong: true }

interface BatchSize {
  lines: number
  /** UTF-16 units, or bytes of UTF-8 where `inBytes` is true */
  characters: number
  inBytes?: true
}

/** The non-blank lines of a text. In place of a line longer than `limit` comes undefined. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  limit = LINE_LIMIT,
): AsyncGenerator<string | undefined, void, undefined> {
  const decoder = new TextDecoder()
  const byBytes = new Pauses(BYTES_A_PAUSE)
  const byLines = new Pauses(LINES_A_PAUSE)
  // The chunks of a line are joined once, at its end. To join at every chunk would take quadratic time.
  let parts: string[] = []
  let length = 0
  const add = (part: string): void => {
    length += part.length
    if (length > limit) parts = []
    else parts.push(part)
  }
  /** @returns the line that ends here: undefined if it is too long, empty if it is blank */
  const end = (): string | undefined => {
    const line = parts.length === 1 ? parts[0]! : parts.join('')
    const tooLong = length > limit
    parts = []
    length = 0
    if (tooLong) return undefined
    return line.trim() === '' ? '' : line
  }

  for await (const bytes of chunks) {
    if (byBytes.due(bytes.byteLength)) await pause()
    let chunk = bytes
    if (length > limit) {
      // A line that is too long is not decoded any further, only its end is looked for: in UTF-8 the byte of a line feed is
      // never part of another character.
      const next = bytes.indexOf(LINE_FEED)
      if (next < 0) continue
      chunk = bytes.subarray(next)
    }
    const text = decoder.decode(chunk, { stream: true })
    let start = length === 0 ? afterBlankLines(text, 0) : 0
    for (let at = text.indexOf('\n', start); at >= 0; at = text.indexOf('\n', start)) {
      add(text.slice(start, at))
      const line = end()
      if (line !== '') yield line
      start = afterBlankLines(text, at + 1)
      if (byLines.due(1)) await pause()
    }
    add(text.slice(start))
  }
  add(decoder.decode())
  const last = end()
  if (last !== '') yield last
}

/**
 * Passes blank lines without a pause for each: a small gzipped body can have hundreds of millions.
 * @param start of a line
 * @returns the start of the next line with something in it, or that does not end in this text
 */
function afterBlankLines(text: string, start: number): number {
  let line = start
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === LINE_FEED) line = at + 1
    else if (code !== SPACE && code !== TAB && code !== CARRIAGE_RETURN) break
  }
  return line
}

/** Gathers lines into batches. `size` is called before every line, because it can change. */
export async function* batches(
  lines: AsyncIterable<string | undefined>,
  size: () => BatchSize,
): AsyncGenerator<Batch, void, undefined> {
  let gathered: string[] = []
  let characters = 0
  for await (const line of lines) {
    const full = size()
    const length = (full.inBytes ? line && byteLength(line) : line?.length) || 0
    const fits = gathered.length < full.lines && characters + length <= full.characters
    if (gathered.length > 0 && (line === undefined || !fits)) {
      yield { lines: gathered }
      gathered = []
      characters = 0
    }
    if (line === undefined) {
      yield { tooLong: true }
    } else {
      gathered.push(line)
      characters += length
    }
  }
  if (gathered.length > 0) yield { lines: gathered }
}
