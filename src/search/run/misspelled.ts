/** Corrects the misspelled words of a question before it is searched. */
import { respelled } from '../../models/spelling'
import type { SearchRequest } from '../request/request'
import { WORDS } from '../text/analyzer'
import { similarWords } from '../text/similar'
import type { SearchContext } from './context'
import { knownWords } from './keyword'
import { LongSearches, Pace } from './pace'
import { vocabularyFor } from './vocabulary'

/**
 * The request of a question with its words corrected, where the model that embeds it goes by whole words: it would
 * take a misspelled one for the pieces that it falls into. Other models know misspellings. A phrase in quotes stays.
 * @throws ApiError 503 if the model cannot be loaded
 */
export async function withoutMisspellings(
  context: SearchContext,
  request: SearchRequest,
): Promise<SearchRequest> {
  const { q, fusion, typos, typoTokensThreshold, vectorQuery } = request
  const field = vectorQuery?.field ?? request.embeddingField
  if (fusion !== 'score' || field?.embed === undefined) return request
  if (typoTokensThreshold === 0 || typos.maxTypos === 0 || q.includes('"')) return request
  const model = context.embedder(field)
  if (model.words === undefined) return request
  await model.ready?.()
  const { documentsOf } = knownWords(context, request)
  const vocabulary = vocabularyFor(context, WORDS, new Pace(new LongSearches()))
  const corrected = await respelled(q, {
    language: model.words(),
    has: ({ folded }) => documentsOf([folded])(folded) > 0,
    like: (folded) => similarWords(vocabulary, folded, false, { ...typos, maxTypos: 1 }),
  })
  return corrected === q ? request : { ...request, q: corrected }
}
