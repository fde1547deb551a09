import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

let books: TestCollection

beforeAll(async () => {
  books = await makeBooks()
})

const search = (params: SearchParameters): Promise<SearchResult> => books.search(params)
const find = async (q: string, params: SearchParameters = {}): Promise<string[]> =>
  idsOf(await search({ q, query_by: 'title,text', ...params }))

describe('a search', () => {
  it('of * finds everything, by the default sorting field, without text match', async () => {
    const result = await search({ q: '*', query_by: 'title' })
    expect(idsOf(result)).toEqual(['universities', 'databases', 'dogs', 'fox'])
    expect(result).toMatchObject({
      found: 4,
      out_of: 4,
      page: 1,
      facet_counts: [],
      search_cutoff: false,
      request_params: { collection_name: 'things', first_q: '*', per_page: 10, q: '*' },
    })
    expect(result.hits![0]).toMatchObject({ highlight: {}, highlights: [] })
    expect(result.hits![0]).not.toHaveProperty('text_match')
    expect(result.search_time_ms).toEqual(expect.any(Number))
  })

  it('takes a query of no words for *', async () => {
    expect(await find('')).toHaveLength(4)
    expect(await find('?!')).toHaveLength(4)
  })

  it('finds words in any of the fields and ranks the first field higher', async () => {
    const result = await search({ q: 'fox', query_by: 'title,text' })
    // `dogs` has foxes, which begin with the word.
    expect(idsOf(result)).toEqual(['fox', 'dogs'])
    const [first, second] = result.hits!
    expect(first!.text_match).toBeGreaterThan(second!.text_match!)
    expect(first!.text_match_info).toEqual({
      best_field_score: expect.stringMatching(/^\d{13}$/),
      best_field_weight: 15,
      fields_matched: 2,
      num_tokens_dropped: 0,
      score: expect.stringMatching(/^57873\d{13}$/),
      tokens_matched: 1,
      typo_prefix_score: 0,
    })
  })

  it('looks only in the fields of query_by', async () => {
    expect(await find('fox', { query_by: 'title' })).toEqual(['fox'])
    expect(await find('sleep', { query_by: 'title', num_typos: '0' })).toEqual([])
  })

  it('puts the words of a query together across fields', async () => {
    expect(await find('lazy foxes')).toEqual(['dogs'])
    expect((await search({ q: 'lazy foxes', query_by: 'title,text' })).found).toBe(1)
  })

  it('drops words from the right when all of them find too little, unless it must not', async () => {
    expect(await find('fox databases')).toEqual(['fox'])
    expect(await find('fox databases', { drop_tokens_mode: 'left_to_right' })).toEqual(['databases'])
    expect(await find('fox databases', { drop_tokens_mode: 'both_sides:2' })).toEqual(['databases', 'fox'])
    expect(await find('fox databases', { drop_tokens_mode: 'both_sides:1' })).toEqual(['fox'])
    expect(await find('fox databases', { drop_tokens_threshold: '2' })).toEqual(['databases', 'fox'])
    expect(await find('fox databases', { sort_by: 'year:asc' })).toEqual(['fox'])
    expect(await find('fox databases', { drop_tokens_threshold: '0' })).toEqual([])
    // Stopwords do not count as words found.
    expect(await find('what is a university')).toEqual(['universities'])
  })

  it('relaxes a whole question although one document holds all of it', async () => {
    const question = 'Which fox runs over the hills of Auvergne while dogs sleep?'
    expect(await find(question)).toEqual(['dogs', 'fox'])
    expect(await find('quick fox runs over hills sleep')).toEqual(['fox', 'dogs'])
    expect(await find('fox runs over hills')).toEqual(['fox'])
  })

  it('knows phrases, excluded words and words that are several', async () => {
    expect(await find('"quick fox"')).toEqual(['fox'])
    expect(await find('"fox quick"', { drop_tokens_threshold: '0' })).toEqual([])
    expect(await find('fox -lazy')).toEqual(['fox'])
    expect(await find('-fox')).toEqual(['universities', 'databases', 'dogs'])
    expect(await find('-fox', { match_stems: 'true' })).toEqual(['universities', 'databases'])
    expect(await find('state-of-the-art')).toEqual(['databases'])
    expect(await find('fox -"lazy dogs"')).toEqual(['fox'])
  })

  it.each(['" OR "', 'fox AND', 'NEAR(fox', 't0:fox', 'fox*"', '{title} : x', '^fox', "fox' --", '"', '-'])(
    'takes %s for words',
    async (q) => {
      expect((await books.object.search({ q, query_by: 'title,text' })).ok).toBe(true)
    },
  )

  it.each(['documentation', 'university', 'streaming', 'databases'])(
    'finds %s letter by letter',
    async (word) => {
      const wanted = word === 'university' ? 'universities' : 'databases'
      for (let length = 1; length <= word.length; length++) {
        expect(await find(word.slice(0, length), { num_typos: '0' })).toContain(wanted)
      }
    },
  )

  it('takes prefixes of the last word alone, and only where it may', async () => {
    expect(await find('unive', { num_typos: '0' })).toEqual(['universities'])
    expect(await find('unive', { num_typos: '0', prefix: 'false' })).toEqual([])
    expect(await find('unive', { num_typos: '0', prefix: 'false,true' })).toEqual(['universities'])
    expect(await find('laz', { num_typos: '0', prefix: 'false,true' })).toEqual([])
    expect(await find('laz', { num_typos: '0', prefix: 'true,false' })).toEqual(['dogs'])
    expect(await find('unive place', { num_typos: '0', drop_tokens_threshold: '0' })).toEqual([])
  })

  it('corrects words that the index does not hold', async () => {
    expect(await find('databaes')).toEqual(['databases'])
    expect(await find('univercity place', { prefix: 'false' })).toEqual(['universities'])
    expect(await find('databaes', { num_typos: '0', prefix: 'false' })).toEqual([])
    const { hits } = await search({ q: 'databaes', query_by: 'title' })
    expect(hits![0]!.highlights[0]).toMatchObject({ snippet: '<mark>databases</mark>' })
  })

  it('weighs fields as it is told', async () => {
    const weightOf = async (weights: string) => {
      const { hits } = await search({ q: 'fox', query_by: 'title,text', query_by_weights: weights })
      return hits![0]!.text_match_info!.best_field_weight
    }
    expect(await weightOf('10,1')).toBe(10)
    expect(await weightOf('1,10')).toBe(15)
    expect(await weightOf('3,3')).toBe(3)
    const best = async (weights: string) =>
      idsOf(await search({ q: 'dogs', query_by: 'title,text', query_by_weights: weights }))
    expect(await best('2,1')).toEqual(['dogs'])
  })

  it('restricts to the filter', async () => {
    expect(await find('fox', { filter_by: 'stock:false' })).toEqual(['dogs'])
    expect((await search({ q: 'fox', query_by: 'text', filter_by: 'year:>3000' })).found).toBe(0)
    expect(await find('*', { filter_by: 'genre:=Nature || year:2020' })).toEqual([
      'universities',
      'dogs',
      'fox',
    ])
  })

  it('cuts pages', async () => {
    const page = await search({ q: '*', per_page: '3', page: '2' })
    expect([page.found, page.page, idsOf(page)]).toEqual([4, 2, ['fox']])
    const window = await search({ q: '*', limit: '2', offset: '1' })
    expect([window.offset, window.page, idsOf(window)]).toEqual([1, undefined, ['databases', 'dogs']])
    const past = await search({ q: 'fox', query_by: 'text', page: '9' })
    expect([past.found, idsOf(past)]).toEqual([2, []])
    expect(await search({ q: 'fox', query_by: 'text', per_page: '0' })).toMatchObject({ found: 2, hits: [] })
  })

  it('projects documents and leaves out what is excluded', async () => {
    const result = await search({
      q: 'fox',
      query_by: 'title',
      include_fields: 'id,ye*',
      exclude_fields: 'out_of,search_time_ms',
    })
    expect(result.hits![0]!.document).toEqual({ id: 'fox', year: 1990 })
    expect(result).not.toHaveProperty('out_of')
    expect(result).not.toHaveProperty('search_time_ms')
    expect(result.hits![0]!.highlight).toHaveProperty('title')
  })

  it('highlights an excluded field only where it is asked for by name', async () => {
    const excluding = { q: 'fox', query_by: 'title,text', exclude_fields: 'ti*' }
    const [hit] = (await search(excluding)).hits!
    expect(Object.keys(hit!.highlight)).toEqual(['text'])
    expect(hit!.highlights.map(({ field }) => field)).toEqual(['text'])
    const [named] = (await search({ ...excluding, highlight_fields: 'title' })).hits!
    expect(Object.keys(named!.highlight)).toEqual(['title'])
  })

  it('puts pinned hits in their places and hides hidden ones', async () => {
    const result = await search({ q: '*', pinned_hits: 'fox:1,dogs:3', hidden_hits: 'universities' })
    expect(idsOf(result)).toEqual(['fox', 'databases', 'dogs'])
    expect(result.found).toBe(3)
    expect(result.hits!.map((hit) => (hit as { curated?: boolean }).curated)).toEqual([true, undefined, true])
    expect(idsOf(await search({ q: '*', pinned_hits: 'fox:9', per_page: '2', page: '2' }))).toEqual([
      'dogs',
      'fox',
    ])
    expect(await find('lazy', { pinned_hits: 'databases:1,nobody:2' })).toEqual(['databases', 'dogs'])
  })

  it('filters pinned hits only when it is told to', async () => {
    const pinning = { q: '*', filter_by: 'year:1990', pinned_hits: 'dogs:1' }
    expect(idsOf(await search(pinning))).toEqual(['dogs', 'fox'])
    expect(idsOf(await search({ ...pinning, filter_curated_hits: 'true' }))).toEqual(['fox'])
    expect(idsOf(await search({ ...pinning, filter_curated_hits: 'true', pinned_hits: 'fox:1' }))).toEqual([
      'fox',
    ])
  })
})

