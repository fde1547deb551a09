/**
 * A collection in an instance of Cloudflare AI Search: passages for questions, with filters. Its documents are managed there.
 * It is reached by the binding `AI_SEARCH` (a namespace), or else by the REST API.
 * https://developers.cloudflare.com/ai-search/api/search/rest-api
 * https://developers.cloudflare.com/ai-search/troubleshooting/api-error-codes
 */

import * as v from 'valibot'
import { ApiError, attempt, badRequest, coded, collectionGone, type Outcome } from '../../errors'
import { tryJson } from '../../lib/json'
import { namesOf } from '../../lib/nearest'
import { once } from '../../lib/once'
import { project } from '../../search/documents/store'
import { type FilterClause, type FilterNode, parseFilter } from '../../search/filter/parse'
import { unsigned } from '../../search/request/parameters'
import { hasJoins } from '../../search/run/joins'
import type {
  CollectionSchema,
  CollectionSummary,
  Hit,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
} from '../../search/types'
import {
  type Asked,
  Cluster,
  type NodeHealth,
  ofCluster,
  pathSegment,
  plainField,
  StoreElsewhere,
} from '../cluster'
import { type Connection, type StoredEngine, shownEngine } from '../config'
import type { DocumentStore } from '../port'

/** Passages that AI Search gives at most. */
const MOST_RESULTS = 50

/** Parameters that have a form here, or ask for nothing that AI Search does not do anyway. */
const TAKEN = namesOf(`
  q query_by query_by_weights filter_by filter_curated_hits per_page limit page offset
  include_fields exclude_fields search_cutoff_ms prefix num_typos drop_tokens_threshold
  typo_tokens_threshold match_stems context_q fusion highlight_fields highlight_full_fields
  highlight_start_tag highlight_end_tag highlight_affix_num_tokens snippet_threshold
  enable_highlight_v1 exhaustive_search
`)

const Chunks = once(() =>
  v.object({
    search_query: v.optional(v.string()),
    chunks: v.array(
      v.object({
        id: v.string(),
        score: v.number(),
        text: v.optional(v.string(), ''),
        item: v.object({
          key: v.string(),
          timestamp: v.optional(v.number()),
          metadata: v.optional(v.record(v.string(), v.unknown()), {}),
        }),
      }),
    ),
  }),
)
type Chunk = v.InferOutput<ReturnType<typeof Chunks>>['chunks'][number]

const Stats = once(() => v.object({ completed: v.optional(v.number(), 0) }))

/** The REST API's envelope. */
const Envelope = once(() =>
  v.object({
    result: v.optional(v.unknown()),
    errors: v.optional(v.array(v.object({ message: v.optional(v.string(), '') })), []),
  }),
)

interface Opened {
  name: string
  engine: StoredEngine & { type: 'ai-search' }
  search(body: Record<string, unknown>, signal: AbortSignal): Promise<unknown>
  stats(): Promise<unknown>
  nodes(): Promise<NodeHealth[]>
}

const MANAGED_THERE =
  'Documents of an AI Search collection are managed in AI Search: in its bucket, its website, or by its items.'
const managedThere = async () => ({ ok: false as const, error: { status: 400, message: MANAGED_THERE } })

export class AiSearchStore extends StoreElsewhere<Opened> implements DocumentStore {
  constructor(connect: () => Promise<Connection>) {
    super(connect, (connection) => {
      const { name, engine, credentials, env } = connection
      if (engine.type !== 'ai-search') throw new Error('The engine is not AI Search.')
      return { name, engine, ...('api_token' in credentials ? rest(connection) : binding(engine, env)) }
    })
  }

  /** Whether each address of the REST API knows the instance; none for the binding. */
  async nodes(): Promise<NodeHealth[]> {
    const { nodes } = await this.open()
    return nodes()
  }

  summary(): Promise<Outcome<CollectionSummary>> {
    return attempt(async () => {
      const { name, engine, stats } = await this.open()
      const { completed } = v.parse(Stats(), await stats())
      return { name, num_documents: completed, fields: FIELDS, engine: shownEngine(engine) }
    })
  }

  schema(): Promise<Outcome<CollectionSchema>> {
    return attempt(async () => ({
      name: (await this.open()).name,
      fields: FIELDS,
      default_sorting_field: '',
      enable_nested_fields: false,
      token_separators: [],
      symbols_to_index: [],
    }))
  }

