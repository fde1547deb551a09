/**
 * Scrolling: `?scroll=` of a search, and `/_search/scroll`.
 *
 * Nothing is kept between two pages. The id that a page is answered with says what the next one is, so it never expires.
 * Documents that were written since are found, too: it is no snapshot.
 */
import * as v from 'valibot'
import { requireCollections, requireFewSearches } from '../../auth/authenticate'
import { unwrap } from '../../errors'
import { base64Url } from '../../lib/base64'
import { mapFew } from '../../lib/few'
import { once } from '../../lib/once'
import { readExactObject, readStored } from '../../lib/stored-json'
import { filterBy } from '../../search/filter/write'
import type { Document } from '../../search/types'
import { countingConditions } from '../http/plan'
import type { Call } from '../http/router'
import { NONE, setOf } from './compiled'
import {
  errorEnvelope,
  illegalArgument,
  incomplete,
  OpenSearchError,
  parseError,
  requireKeys,
  searched,
  unsupported,
} from './errors'
import { parseSort, type Sort } from './hits'
import { findIndices } from './indices'
import { keptOf } from './mapping'
import { withOwnModels } from './prefetch'
import {
  defined,
  isOn,
  isSeveral,
  isUnasked,
  type Json,
  listed,
  namedIn,
  parseObject,
  readBody,
  readObject,
} from './route'
import {
  AT_ONCE,
  type Caller,
  compile,
  countMore,
  execute,
  hitOf,
  hybridQueries,
  OF_SHARDS,
  type Opened,
  paced,
  parseSearchBody,
  type SearchBody,
  search,
  totalOf,
  WINDOW,
  withFields,
} from './search'
import { sourceFilter, textIn } from './source'

/** Characters of a page's documents, more or less: a page that would be larger has fewer hits. */
const MOST_CHARACTERS = 8_000_000

const TIME = /^\d+(?:nanos|micros|ms|s|m|h|d)$/

/** GET|POST /:index/_search */
export async function searchOrScroll(call: Call): Promise<unknown> {
  const { scroll, ...query } = call.query
  if (scroll === undefined) return search(call)
  requireTime(scroll)
  const body = await withOwnModels(call.env, await readObject(call.request, {}))
  return page(call, { index: call.path.collection ?? '_all', body, query, at: 0, total: -1 })
}

/** GET|POST /_search/scroll[/:id]. @throws ApiError 400, 404 */
export async function nextPage(call: Call): Promise<unknown> {
  const given = await idOf(call)
  if (typeof given.scroll_id !== 'string') throw illegalArgument('scrollId is missing')
  if (given.scroll !== undefined) requireTime(given.scroll)
  const scroll = decode(given.scroll_id)
  call.record.target = scroll.index
  requireCollections(call.access, 'documents:search', [scroll.index], call.record)
  return page(call, scroll)
}

/** DELETE /_search/scroll[/:id]. There is nothing to free. */
export async function clearScroll(call: Call): Promise<Json> {
  const { scroll_id: given = [] } = await idOf(call)
  return { succeeded: true, num_freed: Array.isArray(given) ? given.length : 1 }
}

async function idOf({ request, path, query }: Call): Promise<Json> {
  const body = await readObject(request, {})
  const unknown = (key: string) => illegalArgument(`Unknown parameter [${key}] in request body`)
  requireKeys(body, 'scroll scroll_id', unknown)
  const given = { scroll_id: path.id ?? query.scroll_id, scroll: query.scroll || undefined }
  return { ...defined(given), ...body }
}

function requireTime(given: unknown): void {
  if (typeof given !== 'string' || !TIME.test(given)) {
    throw illegalArgument(`failed to parse setting [scroll] with value [${String(given)}] as a time value`)
  }
}

