/**
 * Finds titles that differ from the query by one typo, if the mistyped word is itself a word: `Dust evil` for "Dust
 * Devil".
 *
 * Such a query finds documents as typed, so typo correction does not start. If it finds few, documents whose heaviest
 * field differs from the query by one letter count as well. They come after matches of the typed words, which cost
 * less.
 */

import { wordDistance } from '../../../lib/nearest'
import { fragment, type SqlFragment } from '../../fragment'
import type { SearchRequest } from '../../request/request'
import { stringsAt } from '../../schema/values'
import { informativeWords, matchExpression, type ParsedQuery, type Term, typed } from '../../text/query'
import { wordsAlike } from '../../text/similar'
import { typosAllowed } from '../../text/typo'
import { type Conditions, where } from '../candidates'
import type { SearchContext } from '../context'
import { filteredMatches } from '../filtered-matches'
import type { Matches } from '../kept-matches'
import { columnsOf, vocabularyFor } from '../keyword'
import { partsOf } from '../match-set'
import type { Pace } from '../pace'
import { hasLength, wordsIn } from './matches'

/** A query that finds this many documents is not checked. */
export const ENOUGH_AS_TYPED = 10
/** Longer queries are not checked. */
const MOST_WORDS = 10
/** The most documents to compare with the query. If there are more, none is compared. */
const MOST_COMPARED = 64

export interface AlmostWhole {
  /** ascending */
  seqs: number[]
  /** the query's words, with the words of those documents as corrections */
  terms: Term[]
}

/** @returns undefined if there are none */
export async function almostWhole(
  context: SearchContext,
  request: SearchRequest,
  { terms, excluded }: ParsedQuery,
  filter: Conditions,
  pace: Pace,
): Promise<AlmostWhole | undefined> {
  const { queryFields, index, typos } = request
  const heaviest = Math.max(...queryFields.map(({ rank }) => rank))
  const at = queryFields.findIndex(({ rank }) => rank === heaviest)
  const column = columnsOf(context, request)[at]!
  const isPlain = terms.every((term) => term.tokens.length === 1 && !term.quoted && !term.synonyms)
  if (
    !isPlain ||
    excluded.length > 0 ||
    terms.length > MOST_WORDS ||
    column.typos === 0 ||
    !hasLength(column)
  )
    return undefined
  const { analyzer } = column
  const words = terms.map((term) => analyzer.phrase(typed(term)).text)
  const expressions: string[] = []
  for (const [place, { tokens }] of terms.entries()) {
    if (words[place] === '' || typosAllowed(tokens[0]!, typos) === 0) continue
    const others = terms.filter((_, other) => other !== place).map((term) => ({ ...term, prefix: false }))
    if (informativeWords(others) > 0) {
      expressions.push(matchExpression(others, [], [column], 'AND'))
      continue
    }
    // The other words are too frequent to narrow the documents down, so look up the words that this one may be.
    const alike = await wordsAlike(vocabularyFor(context, index, pace), words[place]!)
    const phrases = alike.map((word) => `^ "${words.with(place, word.replaceAll('"', '""')).join(' ')}"`)
    if (phrases.length > 0) expressions.push(`{${column.column}} : (${phrases.join(' OR ')})`)
  }
  if (expressions.length === 0) return undefined
  const isAsLong = fragment(`${wordsIn(index.table, column.column)} = CAST(char(?) AS BLOB)`, terms.length)
  const match = { match: expressions.join(' OR '), table: index.table, rank: '' }
  const seqs = await fewOf(context, await filteredMatches(context, match, filter, pace), isAsLong, pace)
  if (seqs === undefined || seqs.length === 0) return undefined
  pace.countDocuments(seqs.length)
  const found: number[] = []
  const corrected = [...terms]
  for (const [seq, document] of context.read(seqs, true)) {
    for (const text of stringsAt(document, queryFields[at]!.field.name)) {
      const own = analyzer.tokenize(text).map((token) => token.text)
      const place = onlyTypo(words, own)
      if (place === undefined) continue
      found.push(seq)
      const { corrections } = corrected[place]!
      if (corrections.includes(own[place]!)) continue
      corrected[place] = { ...corrected[place]!, corrections: [...corrections, own[place]!] }
    }
  }
  return found.length === 0
    ? undefined
    : { seqs: [...new Set(found)].sort((a, b) => a - b), terms: corrected }
}

/** Those matches that a test passes, if they are few. */
async function fewOf(
  context: SearchContext,
  { set }: Matches,
  test: SqlFragment,
  pace: Pace,
): Promise<number[] | undefined> {
  const seqs: number[] = []
  for await (const { relation } of partsOf(set)(pace)) {
    seqs.push(...pace.query<{ seq: number }>(context.sql, where(relation, test)).map(({ seq }) => seq))
    if (seqs.length > MOST_COMPARED) return undefined
  }
  return seqs
}

/** Which word is mistyped; undefined if none is, or more than one. */
function onlyTypo(words: readonly string[], own: readonly string[]): number | undefined {
  if (words.length !== own.length) return undefined
  const others = [...words.keys()].filter((place) => words[place] !== own[place])
  const [place] = others
  if (place === undefined || others.length > 1) return undefined
  return wordDistance(words[place]!, own[place]!, 1).whole === 1 ? place : undefined
}
