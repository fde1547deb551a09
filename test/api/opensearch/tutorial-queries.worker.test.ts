/** The queries that OpenSearch's tutorials of neural search and RAG send, and its clients by default. */
import { beforeAll, describe, expect, it } from 'vitest'
import { fill, idsOf, indexName, request } from './api'

const index = indexName('articles')
const search = (query: unknown, more?: Record<string, unknown>) => idsOf(index, query, more)
const reply = async (body: unknown) => {
  const [status, found] = await request('POST', `/${index}/_search`, body)
  expect([status, found.error]).toEqual([200, undefined])
  return found
}

const LONG = `${'word '.repeat(60)}needle ${'word '.repeat(60)}`.trim()
const ARTICLES = {
  a: {
    title: 'The quick brown fox',
    kind: 'novel',
    pages: 120,
    at: '2024-01-15',
    seen: '2023-12-31T23:30:00-01:00',
  },
  b: {
    title: 'A lazy dog sleeps',
    kind: 'essay',
    pages: 80,
    at: '2024-02-20T10:00:00Z',
    tags: ['x', 'y'],
    seen: 'Chapter 5',
  },
  c: {
    title: 'The fox and the dog',
    kind: 'novel',
    pages: 300,
    at: '2024-02-29T23:59:59.999Z',
    note: { by: 'Ann' },
  },
  d: { title: 'Quick recipes', kind: 'cookbook', pages: 90, at: '2025-01', body: LONG },
}

beforeAll(async () => {
  const mappings = {
    properties: {
      title: { type: 'text' },
      kind: { type: 'keyword' },
      pages: { type: 'integer' },
      at: { type: 'date' },
    },
  }
  expect((await request('PUT', `/${index}`, { mappings }))[0]).toBe(200)
  await fill(index, ARTICLES)
})

