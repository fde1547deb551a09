/** How a question in whole sentences is searched, where its asker does not say: to find passages that answer it. */

import type { SearchParameters } from '../types'
import type { Outline } from './outline'

/**
 * A question is seldom answered in its own words. So any of its informative words will do, BM25 putting those first that
 * have the rare ones; its last word is whole; and meaning says more than words: of the questions in bench/quality, the
 * document that answers is among the first three for 66% with 0.7, and for 58% with the 0.3 that fits short queries.
 */
const ALPHA = '0.7'
/**
 * Fields that name a document: a word there says more than one somewhere in a long text, such as a table under a heading
 * that asks the question. With 3 the figures of bench/quality stay or gain (78 to 80% rightly declined); 5 adds nothing.
 */
const NAMES = /(^|[._])(title|heading|headline|name|subject|question)s?$/i
const NAME_WEIGHT = 3
/** Documents with all words below which those with some of them are looked for: always. */
const ALWAYS = '1000000'

/**
 * Defaults of a search for a question.
 * @param fields what is searched, embedding fields among them
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
