/** Phrases in quotes are required, whatever else is dropped from a query. */
import { describe, expect, it } from 'vitest'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection } from './make-collection'

const LINES = [
  { id: '0', line: 'over the hills and far away' },
  { id: '1', line: 'far away lie the quiet hills' },
  { id: '2', line: 'quiet harbour' },
]

describe('a phrase beside other words', () => {
  it.each<[string, SearchParameters, string[]]>([
    ['is not dropped with them', { q: '"far away" harbour' }, []],
    ['is not dropped from the other end', { q: 'harbour "far away"' }, []],
    ['stays as they are dropped', { q: '"far away" hills harbour' }, ['0', '1']],
    [
      'stays as they are dropped from the left',
      { q: 'harbour hills "far away"', drop_tokens_mode: 'left_to_right' },
      ['0', '1'],
    ],
    ['stays beside another one', { q: '"far away" "quiet hills" over' }, []],
    ['holds in a question', { q: '"quiet harbour" where does someone find hills near that place' }, []],
    ['holds alone', { q: '"the quiet hills"' }, ['1']],
  ])('%s: %j', async (_, params, found) => {
    const collection = await makeCollection([{ name: 'line', type: 'string' }], LINES)
    const result = await collection.search({
      query_by: 'line',
      num_typos: '0',
      prefix: 'false',
      drop_tokens_threshold: '10',
      ...params,
    })
    expect(idsOf(result).toSorted()).toEqual(found)
  })
})
