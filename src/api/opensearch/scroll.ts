/**
 * Scrolling: `?scroll=` of a search, and `/_search/scroll`.
 *
 * Nothing is kept between two pages. The id that a page is answered with says what the next one is, so it never expires.
 * Documents that were written since are found, too: it is no snapshot.
 */
import * as v from 'valibot'
import { requireCollections } from '../../auth/admit'
import { unwrap } from '../../errors'
import { once } from '../../once'
import { readExactObject, readStored } from '../../stored-json'
import type { Call } from '../edge/route'
import { illegalArgument, OpenSearchError, unsupported } from './errors'
import { filterBy } from './filter'
import { hybridQueries } from './hybrid'
import { withOwnModels } from './ml/own-models'
import { setOf } from './parameters'
import { isObject, type Json, parseObject, readBody } from './route'
import { compile, execute, type Opened, open, paced, search, totalOf } from './search'
import { parseSearchBody, WINDOW } from './search-body'
import { sourceFilter, toSource } from './source'

/** What the next page is. */
interface Scroll {
  index: string
  body: Json
  query: Record<string, string>
  /** by the order of insertion: the number after the last document; else: how many hits were shown */
  at: number
  total: number
}

const TIME = /^\d+(?:nanos|micros|ms|s|m|h|d)$/

/** GET|POST /:index/_search */
export async function searchOrScroll(call: Call): Promise<unknown> {
  const { scroll, ...query } = call.query
  if (scroll === undefined) return search(call)
  requireTime(scroll)
  const text = await readBody(call.request)
  const body = await withOwnModels(call.env, text.trim() === '' ? {} : parseObject(text))
  const { from, aggregations } = parseSearchBody(body, query)
  if (from > 0) throw illegalArgument('`from` parameter must be set to 0 when `scroll` is used')
  if (Object.keys(aggregations).length > 0) throw unsupported('[aggs] of a search that scrolls')
  if (hybridQueries(body.query) !== undefined) throw unsupported('A [hybrid] query that scrolls')
  if (query.search_pipeline !== undefined) throw unsupported('[search_pipeline] of a search that scrolls')
  return page(call, { index: call.path.collection!, body, query, at: 0, total: -1 })
}

/** GET|POST /_search/scroll[/:id]. @throws ApiError 400, 404 */
export async function nextPage(call: Call): Promise<unknown> {
  const given = await idOf(call)
  if (typeof given.scroll_id !== 'string') throw illegalArgument('scrollId is missing')
  if (given.scroll !== undefined) requireTime(given.scroll)
  const scroll = decode(given.scroll_id)
  requireCollections(call.access, 'documents:search', [scroll.index], call.record)
  return page(call, scroll)
}

/** DELETE /_search/scroll[/:id]. There is nothing to free. */
export async function clearScroll(call: Call): Promise<Json> {
  const { scroll_id: given = [] } = await idOf(call)
  return { succeeded: true, num_freed: Array.isArray(given) ? given.length : 1 }
}

async function idOf({ request, path, query }: Call): Promise<Json> {
  const text = await readBody(request)
  const body = text.trim() === '' ? {} : parseObject(text)
  const scroll_id = path.id === undefined ? query.scroll_id : decodeURIComponent(path.id)
  return {
    ...(scroll_id !== undefined && { scroll_id }),
    ...(query.scroll && { scroll: query.scroll }),
    ...body,
  }
}

function requireTime(given: unknown): void {
  if (typeof given !== 'string' || !TIME.test(given)) {
    throw illegalArgument(`failed to parse setting [scroll] with value [${String(given)}] as a time value`)
  }
}

async function page(call: Call, scroll: Scroll): Promise<unknown> {
  if (Object.keys(call.access.embedded).length > 0) throw unsupported('Scrolling with a scoped key')
  const opened = await open(call, scroll.index)
  return paced(call, async (gone) => {
    const caller = { ...call, gone }
    const isByInsertion = byInsertion(call, opened, scroll.body, scroll.query)
    return isByInsertion === undefined
      ? ranked(caller, opened, scroll)
      : exported(caller, opened, scroll, isByInsertion)
  })
}

