/** Single documents. Each is written as a bulk of one. */

import * as v from 'valibot'
import { requireCollections } from '../../auth/authenticate'
import { steps } from '../../engines/port'
import { ApiError, failed, unwrap } from '../../errors'
import { once } from '../../lib/once'
import { readStored } from '../../lib/stored-json'
import type { Origin } from '../../search/fault-log'
import { equals, type Filter, filterBy } from '../../search/filter/write'
import type { Document, Step, WriteAction } from '../../search/types'
import { originOf } from '../http/request-log'
import type { Call } from '../http/router'
import {
  answer,
  errorCause,
  illegalArgument,
  incomplete,
  indexNotFound,
  missing,
  OpenSearchError,
  parseError,
  parsingError,
  requireKeys,
  unsupported,
  WRITTEN,
} from './errors'
import { Fields } from './fields'
import { openOrCreate } from './indices'
import { compileQuery } from './query'
import {
  type Index,
  isObject,
  isOn,
  isUnasked,
  type Json,
  openIndex,
  parseObject,
  readBody,
  readObject,
} from './route'
import { queryOf } from './search'
import { FIRST, newId, sourceFilter, toDocument, toSource } from './source'

/** PUT|POST /:index/_doc[/:id], and _create. */
export async function indexDocument(call: Call): Promise<Response> {
  const { query, request, record } = call
  // The path itself can be written in several ways.
  const isCreate = query.op_type === 'create' || record.route?.includes('/_create/')
  if (query.op_type !== undefined && query.op_type !== 'create' && query.op_type !== 'index') {
    throw illegalArgument(`opType must be 'create' or 'index', found: [${query.op_type}]`)
  }
  const source = () => readObject(request, undefined, UNREADABLE)
  return writeOne(call, isCreate ? 'create' : 'index', source, true)
}

/** @param makes whether it creates an index that is missing */
async function writeOne(
  call: Call,
  action: Action,
  read?: () => Promise<Json>,
  makes = false,
): Promise<Response> {
  const { env, path } = call
  const forced = isForced(call.query.refresh)
  const source = await read?.()
  const index = await (makes ? openOrCreate(call, path.collection!) : openIndex(env, path.collection!))
  const operation = { action, index: index.name, id: path.id ?? newId(), ...(source && { source }) }
  const [item] = await writeAll(index, [operation])
  const { status, error, ...result } = item!
  if (isObject(error)) {
    const { type, reason, ...details } = error
    throw new OpenSearchError(status, String(type), String(reason), details)
  }
  return answer({ ...result, ...(forced && FORCED) }, status)
}

/** POST /:index/_update/:id */
export async function updateDocument(call: Call): Promise<Response> {
  const source = await readObject(call.request)
  const makes = source.doc_as_upsert === true || source.upsert !== undefined
  if (makes) requireCollections(call.access, 'documents:create', [call.path.collection!], call.record)
  return writeOne(call, 'update', async () => source, makes)
}

export const deleteDocument = (call: Call): Promise<Response> => writeOne(call, 'delete')

export async function getDocument({ env, path, query }: Call): Promise<Response> {
  const index = await openIndex(env, path.collection!)
  const shown = sourceFilter(undefined, query)
  const document = await read(index, path.id!)
  if (document === undefined) return answer({ _index: index.name, _id: path.id, found: false }, 404)
  return answer(found(index.name, document, shown))
}

const found = (index: string, document: Document, shown: ReturnType<typeof sourceFilter>): Json => ({
  _index: index,
  _id: document.id,
  ...FIRST,
  found: true,
  ...(shown !== undefined && { _source: shown(toSource(document)) }),
})

/** GET /:index/_source/:id */
export async function getSource({ env, path, query }: Call): Promise<Json> {
  const index = await openIndex(env, path.collection!)
  const document = await read(index, path.id!)
  if (document === undefined) throw missing(`Document not found [${index.name}]/[${path.id}]`)
  return (sourceFilter(undefined, query) ?? ((source) => source))(toSource(document))
}

/** Reads a document; undefined if there is none with that id. */
async function read(index: Index, id: string): Promise<Document | undefined> {
  try {
    return unwrap(await index.object.get(id, '', ''))
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    // A deleted index also answers 404, so check that the index exists.
    unwrap(await index.object.schema())
    return undefined
  }
}

/** Documents that one request may ask for by id. */
const MOST_IDS = 500

