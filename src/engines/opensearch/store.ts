/**
 * A collection in an index of an OpenSearch cluster, releases 2 and 3; also in Elasticsearch, where its requests are the same.
 * Searches are translated (query.ts). What does not translate is refused by name.
 */
import * as v from 'valibot'
import { RowCache } from '../../db/client'
import { ApiError, attempt, badRequest, coded, collectionGone, type Outcome } from '../../errors'
import { parseExact, tryJson } from '../../lib/json'
import { once } from '../../lib/once'
import { project } from '../../search/documents/store'
import { summarize } from '../../search/schema/schema'
import { isObject } from '../../search/schema/values'
import type {
  CollectionSchema,
  CollectionSummary,
  Document,
  ExportOptions,
  Field,
  ImportOptions,
  RemoveOptions,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
  WriteAction,
  WriteOptions,
} from '../../search/types'
import { type Asked, Cluster, type NodeHealth, ofCluster, pathSegment, StoreElsewhere } from '../cluster'
import { type Connection, type Credentials, type StoredEngine, shownEngine } from '../config'
import type { DocumentStore } from '../port'
import {
  Count,
  foundBy,
  type IndexSchema,
  isWhole,
  Mappings,
  mappingOf,
  type OpenReply,
  Reply,
  readMapping,
  refusalIn,
  resultOf,
} from './mapping'
import { filterQuery, type Query, type Translated, translate } from './query'

/** How long the mapping of an index is used, in milliseconds. */
const MAPPING_MS = 10_000
/** A mapping that was read so lately is not read again for a field that it lacks, in milliseconds. */
const JUST_READ_MS = 1_000

/** By the nodes and the index: two collections may share one. */
const mappings = new RowCache<{ index: IndexSchema; readAt: number }>('the mapping of an index', MAPPING_MS)

/** Documents of an export in one request, and how long the cluster keeps its place. */
const EXPORT_SIZE = 1_000
const SCROLL = '2m'

/** A search is given up after this many replies that lack shards. */
const MOST_PARTIAL = 2

const NDJSON = 'application/x-ndjson'

/** The fields of a new collection: the rest of a schema has no form in a mapping. */
const NewFields = once(() =>
  v.array(v.looseObject({ name: v.string(), type: v.string(), num_dim: v.optional(v.number()) })),
)

interface Opened {
  name: string
  engine: StoredEngine & { type: 'opensearch' }
  cluster: Cluster
  /** of the index */
  path: string
}

export class OpenSearchStore extends StoreElsewhere<Opened> implements DocumentStore {
  constructor(connect: () => Promise<Connection>) {
    super(connect, ({ name, engine, credentials, env }) => {
      if (engine.type !== 'opensearch') throw new Error('The engine is not an OpenSearch cluster.')
      const path = `/${pathSegment(engine.index)}`
      return {
        name,
        engine,
        path,
        cluster: new Cluster({
          label: 'The OpenSearch cluster',
          nodes: engine.nodes,
          collection: path,
          ...authorization(credentials),
          rights: 'ones that may use the index',
          timeoutMs: engine.timeout_ms,
          env,
        }),
      }
    })
  }