/** The filter of a search whose hits come in the order of insertion: nothing ranks them, or `_doc` sorts them. */
function byInsertion(
  call: Call,
  { fields }: Opened,
  body: Json,
  query: Record<string, string>,
): string | undefined {
  const parsed = parseSearchBody(body, query)
  const [first] = [parsed.sort].flat()
  const isByDocument = first === '_doc' || (isObject(first) && Object.keys(first)[0] === '_doc')
  if (parsed.sort !== undefined && !isByDocument) return undefined
  const compiled = compile(call, parsed.query, fields)
  if (compiled.vector !== undefined) return undefined
  if (compiled.words !== undefined && !isByDocument) return undefined
  return filterBy(isByDocument ? compiled.filter(false) : setOf(compiled))
}

/** A page in the order of insertion. A document that is removed meanwhile moves none past the reader. */
async function exported(
  caller: Call,
  { index, fields }: Opened,
  scroll: Scroll,
  filter: string,
): Promise<Json> {
  const { size, source, sort } = parseSearchBody(scroll.body, scroll.query)
  const shown = sourceFilter(source, scroll.query)
  const total = scroll.total < 0 ? await totalOf(caller, index, filter) : scroll.total
  const options = { filterBy: filter, include: '', exclude: fields.embedded().join(','), most: size }
  const lines: string[] = []
  let { at } = scroll
  for (let done = size === 0; !done && lines.length === 0; ) {
    const some = unwrap(await index.object.exportPage(options, at))
    if (some.lines !== '') lines.push(...some.lines.split('\n'))
    at = some.cursor
    done = some.done
  }
  const hits = lines.map((line) => {
    const document = readExactObject(line)
    return {
      _index: index.name,
      _id: document.id,
      _score: sort === undefined ? 1 : null,
      ...(shown !== undefined && { _source: shown(toSource(document as never)) }),
      ...(sort !== undefined && { sort: [null] }),
    }
  })
  return reply({ ...scroll, at, total }, hits)
}

/** A page of hits that are ranked or sorted, as far as a search can reach. */
async function ranked(caller: Call, opened: Opened, scroll: Scroll): Promise<Json> {
  const { size } = parseSearchBody(scroll.body, scroll.query)
  if (scroll.at + size > WINDOW && scroll.at < scroll.total) {
    throw unsupported(
      `More than ${WINDOW} hits in the order of a search: \`"sort": ["_doc"]\` scrolls through all; that`,
    )
  }
  const found = await execute(caller, opened, { ...scroll.body, from: scroll.at, size }, scroll.query)
  const { hits, total } = found.hits as { hits: Json[]; total?: { value: number } | number }
  const counted = typeof total === 'object' ? total.value : total
  return reply(
    { ...scroll, at: scroll.at + hits.length, total: counted ?? scroll.at + hits.length + 1 },
    hits,
  )
}

const reply = (next: Scroll, hits: Json[]): Json => ({
  _scroll_id: encode(next),
  took: 0,
  timed_out: false,
  _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
  hits: { total: { value: next.total, relation: 'eq' }, max_score: hits[0]?._score ?? null, hits },
})

const encode = (scroll: Scroll): string =>
  btoa(
    Array.from(new TextEncoder().encode(JSON.stringify(scroll)), (byte) => String.fromCharCode(byte)).join(
      '',
    ),
  )
    .replaceAll('+', '-')
    .replaceAll('/', '_')

const anyScroll = once(() =>
  v.object({
    index: v.string(),
    body: v.record(v.string(), v.unknown()),
    query: v.record(v.string(), v.string()),
    at: v.pipe(v.number(), v.integer(), v.minValue(0)),
    total: v.number(),
  }),
)

/** @throws ApiError 404 for an id that no page was answered with */
function decode(id: string): Scroll {
  try {
    const bytes = Uint8Array.from(atob(id.replaceAll('-', '+').replaceAll('_', '/')), (letter) =>
      letter.charCodeAt(0),
    )
    return readStored(anyScroll(), new TextDecoder().decode(bytes))
  } catch {
    throw new OpenSearchError(404, 'search_context_missing_exception', 'No search context found for this id')
  }
}
