/** POST /:index/_delete_by_query */
import { unwrap } from '../../errors'
import type { Origin } from '../../search/fault-log'
import type { Step } from '../../search/types'
import { originOf } from '../http/request-log'
import type { Call } from '../http/route'
import { isForced } from './bulk'
import { illegalArgument, parsingError, unsupported } from './errors'
import { Fields } from './fields'
import { type Filter, filterBy } from './filter'
import { compileQuery } from './query'
import { type Index, isOn, type Json, openIndex, readObject } from './route'
import { queryOf } from './search-body'

/** Documents that one step removes at most. */
const BATCH = 1000

/**
 * Removes the documents that a query finds.
 * @throws ApiError 400 without a query, or for one that ranks neighbours; 404
 */
export async function deleteByQuery({ env, path, query, request, record }: Call): Promise<Json> {
  const started = Date.now()
  isForced(query.refresh)
  const { conflicts = 'abort', wait_for_completion: wait } = query
  if (conflicts !== 'abort' && conflicts !== 'proceed') {
    throw illegalArgument(`conflicts may only be "proceed" or "abort" but was [${conflicts}]`)
  }
  if (wait !== undefined && !isOn(wait))
    throw unsupported('[wait_for_completion: false] of [_delete_by_query]')
  const { query: given, ...others } = await readObject(request, {})
  const unknown = Object.keys(others)[0]
  if (unknown !== undefined) throw parsingError(`request does not support [${unknown}]`)
  const wanted = query.q === undefined ? given : queryOf(query)
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

async function remove(
  { object }: Index,
  filter: Filter,
  origin: Origin,
): Promise<{ deleted: number; batches: number }> {
  let [deleted, batches] = [0, 0]
  const options = { batchSize: BATCH, returnDocuments: false, returnIds: false }
  let after = 0
  const step = async (): Promise<Step> => {
    if (filter === true) return object.truncate(origin)
    const next = unwrap(await object.removeWhere(filterBy(filter), { ...options, after }, origin))
    after = next.cursor
    return next
  }
  for (let done = filter === false; !done; batches++) {
    const next = await step()
    deleted += next.count
    done = next.done
  }
  return { deleted, batches }
}
