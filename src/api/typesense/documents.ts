/** Documents, one by one and by filter. Import is in import.ts, search in search.ts. */

import type { DocumentStore } from '../../engines/port'
import { ApiError, unwrap } from '../../errors'
import type { Origin } from '../../search/fault-log'
import type { Step } from '../../search/types'
import { readText } from '../http/body'
import { isTrue } from '../http/parameters'
import { joinScope } from '../http/plan'
import { originOf, type RequestRecord } from '../http/request-log'
import { failureOf, json } from '../http/response'
import type { Call, Route } from '../http/route'
import { openCollection } from './collection'
import { importDocuments } from './import'
import { plainText, streamText } from './text-stream'
import { dirtyValues, requireKnownFields, writeOptions } from './write-options'

const DELETE_BATCH = 1_000

async function createDocument({ env, request, path, query, record }: Call): Promise<Response> {
  const options = { ...writeOptions(query), ...originOf(record) }
  const collection = await openCollection(env, path.collection!)
  return json(unwrap(await collection.write(await readText(request), options)), 201)
}

async function getDocument({ env, path, query, access, record }: Call): Promise<Response> {
  const collection = await openCollection(env, path.collection!)
  const { include_fields: include = '', exclude_fields: exclude = '' } = query
  const scope = { ...(await joinScope(env, access, query, 'documents:get')), ...originOf(record) }
  return json(unwrap(await collection.get(path.id!, include, exclude, scope)))
}

async function patchDocument({ env, request, path, query, record }: Call): Promise<Response> {
  const collection = await openCollection(env, path.collection!)
  const { dirtyValues: dirty } = dirtyValues(query)
  return json(unwrap(await collection.patch(path.id!, await readText(request), dirty, originOf(record))))
}

async function deleteDocument({ env, path, query, record }: Call): Promise<Response> {
  const collection = await openCollection(env, path.collection!)
  return json(unwrap(await collection.remove(path.id!, isTrue(query.ignore_not_found), originOf(record))))
}

async function patchDocuments({ env, request, path, query, access, record }: Call): Promise<Response> {
  const filterBy = requireFilter(query.filter_by)
  requireKnownFields(query)
  const { dirtyValues: dirty } = dirtyValues(query)
  const collection = await openCollection(env, path.collection!)
  const scope = { ...(await joinScope(env, access, query)), ...originOf(record) }
  const body = await readText(request)
  let updated = 0
  // An empty filter names no document; `*` names all.
  let done = filterBy === ''
  for (let after = 0; !done; ) {
    const step = unwrap(await collection.updateWhere(filterBy, body, after, scope, dirty))
    updated += step.count
    after = step.cursor
    done = step.done
  }
  return json({ num_updated: updated })
}

async function deleteDocuments({ env, path, query, access, record }: Call): Promise<Response> {
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
  const total: Step = { count: 0, done: filterBy === '', documents: [], ids: [] }
  for (let after = 0; !total.done; ) {
    const step = unwrap(await collection.removeWhere(filterBy, { ...options, after }, scope))
    after = step.cursor
    total.count += step.count
    total.done = step.done
    total.documents!.push(...(step.documents ?? []))
    total.ids!.push(...(step.ids ?? []))
  }
  return json({
    num_deleted: total.count,
    ...(options.returnDocuments ? { documents: total.documents } : {}),
    ...(options.returnIds ? { ids: total.ids } : {}),
  })
}

async function truncate(collection: DocumentStore, origin: Origin): Promise<Response> {
  let deleted = 0
  for (let done = false; !done; ) {
    const step = await collection.truncate(origin)
    deleted += step.count
    done = step.done
  }
  return json({ num_deleted: deleted })
}

function requireFilter(filterBy: string | undefined): string {
  if (filterBy === undefined) throw new ApiError(400, 'Parameter `filter_by` must be provided.')
  return filterBy.trim()
}

function deleteBatch(batchSize: string | undefined): number {
  if (batchSize === undefined) return DELETE_BATCH
  if (!/^0*[1-9]\d*$/.test(batchSize)) {
    throw new ApiError(400, 'Parameter `batch_size` must be a positive integer.')
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

/** A body that breaks off looks complete to its reader (reply.ts), so a last line reports the error. */
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
  { method: 'POST', path: `${DOCUMENTS}/import`, action: 'documents:import', handle: importDocuments },
  { method: 'GET', path: `${DOCUMENTS}/export`, action: 'documents:export', handle: exportDocuments },
  { method: 'POST', path: DOCUMENTS, action: 'documents:create', handle: createDocument },
  { method: 'PATCH', path: DOCUMENTS, action: 'documents:update', handle: patchDocuments },
  { method: 'DELETE', path: DOCUMENTS, action: 'documents:delete', handle: deleteDocuments },
  { method: 'GET', path: `${DOCUMENTS}/:id`, action: 'documents:get', handle: getDocument },
  { method: 'PATCH', path: `${DOCUMENTS}/:id`, action: 'documents:update', handle: patchDocument },
  { method: 'DELETE', path: `${DOCUMENTS}/:id`, action: 'documents:delete', handle: deleteDocument },
]
