/** How a question in whole sentences is searched by default: for passages that answer it. */

import type { SearchParameters } from '../types'

/**
 * The weight of fields that name a document. A word in a name says more than one somewhere in a long text. With 2, words
 * alone rank at least as well as FTS5's OR on each set of `npm run bench quality`. With 3 they rank worse on one.
 */
const NAMES = /(^|[._])(title|heading|headline|name|subject|question)s?$/i
const NAME_WEIGHT = 2

/** Whether a field names its document, by its own name. */
export const isNameField = (name: string): boolean => NAMES.test(name)

/** With fewer documents than this that have all words, some of the words are enough: for a question, always. */
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
 * A question is seldom answered in its own words. So one informative word is enough to match, and BM25 puts documents with
 * rare words first. The last word counts as complete. Words match by their stems. Words and meaning are joined by their
 * scores, unless the caller gave `alpha`, which is a weight of ranks.
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
