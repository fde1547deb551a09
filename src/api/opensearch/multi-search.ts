/** `_msearch`: several searches in one request. */

import { requireCollections } from '../../auth/admit'
import { mapFew } from '../../lib/few'
import type { PlannedSearch } from '../../turn/request'
import { requireFewConditions } from '../http/plan'
import type { Call } from '../http/route'
import { errorEnvelope, illegalArgument, OpenSearchError, unsupported } from './errors'
import { withOwnModels } from './ml/own-models'
import { isUnasked, type Json, parseObject, readBody } from './route'
import { AT_ONCE, countMore, execute, open, paced } from './search'
import { OF_SHARDS } from './search-body'

/** Reads a header line and a body line for each search. */
export async function multiSearch(call: Call): Promise<unknown> {
  const started = Date.now()
  const { env, access, record, path, query } = call
  const text = await readBody(call.request)
  const lines = text.split(/\r?\n/)
  if (lines.pop() !== '') throw illegalArgument('The msearch request must be terminated by a newline [\n]')
  if (text.trim() === '') throw new OpenSearchError(400, 'parse_exception', 'request body is required')
  if (lines.length % 2 !== 0) {
    throw new OpenSearchError(
      400,
      'action_request_validation_exception',
      'Validation Failed: 1: no requests added;',
    )
  }
  const wanted: { name: string; body: Json }[] = []
  for (let line = 0; line < lines.length; line += 2) {
    wanted.push({ name: indexOf(lines[line]!, path.collection), body: parseObject(lines[line + 1]!) })
  }
  requireCollections(
    access,
    record.action!,
    wanted.map(({ name }) => name),
    record,
  )
  await countMore(call, wanted.length - 1)
  return paced(call, async (gone) => {
    const asked: PlannedSearch[] = []
    const responses = await mapFew(wanted, AT_ONCE, async ({ name, body }): Promise<Json> => {
      let isCounted = false
      // Once for each search, however many it takes here.
      const counts = (planned: PlannedSearch) => {
        if (!isCounted) requireFewConditions([...asked, planned])
        if (!isCounted) asked.push(planned)
        isCounted = true
      }
      const caller = { ...call, gone, counts }
      try {
        return {
          ...(await execute(caller, await open(caller, name), await withOwnModels(env, body), query)),
          status: 200,
        }
      } catch (error) {
        return errorEnvelope(error, record).body
      }
    })
    return { took: Date.now() - started, responses }
  })
}

/** The index of a header line. @throws ApiError 400 */
function indexOf(line: string, otherwise: string | undefined): string {
  const header = line.trim() === '' ? {} : parseObject(line)
  const unknown = Object.keys(header).find(
    (key) => key !== 'index' && !OF_SHARDS.includes(key) && !isUnasked(key, header[key]),
  )
  if (unknown !== undefined)
    throw illegalArgument(`key [${unknown}] is not supported in the metadata section`)
  const given = Array.isArray(header.index) && header.index.length === 1 ? header.index[0] : header.index
  const name = given ?? otherwise
  if (typeof name !== 'string' || name === '') throw unsupported('A search that names no index')
  return name
}
