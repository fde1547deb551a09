/**
 * A collection in a Typesense cluster, releases 27 to 30. Requests are passed on unchanged, except for what a key fixes. Replies
 * are passed back as the cluster wrote them, under the collection's name here.
 */
import { ApiError, attempt, badRequest, collectionGone, type Outcome } from '../../errors'
import { parseExact, tryJson } from '../../lib/json'
import { isObject } from '../../search/schema/values'
import type {
  CollectionSchema,
  CollectionSummary,
  DirtyValues,
  Document,
  ExportOptions,
  Hit,
  ImportOptions,
  RemoveOptions,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
  WriteOptions,
} from '../../search/types'
import {
  type Asked,
  Cluster,
  type NodeHealth,
  ofCluster,
  pathSegment,
  plainField,
  requireNoJoin,
  StoreElsewhere,
  scopedFilter,
} from '../cluster'
import { type Connection, type StoredEngine, shownEngine } from '../config'
import type { DocumentStore } from '../port'

/** Parameters of searches for questions that only Parley's own engine has. */
const OWN_PARAMETERS = ['match_stems', 'context_q', 'fusion']

const WITH_JOINS = ['filter_by', 'include_fields', 'exclude_fields', 'sort_by', 'facet_by', 'group_by']

const JSONL = 'text/plain'

/** Of the documents, of one of them, or of what is done with all. */
const documentsAt = (rest?: string): string =>
  `/documents${rest === undefined ? '' : `/${pathSegment(rest)}`}`

interface Opened {
  name: string
  engine: StoredEngine & { type: 'typesense' }
  cluster: Cluster
  /** of the collection in the cluster */
  path: string
}

export class TypesenseStore extends StoreElsewhere<Opened> implements DocumentStore {
  constructor(connect: () => Promise<Connection>) {
    super(connect, ({ name, engine, credentials, env }) => {
      if (engine.type !== 'typesense' || !('api_key' in credentials)) {
        throw new Error('The engine is not a Typesense cluster.')
      }
      const path = `/collections/${pathSegment(engine.collection)}`
      return {
        name,
        engine,
        path,
        cluster: new Cluster({
          label: 'The Typesense cluster',
          nodes: engine.nodes,
          collection: path,
          headers: { 'x-typesense-api-key': credentials.api_key },
          rights: 'a key for `collections:get` and those actions of `documents` that are used',
          secrets: [credentials.api_key],
          timeoutMs: engine.timeout_ms,
          env,
        }),
      }
    })
  }

  summary(): Promise<Outcome<CollectionSummary>> {
    return attempt(async () => {
      const { name, engine } = await this.open()
      const summary = await this.#call<CollectionSummary>({})
      return { ...summary, name, engine: shownEngine(engine) }
    })
  }

  /** Whether each node knows the collection. */
  async nodes(): Promise<NodeHealth[]> {
    const { cluster, path } = await this.open()
    return cluster.probe({ method: 'GET', path, repeatable: true })
  }

  schema(): Promise<Outcome<CollectionSchema>> {
    return attempt(async () => {
      const { name } = await this.open()
      const given = await this.#call<Partial<CollectionSchema>>({})
      return {
        name,
        fields: (given.fields ?? []).map(plainField),
        default_sorting_field: given.default_sorting_field ?? '',
        enable_nested_fields: given.enable_nested_fields ?? false,
        token_separators: given.token_separators ?? [],
        symbols_to_index: given.symbols_to_index ?? [],
      }
    })
  }

  /** Creates the collection in the cluster. @param schema as callers give it to POST /collections */
  create(schema: Record<string, unknown>): Promise<Outcome<CollectionSummary>> {
    return attempt(async () => {
      const { engine } = await this.open()
      const body = JSON.stringify({ ...schema, name: engine.collection })
      return this.#call({ method: 'POST', path: '/collections', body, repeatable: false })
    })
  }