async function page(call: Call, scroll: Scroll): Promise<unknown> {
  if (Object.keys(call.access.embedded).length > 0) throw unsupported('Scrolling with a scoped key')
  if (isSeveral(scroll.index))
    throw unsupported(`A scroll of several indices, [${scroll.index}]: scroll each by itself; it`)
  const [opened] = (await withFields(await findIndices(call, scroll.index))) as [Opened]
  const asked = parseSearchBody(scroll.body, scroll.query)
  requirePlain(asked, scroll, opened)
  const sort = parseSort(asked.sort, opened.fields)
  const filter = byInsertion(call, opened, asked, sort)
  return paced(call, async (gone) => {
    const caller = { ...call, gone }
    const [next, hits] =
      filter === undefined
        ? await ranked(caller, opened, scroll, asked)
        : await exported(caller, opened, scroll, { ...asked, sort, filter })
    const total = isOn(call.query.rest_total_hits_as_int) ? next.total : { value: next.total, relation: 'eq' }
    const found = searched(Date.now(), { total, max_score: hits[0]?._score ?? null, hits })
    return { _scroll_id: encode(next), ...found }
  })
}

/** @throws ApiError 400 that names what no page has */
function requirePlain(
  { from, after, aggregations, minScore, total, fields: listed, postFilter }: SearchBody,
  { body, query }: Scroll,
  { fields }: Opened,
): void {
  if (from > 0) throw illegalArgument('`from` parameter must be set to 0 when `scroll` is used')
  const pipeline =
    query.search_pipeline ?? keptOf(fields.schema).settings['search.default_pipeline'] ?? '_none'
  const asked = {
    aggs: Object.keys(aggregations).length > 0,
    hybrid: hybridQueries(body.query) !== undefined,
    search_pipeline: pipeline !== '_none',
    search_after: after !== undefined,
    min_score: minScore > 0,
    fields: listed !== undefined,
    post_filter: postFilter !== undefined,
    'track_total_hits: false': !total,
  }
  const [name] = Object.entries(asked).find(([, is]) => is) ?? []
  if (name !== undefined) throw unsupported(`[${name}] of a search that scrolls`)
}

/** The filter of a search whose hits come in the order of insertion; undefined for one that ranks or sorts them. */
function byInsertion(
  call: Call,
  { fields }: Opened,
  { query, highlight }: SearchBody,
  sort: Sort | undefined,
): string | undefined {
  const compiled = compile(call, query, fields)
  const isRanked = compiled.words !== undefined || compiled.vector !== undefined
  if (isRanked || (sort !== undefined && !sort.by.startsWith('_seq_id:asc'))) return undefined
  if (highlight !== undefined) throw unsupported('[highlight] of a search that scrolls')
  return filterBy(setOf(compiled))
}

type Page = [next: Scroll, hits: Json[]]

/** A page in the order of insertion. A document that is removed meanwhile moves none past the reader. */
async function exported(
  caller: Caller,
  { index, fields }: Opened,
  scroll: Scroll,
  { size, source, sort, filter }: Omit<SearchBody, 'sort'> & { sort: Sort | undefined; filter: string },
): Promise<Page> {
  const shown = sourceFilter(source, scroll.query)
  // Only a search refuses a history to a key that may not read it. An export does not.
  const isKnown = scroll.total >= 0 && caller.access.readsHistory(index.name)
  const total = isKnown ? scroll.total : await totalOf(caller, index, filter)
  const options = { filterBy: filter, include: '', exclude: fields.embedded().join(',') }
  const lines: string[] = []
  let [at, characters, done] = [scroll.at, 0, false]
  while (!done && lines.length < size && characters < MOST_CHARACTERS && !caller.gone?.aborted) {
    const some = unwrap(await index.object.exportPage({ ...options, most: size - lines.length }, at))
    if (some.lines !== '') lines.push(...some.lines.split('\n'))
    characters += some.lines.length
    at = some.cursor
    done = some.done
  }
  const view = { index, sort, shown, listed: undefined, compiled: NONE }
  const hits = lines.map((line) =>
    hitOf({ document: readExactObject(line) as Document, highlights: [] }, view),
  )
  return [{ ...scroll, at, total }, hits]
}

