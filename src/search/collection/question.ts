/** How a question in whole sentences is searched by default: for passages that answer it. */

import type { SearchParameters } from '../types'
import type { Outline } from './outline'

/**
 * An answer seldom repeats the words of its question. So one informative word is enough, and BM25 ranks rare words
 * first; the last word is complete; and vectors weigh more than words. In bench/quality, the answering document is
 * among the first three for 66% of the questions with 0.7, and for 58% with 0.3, which suits short queries.
 */
const ALPHA = '0.7'
/**
 * Fields that name a document. A word there says more than one in a long text, such as in a table under a heading
 * that asks the question. With a weight of 3 the figures of bench/quality stay or improve (78 to 80% rightly
 * declined); 5 adds nothing.
 */
const NAMES = /(^|[._])(title|heading|headline|name|subject|question)s?$/i
const NAME_WEIGHT = 3
/** Relax the query if fewer documents than this have all words: always. */
const ALWAYS = '1000000'

/**
 * Default parameters of a search for a question.
 * @param fields the fields searched, embedding fields included
 */
export function questionDefaults({ embeddings, hashed }: Outline, fields: string[]): SearchParameters {
  const embedding = fields.find((name) => embeddings.includes(name) && !hashed.includes(name))
  const words = fields.some((name) => !embeddings.includes(name))
  return {
    drop_tokens_threshold: ALWAYS,
    prefix: 'false',
    query_by_weights: fields.map((name) => (NAMES.test(name) ? NAME_WEIGHT : 1)).join(','),
    ...(embedding !== undefined && words && { vector_query: `${embedding}:([], alpha: ${ALPHA})` }),
  }
}
