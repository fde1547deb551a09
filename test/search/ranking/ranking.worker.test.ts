/** The order of plain searches: what is typed into a search box. */
import { describe, expect, it } from 'vitest'
import type { SearchParameters } from '../../../src/search/types'
import { idsOf, makeCollection } from '../make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'popularity', type: 'int32' },
  { name: 'kind', type: 'string', facet: true },
]

const LONG = 'Many words that say nothing of it stand here, one after the other. '.repeat(20)

type Row = [id: string, title: string, text: string, popularity?: number]

const collectionOf = (rows: Row[], extra: Record<string, unknown> = {}) =>
  makeCollection(
    FIELDS,
    rows.map(([id, title, text, popularity = 0]) => ({ id, title, text, popularity, kind: 'film' })),
    extra,
  )

const order = async (rows: Row[], params: SearchParameters, extra: Record<string, unknown> = {}) => {
  const things = await collectionOf(rows, extra)
  return idsOf(await things.search({ query_by: 'title,text', ...params }))
}

describe('the best match', () => {
  it.each<[string, Row[], SearchParameters, string[]]>([
    [
      'is the exact word, not a longer one that begins with it',
      [
        ['longer', 'Studios Studios', 'Studios'],
        ['exact', 'A study in scarlet', LONG],
      ],
      { q: 'studi' },
      ['longer'],
    ],
    [
      'has the word itself rather than a beginning of it',
      [
        ['exact', 'A star', LONG],
        ['longer', 'Start starting starts', 'start'],
      ],
      { q: 'star' },
      ['exact', 'longer'],
    ],
    [
      'is the field that is the query',
      [
        ['exact', 'The Love', LONG],
        ['more', 'The Love of the love', 'the love the love'],
        ['other', 'Love, The', 'x'],
      ],
      { q: 'the love' },
      ['exact', 'more', 'other'],
    ],
    [
      'has all words in one field',
      [
        ['one', 'Something else', `${LONG} red balloon`],
        ['two', 'red red red', 'balloon balloon'],
      ],
      { q: 'red balloon' },
      ['one', 'two'],
    ],
    [
      'has the words close together',
      [
        ['far', 'red house with a balloon', 'x'],
        ['near', 'a very long title that has a red balloon in the end of it', LONG],
      ],
      { q: 'red balloon' },
      ['near', 'far'],
    ],
    [
      'has the word in the heavier field, however long the rest of the document is',
      [
        ['title', 'A title with fox', LONG],
        ['text', 'Another', 'fox fox fox'],
      ],
      { q: 'fox' },
      ['title', 'text'],
    ],
    [
      'has the word in the field that the caller weighs more',
      [
        ['title', 'A title with fox', 'x'],
        ['text', 'Another', 'the fox here'],
      ],
      { q: 'fox', query_by_weights: '1,5' },
      ['text', 'title'],
    ],
  ])('%s', async (_, rows, params, ids) => {
    expect(await order(rows, params)).toEqual(ids)
    expect(await order(rows.toReversed(), params)).toEqual(ids)
  })

  it('is the most popular one of those that fit equally well', async () => {
    const rows: Row[] = [
      ['exact', 'Fox', 'x', 1],
      ['long', 'The fox and all of its many friends', LONG, 9],
      ['short', 'A fox', 'x', 5],
      ['text', 'Nothing', 'a fox', 99],
    ]
    const popular = ['exact', 'long', 'short', 'text']
    expect(await order(rows, { q: 'fox', sort_by: '_text_match:desc,popularity:desc' })).toEqual(popular)
    expect(await order(rows, { q: 'fox' }, { default_sorting_field: 'popularity' })).toEqual(popular)
    const loose = { q: 'fox', prioritize_exact_match: 'false', sort_by: '_text_match:desc,popularity:desc' }
    expect(await order(rows, loose)).toEqual(['long', 'short', 'exact', 'text'])
  })

  it('is decided by the next key within a bucket', async () => {
    const rows: Row[] = [
      ['exact', 'Fox', 'x', 1],
      ['title', 'A fox', 'x', 5],
      ['text', 'Nothing', 'a fox', 99],
    ]
    const by = (bucket: string) =>
      order(rows, { q: 'fox', sort_by: `_text_match(${bucket}):desc,popularity:desc` })
    expect(await by('bucket_size: 2')).toEqual(['title', 'exact', 'text'])
    expect(await by('bucket_size: 1')).toEqual(['exact', 'title', 'text'])
    expect(await by('bucket_size: 9')).toEqual(['text', 'title', 'exact'])
    expect(await by('buckets: 1')).toEqual(['text', 'title', 'exact'])
    expect(await by('buckets: 3')).toEqual(['exact', 'title', 'text'])
    expect(await by('buckets: 0')).toEqual(['exact', 'title', 'text'])
  })
})

describe('a search that finds more than it reads', () => {
  const COUNT = 700
  // The words are in many places, so that all kinds of matches occur.
  const rows: Row[] = Array.from({ length: COUNT }, (_, n) => [
    `d${n}`,
    n % 7 === 0 ? `red balloon ${n}` : n % 3 === 0 ? `balloon ${n % 50} red` : `title ${n}`,
    `${'filling '.repeat(n % 40)} balloon ${'between '.repeat((n * 7) % 15)} red ${n % 5 === 0 ? 'balloons' : ''}`,
    (n * 37) % 101,
  ])
  const things = collectionOf([...rows, ['exact', 'Red Balloon', LONG, 0], ['one', 'Balloon', LONG, 0]])

  it.each<SearchParameters>([
    { q: 'red balloon' },
    { q: 'balloon' },
    { q: 'balloon', prefix: 'false' },
    { q: 'red ball' },
    { q: 'red balloon', query_by: 'text' },
    { q: 'balloon', query_by: 'text', sort_by: '_text_match:desc,popularity:desc' },
    { q: 'red balloon', sort_by: '_text_match:desc,popularity:desc' },
    { q: 'red -title', query_by_weights: '1,1' },
    { q: 'red balloon nowhere' },
    { q: 'balloon', filter_by: 'popularity:>20', sort_by: '_text_match:desc,popularity:asc' },
  ])('has each match on one page: %j', async (params) => {
    const { search } = await things
    const pages = []
    let found = 0
    for (let page = 1; page < 30; page++) {
      const result = await search({ query_by: 'title,text', ...params, page: String(page), per_page: '37' })
      found = result.found
      pages.push(result.hits!)
    }
    const hits = pages.flat()
    expect(hits.length).toBe(found)
    expect(found).toBeGreaterThan(200)
    expect(new Set(hits.map(({ document }) => document.id)).size).toBe(found)
    for (const page of pages) {
      const scores = page.map((hit) => hit.text_match!)
      expect(scores).toEqual([...scores].sort((a, b) => b - a))
    }
    const whole = await search({ query_by: 'title,text', ...params, per_page: '250' })
    expect(whole.hits!.map(({ document }) => document.id)).toEqual(
      hits.slice(0, 250).map(({ document }) => document.id),
    )
  })

  it('puts the title that is the query first', async () => {
    const { search } = await things
    expect(idsOf(await search({ q: 'red balloon', query_by: 'title,text' }))[0]).toBe('exact')
  })
})
