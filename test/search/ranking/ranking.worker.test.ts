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
      'begins with what is being typed',
      [
        ['scattered', 'Rated', `${LONG} the film is rated r`],
        ['begun', 'The Rookie', LONG],
        ['inside', 'Inside the Rookie', LONG],
      ],
      { q: 'the r' },
      ['begun', 'scattered', 'inside'],
    ],
    [
      'has the words in a row before a longer word at the beginning',
      [
        ['begun', 'The Rookie', 'x'],
        ['row', 'Call the r', 'x'],
      ],
      { q: 'the r' },
      ['row', 'begun'],
    ],
    [
      'begins with the word, of those that are equal in all keys',
      [
        ['end', 'A red fox', LONG],
        ['begin', 'Fox hunters of the north', 'fox fox'],
      ],
      { q: 'fox' },
      ['begin', 'end'],
    ],
    [
      'is short, of those that begin with the word',
      [
        ['long', 'Hood and all of his merry men', 'x'],
        ['short', 'Hook', LONG],
      ],
      { q: 'hoo' },
      ['short', 'long'],
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
    [
      'has no typo',
      [
        ['typo', 'databases databases', 'databases'],
        ['right', 'x', `${LONG} databasis`],
      ],
      { q: 'databasis', typo_tokens_threshold: '5', prefix: 'false' },
      ['right', 'typo'],
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

describe('a typo', () => {
  const rows: Row[] = [
    ['star', 'Transformers and stars', 'x'],
    ['mir', 'Война и мир', 'x'],
    ['known', 'The form of a lake', 'x'],
    ['model', 'Model 12345', 'x'],
  ]
  const things = collectionOf(rows)
  const found = async (q: string, params: SearchParameters = {}) =>
    idsOf(await (await things).search({ q, query_by: 'title', drop_tokens_threshold: '0', ...params }))

  it.each([
    ['transfomers', ['star']],
    ['rtansformers', ['star']],
    ['xransformers', ['star']],
    ['ransformers', ['star']],
    ['trasnfromers', ['star']],
    ['transfrom', ['star']],
    ['xransfo', ['star']],
    ['воина', ['mir']],
    ['каойна', []],
    ['form lakes', ['known']],
    ['from lake', ['known']],
    ['12354', ['model']],
  ])('in %s is found', async (q, ids) => {
    expect(await found(q)).toEqual(ids)
  })

  it('is not corrected where it must not be', async () => {
    expect(await found('transfomers', { num_typos: '0' })).toEqual([])
    expect(await found('12354', { enable_typos_for_numerical_tokens: 'false' })).toEqual([])
    expect(await found('lkae', { min_len_1typo: '5' })).toEqual([])
    expect(await found('lkae')).toEqual(['known'])
    expect(await found('xransfo', { prefix: 'false' })).toEqual([])
  })
})

describe('words that are found as they were typed', () => {
  const rows: Row[] = [
    ['devil', 'Dust Devil', 'x', 9],
    ['mention', 'Another film', 'evil dust everywhere', 5],
    ['spread', 'Evil of the old dust', 'x', 1],
    ['scream', 'Scream', 'x'],
    ['ice', 'Ice cream man', 'x'],
  ]
  const things = collectionOf(rows)
  const search = async (params: SearchParameters) =>
    (await things).search({ query_by: 'title,text', facet_by: 'kind', ...params })

  it('stand for no others, in hits, counts and facets', async () => {
    const { found, hits, facet_counts: facets } = await search({ q: 'cream' })
    expect([found, hits!.map(({ document }) => document.id)]).toEqual([1, ['ice']])
    expect(facets![0]!.counts).toMatchObject([{ value: 'film', count: 1 }])
    expect(idsOf(await search({ q: 'dust evil' }))).toEqual(['mention', 'spread'])
  })

  it('stand for similar ones too where `typo_tokens_threshold` asks for more matches, after themselves', async () => {
    expect(idsOf(await search({ q: 'cream', typo_tokens_threshold: '10' }))).toEqual(['ice', 'scream'])
    expect(idsOf(await search({ q: 'dust evil', typo_tokens_threshold: '10' }))).toContain('devil')
  })

  it('are not dropped where a similar word is found', async () => {
    const films: Row[] = [
      ['beauty', 'American Beauty', 'x'],
      ['captain', 'Captain America', 'x'],
      ['horse', 'Horses', 'The beauty of a horse'],
    ]
    expect(await order(films, { q: 'America Beauty' })).toEqual(['beauty'])
    const all = await order(films, { q: 'America Beauty', drop_tokens_threshold: '3' })
    expect(all).toContain('captain')
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

  it('puts short titles that begin with an unfinished word first', async () => {
    const films: Row[] = Array.from({ length: 300 }, (_, n) => [
      `f${n}`,
      `${n % 2 === 0 ? 'A tale of ' : ''}the hound ${n} and many more of them`,
      'nothing',
    ])
    films.splice(150, 0, ['hook', 'The Hook', LONG])
    for (const q of ['the ho', 'the h']) expect((await order(films, { q }))[0]).toBe('hook')
    const alone: Row[] = films.map(([id, title, text]) => [id, title.replace(/^the /i, ''), text])
    for (const q of ['hoo', 'ho']) expect((await order(alone, { q }))[0]).toBe('hook')
    // The length of a column is found behind those of others, short and long.
    const swapped = alone.map(([id, title], n): Row => [id, 'x '.repeat((n * 53) % 300), title])
    expect((await order(swapped, { q: 'ho', query_by: 'text,title' }))[0]).toBe('hook')
  })

  it('puts the title that is the query first', async () => {
    const { search } = await things
    expect(idsOf(await search({ q: 'red balloon', query_by: 'title,text' }))[0]).toBe('exact')
  })
})

it('finds documents with more of the words first, however many have those that were not dropped', async () => {
  const rows: Row[] = Array.from({ length: 300 }, (_, n) => [`d${n}`, `Notes ${n}`, 'while it lasted', n])
  const { search } = await collectionOf([
    ...rows,
    ['two', 'Others', 'it was while others slept', 0],
    ['three', 'While she was out', 'x', 0],
  ])
  const orders: SearchParameters[] = [{}, { sort_by: '_text_match:desc,popularity:desc' }]
  for (const sort of orders) {
    const { found, hits } = await search({ q: 'while hse was out', query_by: 'title,text', ...sort })
    expect(found).toBe(302)
    const popular = 'sort_by' in sort ? 'd299' : hits![2]!.document.id
    expect(hits!.slice(0, 3).map(({ document }) => document.id)).toEqual(['three', 'two', popular])
  }
})

it('takes the last word that is not excluded as unfinished', async () => {
  const rows: Row[] = [
    ['developed', 'Developed by many', 'x'],
    ['ford', 'Developed by Ford', 'x'],
  ]
  expect(await order(rows, { q: 'develop -ford' })).toEqual(['developed'])
  expect(await order(rows, { q: 'develop -for' })).toEqual(['ford', 'developed'])
  expect(await order(rows, { q: 'develop -ford', prefix: 'false', num_typos: '0' })).toEqual([])
})
