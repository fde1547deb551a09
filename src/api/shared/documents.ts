/** An assistant's documents for clients that search or read them without asking a model. */

import { type Access, SEARCH_ACTION } from '../../auth/access'
import { requireCollections } from '../../auth/admit'
import { coded } from '../../errors'
import { type Assistant, searchesOf } from '../../registry/assistants'
import { retrieverOf } from '../../registry/engines'
import type { Document, SearchParameters } from '../../search/types'
import { passagesOf } from '../../turn/passage'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../../turn/question-length'
import { failureOf, fatalError, hitsOf, retrieve } from '../../turn/retrieve'
import type { ChatParties } from '../http/chat-names'
import { override } from '../http/parameters'
import { runSearches } from '../http/plan'
import { originOf } from '../http/request-log'
import { planRetrieval } from '../http/retrieval'
import { type AnswerSource, sourcesOf } from './sources'

/** A document and the collection that it is in, by that collection's own name. */
export interface FoundDocument {
  collection: string
  document: Document
}

/** Who searches which assistant's documents. */
export type Searcher = Pick<ChatParties, 'env' | 'access' | 'assistant' | 'record'>

/** Whether a key may search all collections of an assistant. A key that may only ask it may not. */
export const maySearch = ({ access, assistant }: Pick<Searcher, 'access' | 'assistant'>): boolean =>
  searchesOf(assistant).every(({ collection }) => access.allows(SEARCH_ACTION, collection))

/** @throws ApiError 401 for a key that may ask the assistant, but not search */
export const requireSearch = ({ access, assistant, record }: Omit<Searcher, 'env'>): void =>
  requireCollections(
    access,
    SEARCH_ACTION,
    searchesOf(assistant).map(({ collection }) => collection),
    record,
  )

/**
 * Searches as a question to the assistant does, without asking a model.
 * @param asked the query, unless the key fixes one
 * @param top documents from all collections together
 * @returns what was searched for, and the best of each collection in turn, so that no collection's scores outweigh
 *   another's
 * @throws ApiError 400 for a query that is too long, 401 for a key that may not search, 429; 400, 404 if no search
 *   succeeds, 408 if one takes too long
 */
export async function searchDocuments(
  { env, access, assistant, record }: Searcher,
  asked: string,
  top: number,
): Promise<{ query: string; found: (AnswerSource & { score: number })[] }> {
  requireSearch({ access, assistant, record })
  const query = access.embedded.q ?? asked
  if (query.length > LONGEST_QUESTION) throw coded('too_long', 400, QUESTION_TOO_LONG)
  record.question = query
  const planned = await planRetrieval(env, access, assistant, { top })
  const retrieved = await retrieve(
    planned.map(({ search }) => search),
    query,
    {
      search: (place, params, scope) =>
        retrieverOf(env, place).search(params, { ...scope, ...originOf(record) }),
      schema: (place) => retrieverOf(env, place).schema(),
    },
  )
  const failure = fatalError(retrieved, 'go_on') ?? failureOf(retrieved)
  if (failure) throw failure
  const lists = retrieved.map(({ documents }) => documents)
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const inTurn = Array.from({ length: longest }, (_, rank) => lists.flatMap((list) => list[rank] ?? []))
  const passages = passagesOf(inTurn.flat().slice(0, top))
  const sources = sourcesOf(passages, assistant)
  return { query, found: sources.map((source, at) => ({ ...source, score: passages[at]!.score })) }
}

/** Which documents to look up. */
export interface LookUp {
  /** absent: all */
  filterBy?: string
  /** 250 at most */
  perPage: number
  /** the first is 1 */
  page?: number
}

/**
 * Finds documents of the assistant by a filter, with the fields that its searches show. Parameters of the key or the
 * assistant that hide documents or fix the query apply here too. A key that fixes a page gets no other page of a
 * list.
 * @throws ApiError 400, 404, 429
 */
export async function lookUp(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  { filterBy, perPage, page = 1 }: LookUp,
): Promise<FoundDocument[]> {
  const planned = await planRetrieval(env, access, assistant, filterBy === undefined ? {} : { filterBy })
  const { q = '*', ...embedded } = access.embedded
  const fixed = filterBy === undefined ? only(PAGING, embedded) : {}
  const searches = planned.map(({ search }) => ({
    ...search,
    params: override(
      { ...only(KEPT, search.params), q, per_page: String(perPage), page: String(page) },
      fixed,
    ),
  }))
  const replies = await runSearches(env, searches)
  return replies.flatMap((reply, index) => {
    if (!('result' in reply)) return []
    const collection = reply.result.request_params?.collection_name ?? searches[index]!.collection
    return hitsOf(reply.result).map(({ document }) => ({ collection, document }))
  })
}

/** Parameters of a search that decide which documents and fields it shows, and how long it takes. */
const KEPT = [
  'query_by',
  'filter_by',
  'filter_curated_hits',
  'hidden_hits',
  'include_fields',
  'exclude_fields',
  'search_cutoff_ms',
]
const PAGING = ['per_page', 'limit', 'page', 'offset']

const only = (names: readonly string[], given: Readonly<SearchParameters>): SearchParameters =>
  Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)))

/** The document's texts, one below the other, with their line breaks: they may be code, or a poem. */
export const wholeText = (document: Document, hidden: readonly (string | undefined)[]): string =>
  textsOf(document, hidden)
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')

/**
 * The document's texts as they are, and other values with their names. Lists of numbers are left out: they are vectors.
 */
export function textsOf(
  document: Record<string, unknown>,
  hidden: readonly (string | undefined)[],
): string[] {
  const said = (value: unknown, name: string): string[] => {
    if (typeof value === 'string') return [value]
    if (isNumeric(value) || typeof value === 'boolean') return [`${name}: ${value}`]
    if (Array.isArray(value)) return isNumeric(value[0]) ? [] : value.flatMap((item) => said(item, name))
    if (value === null || typeof value !== 'object') return []
    return Object.entries(value).flatMap(([key, item]) => said(item, key))
  }
  return Object.entries(document).flatMap(([name, value]) => (hidden.includes(name) ? [] : said(value, name)))
}

const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint'
