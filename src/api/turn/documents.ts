/** An assistant's documents for clients that search or read them without asking a model. */

import type { Access } from '../../auth/access'
import type { Assistant } from '../../registry/assistants'
import { retrieverOf } from '../../registry/engines'
import type { Document, SearchParameters } from '../../search/types'
import { passagesOf } from '../../turn/passage'
import { allFailed, hitsOf, retrieve } from '../../turn/retrieve'
import { runSearches } from '../edge/plan'
import { planRetrieval } from '../edge/retrieval'
import { type AnswerSource, sourcesOf } from './sources'

/** A document and the collection that it is in, by that collection's own name. */
export interface FoundDocument {
  collection: string
  document: Document
}

/**
 * Searches as a question to the assistant does, without asking a model.
 * @param top documents from all collections together
 * @returns the best of each collection in turn, so that no collection's scores outweigh another's
 * @throws ApiError 400, 404, 408 if no search succeeds
 */
export async function searchDocuments(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  query: string,
  top: number,
): Promise<AnswerSource[]> {
  const planned = await planRetrieval(env, access, assistant, { top })
  const retrieved = await retrieve(
    planned.map(({ search }) => search),
    query,
    {
      search: (place, params, scope) => retrieverOf(env, place).search(params, scope),
      schema: (place) => retrieverOf(env, place).schema(),
    },
  )
  const failure = allFailed(retrieved)
  if (failure) throw failure
  const lists = retrieved.map(({ documents }) => documents)
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const inTurn = Array.from({ length: longest }, (_, rank) => lists.flatMap((list) => list[rank] ?? []))
  return sourcesOf(passagesOf(inTurn.flat().slice(0, top)), assistant)
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

/** Finds documents of the assistant by a filter, with the fields that its searches show. @throws ApiError 400, 404 */
export async function lookUp(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  { filterBy, perPage, page = 1 }: LookUp,
): Promise<FoundDocument[]> {
  const planned = await planRetrieval(env, access, assistant, filterBy === undefined ? {} : { filterBy })
  const searches = planned.map(({ search }) => ({
    ...search,
    params: asLookUp(search.params, perPage, page),
  }))
  const replies = await runSearches(env, searches)
  return replies.flatMap((reply, index) => {
    if (!('result' in reply)) return []
    const collection = reply.result.request_params?.collection_name ?? searches[index]!.collection
    return hitsOf(reply.result).map(({ document }) => ({ collection, document }))
  })
}

/** The search with only its filters and its shown fields. */
function asLookUp(
  { filter_by, query_by, include_fields, exclude_fields }: SearchParameters,
  perPage: number,
  page: number,
): SearchParameters {
  return {
    q: '*',
    per_page: String(perPage),
    page: String(page),
    ...(query_by !== undefined && { query_by }),
    ...(filter_by !== undefined && { filter_by }),
    ...(include_fields !== undefined && { include_fields }),
    ...(exclude_fields !== undefined && { exclude_fields }),
  }
}

/** A value in backticks is plain text in a filter. A backtick in it is punctuation, which comparisons ignore. */
export const quoted = (value: string): string => `\`${value.replaceAll('`', ' ')}\``

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
