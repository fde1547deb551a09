/** The sources of an answer as chat protocols show them. Pure functions. */

import { type Access, SEARCH_ACTION } from '../../auth/access'
import { requireCollections } from '../../auth/authenticate'
import { coded } from '../../errors'
import { namesOf } from '../../lib/nearest'
import { textOf } from '../../lib/parts'
import { type Assistant, searchesOf } from '../../registry/assistants'
import { retrieverOf } from '../../registry/engines'
import type { Document, SearchParameters, SearchResult } from '../../search/types'
import type { Passage, SearchReply } from '../../turn/events'
import type { Turn } from '../../turn/fold'
import { ADDRESS, labelOf, linkable, passagesOf, textsOf } from '../../turn/passage'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../../turn/question-length'
import { failureOf, fatalError, hitsOf, retrieve } from '../../turn/retrieve'
import { override } from '../http/body'
import type { ChatParties } from '../http/chat-names'
import { planRetrieval, runSearches } from '../http/plan'
import { originOf } from '../http/request-log'

/** The fields of a document that hold its title, its address, and the name by which an answer cites it. */
export type SourceFields = Pick<Assistant, 'title_field' | 'url_field' | 'citation_field'>

export interface AnswerSource {
  /** names the source within one answer: `<collection>/<document id>` */
  id: string
  collection: string
  documentId: string
  /** never empty: the id stands in for a missing title */
  title: string
  /** its name in answers that cite by label (turn/passage.ts) */
  label: string
  /** absent if the document has no address that a page can safely link to */
  url?: string
  /** the document's texts, cut if they are long */
  text: string
}

/** The sources of an answer, best first. @param fields by default `url`, and whatever looks like a title */
export function sourcesOf(passages: readonly Passage[], fields: SourceFields = {}): AnswerSource[] {
  const { title_field: titleField, url_field: address = ADDRESS, citation_field: field } = fields
  return passages.map((passage) => {
    const { collection, id: documentId, fields: shown } = passage
    const named = titleField === undefined ? undefined : shown[titleField]
    const title = typeof named === 'string' ? named.trim() : ''
    const url = address === ADDRESS ? passage.url : linkable(shown[address], documentId)
    return {
      id: sourceId(collection, documentId),
      collection,
      documentId,
      title: title || passage.title || documentId,
      label: labelOf({ ...shown, id: documentId }, field === undefined ? {} : { field }) ?? documentId,
      ...(url !== undefined && { url }),
      text: address === ADDRESS ? passage.text : textsOf(shown, address),
    }
  })
}

export const sourceId = (collection: string, documentId: string): string => `${collection}/${documentId}`

// Turns citations into Markdown links: `[plan.pdf]` in an answer becomes `[[1]](https://…)`, or `[1]` if the document has
// no address.
//
// A chat widget that renders Markdown and knows nothing of sources then still shows where an answer comes from. Brackets
// that name no source stay as they are, and so do links that the model wrote.

/** Characters in brackets that may be names of sources. Longer text is ignored. */
const LONGEST_MARK = 300

export class CitationLinks {
  /** by label. Not by id, because a number in brackets may be a list item or code */
  readonly #links = new Map<string, string>()
  /** text held back because it may begin a mark */
  #held = ''