  /** The index as it is mapped now, or was a moment ago. @param ms how long ago at most, if the cluster answers */
  async #index(ms = Number.POSITIVE_INFINITY): Promise<IndexSchema> {
    const { name, engine } = await this.open()
    const key = JSON.stringify([name, engine.nodes, engine.index])
    const find = () =>
      mappings.find(key, async () => ({
        readAt: Date.now(),
        index: readMapping(name, v.parse(Mappings(), await this.#json({ below: '/_mapping' }))),
      }))
    const found = (await find())!
    if (Date.now() - found.readAt <= ms) return found.index
    mappings.forget(key)
    return (await find())!.index
  }

  summary(): Promise<Outcome<CollectionSummary>> {
    return attempt(async () => {
      const { engine } = await this.open()
      const counting = this.#whole({ below: '/_count' }, Count())
      const [{ schema }, { count }] = await Promise.all([this.#index(), counting])
      const { created_at: _, ...summary } = summarize(schema, count, 0)
      return { ...summary, name: schema.name, num_documents: count, engine: shownEngine(engine) }
    })
  }

  /** Whether each node knows the index. */
  async nodes(): Promise<NodeHealth[]> {
    const { cluster, path } = await this.open()
    return cluster.probe({ method: 'GET', path: `${path}/_mapping`, repeatable: true })
  }

  schema(): Promise<Outcome<CollectionSchema>> {
    return attempt(async () => (await this.#index()).schema)
  }

  /** Creates the index. @param schema as callers give it to POST /collections */
  create(schema: Record<string, unknown>): Promise<Outcome<unknown>> {
    return attempt(async () => {
      const fields = v.parse(NewFields(), schema.fields) as Pick<Field, 'name' | 'type' | 'num_dim'>[]
      return this.#json({ method: 'PUT', body: JSON.stringify(mappingOf(fields)), repeatable: false })
    })
  }

  async alter(): Promise<Outcome<Record<string, unknown>>> {
    return refusal('The schema of this collection is the mapping of its index: change it in the cluster.')
  }

  write(json: string, { action }: WriteOptions): Promise<Outcome<Document>> {
    return attempt(() => this.#writeOne(json, action))
  }

  async #writeOne(json: string, action: WriteAction): Promise<Document> {
    const line = readLine(json, action)
    if ('error' in line) throw badRequest(line.error)
    const reply = await this.#json({
      method: 'POST',
      below: '/_bulk',
      // Who reads after writing finds what was written, as in Typesense.
      query: { refresh: 'true' },
      body: bulkText([line], action),
      contentType: NDJSON,
      repeatable: action !== 'create' && line.id !== undefined,
    })
    const [result] = bulkResults([line], reply, { returnDocument: true, returnId: true })
    if (result!.success !== true) throw new ApiError(Number(result!.code), String(result!.error))
    const written = result!.document as Document
    return action === 'update' || action === 'emplace' ? this.#document(written.id) : written
  }

  patch(id: string, json: string): Promise<Outcome<Document>> {
    return attempt(async () => {
      const given = readLine(json, 'create')
      if ('error' in given) throw badRequest(given.error)
      return this.#writeOne(JSON.stringify({ ...given.source, id }), 'update')
    })
  }

  get(id: string, include: string, exclude: string, scope: SearchScope = {}): Promise<Outcome<Document>> {
    return attempt(async () => project(await this.#document(id, scope.filter), include, exclude))
  }

  /** @throws ApiError 404, also for a document that the filter hides */
  async #document(id: string, filter = ''): Promise<Document> {
    const visible = filterQuery(filter, await this.#index())
    const ids = { ids: { values: [id] } }
    const query = { bool: { filter: visible ? [ids, visible] : [ids] } }
    const { hits } = await this.#search({ query, size: 1 })
    const [hit] = hits.hits
    if (!hit) throw new ApiError(404, `Could not find a document with id: ${id}`)
    return { ...hit._source, id: hit._id }
  }

  remove(id: string, ignoreNotFound: boolean): Promise<Outcome<Document>> {
    return attempt(async () => {
      const document = await this.#document(id).catch((error) => {
        if (ignoreNotFound && error instanceof ApiError && error.status === 404) return { id }
        throw error
      })
      await this.#deleteBy({ ids: { values: [id] } })
      return document
    })
  }

  async updateWhere(): Promise<Outcome<Step & { cursor: number }>> {
    return refusal(
      'Documents in an OpenSearch cluster are updated one by one or by an import, not by a filter.',
    )
  }

  removeWhere(
    filterBy: string,
    { returnDocuments, returnIds }: RemoveOptions,
    scope: SearchScope = {},
  ): Promise<Outcome<Step & { cursor: number }>> {
    return attempt(async () => {
      if (returnDocuments || returnIds) {
        throw badRequest(
          '`return_doc` and `return_id` are not available for a collection in an OpenSearch cluster.',
        )
      }
      const index = await this.#index()
      const filter = [scope.filter ?? '', filterBy].map((one) => filterQuery(one, index)).filter(Boolean)
      return { count: await this.#deleteBy({ bool: { filter } }), done: true, cursor: 0 }
    })
  }

  async truncate(): Promise<Step> {
    return { count: await this.#deleteBy({ match_all: {} }), done: true }
  }

  async #deleteBy(query: Query): Promise<number> {
    const reply = await this.#json({
      method: 'POST',
      below: '/_delete_by_query',
      query: { refresh: 'true', conflicts: 'proceed' },
      body: JSON.stringify({ query }),
    })
    return v.parse(v.object({ deleted: v.number() }), reply).deleted
  }

  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>> {
    const { action } = options
    return attempt(async () => {
      const read = readLines(lines, action)
      const body = bulkText(read, action)
      const reply =
        body === ''
          ? undefined
          : await this.#json({
              method: 'POST',
              below: '/_bulk',
              body,
              contentType: NDJSON,
              repeatable:
                action !== 'create' && read.every((line) => 'error' in line || line.id !== undefined),
            })
      const results = bulkResults(read, reply, options).map((result) => JSON.stringify(result))
      return { results: results.join('\n'), busy: false }
    })
  }