describe('sort_by', () => {
  const sorted = async (sortBy: string, params: SearchParameters = {}) =>
    idsOf(await search({ q: '*', sort_by: sortBy, ...params }))

  it.each([
    ['year:asc', ['fox', 'dogs', 'databases', 'universities']],
    ['title:asc', ['databases', 'dogs', 'fox', 'universities']],
    ['price:asc', ['dogs', 'universities', 'fox', 'databases']],
    ['price:desc', ['fox', 'universities', 'dogs', 'databases']],
    ['price(missing_values: first):desc', ['databases', 'fox', 'universities', 'dogs']],
    ['stock:desc,year:asc', ['fox', 'databases', 'universities', 'dogs']],
    ['at(48.85, 2.35):asc', ['fox', 'databases', 'dogs', 'universities']],
    ['at(48.85, 2.35):desc', ['dogs', 'databases', 'fox', 'universities']],
    ['at(48.85, 2.35, precision: 2000 km):asc,year:desc', ['databases', 'dogs', 'fox', 'universities']],
    ['at(48.85, 2.35, exclude_radius: 500 km):asc,year:desc', ['databases', 'fox', 'dogs', 'universities']],
    ['_eval(genre:=Nature):desc,year:desc', ['dogs', 'fox', 'universities', 'databases']],
    [
      '_eval([(year:2010):3, (stock:true && price:>1 && price:<8):2]):desc,year:asc',
      ['databases', 'universities', 'fox', 'dogs'],
    ],
    ['_seq_id:asc', ['fox', 'dogs', 'databases', 'universities']],
  ])('%s', async (sortBy, expected) => {
    expect(await sorted(sortBy)).toEqual(expected)
  })

  it('takes the text match as one key among others', async () => {
    const params = { q: 'fox', query_by: 'title,text' }
    expect(await sorted('year:desc', params)).toEqual(['dogs', 'fox'])
    expect(await sorted('_text_match:asc', params)).toEqual(['dogs', 'fox'])
    expect(await sorted('_text_match(buckets: 1):desc,year:desc', params)).toEqual(['dogs', 'fox'])
    expect(await sorted('stock:desc', { ...params, sort_by: 'stock:asc,_text_match:desc' })).toEqual([
      'dogs',
      'fox',
    ])
  })

  it('orders equal text matches by the default sorting field, then newest first', async () => {
    const same = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'points', type: 'int32' },
      ],
      [3, 1, 3, 2, 1].map((points, index) => ({ id: String(index), title: 'same words', points })),
      { default_sorting_field: 'points' },
    )
    expect(idsOf(await same.search({ q: 'words', query_by: 'title' }))).toEqual(['2', '0', '3', '4', '1'])
    const page = { q: 'words', query_by: 'title', per_page: '2', page: '2' }
    expect(idsOf(await same.search(page))).toEqual(['3', '4'])
  })

  it('puts what is true first by a default sorting field of booleans', async () => {
    const stock = await makeCollection(
      [{ name: 'in_stock', type: 'bool' }],
      [true, false, true].map((in_stock, index) => ({ id: String(index), in_stock })),
      { default_sorting_field: 'in_stock' },
    )
    expect(idsOf(await stock.search({ q: '*' }))).toEqual(['2', '0', '1'])
  })

  it('gives distances from the place', async () => {
    const { hits } = await search({ q: '*', sort_by: 'at(48.85, 2.35):asc' })
    expect(hits![0]!.geo_distance_meters).toEqual({ at: 0 })
    // Paris to London, about 340 km.
    expect(hits![1]!.geo_distance_meters!.at).toBeGreaterThan(330_000)
    expect(hits![1]!.geo_distance_meters!.at).toBeLessThan(350_000)
    expect(hits![3]).not.toHaveProperty('geo_distance_meters')
    // As in Typesense, what is left of a metre does not count: 0.000005 degrees are 0.56 m.
    const near = await search({ q: '*', sort_by: 'at(48.850005, 2.35):asc' })
    expect(near.hits![0]!.geo_distance_meters).toEqual({ at: 0 })
  })
})
