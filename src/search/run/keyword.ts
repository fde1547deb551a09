/**
 * Keyword search: which words have to be found, and how matches are ranked.
 *
 * A document matches when every word of the query is in one of the fields, whichever. Where that finds fewer
 * than drop_tokens_threshold documents the query is relaxed: any of its informative words will do, and BM25
 * puts those first that have the rare ones and many of them. Questions put in whole sentences are relaxed
 * sooner, because the one document that happens to hold all their words is seldom the only answer: with five
 * informative words or more, as soon as all of them find fewer than ten documents. drop_tokens_threshold=0
 * means that nothing is ever relaxed.
 *
 * A word that the index does not hold is replaced by its nearest relatives (text/typo.ts) when the query as it
 * stands finds fewer than typo_tokens_threshold documents.
 */

import { fragment, type SqlFragment } from '../fragment'
import type { Range } from '../range'
import type { SearchRequest } from '../request/request'
import { textColumn } from '../schema/layout'
import { mostTelling } from '../text/long-query'
import {
  informativeWords,
  matchExpression,
  type ParsedQuery,
  parseQuery,
  relax,
  type Term,
} from '../text/query'
import { corrections, vocabularyOf } from '../text/typo'
import { stem } from '../text/words'
import {
  countedWindow,
  countOf,
  type OrderedMatch,
  type RangedFilter,
  type TextMatch,
  type Top,
  textMatches,
} from './candidates'
import type { SearchContext } from './context'
import type { Pace } from './pace'

/** From this many informative words on a query is taken for a question. */
const QUESTION_WORDS = 5

/** A question that found fewer documents than this is relaxed. */
const ENOUGH_FOR_A_QUESTION = 10

export interface KeywordSearch {
  /** what was searched for in the end */
  terms: Term[]
  match: TextMatch
  found: number
  /** the best matches, where they were asked for (`top`) */
  rows: OrderedMatch[] | undefined
}

/**
 * Decides how the query is put to the index, by counting what it finds.
 * @param top the best matches to bring along
 * @returns undefined when the query has no word to look for
 */
export async function planKeywordSearch(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  filter: RangedFilter,
  top: Top | undefined,
  pace: Pace,
): Promise<KeywordSearch | undefined> {
  if (query.terms.length === 0 || request.queryFields.length === 0) return undefined
  const { sql } = context
  const attempt = async (terms: Term[], operator: 'AND' | 'OR'): Promise<KeywordSearch> => {
    const match = matchOf(context, request, query, terms, operator)
    const parts = textMatches(sql, match, filter)
    if (top !== undefined) {
      return { terms, match, ...(await countedWindow(sql, { parts, found: undefined }, top, pace)) }
    }
    return { terms, match, found: await countOf(sql, parts, pace), rows: undefined }
  }

  let search = await attempt(query.terms, 'AND')
  if (search.found < request.typoTokensThreshold) {
    const corrected = correct(context, request, query.terms)
    if (corrected !== undefined) search = await attempt(corrected, 'AND')
  }
  if (needsRelaxing(request, search)) {
    const relaxed = await attempt(relax(search.terms), 'OR')
    if (relaxed.found > search.found) return relaxed
  }
  return search
}

const matchOf = (
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  terms: Term[],
  operator: 'AND' | 'OR',
): TextMatch => ({
  match: matchExpression(terms, query.excluded, columnsOf(context, request), operator, context.schema),
  rank: rankOf(context, request),
})

/** The match of documents with any of the terms' words. */
export const matchOfAny = (
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  terms: Term[],
): TextMatch => matchOf(context, request, query, relax(terms), 'OR')

function needsRelaxing({ dropTokensThreshold }: SearchRequest, { terms, found }: KeywordSearch): boolean {
  if (dropTokensThreshold === 0 || (terms.length === 1 && terms[0]!.tokens.length === 1)) return false
  const isQuestion = informativeWords(terms) >= QUESTION_WORDS
  return found < (isQuestion ? Math.max(dropTokensThreshold, ENOUGH_FOR_A_QUESTION) : dropTokensThreshold)
}

const columnsOf = ({ schema }: SearchContext, { queryFields }: SearchRequest) =>
  queryFields.map(({ field, prefix }) => ({ column: textColumn(schema.slots[field.name]!), prefix }))

/** Weights of the text columns up to the last one that is searched; the others play no part. */
function rankOf({ schema }: SearchContext, { queryFields }: SearchRequest): string {
  const weights: number[] = []
  for (const { field, weight } of queryFields) weights[schema.slots[field.name]!.text!] = weight
  return `bm25(${Array.from(weights, (weight) => (weight ?? 1).toFixed(4)).join(', ')})`
}

/** The terms with corrections for words that the index does not hold, undefined when there are none. */
function correct(context: SearchContext, request: SearchRequest, terms: Term[]): Term[] | undefined {
  let any = false
  const corrected = terms.map((term) => {
    if (term.tokens.length > 1 || isKnown(context, request, term)) return term
    const words = corrections(context.sql, term.tokens[0]!, request.typos)
    if (words.length === 0) return term
    any = true
    return { ...term, corrections: words }
  })
  return any ? corrected : undefined
}

function isKnown(context: SearchContext, request: SearchRequest, term: Term): boolean {
  const match = matchExpression([term], [], columnsOf(context, request), 'AND', context.schema)
  const rows = context.sql.exec('SELECT 1 FROM text_index WHERE text_index MATCH ? LIMIT 1', match)
  return rows.toArray().length > 0
}

/** The documents without any of the excluded words: a query of exclusions alone. */
export function withoutExcluded(
  context: SearchContext,
  request: SearchRequest,
  { excluded }: ParsedQuery,
): RangedFilter | undefined {
  if (excluded.length === 0 || request.queryFields.length === 0) return undefined
  const match = matchExpression([], excluded, columnsOf(context, request), 'AND', context.schema)
  return ({ low, high }: Range): SqlFragment =>
    fragment(
      'd.seq NOT IN (SELECT rowid FROM text_index WHERE text_index MATCH ? AND rowid BETWEEN ? AND ?)',
      match,
      low,
      high,
    )
}

/** `q` as words; the last one may be unfinished where any field takes prefixes. */
export function queryOf({ sql, schema }: SearchContext, { q, queryFields }: SearchRequest): ParsedQuery {
  if (q === '*') return { terms: [], excluded: [] }
  const unfinished = queryFields.some(({ prefix }) => prefix)
  return mostTelling(parseQuery(q, schema, unfinished), (words) => documentsWith(sql, words))
}

/** In how many documents the index has each of some folded words. */
function documentsWith(sql: SqlStorage, words: string[]): (word: string) => number {
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM json_each(?) w CROSS JOIN ${vocabularyOf(sql)} v ON v.term = w.value`,
    JSON.stringify([...new Set(words.map(stem))]),
  )
  const documents = new Map(rows.toArray().map(({ term, doc }) => [term, doc]))
  return (word) => documents.get(stem(word)) ?? 0
}