  exportLines(options: ExportOptions, scope: SearchScope = {}): Promise<Outcome<AsyncIterable<string>>> {
    return attempt(async () => {
      const index = await this.#index()
      const filter = [scope.filter ?? '', options.filterBy]
        .map((one) => filterQuery(one, index))
        .filter(Boolean)
      const body = { query: { bool: { filter } }, size: EXPORT_SIZE, sort: ['_doc'] }
      const first = await this.#search(body, { scroll: SCROLL })
      return this.#exported(first, options)
    })
  }

  async *#exported(
    first: OpenReply,
    { include, exclude }: ExportOptions,
  ): AsyncGenerator<string, void, undefined> {
    let separator = ''
    let page = first
    try {
      while (page.hits.hits.length > 0) {
        const lines = page.hits.hits.map(({ _id: id, _source }) =>
          JSON.stringify(project({ id, ..._source }, include, exclude)),
        )
        yield separator + lines.join('\n')
        separator = '\n'
        const body = JSON.stringify({ scroll: SCROLL, scroll_id: page._scroll_id })
        page = v.parse(Reply(), await this.#json({ method: 'POST', path: '/_search/scroll', body }))
        // Do not ask again: the cluster has moved on, and would give the page after this one.
        if (!isWhole(page)) throw partial()
      }
    } finally {
      const body = JSON.stringify({ scroll_id: [page._scroll_id] })
      await this.#json({ method: 'DELETE', path: '/_search/scroll', body }).catch(() => {})
    }
  }

  search(params: SearchParameters, scope: SearchScope = {}, ticket?: string): Promise<Outcome<SearchResult>> {
    return this.searching(ticket, async (signal) => {
      const { name } = await this.open()
      const asked = await this.#translated(params, scope)
      return resultOf(name, asked.request, await this.#run(asked, signal))
    })
  }

  /** A search as the cluster takes it. A field that is not known may be one that the cluster has made from a new document. */
  async #translated(params: SearchParameters, scope: SearchScope): Promise<Translated> {
    try {
      return translate(params, scope, await this.#index())
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
      return translate(params, scope, await this.#index(JUST_READ_MS))
    }
  }

  async #run(
    { request, words, anyWord, neighbours, body }: Translated,
    signal: AbortSignal,
  ): Promise<{ words?: OpenReply | undefined; neighbours?: OpenReply | undefined }> {
    const hybrid = words !== undefined && neighbours !== undefined
    // The two lists are joined here, so both are needed from the first hit to the end of the page.
    const deep = hybrid ? { from: 0, size: request.offset + request.perPage } : {}
    const timeout = `${request.cutoffMs}ms`
    const run = (query: Query, more: Query = {}) =>
      this.#search({ ...body, ...deep, ...more, timeout, query }, {}, signal)
    const { sort: _, highlight: __, ...plain } = body
    const [byWords, byVector] = await Promise.all([
      words && run(words),
      neighbours && run(neighbours, hybrid ? { ...plain, ...deep, aggs: {} } : {}),
    ])
    if (byWords && anyWord && foundBy(byWords) < request.dropTokensThreshold) {
      return { words: await run(anyWord), neighbours: byVector }
    }
    return { words: byWords, neighbours: byVector }
  }

  async #search(body: Query, query: Record<string, string> = {}, signal?: AbortSignal): Promise<OpenReply> {
    const asked = { query, body: JSON.stringify(body), signal }
    return this.#whole({ method: 'POST', below: '/_search', ...asked }, Reply())
  }

  /**
   * A reply of all shards. While the cluster looks for a lost node it may answer from the others alone: that is asked once more, and
   * then no answer, because counts would be wrong.
   * @throws ApiError 503
   */
  async #whole<Read extends Pick<OpenReply, '_shards'>>(
    request: Asked,
    schema: v.GenericSchema<unknown, Read>,
  ): Promise<Read> {
    for (let attempts = 0; attempts < MOST_PARTIAL; attempts++) {
      const reply = v.parse(schema, await this.#json(request))
      if (isWhole(reply)) return reply
      const refused = refusalIn(reply)
      if (refused !== undefined) throw badRequest(refused)
    }
    throw partial()
  }

  /** @throws ApiError for every reply but a success */
  async #json(request: Asked): Promise<unknown> {
    const { cluster } = await this.open()
    const response = await cluster.ask(request)
    if (!response.ok) throw refusalOf(response.status, await cluster.errorText(response))
    const reply = tryJson(await cluster.text(response), parseExact)
    if (reply === undefined) throw ofCluster('The OpenSearch cluster sent a reply that is not JSON.')
    return reply
  }
}

