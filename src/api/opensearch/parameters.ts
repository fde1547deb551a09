/** The parameters of a collection's search that a compiled query stands for. */
import type { SearchParameters } from '../../search/types'
import type { Compiled, Fuzziness, VectorSearch, Words } from './compiled'
import { type Filter, filterBy } from './filter'
import type { Sort } from './hits'

/** The filter besides words and vectors. */
export const setOf = ({ words, rest, vector, filter }: Compiled): Filter =>
  vector !== undefined ? vector.filter : words !== undefined ? rest!() : filter(false)

/** @param shown how many hits the search shows at most, counted from the first */
export function searchParameters(
  compiled: Compiled,
  sort: Sort | undefined,
  shown: number,
): SearchParameters {
  const { words, vector } = compiled
  const parameters: SearchParameters = {
    filter_by: filterBy(setOf(compiled)),
    // OpenSearch takes words as they are.
    prefix: 'false',
    num_typos: '0',
    typo_tokens_threshold: '0',
    ...(words !== undefined
      ? wordParameters(words)
      : vector !== undefined
        ? vectorParameters(vector, shown)
        : { q: '*' }),
  }
  if (sort !== undefined) parameters.sort_by = sort.by
  else if (words !== undefined) parameters.sort_by = '_text_match:desc,_seq_id:asc'
  else if (vector === undefined) parameters.sort_by = '_seq_id:asc'
  return parameters
}

/** Set so high that the search always drops words: any of them may match. */
const RELAXED = '4294967295'

function wordParameters({ fields, text, every, phrase, prefix, fuzziness }: Words): SearchParameters {
  const fraction = fields.some(({ weight }) => !Number.isInteger(weight))
  return {
    q: phrase ? `"${text}"` : text,
    query_by: fields.map(({ target }) => target.name).join(','),
    query_by_weights: fields.map(({ weight }) => Math.round(weight * (fraction ? 100 : 1))).join(','),
    drop_tokens_threshold: every ? '0' : RELAXED,
    ...(prefix && { prefix: 'true' }),
    ...(fuzziness !== 0 && typos(fuzziness)),
  }
}

const vectorParameters = (
  { target, vector = [], text, k }: VectorSearch,
  shown: number,
): SearchParameters => ({
  q: text ?? '*',
  ...(text !== undefined && { query_by: target.name }),
  vector_query: `${target.name}:([${vector.join(',')}], k: ${k ?? Math.max(1, shown)})`,
})

/** Similar words count however many documents have the word itself. */
const typos = (fuzziness: Fuzziness): SearchParameters => ({
  num_typos: fuzziness === 'AUTO' ? '2' : String(fuzziness),
  min_len_1typo: fuzziness === 'AUTO' ? '3' : '1',
  min_len_2typo: fuzziness === 'AUTO' ? '6' : '1',
  typo_tokens_threshold: RELAXED,
})
