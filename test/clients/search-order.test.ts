/** The order of plain searches at their default parameters, and what changes it, through Typesense's own client. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, makeCollection, unique } from './harness'

async function titles(collection: string, q: string, more: object = {}): Promise<string[]> {
  const { hits } = await client()
    .collections<{ title: string }>(collection)
    .documents()
    .search({ q, query_by: 'title', ...more })
  return hits!.map(({ document }) => document.title)
}

const TITLE = { name: 'title', type: 'string' }

describe('of films by a word', () => {
  let films: string
  beforeAll(async () => {
    films = await makeCollection(
      'order',
      [TITLE, { name: 'plot', type: 'string' }, { name: 'votes', type: 'int32' }],
      [
        { title: 'Rain', plot: 'a storm at sea '.repeat(80), votes: 1 },
        { title: 'Weather', plot: 'rain rain rain', votes: 5 },
        { title: 'Rain Man', plot: 'two brothers', votes: 9 },
        { title: 'The Rain', plot: 'a virus', votes: 3 },
        { title: 'Rainbow', plot: 'colours', votes: 99 },
      ],
      { default_sorting_field: 'votes' },
    )
  })
  const both = { query_by: 'title,plot', num_typos: 0 }

  test.each<[string, object, string[]]>([
    ['the exact title, however long the plot', {}, ['Rain', 'Rain Man', 'The Rain', 'Weather', 'Rainbow']],
    [
      'votes, where exactness does not count',
      { prioritize_exact_match: false },
      ['Rain Man', 'The Rain', 'Rain', 'Weather', 'Rainbow'],
    ],
    [
      'earlier words, where positions count',
      { prioritize_token_position: true },
      ['Rain', 'Rain Man', 'Weather', 'The Rain', 'Rainbow'],
    ],
    [
      'the weightier field',
      { text_match_type: 'max_weight', query_by_weights: '1,9' },
      ['Weather', 'Rain', 'Rain Man', 'The Rain', 'Rainbow'],
    ],
  ])('comes first: %s', async (_, more, order) => {
    expect(await titles(films, 'rain', { ...both, ...more })).toEqual(order)
  })
})

test('an exact word comes before one that only begins so', async () => {
  const name = await makeCollection(
    'order',
    [TITLE],
    [{ title: 'a case study' }, { title: 'Studio' }, { title: 'Studying' }],
  )
  expect((await titles(name, 'study'))[0]).toBe('a case study')
})

test('equals are ordered by what the search or the collection says', async () => {
  const shoes = [1, 9, 5].map((sold) => ({ title: 'shoe', sold }))
  const name = await makeCollection('order', [TITLE, { name: 'sold', type: 'int32' }], shoes, {
    default_sorting_field: 'sold',
  })
  const order = async (more: object) =>
    (
      await client()
        .collections<{ sold: number }>(name)
        .documents()
        .search({ q: 'shoe', query_by: 'title', ...more })
    ).hits!.map(({ document }) => document.sold)
  expect(await order({})).toEqual([9, 5, 1])
  expect(await order({ sort_by: '_text_match:desc,sold:asc' })).toEqual([1, 5, 9])
})

test('words near each other, in their order and in one field come first', async () => {
  const near = await makeCollection(
    'order',
    [TITLE],
    [{ title: 'new homes in old york' }, { title: 'new york homes' }],
  )
  expect(await titles(near, 'new york')).toEqual(['new york homes', 'new homes in old york'])
  const fields = await makeCollection(
    'order',
    [TITLE, { name: 'brand', type: 'string' }],
    [
      { title: 'red lamp', brand: 'shoe world' },
      { title: 'red shoe', brand: 'acme' },
    ],
  )
  const found = await titles(fields, 'red shoe', { query_by: 'title,brand' })
  expect(found[0]).toBe('red shoe')
})

test('a word as typed comes before one with a typo', async () => {
  const name = await makeCollection('order', [TITLE], [{ title: 'hat' }, { title: 'bat' }])
  expect(await titles(name, 'bat')).toEqual(['bat'])
  expect(await titles(name, 'bat', { typo_tokens_threshold: 5, min_len_1typo: 3 })).toEqual(['bat', 'hat'])
})

test('synonyms count as the word, one way from a root', async () => {
  const set = unique('synonyms')
  await client()
    .synonymSets(set)
    .upsert({
      items: [
        { id: 'tee', synonyms: ['tee', 't-shirt', 'jersey'] },
        { id: 'sneaker', root: 'sneaker', synonyms: ['running shoe'] },
      ],
    })
  const name = await makeCollection(
    'order',
    [TITLE],
    [{ title: 'red t-shirt' }, { title: 'blue jersey' }, { title: 'a running shoe' }, { title: 'sneaker' }],
    { synonym_sets: [set] },
  )
  expect((await titles(name, 'tee')).sort()).toEqual(['blue jersey', 'red t-shirt'])
  expect(await titles(name, 'red tee', { drop_tokens_threshold: 0 })).toEqual(['red t-shirt'])
  expect(await titles(name, 'sneaker')).toEqual(['sneaker', 'a running shoe'])
  expect(await titles(name, 'running shoe')).toEqual(['a running shoe'])
})

test('curations pin, hide and filter', async () => {
  const set = unique('curations')
  await client()
    .curationSets(set)
    .upsert({
      items: [
        {
          id: 'rain',
          rule: { query: 'rain', match: 'exact' },
          includes: [{ id: '2', position: 1 }],
          excludes: [{ id: '0' }],
        },
        {
          id: 'brand',
          rule: { query: '{brand} coat', match: 'contains' },
          filter_by: 'brand:={brand}',
          remove_matched_tokens: true,
        },
      ],
    } as never)
  const name = await makeCollection(
    'order',
    [TITLE, { name: 'brand', type: 'string', facet: true }],
    [
      { id: '0', title: 'rain', brand: 'omega' },
      { id: '1', title: 'rain coat', brand: 'omega' },
      { id: '2', title: 'hat', brand: 'acme' },
    ],
    { curation_sets: [set] },
  )
  expect(await titles(name, 'rain')).toEqual(['hat', 'rain coat'])
  // The brand filters, and is no word of the query any more.
  expect(await titles(name, 'omega coat', { drop_tokens_threshold: 0 })).toEqual(['rain coat'])
  expect(await titles(name, 'acme coat')).toEqual([])
})

test('words of a stemming dictionary are found by their root', async () => {
  const dictionary = unique('dictionary')
  await client()
    .stemming.dictionaries()
    .upsert(dictionary, [
      { word: 'people', root: 'person' },
      { word: 'mice', root: 'mouse' },
    ])
  const name = await makeCollection(
    'order',
    [{ ...TITLE, stem_dictionary: dictionary }],
    [{ title: 'two people' }, { title: 'a person' }, { title: 'mice' }],
  )
  expect((await titles(name, 'person')).sort()).toEqual(['a person', 'two people'])
  expect(await titles(name, 'mouse')).toEqual(['mice'])
})