const refusal = <T>(message: string): Outcome<T> => ({ ok: false, error: { status: 400, message } })

// =============================================================================
// How a cluster learns who asks.

/** An open cluster takes no credentials. @returns the request's headers, and what of them must never be shown */
function authorization(credentials: Credentials): {
  headers: Record<string, string>
  secrets: string[]
} {
  if ('username' in credentials) {
    const { username, password } = credentials
    const basic = btoa(String.fromCharCode(...new TextEncoder().encode(`${username}:${password}`)))
    return { headers: { authorization: `Basic ${basic}` }, secrets: [password, basic] }
  }
  if ('api_key' in credentials) {
    return { headers: { authorization: `ApiKey ${credentials.api_key}` }, secrets: [credentials.api_key] }
  }
  return { headers: {}, secrets: [] }
}

// =============================================================================
// An OpenSearch cluster's errors as the caller reads them.

const Reason = once(() => v.object({ type: v.optional(v.string()), reason: v.nullish(v.string()) }))

const ErrorReply = once(() =>
  v.object({
    error: v.union([
      v.string(),
      v.object({ ...Reason().entries, root_cause: v.optional(v.array(Reason()), []) }),
    ]),
  }),
)

/** @param text the body of the reply */
function refusalOf(status: number, text: string): ApiError {
  const { type, reason } = reasonIn(text)
  if (type === 'index_not_found_exception') return collectionGone()
  return new ApiError(status, reason || 'The OpenSearch cluster refused the request.')
}