  alter(body: unknown): Promise<Outcome<Record<string, unknown>>> {
    return attempt(() => this.#call({ method: 'PATCH', body: JSON.stringify(body), repeatable: false }))
  }

  write(json: string, { action, dirtyValues: dirty_values }: WriteOptions): Promise<Outcome<Document>> {
    const asked = { below: documentsAt(), query: { action, dirty_values }, body: json }
    return attempt(() => this.#call({ method: 'POST', ...asked, repeatable: action !== 'create' }))
  }

  patch(id: string, json: string, dirty_values?: DirtyValues): Promise<Outcome<Document>> {
    return attempt(async () =>
      this.#call({ method: 'PATCH', below: documentsAt(id), query: { dirty_values }, body: json }),
    )
  }

  get(
    id: string,
    include_fields: string,
    exclude_fields: string,
    scope: SearchScope = {},
  ): Promise<Outcome<Document>> {
    return attempt(async () => {
      for (const fields of [include_fields, exclude_fields]) requireNoJoin(fields)
      if (scope.filter) await this.#requireVisible(id, scope.filter)
      return this.#call({ below: documentsAt(id), query: { include_fields, exclude_fields } })
    })
  }

  /** A document that the key's filter hides is treated as if it did not exist. */
  async #requireVisible(id: string, filter: string): Promise<void> {
    // Backticks end a quoted value, and no filter can name an id that has one.
    if (!id.includes('`')) {
      const own = scopedFilter(`id:=\`${id}\``, filter)
      const { found } = await this.#search({ q: '*', filter_by: own, include_fields: 'id', per_page: '1' })
      if (found > 0) return
    }
    throw new ApiError(404, `Could not find a document with id: ${id}`)
  }

  remove(id: string, ignoreNotFound: boolean): Promise<Outcome<Document>> {
    const query = { ignore_not_found: String(ignoreNotFound) }
    return attempt(async () => this.#call({ method: 'DELETE', below: documentsAt(id), query }))
  }

  updateWhere(
    filterBy: string,
    json: string,
    _after: number,
    scope: SearchScope = {},
    dirty_values?: DirtyValues,
  ): Promise<Outcome<Step & { cursor: number }>> {
    return attempt(async () => {
      const query = { filter_by: this.#filter(filterBy, scope), dirty_values }
      const request = { method: 'PATCH', below: documentsAt(), query, body: json } as const
      const { num_updated: count } = await this.#call<{ num_updated: number }>(request)
      return { count, done: true, cursor: 0 }
    })
  }

  removeWhere(
    filterBy: string,
    { batchSize, returnDocuments, returnIds }: RemoveOptions,
    scope: SearchScope = {},
  ): Promise<Outcome<Step & { cursor: number }>> {
    return attempt(async () => {
      const removed = await this.#call<{ num_deleted: number; documents?: Document[]; ids?: string[] }>({
        method: 'DELETE',
        below: documentsAt(),
        query: {
          filter_by: this.#filter(filterBy, scope),
          batch_size: String(batchSize),
          return_doc: returnDocuments ? 'true' : '',
          return_id: returnIds ? 'true' : '',
        },
      })
      const { num_deleted: count, documents, ids } = removed
      return { count, done: true, cursor: 0, ...(documents && { documents }), ...(ids && { ids }) }
    })
  }

  async truncate(): Promise<Step> {
    const request = { method: 'DELETE', below: documentsAt(), query: { truncate: 'true' } } as const
    const { num_deleted: count } = await this.#call<{ num_deleted: number }>(request)
    return { count, done: true }
  }

  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>> {
    const { action, dirtyValues: dirty_values, returnDocument, returnId } = options
    return attempt(async () => {
      const { cluster } = await this.open()
      const response = await this.#send({
        method: 'POST',
        below: documentsAt('import'),
        query: {
          action,
          dirty_values,
          return_doc: returnDocument ? 'true' : '',
          return_id: returnId ? 'true' : '',
        },
        body: lines.join('\n'),
        contentType: JSONL,
        repeatable: action !== 'create',
      })
      const { text, complete } = await cluster.begun(response)
      return { results: importResults(text, complete, lines.length), busy: false }
    })
  }

  exportLines(options: ExportOptions, scope: SearchScope = {}): Promise<Outcome<AsyncIterable<string>>> {
    const { filterBy, include: include_fields, exclude: exclude_fields } = options
    return attempt(async () => {
      for (const fields of [include_fields, exclude_fields]) requireNoJoin(fields)
      const query = { filter_by: this.#filter(filterBy, scope), include_fields, exclude_fields }
      const { cluster } = await this.open()
      return cluster.pieces(await this.#send({ below: documentsAt('export'), query }))
    })
  }

  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  search(
    params: SearchParameters,
    scope: SearchScope = {},
    ticket?: string,
    asText = false,
  ): Promise<Outcome<SearchResult | string>> {
    return this.searching(ticket, async (signal) => {
      const asked = this.#scoped(params, scope)
      return asText ? this.#searchText(asked, signal) : this.#search(asked, signal)
    })
  }

  /** What the caller asked for, within what its key may see. @throws ApiError 400 */
  #scoped(params: SearchParameters, scope: SearchScope): SearchParameters {
    const asked = { ...params }
    for (const name of OWN_PARAMETERS) delete asked[name]
    for (const name of WITH_JOINS) requireNoJoin(asked[name])
    if (asked.rerank_model) {
      throw badRequest('Parameter `rerank_model` is not supported for a collection in a cluster.')
    }
    if (!scope.filter) return asked
    // The vector of a document that the filter hides would tell of it.
    if (/\bid\s*:/.test(asked.vector_query ?? '')) {
      throw badRequest('A key with a filter cannot search by the vector of a document in a cluster.')
    }
    return { ...asked, filter_by: scopedFilter(asked.filter_by, scope.filter), filter_curated_hits: 'true' }
  }

  #filter(filterBy: string, { filter }: SearchScope): string {
    requireNoJoin(filterBy)
    return filter ? scopedFilter(filterBy, filter) : filterBy
  }

  async #search(params: SearchParameters, signal?: AbortSignal): Promise<SearchResult> {
    return this.#resultOf(await this.#ask(params, signal))
  }

  /** The result as the cluster wrote it, where its reply has the usual form. */
  async #searchText(params: SearchParameters, signal: AbortSignal): Promise<SearchResult | string> {
    const reply = await this.#ask(params, signal)
    const { name } = await this.open()
    return resultText(reply, name) ?? this.#resultOf(reply)
  }

  /** By POST: the address of a GET holds 4,000 characters only. @returns the reply of /multi_search */
  async #ask(params: SearchParameters, signal: AbortSignal | undefined): Promise<string> {
    const { engine } = await this.open()
    const body = JSON.stringify({ searches: [{ ...params, collection: engine.collection }] })
    return this.#text({ method: 'POST', path: '/multi_search', body, signal })
  }

  async #resultOf(text: string): Promise<SearchResult> {
    const { name } = await this.open()
    const { results } = parsed<{ results: [SearchResult | { code?: number; error: string }] }>(text)
    const [reply] = results
    if ('error' in reply) throw refusalOf(reply.code ?? 400, reply.error)
    return { ...withScores(reply), request_params: { ...reply.request_params, collection_name: name } }
  }

  async #call<Reply>(request: Asked): Promise<Reply> {
    return parsed<Reply>(await this.#text(request))
  }

  async #text(request: Asked): Promise<string> {
    const { cluster } = await this.open()
    return cluster.text(await this.#send(request))
  }

  /** @throws ApiError for every reply but a success */
  async #send(request: Asked): Promise<Response> {
    const { cluster } = await this.open()
    const response = await cluster.ask(request)
    if (response.ok) return response
    throw refusalOf(response.status, messageOf(await cluster.errorText(response)))
  }
}