  search(params: SearchParameters, scope: SearchScope = {}, ticket?: string): Promise<Outcome<SearchResult>> {
    return this.searching(ticket, async (signal) => {
      const started = Date.now()
      const { name, search } = await this.open()
      const { body, perPage, q } = request(params, scope)
      const { chunks } = v.parse(Chunks(), await search(body, signal))
      const { include_fields: include = '', exclude_fields: exclude = '' } = params
      return {
        facet_counts: [],
        found: chunks.length,
        hits: chunks.map((chunk) => hitOf(chunk, include, exclude)),
        page: 1,
        request_params: { collection_name: name, first_q: q, per_page: perPage, q },
        search_cutoff: false,
        search_time_ms: Date.now() - started,
      }
    })
  }

  readonly create = managedThere
  readonly alter = managedThere
  readonly write = managedThere
  readonly patch = managedThere
  readonly get = managedThere
  readonly remove = managedThere
  readonly updateWhere = managedThere
  readonly removeWhere = managedThere
  readonly importLines = managedThere
  readonly exportLines = managedThere

  async truncate(): Promise<Step> {
    throw badRequest(MANAGED_THERE)
  }
}

/** A search as AI Search takes it. @throws ApiError 400 for what has no form there */
function request(
  params: SearchParameters,
  scope: SearchScope,
): { body: Record<string, unknown>; perPage: number; q: string } {
  for (const [name, value] of Object.entries(params)) {
    if (!TAKEN.includes(name) && value !== '') {
      throw badRequest(`Parameter \`${name}\` is not available for an AI Search collection.`)
    }
  }
  if (hasJoins(params)) throw badRequest('Joins are not available for a collection in a cluster.')
  const { q = '', page = '1', offset = '0' } = params
  if (q.trim() === '' || q.trim() === '*') {
    throw badRequest('An AI Search collection is searched by words: `q` may not be empty or `*`.')
  }
  if (unsigned('page', page) > 1 || unsigned('offset', offset) > 0) {
    throw badRequest(`AI Search gives one page: raise \`per_page\`, to ${MOST_RESULTS} at most.`)
  }
  const perPage = unsigned('per_page', params.per_page ?? params.limit ?? '10')
  const filters = metadataFilter(scope.filter ?? '', params.filter_by ?? '')
  const retrieval = {
    max_num_results: Math.min(Math.max(perPage, 1), MOST_RESULTS),
    // Without this AI Search answers a failure with an empty reply, which would read as "nothing found".
    return_on_failure: false,
    ...(filters && { filters }),
  }
  return { body: { query: q, ai_search_options: { retrieval } }, perPage, q }
}

