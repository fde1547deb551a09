/** Single documents. Each is written as a bulk of one. */
import { requireCollections } from '../../auth/admit'
import type { Document } from '../../search/types'
import type { Call } from '../http/route'
import { FORCED, isForced, type Operation, UNREADABLE, writeAll } from './bulk'
import { answer, illegalArgument, indexNotFound, OpenSearchError, parsingError } from './errors'
import { openOrCreate } from './indices'
import { FIRST, read } from './reading'
import { type Index, isObject, type Json, openIndex, readObject } from './route'
import { newId, sourceFilter, toSource } from './source'

/** PUT|POST /:index/_doc[/:id], and _create. */
export async function indexDocument(call: Call): Promise<Response> {
  const { path, query, request, record } = call
  // The path itself can be written in several ways.
  const isCreate = query.op_type === 'create' || record.route?.includes('/_create/')
  if (query.op_type !== undefined && query.op_type !== 'create' && query.op_type !== 'index') {
    throw illegalArgument(`opType must be 'create' or 'index', found: [${query.op_type}]`)
  }
  const forced = isForced(query.refresh)
  const source = await readObject(request, undefined, UNREADABLE)
  const index = await openOrCreate(call, path.collection!)
  return writeOne(index, forced, {
    action: isCreate ? 'create' : 'index',
    index: index.name,
    id: path.id ?? newId(),
    source,
  })
}

async function writeOne(index: Index, forced: boolean, operation: Operation): Promise<Response> {
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
  const { env, path, query, access, record, request } = call
  const forced = isForced(query.refresh)
  const source = await readObject(request)
  const makes = source.doc_as_upsert === true || source.upsert !== undefined
  if (makes) requireCollections(access, 'documents:create', [path.collection!], record)
  const index = makes ? await openOrCreate(call, path.collection!) : await openIndex(env, path.collection!)
  return writeOne(index, forced, { action: 'update', index: index.name, id: path.id!, source })
}

export async function deleteDocument({ env, path, query }: Call): Promise<Response> {
  const forced = isForced(query.refresh)
  const index = await openIndex(env, path.collection!)
  return writeOne(index, forced, { action: 'delete', index: index.name, id: path.id! })
}

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
  if (document === undefined) {
    throw new OpenSearchError(
      404,
      'resource_not_found_exception',
      `Document not found [${index.name}]/[${path.id}]`,
    )
  }
  return (sourceFilter(undefined, query) ?? ((source) => source))(toSource(document))
}

/** Documents that one request may ask for by id. */
const MOST_IDS = 500

/** GET|POST [/:index]/_mget */
export async function multiGet(call: Call): Promise<Json> {
  const { env, path, query, access, record } = call
  const { docs, ids, ...others } = await readObject(call.request)
  const unknown = Object.keys(others)[0]
  if (unknown !== undefined) throw parsingError(`unexpected token [START_OBJECT], unknown key [${unknown}]`)
  const given = docs ?? (Array.isArray(ids) ? ids.map((_id) => ({ _id })) : undefined)
  if (!Array.isArray(given) || given.length === 0) {
    throw new OpenSearchError(
      400,
      'action_request_validation_exception',
      'Validation Failed: 1: no documents to get;',
    )
  }
  if (given.length > MOST_IDS) throw illegalArgument(`[_mget] takes at most ${MOST_IDS} documents`)
  const wanted = given.map((each) => {
    const { _index = path.collection, _id, _source, ...rest } = isObject(each) ? each : {}
    const strange = Object.keys(rest)[0]
    if (strange !== undefined) throw illegalArgument(`[_mget] does not support [${strange}] of a document`)
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
      const { type, message, details } = indexNotFound(name)
      const cause = { type, reason: message, ...details }
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