function reasonIn(text: string): { type: string; reason: string } {
  const read = v.safeParse(ErrorReply(), tryJson(text))
  if (!read.success) return { type: '', reason: text.trim() }
  const { error } = read.output
  if (typeof error === 'string') return { type: '', reason: error }
  const [cause] = error.root_cause
  return { type: error.type ?? '', reason: cause?.reason ?? error.reason ?? '' }
}

/** Seconds after which a cluster may have found its lost shards. */
const PARTIAL_SECONDS = 2

const partial = (): ApiError =>
  coded(
    'search_unavailable',
    503,
    'Some shards of the OpenSearch cluster do not answer, so the result would not be whole.',
    PARTIAL_SECONDS,
  )

// =============================================================================
// Documents as lines of `_bulk`, and its reply as the result lines of an import.

/** A line of an import: a document, or what is wrong with it. */
type Line =
  | { id: string | undefined; source: Record<string, unknown>; text: string }
  | { error: string; text: string }

/** @param lines of JSON, each a document */
const readLines = (lines: readonly string[], action: WriteAction): Line[] =>
  lines.map((text) => readLine(text, action))

function readLine(text: string, action: WriteAction): Line {
  const parsed = tryJson(text, parseExact)
  if (parsed === undefined) return { error: 'Bad JSON.', text }
  if (!isObject(parsed)) return { error: 'Document must be an object.', text }
  const { id, ...source } = parsed
  if (id !== undefined && (typeof id !== 'string' || id === '')) {
    return { error: 'Document `id` should be a string.', text }
  }
  if (id === undefined && (action === 'update' || action === 'emplace')) {
    return { error: 'For update, the `id` key must be provided.', text }
  }
  return { id, source, text }
}

/** Two lines for each document: what to do, and the document. */
function bulkText(lines: readonly Line[], action: WriteAction): string {
  const written = lines.flatMap((line) => {
    if ('error' in line) return []
    const { id, source } = line
    const target = id === undefined ? {} : { _id: id }
    if (action === 'create') return [{ create: target }, source]
    if (action === 'upsert') return [{ index: target }, source]
    return [{ update: target }, { doc: source, ...(action === 'emplace' && { doc_as_upsert: true }) }]
  })
  return written.map((part) => `${JSON.stringify(part)}\n`).join('')
}

const BulkReply = once(() =>
  v.object({
    items: v.array(
      v.record(
        v.string(),
        v.object({
          _id: v.nullish(v.string()),
          status: v.number(),
          error: v.optional(v.looseObject({ type: v.optional(v.string()), reason: v.optional(v.string()) })),
        }),
      ),
    ),
  }),
)

/** A result for each line, in order. @param reply of `_bulk`; undefined if no line could be sent */
function bulkResults(
  lines: readonly Line[],
  reply: unknown,
  { returnDocument, returnId }: Pick<ImportOptions, 'returnDocument' | 'returnId'>,
): Record<string, unknown>[] {
  const items = reply === undefined ? [] : v.parse(BulkReply(), reply).items
  let at = 0
  return lines.map((line) => {
    if ('error' in line) return { success: false, error: line.error, code: 400, document: line.text }
    const [item] = Object.values(items[at++] ?? {})
    if (!item)
      return { success: false, error: 'The cluster has not answered for it.', code: 503, document: line.text }
    const { _id: id, status, error } = item
    if (error) {
      const code = status === 429 ? 503 : status
      return { success: false, error: reasonOf(error.type, error.reason, line.id), code, document: line.text }
    }
    return {
      success: true,
      ...(returnId && { id }),
      ...(returnDocument && { document: { id, ...line.source } }),
    }
  })
}

/** The cluster's reason in Typesense's words, where it has any. */
function reasonOf(type = '', reason = '', id = ''): string {
  if (type === 'version_conflict_engine_exception') return `A document with id ${id} already exists.`
  if (type === 'document_missing_exception') return `Could not find a document with id: ${id}`
  return reason || 'The cluster refused the document.'
}