/** A page of hits that are ranked or sorted, as far as a search can reach. */
async function ranked(caller: Caller, opened: Opened, scroll: Scroll, { size }: SearchBody): Promise<Page> {
  const { at, total: known, body, query } = scroll
  if (known >= 0 && at >= known) return [scroll, []]
  if (at >= WINDOW) {
    throw unsupported(
      `More than ${WINDOW} hits of a search that ranks or sorts: [bool.filter] alone has no limit; that`,
    )
  }
  const place = { from: String(at), size: String(Math.min(size, WINDOW - at)) }
  const found = await execute(caller, [opened], body, { ...query, ...place, rest_total_hits_as_int: 'true' })
  const { hits, total } = found.hits as { hits: Json[]; total: number }
  return [{ ...scroll, at: at + hits.length, total }, hits]
}

const encode = (scroll: Scroll): string => base64Url(new TextEncoder().encode(JSON.stringify(scroll)))

/** What the next page is. It comes from the caller, so it decides nothing that the caller may not. */
const anyScroll = once(() =>
  v.object({
    index: v.string(),
    body: v.record(v.string(), v.unknown()),
    query: v.record(v.string(), v.string()),
    /** by the order of insertion: the number after the last document; else: how many hits were shown */
    at: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
    total: v.number(),
  }),
)

type Scroll = v.InferOutput<ReturnType<typeof anyScroll>>

/** @throws ApiError 404 for an id that no page was answered with */
function decode(id: string): Scroll {
  try {
    return readStored(anyScroll(), textIn(id.replaceAll('-', '+').replaceAll('_', '/')))
  } catch {
    throw new OpenSearchError(404, 'search_context_missing_exception', 'No search context found for this id')
  }
}

// =============================================================================
// `_msearch`: several searches in one request.

/** Reads a header line and a body line for each search. */
export async function multiSearch(call: Call): Promise<unknown> {
  const started = Date.now()
  const { env, access, record, path, query } = call
  const text = await readBody(call.request)
  const lines = text.split(/\r?\n/)
  if (lines.pop() !== '') throw illegalArgument('The msearch request must be terminated by a newline [\n]')
  if (text.trim() === '') throw parseError('request body is required')
  if (lines.length % 2 !== 0) throw incomplete('no requests added')
  const wanted: (ReturnType<typeof indicesOf> & { body: Json })[] = []
  for (let line = 0; line < lines.length; line += 2) {
    wanted.push({ ...indicesOf(lines[line]!, path.collection), body: parseObject(lines[line + 1]!) })
  }
  const named = wanted.flatMap(({ expression }) => namedIn(expression))
  requireCollections(access, record.action!, named, record)
  requireFewSearches(access, wanted.length)
  const found = await mapFew(wanted, AT_ONCE, ({ expression, options }) =>
    findIndices(call, expression, { ...query, ...options }).catch((error: unknown) => ({ error })),
  )
  const searches = found.map((indices) => ('error' in indices ? 1 : Math.max(1, indices.length)))
  await countMore(call, searches.reduce((sum, each) => sum + each) - 1)
  return paced(call, async (gone) => {
    const counting = countingConditions()
    const responses = await mapFew(wanted, AT_ONCE, async ({ body }, at): Promise<Json> => {
      const caller = { ...call, gone, counts: counting(at) }
      try {
        const indices = found[at]!
        if ('error' in indices) throw indices.error
        const opened = await withFields(indices)
        return { ...(await execute(caller, opened, await withOwnModels(env, body), query)), status: 200 }
      } catch (error) {
        return errorEnvelope(error, record).body
      }
    })
    return { took: Date.now() - started, responses }
  })
}

/** What a header line says of indices. @throws ApiError 400 */
function indicesOf(line: string, otherwise = '_all') {
  const header = line.trim() === '' ? {} : parseObject(line)
  const { index, ...options } = header
  const asked = Object.entries(options).filter(([key, value]) => !isUnasked(key, value))
  requireKeys(Object.fromEntries(asked), OF_SHARDS, (key) =>
    illegalArgument(`key [${key}] is not supported in the metadata section`),
  )
  const names = listed(index ?? otherwise)
  if (!names.every((name) => typeof name === 'string')) throw illegalArgument('[index] of a line takes names')
  const texts = Object.entries(options).map(([key, value]) => [key, String(value)])
  return { expression: names.join() || '_all', options: Object.fromEntries(texts) as Record<string, string> }
}
