/** Searches by OpenSearch's query DSL. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { fill, idsOf, indexName, request } from './api'

const index = indexName('books')
const search = (query: unknown, more?: Record<string, unknown>) => idsOf(index, query, more)

const BOOKS = {
  a: {
    title: 'The quick brown fox',
    kind: 'novel',
    pages: 120,
    price: 9.5,
    loaned: true,
    author: { name: 'Ann Lee' },
  },
  b: {
    title: 'A lazy dog sleeps',
    kind: 'essay',
    pages: 80,
    price: 3.25,
    loaned: false,
    author: { name: 'Bob Ray' },
  },
  c: {
    title: 'The fox and the dog',
    kind: 'novel',
    pages: 300,
    price: 12,
    loaned: false,
    tags: ['fable', 'old'],
  },
  d: { title: 'Quick recipes', kind: 'cookbook', pages: 80, price: 20.75, notes: 'brown bread' },
}

beforeAll(async () => {
  const mappings = {
    properties: {
      title: { type: 'text' },
      kind: { type: 'keyword' },
      pages: { type: 'integer' },
      price: { type: 'double' },
      vector: { type: 'knn_vector', dimension: 2 },
    },
  }
  expect(await request('PUT', `/${index}`, { mappings })).toEqual([
    200,
    { acknowledged: true, shards_acknowledged: true, index },
  ])
  await fill(index, BOOKS)
})

describe('queries', () => {
  it.each([
    [{ match_all: {} }, ['a', 'b', 'c', 'd']],
    [{ match_none: {} }, []],
    [{ match: { title: { query: 'quick fox', operator: 'and' } } }, ['a']],
    [{ match: { title: { query: '"quick" -fox', operator: 'and' } } }, ['a']],
    [{ match: { 'author.name': 'ann' } }, ['a']],
    [{ match: { nowhere: 'fox' } }, []],
    [{ match: { title: '!?' } }, []],
    [{ match: { pages: 300 } }, ['c']],
    [{ match_phrase: { title: 'brown fox' } }, ['a']],
    [{ match_phrase: { title: 'fox brown' } }, []],
    [{ multi_match: { query: 'brown', fields: ['title', 'notes'] } }, expect.arrayContaining(['a', 'd'])],
    [{ multi_match: { query: 'quick bread', fields: ['title', 'notes'], operator: 'and' } }, []],
    [
      {
        multi_match: {
          query: 'quick bread',
          fields: ['title', 'notes'],
          operator: 'and',
          type: 'cross_fields',
        },
      },
      ['d'],
    ],
    [{ term: { kind: 'novel' } }, ['a', 'c']],
    [{ term: { kind: { value: 'novel' } } }, ['a', 'c']],
    [{ term: { 'author.name.keyword': 'Ann Lee' } }, ['a']],
    [{ term: { 'author.name.keyword': 'Ann' } }, []],
    [{ term: { loaned: true } }, ['a']],
    [{ term: { _id: 'b' } }, ['b']],
    [{ terms: { pages: [80, 300] } }, ['b', 'c', 'd']],
    [{ terms: { kind: [] } }, []],
    [{ terms: { tags: ['fable', 'new'] } }, ['c']],
    [{ range: { pages: { gt: 80, lte: 300 } } }, ['a', 'c']],
    [{ range: { pages: { gte: 79.5, lt: 80.5 } } }, ['b', 'd']],
    [{ range: { price: { gt: 9.5, lt: 20.75 } } }, ['c']],
    [{ range: { price: { gte: 9.5, lte: 20.75 } } }, ['a', 'c', 'd']],
    [{ exists: { field: 'notes' } }, ['d']],
    [{ exists: { field: 'tags' } }, ['c']],
    [{ exists: { field: 'author' } }, ['a', 'b']],
    [{ exists: { field: 'title' } }, ['a', 'b', 'c', 'd']],
    [{ exists: { field: 'loaned' } }, ['a', 'b', 'c']],
    [{ prefix: { kind: 'cook' } }, ['d']],
    [{ prefix: { title: 'sle' } }, ['b']],
    [{ wildcard: { kind: 'no*' } }, ['a', 'c']],
    [{ wildcard: { notes: '*' } }, ['d']],
    [{ ids: { values: ['c', 'x', 'a'] } }, ['a', 'c']],
    [{ query_string: { query: 'kind:novel AND pages:300' } }, ['c']],
    [{ query_string: { query: 'quick AND recipes', default_field: 'title' } }, ['d']],
    [{ query_string: { query: '"lazy dog"' } }, ['b']],
    [{ constant_score: { filter: { term: { kind: 'essay' } } } }, ['b']],
    [{ bool: { must: [{ match: { title: 'fox' } }], filter: { term: { loaned: false } } } }, ['c']],
    [{ bool: { must_not: [{ match: { title: 'fox' } }, { term: { kind: 'essay' } }] } }, ['d']],
    [{ bool: { must_not: { exists: { field: 'notes' } } } }, ['a', 'b', 'c']],
    [{ bool: { should: [{ term: { kind: 'essay' } }, { term: { pages: 300 } }] } }, ['b', 'c']],
    [
      {
        bool: {
          filter: { term: { kind: 'novel' } },
          should: [{ term: { pages: 120 } }],
          minimum_should_match: 1,
        },
      },
      ['a'],
    ],
    [{ bool: {} }, ['a', 'b', 'c', 'd']],
  ])('%j', async (query, expected) => {
    expect(await search(query)).toEqual(expected)
  })

  it('finds any of the words, the best first', async () => {
    const found = await search({ match: { title: 'quick fox' } })
    expect(found[0]).toBe('a')
    expect([...found].sort()).toEqual(['a', 'c', 'd'])
  })

  it('ranks alternatives by all of their words', async () => {
    const query = { bool: { should: [{ match: { title: 'bread dog' } }, { match: { notes: 'bread' } }] } }
    expect([...(await search(query))].sort()).toEqual(['b', 'c', 'd'])
  })
})

describe('what it has no way to do', () => {
  it.each([
    [{ foo: {} }, 'unknown query [foo]'],
    [{ fuzzy: { title: 'fox' } }, 'unknown query [fuzzy]'],
    [
      { bool: { must_not: { match: { title: { query: 'fox', fuzziness: 'AUTO' } } } } },
      '[fuzziness] of a [match] where hits are not ranked by it',
    ],
    [{ wildcard: { kind: '*vel' } }, 'A [wildcard] that is not the beginning'],
    [{ term: { pages: 'many' } }, 'For input string: "many"'],
    [{ range: { kind: { gt: 'a' } } }, '[range] on [kind]'],
    [
      { bool: { must: { match_all: {} }, should: { term: { kind: 'essay' } } } },
      'A [should] of [bool] that need not match',
    ],
    [
      { bool: { must: [{ knn: { vector: { vector: [1, 0], k: 2 } } }, { match: { title: 'fox' } }] } },
      '[knn] beside other queries',
    ],
    [{ query_string: { query: 'fox~2' } }, '[~] in a [query_string]'],
    [{ term: { kind: 'a', pages: 1 } }, "[term] query doesn't support multiple fields"],
  ])('refuses %j by its name', async (query, reason) => {
    const [status, body] = await request('POST', `/${index}/_search`, { query })
    expect(status).toBe(400)
    expect(body).toEqual({
      error: {
        ...body.error,
        root_cause: [expect.objectContaining({ reason: expect.stringContaining(reason) })],
      },
      status: 400,
    })
  })

  it.each([
    [{ foo: 1 }, 'Unknown key for a VALUE_NUMBER in [foo].'],
    [{ size: -1 }, '[size] parameter cannot be negative'],
    [{ from: 9_999, size: 2 }, 'Result window is too large'],
    [{ sort: ['title'] }, 'Please use a keyword field'],
    [{ sort: ['nowhere'] }, 'No mapping found for [nowhere]'],
    [{ aggs: { a: { terms: { field: 'title' } } } }, 'Please use a keyword field'],
    [{ aggs: { a: { histogram: { field: 'pages' } } } }, 'Unknown aggregation type [histogram]'],
    [{ aggs: { a: { date_histogram: { field: 'pages' } } } }, 'no date kept as text'],
    [{ highlight: { fields: { title: { fragment_size: 0 } } } }, '[fragment_size]'],
    [{ highlight: { fields: { title: { fragmenter: 'span' } } } }, '[fragmenter]'],
  ])('refuses the body %j', async (body, reason) => {
    const [status, { error }] = await request('POST', `/${index}/_search`, body)
    expect([status, error.root_cause[0].reason]).toEqual([400, expect.stringContaining(reason)])
  })

  it('refuses a parameter that it does not know, and an index that there is not', async () => {
    const nothing = {
      explain: false,
      profile: false,
      track_scores: false,
      terminate_after: 0,
      stored_fields: [],
      rescore: {},
    }
    expect((await request('POST', `/${index}/_search`, nothing))[0]).toBe(200)
    for (const key of ['explain', 'profile', 'version'])
      expect((await request('POST', `/${index}/_search`, { [key]: true }))[0]).toBe(400)
    const [, { error }] = await request('GET', `/${index}/_search?explain=true`)
    expect(error.reason).toBe(`request [/${index}/_search] contains unrecognized parameter: [explain]`)
    expect(await request('GET', '/no-such-index/_search')).toEqual([
      404,
      expect.objectContaining({
        error: expect.objectContaining({
          type: 'index_not_found_exception',
          reason: 'no such index [no-such-index]',
          index: 'no-such-index',
        }),
      }),
    ])
  })
})

describe('an answer', () => {
  it('has the shape of OpenSearch', async () => {
    const [, body] = await request('POST', `/${index}/_search`, {
      query: { match: { title: 'recipes' } },
      highlight: { fields: { title: {} } },
    })
    expect(body).toEqual({
      took: expect.any(Number),
      timed_out: false,
      _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
      hits: {
        total: { value: 1, relation: 'eq' },
        max_score: expect.any(Number),
        hits: [
          {
            _index: index,
            _id: 'd',
            _score: body.hits.max_score,
            _source: BOOKS.d,
            highlight: { title: ['Quick <em>recipes</em>'] },
          },
        ],
      },
    })
    expect(body.hits.max_score).toBeGreaterThan(0)
  })

  it('is sorted, with the values', async () => {
    const [, { hits }] = await request('POST', `/${index}/_search`, {
      sort: [{ pages: 'desc' }, { kind: { order: 'asc' } }],
      _source: ['kind'],
    })
    expect(hits.max_score).toBeNull()
    expect(
      hits.hits.map(({ _id, _score, sort, _source }: Record<string, unknown>) => [
        _id,
        _score,
        sort,
        _source,
      ]),
    ).toEqual([
      ['c', null, [300, 'novel'], { kind: 'novel' }],
      ['a', null, [120, 'novel'], { kind: 'novel' }],
      ['d', null, [80, 'cookbook'], { kind: 'cookbook' }],
      ['b', null, [80, 'essay'], { kind: 'essay' }],
    ])
  })

  it.each([
    [false, undefined],
    ['author.name', { author: { name: 'Ann Lee' } }],
    ['auth*', { author: { name: 'Ann Lee' } }],
    [{ excludes: ['author', 'p*', '*e'] }, { kind: 'novel', loaned: true }],
  ])('shows of the source what was asked for: %j', async (_source, expected) => {
    const [, { hits }] = await request('POST', `/${index}/_search`, {
      query: { ids: { values: ['a'] } },
      _source,
    })
    expect(hits.hits[0]._source).toEqual(expected)
  })

  it('pages', async () => {
    expect(await search({ match_all: {} }, { from: 1, size: 2 })).toEqual(['b', 'c'])
    const [, { hits }] = await request(
      'GET',
      `/${index}/_search?q=kind:novel&size=0&rest_total_hits_as_int=true`,
    )
    expect(hits).toEqual({ total: 2, max_score: null, hits: [] })
  })

  it('brings more hits than one search of a collection does', async () => {
    const many = indexName('many')
    await fill(
      many,
      Object.fromEntries(Array.from({ length: 620 }, (_, number) => [String(number), { number }])),
    )
    const [, { hits }] = await request('POST', `/${many}/_search`, { size: 600, from: 10, sort: ['number'] })
    expect(hits.hits.map(({ _id }: { _id: string }) => Number(_id))).toEqual(
      Array.from({ length: 600 }, (_, at) => at + 10),
    )
  })

  it('counts', async () => {
    expect(await request('POST', `/${index}/_count`, { query: { term: { kind: 'novel' } } })).toMatchObject([
      200,
      { count: 2 },
    ])
    expect(await request('GET', `/${index}/_count`)).toMatchObject([200, { count: 4 }])
  })

  it('aggregates, one level deep', async () => {
    const aggs = {
      kinds: { terms: { field: 'kind' }, aggs: { pages: { stats: { field: 'pages' } } } },
      top: { terms: { field: 'pages', size: 1 } },
      price: { stats: { field: 'price' } },
      different: { cardinality: { field: 'kind' } },
    }
    const [, { aggregations }] = await request('POST', `/${index}/_search`, {
      size: 0,
      aggs,
      query: { range: { pages: { lt: 300 } } },
    })
    const one = (key: string, pages: number) => ({
      key,
      doc_count: 1,
      pages: { count: 1, min: pages, max: pages, avg: pages, sum: pages },
    })
    expect(aggregations).toEqual({
      kinds: {
        doc_count_error_upper_bound: 0,
        sum_other_doc_count: 0,
        buckets: [one('cookbook', 80), one('essay', 80), one('novel', 120)],
      },
      top: { doc_count_error_upper_bound: 0, sum_other_doc_count: 1, buckets: [{ key: 80, doc_count: 2 }] },
      price: { count: 3, min: 3.25, max: 20.75, avg: (9.5 + 3.25 + 20.75) / 3, sum: 33.5 },
      different: { value: 3 },
    })
  })

  it('searches several times', async () => {
    const lines = [{}, { query: { ids: { values: ['a'] } } }, { index: 'no-such' }, {}]
    const [status, { responses }] = await request('POST', `/${index}/_msearch`, lines)
    expect(status).toBe(200)
    expect(responses[0]).toMatchObject({ status: 200, hits: { total: { value: 1 } } })
    expect(responses[1]).toMatchObject({ status: 404, error: { type: 'index_not_found_exception' } })
  })
})

describe('vectors', () => {
  const pictures = indexName('pictures')
  beforeAll(async () => {
    const mappings = {
      properties: {
        at: { type: 'knn_vector', dimension: 2, space_type: 'cosinesimil' },
        kind: { type: 'keyword' },
      },
    }
    expect((await request('PUT', `/${pictures}`, { mappings }))[0]).toBe(200)
    await fill(pictures, {
      east: { at: [1, 0], kind: 'x' },
      north: { at: [0, 1], kind: 'y' },
      west: { at: [-1, 0], kind: 'x' },
    })
  })

  it('finds the nearest, with the scores of OpenSearch', async () => {
    const [, { hits }] = await request('POST', `/${pictures}/_search`, {
      query: { knn: { at: { vector: [1, 0], k: 2 } } },
    })
    expect(
      hits.hits.map(({ _id, _score, _source }: Record<string, unknown>) => [_id, _score, _source]),
    ).toEqual([
      ['east', 1, { at: [1, 0], kind: 'x' }],
      ['north', 0.5, { at: [0, 1], kind: 'y' }],
    ])
  })

  it('finds them among what passes a filter', async () => {
    const query = { knn: { at: { vector: [1, 0], k: 2, filter: { term: { kind: 'x' } } } } }
    expect(await idsOf(pictures, query)).toEqual(['east', 'west'])
  })

  it('embeds the question with the model of the field', async () => {
    const name = indexName('shows')
    const model_name = 'ts/all-MiniLM-L12-v2'
    await call('POST', '/collections', {
      body: {
        name,
        fields: [
          { name: 'title', type: 'string' },
          { name: 'embedding', type: 'float[]', embed: { from: ['title'], model_config: { model_name } } },
        ],
      },
    })
    await fill(name, { cook: { title: 'Slow cooking at home' }, ship: { title: 'Warships in space' } })
    const neural = { embedding: { query_text: 'space ships', model_id: model_name, k: 1 } }
    const [, { hits }] = await request('POST', `/${name}/_search`, { query: { neural } })
    expect(hits.hits).toMatchObject([{ _id: 'ship', _source: { title: 'Warships in space' } }])
    expect(hits.hits[0]._source).toEqual({ title: 'Warships in space' })
    const other = { neural: { embedding: { ...neural.embedding, model_id: 'other' } } }
    expect(await idsOf(name, other)).toMatch(/^400 \[neural\] searches with the model of its field/)
  })
})
