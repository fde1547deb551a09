/** How a question in whole sentences is searched by default: for passages that answer it. */

import type { SearchParameters } from '../types'

/**
 * Fields that name a document: a word there says more than one somewhere in a long text. With 2, words alone are at least
 * as good as FTS5's OR on each set of `npm run bench quality`; with 3 they are below it on one.
 */
const NAMES = /(^|[._])(title|heading|headline|name|subject|question)s?$/i
const NAME_WEIGHT = 2

/** Whether a field names its document, by its own name. */
export const isNameField = (name: string): boolean => NAMES.test(name)

/** Documents with all words below which those with some of them are looked for: always. */
const ALWAYS = '1000000'

/**
 * Weights for the fields of a search that names none.
 * @param fields what is searched, embedding fields among them
 */
export const weightsOf = (fields: string[]): SearchParameters => ({
  query_by_weights: fields.map((name) => (isNameField(name) ? NAME_WEIGHT : 1)).join(','),
})

/**
 * The parameters of a search for a question. What the caller gave stays.
 *
 * A question is seldom answered in its own words. So any informative word counts, and BM25 puts those documents first
 * that have the rare ones. The last word is whole. Words match by their stems. Words and meaning are joined by their scores, unless the caller
 * weighed them: `alpha` is a weight of ranks.
 * @param said what was said before a follow-up and tells what it is about
 */
export function forQuestion(given: SearchParameters, said: string | undefined): SearchParameters {
  return {
    drop_tokens_threshold: ALWAYS,
    prefix: 'false',
    match_stems: 'true',
    ...(!given.vector_query?.includes('alpha') && { fusion: 'score' }),
    ...(said !== undefined && { context_q: said }),
    ...given,
  }
}