  /** @param sources all of the turn so far, in its order. Call it again when more are found; held text stays held */
  cite(sources: readonly AnswerSource[]): void {
    for (const [index, { label, url }] of sources.entries()) {
      const number = `[${index + 1}]`
      if (this.#links.has(label)) continue
      this.#links.set(label, url === undefined ? number : `[${number}](${asTarget(url)})`)
    }
  }

  /** Adds a piece of the answer. @returns the text that can be shown now */
  add(text: string): string {
    if (this.#links.size === 0) return text
    const whole = this.#held + text
    const open = openMark(whole)
    this.#held = whole.slice(open)
    return this.#link(whole.slice(0, open))
  }

  /** @returns the text that was held back; the answer is complete */
  end(): string {
    const rest = this.#link(this.#held)
    this.#held = ''
    return rest
  }

  #link(text: string): string {
    return text.replace(/\[([^[\]]+)\](?!\()/g, (mark, inside: string) => {
      const whole = this.#links.get(inside.trim())
      if (whole !== undefined) return whole
      const links = inside.split(/[,;]/).map((name) => this.#links.get(name.trim()))
      return links.every((link) => link !== undefined) ? links.join('') : mark
    })
  }
}

/** The whole answer with its links. @param turn one that is done */
export function linkedAnswer({ answer, passages }: Turn, fields: SourceFields): string {
  const links = new CitationLinks()
  links.cite(sourcesOf(passages, fields))
  return links.add(textOf(answer)) + links.end()
}

/** A bracket in an address would end the link. */
const asTarget = (url: string): string => url.replace(/[()]/g, (bracket) => (bracket === '(' ? '%28' : '%29'))

/**
 * The start of the text that cannot be shown yet: an open bracket, or a mark at the very end, since only the next
 * character decides whether it is a link.
 */
function openMark(text: string): number {
  const at = text.lastIndexOf('[')
  if (at < 0 || text.length - at > LONGEST_MARK) return text.length
  const close = text.indexOf(']', at)
  return close < 0 || close === text.length - 1 ? at : text.length
}

// =============================================================================
// An assistant's documents for clients that search or read them without asking a model.

/** A document and the collection that it is in, by that collection's own name. */
export interface FoundDocument {
  collection: string
  document: Document
}

/** Who searches which assistant's documents. */
type Searcher = Pick<ChatParties, 'env' | 'access' | 'assistant' | 'record'>

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
interface LookUp {
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
const KEPT = namesOf(`
  query_by filter_by filter_curated_hits hidden_hits include_fields exclude_fields search_cutoff_ms
`)
const PAGING = ['per_page', 'limit', 'page', 'offset']

const only = (names: readonly string[], given: Readonly<SearchParameters>): SearchParameters =>
  Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)))

/** The document's texts, one below the other, with their line breaks: they may be code, or a poem. */
export const wholeText = (document: Document, hidden: readonly (string | undefined)[]): string =>
  shownValues(document, hidden)
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')

/** The document's texts as they are, and other values with their names. Lists of numbers are left out: they are vectors. */
export function shownValues(
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

// =============================================================================
// An engine's replies for the wires that show them, with the question that was asked, even if a rewritten one was searched: pure.

/**
 * The results of each search of a turn, in the order of its searches. If the engine's own replies were not kept, they
 * are rebuilt from the passages in the prompt.
 */
export function repliesOf({
  results,
  summaries,
  passages,
}: Pick<Turn, 'results' | 'summaries' | 'passages'>) {
  if (results) return results
  return summaries.map(({ collection, found = 0, limit = 0, error, q: further }): SearchReply => {
    if (error) return { error: error.message, code: error.status }
    const hits = passages
      .filter((passage) => passage.collection === collection && further === undefined)
      .map(({ id, fields }) => ({ document: { ...fields, id }, highlight: {}, highlights: [] }))
    const params = { collection_name: collection, first_q: '', per_page: limit, q: '' }
    return { result: { facet_counts: [], found, hits, request_params: params, search_cutoff: false } }
  })
}

/** The same with the question as it was asked, and with what a model asked to search for. @param question if it is known */
export const askedReplies = (
  turn: Pick<Turn, 'results' | 'summaries' | 'passages'>,
  question: string | undefined,
): SearchReply[] =>
  repliesOf(turn).map((reply, index) => {
    const asked = turn.summaries[index]?.q ?? question
    return 'result' in reply && asked !== undefined ? { result: asAsked(reply.result, asked) } : reply
  })

/** Typesense's wire has the question in two places (contract 1.6 and 1.7). */
export function asAsked(result: SearchResult, question: string): SearchResult {
  if (!result.request_params) return result
  return { ...result, request_params: { ...result.request_params, first_q: question, q: question } }
}

/** The reply of a search in Typesense's shape: its result, or its error. */
export const shownReply = (
  reply: SearchReply,
  question: string,
): SearchResult | { code: number; error: string } =>
  'result' in reply ? asAsked(reply.result, question) : { code: reply.code, error: reply.error }