/** GET|POST [/:index]/_mget */
export async function multiGet(call: Call): Promise<Json> {
  const { env, path, query, access, record } = call
  const body = await readObject(call.request)
  const unknown = (key: string) => parsingError(`unexpected token [START_OBJECT], unknown key [${key}]`)
  requireKeys(body, 'docs ids', unknown)
  const { docs, ids } = body
  const given = docs ?? (Array.isArray(ids) ? ids.map((_id) => ({ _id })) : undefined)
  if (!Array.isArray(given) || given.length === 0) throw incomplete('no documents to get')
  if (given.length > MOST_IDS) throw illegalArgument(`[_mget] takes at most ${MOST_IDS} documents`)
  const wanted = given.map((each) => {
    const asked = isObject(each) ? each : {}
    const strange = (key: string) => illegalArgument(`[_mget] does not support [${key}] of a document`)
    requireKeys(asked, '_index _id _source', strange)
    const { _index = path.collection, _id, _source } = asked
    if (typeof _index !== 'string') throw illegalArgument('index is missing')
    if (typeof _id !== 'string' && typeof _id !== 'number') throw illegalArgument('id is missing')
    return { name: _index, id: String(_id), shown: sourceFilter(_source, query) }
  })
  const names = [...new Set(wanted.map(({ name }) => name))]
  requireCollections(access, record.action!, names, record)
  const indices = new Map<string, Index>()
  for (const name of names) {
    await openIndex(env, name).then(
      (index) => indices.set(name, index),
      (error) => {
        if (!(error instanceof OpenSearchError)) throw error
      },
    )
  }
  const documents: Json[] = []
  for (const { name, id, shown } of wanted) {
    const index = indices.get(name)
    if (index === undefined) {
      const error = indexNotFound(name)
      const cause = errorCause(error, failed(error))
      documents.push({ _index: name, _id: id, error: { root_cause: [cause], ...cause } })
      continue
    }
    const document = await read(index, id)
    documents.push(
      document === undefined
        ? { _index: index.name, _id: id, found: false }
        : found(index.name, document, shown),
    )
  }
  return { docs: documents }
}

// =============================================================================
// POST /:index/_delete_by_query

/** Documents that one step removes at most. */
const BATCH = 1000

/** Removes the documents that a query finds. @throws ApiError 400 without a query, or for one that ranks neighbours; 404 */
export async function deleteByQuery({ env, path, query, request, record }: Call): Promise<Json> {
  const started = Date.now()
  isForced(query.refresh)
  const { conflicts = 'abort', wait_for_completion: wait } = query
  if (conflicts !== 'abort' && conflicts !== 'proceed') {
    throw illegalArgument(`conflicts may only be "proceed" or "abort" but was [${conflicts}]`)
  }
  if (wait !== undefined && !isOn(wait))
    throw unsupported('[wait_for_completion: false] of [_delete_by_query]')
  const body = await readObject(request, {})
  requireKeys(body, 'query', (key) => parsingError(`request does not support [${key}]`))
  const wanted = query.q === undefined ? body.query : queryOf(query)
  if (wanted === undefined) throw parsingError('query is missing')
  const index = await openIndex(env, path.collection!)
  const compiled = compileQuery(wanted, new Fields(unwrap(await index.object.schema())))
  if (compiled.vector !== undefined) throw unsupported('A deletion of neighbours')
  const { deleted, batches } = await remove(index, compiled.filter(false), originOf(record))
  return {
    took: Date.now() - started,
    timed_out: false,
    total: deleted,
    deleted,
    batches,
    version_conflicts: 0,
    noops: 0,
    retries: { bulk: 0, search: 0 },
    throttled_millis: 0,
    requests_per_second: -1,
    throttled_until_millis: 0,
    failures: [],
  }
}

async function remove({ object }: Index, filter: Filter, origin: Origin) {
  let [deleted, batches] = [0, 0]
  if (filter === false) return { deleted, batches }
  const options = { batchSize: BATCH, returnDocuments: false, returnIds: false }
  const step = (after: number): Promise<Step> =>
    filter === true
      ? object.truncate(origin)
      : object.removeWhere(filterBy(filter), { ...options, after }, origin).then(unwrap)
  for await (const { count } of steps(step)) {
    deleted += count
    batches++
  }
  return { deleted, batches }
}

// =============================================================================
// `_bulk`: lines of actions and documents. The whole request is read and checked before the first document is
// written. Then runs of one action on one index go to their collection together, in the order of the request.