function hitOf({ id, score, text, item }: Chunk, include: string, exclude: string): Hit {
  const { key, timestamp, metadata } = item
  const document = {
    ...metadata,
    id,
    title: typeof metadata.title === 'string' ? metadata.title : key,
    text,
    key,
    ...(/^https?:\/\//.test(key) && { url: key }),
    ...(timestamp !== undefined && { timestamp }),
  }
  return {
    document: project(document, include, exclude),
    highlight: {},
    highlights: [],
    vector_distance: 1 - score,
  }
}

const FIELDS = ['title', 'text', 'key', 'url'].map((name) =>
  plainField({ name, type: 'string', optional: true }),
)

/** By the REST API. */
function rest({ engine, credentials, env }: Connection): Pick<Opened, 'search' | 'stats' | 'nodes'> {
  if (engine.type !== 'ai-search' || !('api_token' in credentials))
    throw new Error('The engine is not AI Search.')
  const { account_id: account, instance } = engine
  const path = `/client/v4/accounts/${pathSegment(account ?? '')}/ai-search/instances/${pathSegment(instance)}`
  const cluster = new Cluster({
    label: 'AI Search',
    nodes: engine.nodes,
    collection: path,
    headers: { authorization: `Bearer ${credentials.api_token}` },
    rights: 'a token that has the permission AI Search:Run',
    secrets: [credentials.api_token],
    timeoutMs: engine.timeout_ms,
    env,
  })
  const call = async (request: Asked): Promise<unknown> => {
    const response = await cluster.ask(request)
    if (!response.ok) throw refusalOf(response.status, await cluster.errorText(response))
    return v.parse(Envelope(), JSON.parse(await cluster.text(response))).result
  }
  return {
    search: (body, signal) => call({ method: 'POST', below: '/search', body: JSON.stringify(body), signal }),
    stats: () => call({ below: '/stats' }),
    nodes: () => cluster.probe({ method: 'GET', path: `${path}/stats`, repeatable: true }),
  }
}

/** By the binding of the Worker. @throws ApiError 400 where there is none */
function binding(
  { instance, timeout_ms: timeoutMs }: StoredEngine & { type: 'ai-search' },
  env: Connection['env'],
) {
  const { AI_SEARCH: namespace } = env
  if (!namespace) {
    throw badRequest(
      '`engine.credentials`: Give an `api_token`, or bind an AI Search namespace as AI_SEARCH.',
    )
  }
  const told = async <T>(ask: () => Promise<T>): Promise<T> => {
    try {
      return await inTime(ask(), timeoutMs)
    } catch (error) {
      if (error instanceof ApiError) throw error
      const { name, message } = error instanceof Error ? error : new Error(String(error))
      if (name === 'AiSearchNotFoundError') throw collectionGone()
      // It refuses the request. AiSearchInternalError is for statuses from 500 on.
      if (name === 'AiSearchError') throw badRequest(message)
      throw ofCluster(`AI Search failed: ${message}`)
    }
  }
  return {
    search: (body: Record<string, unknown>) => told(() => namespace.get(instance).search(body as never)),
    stats: () => told(() => namespace.get(instance).stats()),
    nodes: async () => [],
  }
}

/** Stops waiting after a time limit. The call itself goes on, because a binding takes no signal. @throws ApiError 503 */
async function inTime<T>(call: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<never>((_, reject) => {
    const error = coded('search_unavailable', 503, `AI Search does not answer (no reply within ${ms} ms).`, 1)
    timer = setTimeout(() => reject(error), ms)
  })
  try {
    return await Promise.race([call, late])
  } finally {
    clearTimeout(timer)
  }
}

function refusalOf(status: number, text: string): ApiError {
  if (status === 404) return collectionGone()
  const read = v.safeParse(Envelope(), tryJson(text))
  const [first] = read.success ? read.output.errors : []
  return new ApiError(status, first?.message || 'AI Search refused the request.')
}

// =============================================================================
// filter_by as the metadata filter of AI Search: conditions on fields, all of which hold. There is no `||`.
// https://developers.cloudflare.com/vectorize/reference/metadata-filtering

type Value = string | number | boolean
type Condition = Record<string, Value | Value[]>
type MetadataFilter = Record<string, Condition>

const refuse = (what: string): ApiError =>
  badRequest(`A filter of an AI Search collection joins \`field:value\` by \`&&\`: ${what} is not available.`)

/** @param filters all of them hold; blank ones do not count @throws ApiError 400 */
export function metadataFilter(...filters: string[]): MetadataFilter | undefined {
  const all = new Map<string, Condition>()
  for (const filter of filters) {
    const tree = parseFilter(filter)
    for (const clause of tree ? clausesOf(tree) : []) {
      const known = all.get(clause.field) ?? {}
      for (const [operator, value] of Object.entries(conditionOf(clause))) {
        if (Object.hasOwn(known, operator))
          throw refuse(`a second condition of the same kind on \`${clause.field}\``)
        known[operator] = value
      }
      all.set(clause.field, known)
    }
  }
  // From entries, so that a field may have any name: `__proto__` is one.
  return all.size > 0 ? Object.fromEntries(all) : undefined
}

function clausesOf(node: FilterNode): FilterClause[] {
  if (node.kind === 'clause') return [node]
  if (node.kind === 'and') return node.children.flatMap(clausesOf)
  throw refuse(node.kind === 'or' ? '`||`' : node.kind === 'join' ? 'a join' : 'a condition on an object')
}

const OPERATORS: Readonly<Record<string, string>> = { '>': '$gt', '>=': '$gte', '<': '$lt', '<=': '$lte' }
const COMPARISON = /^(>=|<=|>|<)\s*(.+)$/s
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s

function conditionOf({ operator, values }: FilterClause): Condition {
  const negated = operator === ':!=' || operator === ':!'
  if (values.length === 1) {
    const [{ text, quoted }] = values as [FilterClause['values'][number]]
    const compared = quoted ? null : COMPARISON.exec(text)
    const range = quoted ? null : RANGE.exec(text)
    if ((compared || range) && negated) throw refuse('a negated comparison')
    if (compared) return { [OPERATORS[compared[1]!]!]: typedValue(compared[2]!, false) }
    if (range) return { $gte: typedValue(range[1]!, false), $lte: typedValue(range[2]!, false) }
    if (!quoted && text.endsWith('*')) throw refuse('a prefix')
    return { [negated ? '$ne' : '$eq']: typedValue(text, quoted) }
  }
  if (values.some(({ text, quoted }) => !quoted && (COMPARISON.test(text) || RANGE.test(text)))) {
    throw refuse('a list of ranges')
  }
  return { [negated ? '$nin' : '$in']: values.map(({ text, quoted }) => typedValue(text, quoted)) }
}

/** Metadata has types, but the instance does not tell them: numbers and booleans are read as such unless quoted. */
function typedValue(text: string, quoted: boolean): Value {
  if (quoted) return text
  if (text === 'true' || text === 'false') return text === 'true'
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : text
}
