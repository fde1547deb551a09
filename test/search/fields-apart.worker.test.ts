/** `num_typos` and `prefix` of each field of query_by, in searches by words and by stems, and in what is marked. */
import { describe, expect, it } from 'vitest'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection } from './make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]

const DOCUMENTS = [
  { id: 'title', title: 'harvesting machines', text: 'of wood' },
  { id: 'text', title: 'machines of wood', text: 'harvesting' },
  { id: 'both', title: 'harvesting', text: 'harvesting' },
]

describe.each(['false', 'true'])('fields of their own, match_stems=%s', (stems) => {
  const search = async (params: SearchParameters) => {
    const things = await makeCollection(FIELDS, DOCUMENTS)
    const base = { query_by: 'title,text', match_stems: stems, drop_tokens_threshold: '0' }
    return things.search({ ...base, ...params })
  }
  const found = async (params: SearchParameters) => idsOf(await search(params)).toSorted()
  const typo = { q: 'harvsting', prefix: 'false' }

  it('take as many typos as each allows', async () => {
    expect(await found({ ...typo, num_typos: '2' })).toEqual(['both', 'text', 'title'])
    expect(await found({ ...typo, num_typos: '0,2' })).toEqual(['both', 'text'])
    expect(await found({ ...typo, num_typos: '2,0' })).toEqual(['both', 'title'])
    expect(await found({ ...typo, num_typos: '0' })).toEqual([])
  })

  it('mark what each has found', async () => {
    const marked = async (params: SearchParameters) => {
      const { hits } = await search(params)
      const both = hits!.find(({ document }) => document.id === 'both')
      return both!.highlights.map(({ field }) => field)
    }
    expect(await marked({ ...typo, num_typos: '2' })).toEqual(['title', 'text'])
    expect(await marked({ ...typo, num_typos: '0,2' })).toEqual(['text'])
    expect(await marked({ q: 'harv', prefix: 'true,false', num_typos: '0' })).toEqual(['title'])
    expect(await marked({ q: 'harv', prefix: 'false,true', num_typos: '0' })).toEqual(['text'])
  })
})

describe('an exhaustive search', () => {
  it('goes on where enough was found', async () => {
    // Longer than the query: a title that is the query but for one letter is found anyway.
    const typo = { id: 'typo', title: 'harvestimg of wood', text: '' }
    const things = await makeCollection(FIELDS, [...DOCUMENTS, typo])
    const search = async (params: SearchParameters) =>
      idsOf(await things.search({ query_by: 'title', prefix: 'false', ...params })).toSorted()
    expect(await search({ q: 'harvesting' })).toEqual(['both', 'title'])
    expect(await search({ q: 'harvesting', exhaustive_search: 'true' })).toEqual(['both', 'title', 'typo'])
    const none = { num_typos: '0' }
    expect(await search({ q: 'harvesting machines', ...none })).toEqual(['title'])
    expect(await search({ q: 'harvesting machines', ...none, exhaustive_search: 'true' })).toEqual([
      'both',
      'text',
      'title',
    ])
  })
})