type Action = 'index' | 'create' | 'update' | 'delete'

interface Operation {
  action: Action
  index: string
  id: string
  /** the document, or the body of an update */
  source?: Json
  /** why its document cannot be read */
  fault?: ApiError
}

/** The type of the error for a document that is no JSON object. */
const UNREADABLE = 'mapper_parsing_exception'

const FORCED = { forced_refresh: true }

/** Whether `refresh` asks for one at once. Writes are visible in any case. @throws ApiError 400 */
function isForced(refresh: string | undefined): boolean {
  if (isOn(refresh)) return true
  if (refresh === undefined || refresh === 'false' || refresh === 'wait_for') return false
  throw illegalArgument(`Unknown value for refresh: [${refresh}].`)
}

/** The outcome of an operation, as its line in the reply. */
type Item = Json & { status: number }

/** Bytes of a request, inflated: all of it is held in memory while it is checked. */
const BULK_LIMIT = 16 * 1024 * 1024

const MOST_LINES = 500
const MOST_CHARACTERS = 256 * 1024

export async function bulk(call: Call): Promise<Json> {
  const started = Date.now()
  const { access, record, path, query } = call
  const forced = isForced(query.refresh)
  const operations = parseBulk(await readBody(call.request, BULK_LIMIT), path.collection)
  const of = (...actions: Action[]) => [
    ...new Set(operations.filter(({ action }) => actions.includes(action)).map(({ index }) => index)),
  ]
  requireCollections(access, 'documents:import', of('index', 'create', 'update'), record)
  requireCollections(access, 'documents:delete', of('delete'), record)
  const items: Json[] = []
  for (const run of runsOf(operations)) {
    const [{ action, index: name }] = run as [Operation]
    const index = action === 'delete' ? openIndex(call.env, name) : openOrCreate(call, name)
    const written = await index
      .then((opened) => writeAll(opened, run))
      .catch((error) => {
        if (!(error instanceof ApiError)) throw error
        return run.map((operation) => failedItem(name, operation, error))
      })
    items.push(...written.map((item) => ({ [action]: { ...item, ...(forced && !item.error && FORCED) } })))
  }
  const errors = items.some((item) => Object.values(item).some((each) => (each as Json).error !== undefined))
  return { took: Date.now() - started, errors, items }
}

/**
 * Groups operations of one action on one index, as many as one call takes. Each id occurs once, except for its last
 * write.
 */
function runsOf(operations: Operation[]): Operation[][] {
  const runs: Operation[][] = []
  let ids = new Set<string>()
  let size = 0
  for (const operation of operations) {
    const { action, index, id, source = '' } = operation
    const last = runs.at(-1)
    const length = JSON.stringify(source).length
    const fits = last !== undefined && last.length < MOST_LINES && size + length <= MOST_CHARACTERS
    const isAlike = last?.[0]?.action === action && last[0].index === index
    if (fits && isAlike && !ids.has(id)) last.push(operation)
    else {
      runs.push([operation])
      ids = new Set()
      size = 0
    }
    ids.add(id)
    size += length
  }
  return runs
}

/** @throws ApiError 400 if the whole request is faulty */
function parseBulk(text: string, otherwise: string | undefined): Operation[] {
  if (text === '') throw parseError('request body is required')
  if (text.trim() === '') throw incomplete('no requests added')
  if (!text.endsWith('\n')) throw illegalArgument('The bulk request must be terminated by a newline [\\n]')
  const lines = text.split('\n')
  const operations: Operation[] = []
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.trim()
    if (line === '') continue
    const operation = parseAction(line, at + 1, otherwise)
    if (operation.action !== 'delete') {
      const source = lines[++at]?.trim() ?? ''
      if (source === '')
        throw illegalArgument(`Malformed action/metadata line [${at + 1}], a document is missing`)
      try {
        operation.source = parseObject(source, operation.action === 'update' ? undefined : UNREADABLE)
      } catch (error) {
        if (operation.action === 'update' || !(error instanceof ApiError)) throw error
        operation.fault = error
      }
      if (operation.action === 'update') checkUpdate(operation.source!)
    }
    operations.push(operation)
  }
  return operations
}