describe('queries', () => {
  it.each([
    [{ match_phrase_prefix: { title: 'quick bro' } }, ['a']],
    [{ match_phrase_prefix: { title: { query: 'brown qui', max_expansions: 10 } } }, []],
    [{ match_phrase_prefix: { title: 'reci' } }, ['d']],
    [{ bool: { filter: { match_phrase_prefix: { title: 'fox an' } } } }, ['c']],
    [{ bool: { must_not: { match_phrase_prefix: { title: 'fox an' } } } }, ['a', 'b', 'd']],
    [{ bool: { must_not: { match_phrase: { title: 'brown fox' } } } }, ['b', 'c', 'd']],
    [{ bool: { filter: { match_phrase: { title: 'fox brown' } } } }, []],
    [{ match_bool_prefix: { title: { query: 'lazy sle', operator: 'and' } } }, ['b']],
    [{ multi_match: { query: 'and the do', type: 'phrase_prefix', fields: ['title', 'body'] } }, ['c']],
    [{ simple_query_string: { query: '"brown fox" | recip* -dog', fields: ['title'] } }, ['a', 'd']],
    [{ simple_query_string: { query: 'fox + dog', fields: ['title'] } }, ['c']],
    [{ simple_query_string: { query: 'fox dog -lazy', fields: ['title'], default_operator: 'and' } }, ['c']],
    [{ range: { at: { gte: '2024-02', lte: '2024-02' } } }, ['b', 'c']],
    [{ range: { at: { gt: '2024-01-15' } } }, ['b', 'c', 'd']],
    [{ range: { at: { lt: '2024-01-15' } } }, []],
    [{ range: { at: { lte: '2024-01-15' } } }, ['a']],
    [{ range: { at: { gte: '2024-01-31||+1M/d', lt: '2025-02-01||-1M/y' } } }, ['c']],
    [{ range: { at: { gte: '2024-02-20T12:00:00', lte: 'now', time_zone: '+02:00' } } }, ['b', 'c', 'd']],
    [{ range: { at: { gte: 'now+1d/d' } } }, []],
    [{ bool: { must_not: { range: { at: { gte: '2024-02' } } } } }, ['a']],
    // No mapping names it. As a text it would be of 2023.
    [{ range: { seen: { gte: '2024-01-01T00:00:00Z' } } }, ['a']],
    // "Chapter 5" is no day of May 2001.
    [{ range: { seen: { lt: '2024-01-01T00:00:00Z' } } }, []],
  ])('%j', async (query, ids) => {
    const found = await search(query)
    expect(Array.isArray(found) ? [...found].sort() : found).toEqual(ids)
  })

  it('ranks by a should that need not match', async () => {
    const must = [{ match: { title: 'quick fox' } }]
    const kinds = { terms: { kind: ['novel', 'cookbook'] } }
    const bool = { must, should: [{ match: { title: 'recipes' } }], filter: kinds }
    const plain = await search({ bool: { must, filter: kinds } })
    const ranked = await search({ bool })
    expect(plain[0]).toBe('a')
    expect(ranked[0]).toBe('d')
    expect([...ranked].sort()).toEqual(['a', 'c', 'd'])
  })

  it('refuses by its name what it cannot do, and says what to do', async () => {
    expect(await search({ range: { at: { gte: 'someday' } } })).toBe(
      '400 failed to parse date field [someday] of [at]',
    )
    expect(
      await search({ bool: { filter: [{ match_all: {} }], should: [{ match: { title: 'fox' } }] } }),
    ).toMatch(/minimum_should_match: 1/)
    expect(
      await request('POST', `/${index}/_search?scroll=1m`, { post_filter: { match_all: {} } }),
    ).toMatchObject([
      400,
      { error: { reason: '[post_filter] of a search that scrolls is not supported here' } },
    ])
    expect(await search({ simple_query_string: { query: '(fox)' } })).toMatch(/\[\(\]/)
  })
})

describe('besides the query', () => {
  it('shows fields as lists, also without the source', async () => {
    const { hits } = await reply({
      query: { terms: { kind: ['essay', 'novel'] } },
      fields: ['title', { field: 'tags' }, 'note.*'],
      _source: false,
    })
    expect(hits.hits.map(({ fields }: { fields: unknown }) => fields)).toEqual([
      { title: ['The quick brown fox'] },
      { title: ['A lazy dog sleeps'], tags: ['x', 'y'] },
      { title: ['The fox and the dog'], 'note.by': ['Ann'] },
    ])
    expect(hits.hits[0]._source).toBeUndefined()
  })

  it('filters hits by post_filter, and not what is counted', async () => {
    const { hits, aggregations } = await reply({
      query: { match: { title: 'quick fox' } },
      post_filter: { term: { kind: 'novel' } },
      aggs: { kinds: { terms: { field: 'kind' } } },
    })
    expect(hits.total.value).toBe(2)
    expect(aggregations.kinds.buckets).toEqual([
      { key: 'novel', doc_count: 2 },
      { key: 'cookbook', doc_count: 1 },
    ])
  })

  it('counts what passes a filter, and dates by month', async () => {
    const { aggregations } = await reply({
      size: 0,
      aggs: {
        novels: { filter: { term: { kind: 'novel' } }, aggs: { pages: { avg: { field: 'pages' } } } },
        months: {
          date_histogram: { field: 'at', calendar_interval: 'month', min_doc_count: 1, format: 'yyyy-MM' },
          aggs: { pages: { max: { field: 'pages' } } },
        },
        weeks: { date_histogram: { field: 'at', calendar_interval: '1w', min_doc_count: 2 } },
      },
    })
    const monthly = { field: 'at', calendar_interval: 'quarter', format: 'yyyy-MM' }
    const { aggregations: inner } = await reply({
      size: 0,
      aggs: { at: { date_histogram: monthly, aggs: { kinds: { terms: { field: 'kind' } } } } },
    })
    expect(
      inner.at.buckets.map((bucket: { key_as_string: string; kinds: { buckets: unknown[] } }) => [
        bucket.key_as_string,
        bucket.kinds.buckets.length,
      ]),
    ).toEqual([
      ['2024-01', 2],
      ['2024-04', 0],
      ['2024-07', 0],
      ['2024-10', 0],
      ['2025-01', 1],
    ])
    const tooMany = { date_histogram: { field: 'at', fixed_interval: '1s' } }
    const [status, { error }] = await request('POST', `/${index}/_search`, { aggs: { tooMany } })
    expect([status, error.reason]).toEqual([
      400,
      expect.stringMatching(/\[tooMany\] of more than \d+ buckets/),
    ])
    expect(aggregations).toEqual({
      novels: { doc_count: 2, pages: { value: 210 } },
      months: {
        buckets: [
          { key_as_string: '2024-01', key: Date.UTC(2024, 0), doc_count: 1, pages: { value: 120 } },
          { key_as_string: '2024-02', key: Date.UTC(2024, 1), doc_count: 2, pages: { value: 300 } },
          { key_as_string: '2025-01', key: Date.UTC(2025, 0), doc_count: 1, pages: { value: 90 } },
        ],
      },
      weeks: { buckets: [] },
    })
  })

  it('shows larger fragments if asked, and the most common options of highlights', async () => {
    const lengths = await Promise.all(
      [30, 300].map(async (fragment_size) => {
        const { hits } = await reply({
          query: { match: { body: 'needle' } },
          highlight: { type: 'unified', fields: { body: { fragment_size, number_of_fragments: 3 } } },
        })
        return hits.hits[0].highlight.body[0].replace(/<\/?em>/g, '').length
      }),
    )
    expect(lengths[0]).toBeLessThan(45)
    expect(lengths[1]).toBeGreaterThan(200)
    expect(lengths[1]).toBeLessThan(400)
  })

  it('ranks a hybrid query by the places of hits', async () => {
    const { hits } = await reply({
      query: { hybrid: { queries: [{ match: { title: 'fox dog' } }, { term: { kind: 'novel' } }] } },
      search_pipeline: {
        phase_results_processors: [
          { 'score-ranker-processor': { combination: { technique: 'rrf', rank_constant: 40 } } },
        ],
      },
    })
    const scores = hits.hits.map(({ _id, _score }: { _id: string; _score: number }) => [
      _id,
      _score.toFixed(6),
    ])
    expect(scores).toEqual([
      ['c', (1 / 41 + 1 / 42).toFixed(6)],
      expect.arrayContaining(['a']),
      expect.arrayContaining(['b']),
    ])
  })
})
