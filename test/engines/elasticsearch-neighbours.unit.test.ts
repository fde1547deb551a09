/** How many candidates Elasticsearch is asked to look through for the nearest vectors. */
import { expect, test } from 'vitest'
import { readMapping } from '../../src/engines/opensearch/mapping'
import { translate } from '../../src/engines/opensearch/query'

const vec = { type: 'dense_vector', dims: 3, similarity: 'cosine' }
const index = readMapping('shoes', { shoes: { mappings: { properties: { vec } } } })

test.each([
  [2, 100],
  [100, 150],
  [101, 152],
  [9_000, 10_000],
])('for %i neighbours there are %i candidates', (k, candidates) => {
  const { neighbours } = translate({ q: '*', vector_query: `vec:([1,0,0], k:${k})` }, {}, index)
  expect(neighbours).toMatchObject({ knn: { k, num_candidates: candidates } })
})