function parseAction(line: string, number: number, otherwise: string | undefined): Operation {
  const malformed = `Malformed action/metadata line [${number}], expected`
  const [[action, metadata] = [], ...others] = Object.entries(parseObject(line))
  if (action === undefined) throw illegalArgument(`${malformed} FIELD_NAME but found [END_OBJECT]`)
  if (!Object.hasOwn(WRITES, action))
    throw illegalArgument(`${malformed} one of [create, delete, index, update] but found [${action}]`)
  if (others.length > 0) throw illegalArgument(`${malformed} END_OBJECT but found [FIELD_NAME]`)
  if (!isObject(metadata)) throw illegalArgument(`${malformed} START_OBJECT but found [${typeof metadata}]`)
  // Shard routing and the number of update retries have no meaning here.
  const { _index = otherwise, _id, routing: _, retry_on_conflict: __, ...unknown } = metadata
  const strange = Object.keys(unknown).find((key) => !isUnasked(key, unknown[key]))
  if (strange !== undefined) {
    throw illegalArgument(`Action/metadata line [${number}] contains an unknown parameter [${strange}]`)
  }
  if (typeof _index !== 'string' || _index === '') throw incomplete('index is missing')
  if (_id === undefined || _id === null) {
    if (action === 'update' || action === 'delete') throw incomplete('id is missing')
    return { action: action as Action, index: _index, id: newId() }
  }
  return { action: action as Action, index: _index, id: String(_id) }
}

/** @throws ApiError 400 that names what is unknown */
function checkUpdate(source: Json): void {
  const strange = (key: string) => illegalArgument(`[UpdateRequest] does not support [${key}]: give a [doc]`)
  requireKeys(source, 'doc doc_as_upsert upsert detect_noop', strange)
  const { doc, doc_as_upsert, upsert } = source
  if (!isObject(doc)) throw incomplete('script or doc is missing')
  if (upsert !== undefined && !isObject(upsert))
    throw illegalArgument('[UpdateRequest] [upsert] has to be an object')
  if (doc_as_upsert !== undefined && typeof doc_as_upsert !== 'boolean') {
    throw illegalArgument('[UpdateRequest] [doc_as_upsert] has to be a boolean')
  }
}

/** Writes operations of one action with different ids. @throws ApiError if none of them could be written */
async function writeAll(index: Index, operations: Operation[]): Promise<Item[]> {
  const batch = batchOf(index, operations)
  await WRITES[operations[0]!.action](batch)
  return batch.items as Item[]
}

type Batch = ReturnType<typeof batchOf>

/** Operations of one action, and what became of each so far. */
function batchOf(index: Index, operations: Operation[]) {
  const items = operations.map((operation) => check(index.name, operation))
  /** Places of the operations that nothing is known of yet. */
  const open = (): number[] => [...items.keys()].filter((at) => items[at] === undefined)
  const settle = (at: number, result: string, status: number): void => {
    items[at] = item(index.name, operations[at]!.id, result, status)
  }
  /** @param passes whether a failure leaves its operation open */
  const attempt = async (
    action: WriteAction,
    documentIn: (source: Json) => unknown,
    result: string,
    passes: (failure: ApiError, source: Json) => boolean = () => false,
  ): Promise<void> => {
    const some = open()
    const documents = some.map((at) => {
      const { source, id } = operations[at]!
      return toDocument(documentIn(source!) as Json, id)
    })
    const outcomes = await importSome(index, documents, action)
    for (const [number, at] of some.entries()) {
      const failure = outcomes[number]
      if (failure === undefined) settle(at, result, result === 'created' ? 201 : 200)
      else if (!passes(failure, operations[at]!.source!))
        items[at] = failedItem(index.name, operations[at]!, failure)
    }
  }
  return { index, operations, items, open, settle, attempt }
}

const itself = (source: Json): Json => source

const WRITES: Record<Action, (batch: Batch) => Promise<void>> = {
  create: ({ attempt }) => attempt('create', itself, 'created'),
  delete: async ({ index, operations, open, settle }) => {
    const idOf = (at: number) => operations[at]!.id
    const removed = await removeAll(index, open().map(idOf))
    for (const at of open()) {
      const isGone = removed.has(idOf(at))
      settle(at, isGone ? 'deleted' : 'not_found', isGone ? 200 : 404)
    }
  },
  index: async ({ attempt }) => {
    // Creating documents is the only way to learn which already exist.
    await attempt('create', itself, 'created', ({ status }) => status === 409)
    await attempt('upsert', itself, 'updated')
  },
  update: async ({ index, operations, items, open, settle, attempt }) => {
    for (const at of items.length === 1 ? open() : []) {
      const { id, source } = operations[at]!
      const document = await read(index, id)
      if (document !== undefined && holds(document, toDocument(source!.doc as Json, id)))
        settle(at, 'noop', 200)
    }
    const whole = ({ doc_as_upsert, doc, upsert }: Json) => (doc_as_upsert === true ? doc : upsert)
    const creates = ({ status }: ApiError, source: Json) => status === 404 && whole(source) !== undefined
    await attempt('update', ({ doc }) => doc, 'updated', creates)
    await attempt('create', whole, 'created')
  },
}