/** @throws ApiError 503 for a reply that is no JSON object */
function parsed<Reply>(text: string): Reply {
  const reply = tryJson(text, parseExact)
  if (reply === undefined) throw ofCluster('The Typesense cluster sent a reply that is not JSON.')
  if (!isObject(reply)) throw ofCluster('The Typesense cluster sent a reply that is not a JSON object.')
  return reply as Reply
}

// =============================================================================
// Reads what a Typesense cluster replies: its errors, fields and hits.

/** The cluster's error as the caller reads it: its messages are this wire's own. */
function refusalOf(status: number, message: string): ApiError {
  if (status === 404 && /^(?:Not Found|Collection not found|No collection )/i.test(message)) {
    return collectionGone()
  }
  return new ApiError(status, message)
}

/** Match scores as numbers: they have more digits than a double, and only their order counts. */
function withScores(result: SearchResult): SearchResult {
  const scored = (hit: Hit): Hit =>
    hit.text_match === undefined ? hit : { ...hit, text_match: Number(hit.text_match) }
  return {
    ...result,
    ...(result.hits && { hits: result.hits.map(scored) }),
    ...(result.grouped_hits && {
      grouped_hits: result.grouped_hits.map((group) => ({ ...group, hits: group.hits.map(scored) })),
    }),
  }
}

/**
 * A result for each line of an import, in order. The cluster has not told of the last ones if it broke off.
 * @param text the reply as far as it came
 * @param count of the lines that were sent
 */
function importResults(text: string, complete: boolean, count: number): string {
  // What follows the last line feed of a reply that broke off may be half a line.
  const told = (complete ? text : text.slice(0, text.lastIndexOf('\n') + 1)).split('\n')
  const results = told.filter((line) => line.trim() !== '').slice(0, count)
  const untold = JSON.stringify({ success: false, error: UNTOLD, code: 503 })
  return [...results, ...Array.from({ length: count - results.length }, () => untold)].join('\n')
}

const UNTOLD = 'The Typesense cluster broke off its reply. It may have written the document.'

const BEFORE = '{"results":['
const AFTER = ']}'
const PARAMETERS = '"request_params":{'

/**
 * The one result of a search as the cluster wrote it, under the collection's name here. Only the end is parsed, where the cluster
 * writes the parameters: hits stay as they are, with all digits of their scores.
 * @param reply of /multi_search
 * @returns undefined for an error, and for a reply of another form: those have to be read whole
 */
export function resultText(reply: string, name: string): string | undefined {
  const at = reply.lastIndexOf(PARAMETERS)
  if (at < 0 || !reply.startsWith(`${BEFORE}{`) || !reply.endsWith(`}${AFTER}`)) return undefined
  try {
    // This parses only if the object that has the parameters is the last one, so not if a document has such a property.
    const end = parseExact(`{${reply.slice(at, -AFTER.length)}`)
    if (!isObject(end) || !isObject(end.request_params)) return undefined
    const renamed = { ...end, request_params: { ...end.request_params, collection_name: name } }
    return reply.slice(BEFORE.length, at) + JSON.stringify(renamed).slice(1)
  } catch {
    return undefined
  }
}

function messageOf(text: string): string {
  const reply = tryJson(text)
  if (isObject(reply) && typeof reply.message === 'string') return reply.message
  return text.trim() || 'The Typesense cluster refused the request.'
}
