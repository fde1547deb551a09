/** `split_join_tokens` and `num_typos` of single fields. */
import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'
import { importAll } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'maker', type: 'string' },
]

describe('split_join_tokens', () => {
  let tools: TestCollection

  beforeAll(async () => {
    tools = await makeCollection(FIELDS, [
      { id: 'one', title: 'Cordless screwdriver', maker: 'Alpha Works' },
      { id: 'two', title: 'Screw driver bits', maker: 'Beta' },
      { id: 'apart', title: 'Lamp for a work bench', maker: 'bench' },
      { id: 'far', title: 'water for the fall', maker: 'Gamma' },
    ])
  })

  const found = async (q: string, more = {}) =>
    idsOf(
      await tools.search({ q, query_by: 'title,maker', num_typos: '0', drop_tokens_threshold: '0', ...more }),
    )

  it.each([
    ['cord less', ['one']],
    ['cord less screwdriver', ['one']],
    // The `e` is repeated.
    ['b e n c h', ['apart']],
    ['m a k e r', []],
    ['c o r d l e s s', ['one']],
    ['workbench', ['apart']],
    ['lamp workbench', ['apart']],
    // Parts of a word stand side by side.
    ['waterfall', []],
    // Somebody writes it so, and that is enough.
    ['screw driver', ['two']],
    ['screwdriver', ['one']],
  ])('finds %s', async (q, ids) => {
    expect(await found(q)).toEqual(ids)
  })

  it('looks for both ways where it is asked to', async () => {
    const always = async (q: string) => (await found(q, { split_join_tokens: 'always' })).sort()
    expect(await always('screw driver')).toEqual(['one', 'two'])
    expect(await always('screwdriver')).toEqual(['one', 'two'])
  })

  it('keeps to the words as typed where it is asked to', async () => {
    expect(await found('cord less', { split_join_tokens: 'off' })).toEqual([])
    expect(await found('workbench', { split_join_tokens: 'false' })).toEqual([])
    expect(await refusal(tools, { q: 'x', query_by: 'title', split_join_tokens: 'sometimes' })).toBe(
      '400 Parameter `split_join_tokens` must be `fallback`, `always` or `off`.',
    )
  })

  it('leaves phrases in quotes and excluded words alone', async () => {
    expect(await found('"cord less"')).toEqual([])
    expect(await found('workbench -lamp')).toEqual([])
  })

  it('marks the words that it has found', async () => {
    const { hits } = await tools.search({ q: 'workbench', query_by: 'title' })
    expect(hits!.map(({ highlights }) => highlights[0]!.snippet)).toEqual([
      'Lamp for a <mark>work</mark> <mark>bench</mark>',
    ])
  })

  it('does the same in groups and under another order', async () => {
    const fields = [...FIELDS, { name: 'kind', type: 'string', facet: true }, { name: 'n', type: 'int32' }]
    const grouped = await makeCollection(fields, [
      { id: 'a', title: 'snowboard', maker: 'x', kind: 'k', n: 1 },
      { id: 'b', title: 'Snowboard wax', maker: 'x', kind: 'k', n: 2 },
    ])
    const params = { q: 'snow board', query_by: 'title' }
    expect(idsOf(await grouped.search({ ...params, sort_by: 'n:desc' }))).toEqual(['b', 'a'])
    const { grouped_hits } = await grouped.search({ ...params, group_by: 'kind' })
    expect(grouped_hits!.map(({ found: size }) => size)).toEqual([2])
  })
})

describe('num_typos', () => {
  let people: TestCollection

  beforeAll(async () => {
    people = await makeCollection(FIELDS, [
      { id: 'title', title: 'Marshall', maker: 'nobody' },
      { id: 'maker', title: 'nothing', maker: 'Marshall' },
    ])
  })

  const found = async (q: string, num_typos: string, more = {}) =>
    idsOf(await people.search({ q, query_by: 'title,maker', num_typos, prefix: 'false', ...more })).sort()

  it.each([
    ['Marchall', '1', ['maker', 'title']],
    ['Marchall', '1,0', ['title']],
    ['Marchall', '0,1', ['maker']],
    ['Marchal', '2,1', ['title']],
    ['Marchal', '1,1', []],
    ['Marshall', '0,2', ['maker', 'title']],
  ])('of each field: %s with %s', async (q, num_typos, ids) => {
    expect(await found(q, num_typos)).toEqual(ids)
  })

  it('counts in the order of the hits, too', async () => {
    const { hits } = await people.search({
      q: 'Marchall nobody',
      query_by: 'title,maker',
      num_typos: '1,0',
      prefix: 'false',
      drop_tokens_threshold: '2',
    })
    expect(hits!.map(({ document }) => document.id)).toEqual(['title'])
    expect(await found('Marchal', '2,1', { prefix: 'true,false' })).toEqual(['title'])
  })
})

describe('a question', () => {
  const asking = (pages: Awaited<ReturnType<typeof makeCollection>>) => async (q: string) =>
    idsOf(
      await pages.search({
        q,
        query_by: 'title',
        match_stems: 'true',
        fusion: 'score',
        drop_tokens_threshold: '1000000',
        prefix: 'false',
      }),
    )

  it('finds a verb and its particle as one word', async () => {
    const asked = asking(
      await makeCollection(FIELDS, [
        { id: 'copies', title: 'Making a backup', maker: 'Alpha' },
        { id: 'door', title: 'Login', maker: 'Beta' },
        { id: 'other', title: 'Where the computer stands', maker: 'Gamma' },
      ]),
    )
    expect(await asked('how do I back up everything')).toEqual(['copies'])
    expect(await asked('backing up at night')).toEqual(['copies'])
    expect(await asked('why am I not logged in')).toEqual(['door'])
    expect(await asked('how do I sign up')).toEqual([])
  })

  it('finds British and American spellings alike', async () => {
    const asked = asking(
      await makeCollection(FIELDS, [
        { id: 'british', title: 'Colours of the catalogue', maker: 'Alpha' },
        { id: 'american', title: 'Organize a center', maker: 'Beta' },
      ]),
    )
    expect(await asked('which color?')).toEqual(['british'])
    expect(await asked('the catalogs')).toEqual(['british'])
    expect(await asked('how is it organised?')).toEqual(['american'])
    expect(await asked('at the centre')).toEqual(['american'])
  })
})

it.each([
  ['Thai', 'ลงรถไฟ', 'ลงที่นั่นโดยรถไฟ', 'ลงที่นั่นโดยเรือ'],
  ['Japanese', '東京天気', '今日の天気は東京で晴れ', '今日の天気は大阪で晴れ'],
  ['Chinese', '北京天气', '今天的天气在北京很好', '今天的天气在上海很好'],
])('%s words that are typed without blanks may be apart in a document', async (_, q, text, other) => {
  const texts = await makeCollection(
    [{ name: 'text', type: 'string' }],
    [
      { id: 'has them', text },
      { id: 'has one', text: other },
    ],
  )
  const search = (more = {}) => texts.search({ q, query_by: 'text', drop_tokens_threshold: '0', ...more })
  expect(idsOf(await search())).toEqual(['has them'])
  expect(idsOf(await search({ split_join_tokens: 'off' }))).toEqual([])
  expect(idsOf(await texts.search({ q: `"${q}"`, query_by: 'text' }))).toEqual([])
  // Where somebody writes the words so, that is what is found.
  await importAll(texts.object, [{ id: 'as typed', text: `x ${q}` }])
  expect(idsOf(await search())).toEqual(['as typed'])
})