/** What is wrong with an operation before it is tried. */
function check(name: string, operation: Operation): Item | undefined {
  const { action, id, source, fault } = operation
  try {
    if (fault !== undefined) throw fault
    if (id === '') throw illegalArgument('if _id is specified it must not be empty')
    if (action === 'delete') return undefined
    if (action === 'update') {
      checkUpdate(source!)
      toDocument((source!.upsert ?? {}) as Json, id)
    }
    toDocument((action === 'update' ? source!.doc : source) as Json, id)
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return failedItem(name, operation, error)
    throw error
  }
}

/** A line of the collection's reply to an import. */
const Imported = once(() =>
  v.variant('success', [
    v.looseObject({ success: v.literal(true) }),
    v.looseObject({ success: v.literal(false), error: v.string(), code: v.number() }),
  ]),
)

/** @returns for each document, in order, why it could not be stored */
async function importSome(index: Index, documents: Json[], action: WriteAction) {
  if (documents.length === 0) return []
  const lines = documents.map((document) => JSON.stringify(document))
  // Refuse values of another type: coercing them would change the source.
  const options = { action, dirtyValues: 'reject', returnDocument: false, returnId: false } as const
  const { results } = unwrap(await index.object.importLines(lines, options))
  return results.split('\n').map((line) => {
    const imported = readStored(Imported(), line)
    return imported.success ? undefined : new ApiError(imported.code, imported.error)
  })
}

/** Whether a filter can hold the id as it is. Documents with other ids are removed one by one. */
const isPlain = (id: string): boolean => !id.includes('`') && id.trim() === id

/** @returns the ids that existed */
async function removeAll({ object }: Index, ids: string[]): Promise<Set<string>> {
  const removed = new Set<string>()
  const plain = ids.filter(isPlain)
  const options = { batchSize: MOST_LINES, returnDocuments: false, returnIds: true }
  for (let done = plain.length === 0; !done; ) {
    const step = unwrap(await object.removeWhere(filterBy(equals('id', plain, false)), options))
    for (const id of step.ids ?? []) removed.add(id)
    done = step.done
  }
  for (const id of ids.filter((id) => !isPlain(id))) {
    const outcome = await object.remove(id, false)
    if (outcome.ok) removed.add(id)
    else if (outcome.error.status !== 404) unwrap(outcome)
  }
  return removed
}

/** Whether a document already has everything that an update would write. */
function holds(document: unknown, patch: unknown): boolean {
  if (!isObject(patch)) return JSON.stringify(document) === JSON.stringify(patch)
  if (!isObject(document)) return false
  const isIn = ([key, value]: [string, unknown]) =>
    value === null ? !Object.hasOwn(document, key) : holds(document[key], value)
  return Object.entries(patch).every(isIn)
}

const item = (name: string, id: string, result: string, status: number): Item => ({
  _index: name,
  _id: id,
  ...FIRST,
  result,
  _shards: WRITTEN,
  status,
})

function failedItem(name: string, { id, action }: Operation, error: ApiError): Item {
  const told = named(error, id, action)
  // OpenSearch names the index where the document's own state is at fault.
  const place =
    told.status === 404 || told.status === 409 ? { index: name, shard: '0', index_uuid: '_na_' } : {}
  return {
    _index: name,
    _id: id,
    status: told.status,
    error: { ...errorCause(told, failed(told)), ...place },
  }
}

/** The collection's refusal in OpenSearch's words. */
function named(error: ApiError, id: string, action: Action): ApiError {
  if (error instanceof OpenSearchError) return error
  if (error.status === 404 && action === 'update') {
    return new OpenSearchError(404, 'document_missing_exception', `[${id}]: document missing`)
  }
  if (error.status === 409) {
    const reason = `[${id}]: version conflict, document already exists (current version [1])`
    return new OpenSearchError(409, 'version_conflict_engine_exception', reason)
  }
  if (error.status === 400) return new OpenSearchError(400, 'mapper_parsing_exception', error.message)
  return error
}
