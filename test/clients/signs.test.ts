/** Signs in words: filters, orders, facet queries and curations take words as searches do, through Typesense's own client. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, makeCollection, request, unique } from './harness'

const PEOPLE = [
  {
    id: 'neill',
    name: "Sam O'Neill",
    studio: 'Century-Fox',
    tags: ['C++', 'sci-fi'],
    mail: 'j.doe@foo-bar.com',
  },
  { id: 'apart', name: 'Æon O Neill', studio: 'Century Fox', tags: ['C', 'hi fi'], mail: 'info@foo.com' },
  { id: 'lodz', name: 'Łódź', studio: 'AT&T', tags: ['C#', 'AB-123'], mail: '' },
  { id: 'none', name: '!!!', studio: '東京都', tags: [], mail: 'R2-D2' },
]

const FIELDS = [
  { name: 'name', type: 'string', sort: true },
  { name: 'studio', type: 'string', facet: true },
  { name: 'tags', type: 'string[]', facet: true },
  { name: 'mail', type: 'string' },
]

const documents = (collection: string) => client().collections<{ id: string }>(collection).documents()

const found = async (collection: string, params: object): Promise<string[]> =>
  (await documents(collection).search({ q: '*', ...params })).hits!.map(({ document }) => document.id)

let people: string
beforeAll(async () => {
  people = await makeCollection('signs', FIELDS, PEOPLE)
})

describe('filters', () => {
  test.each([
    ['name:oneill', ['neill']],
    ['name:o neill', ['apart']],
    ['name:O’NEILL', ['neill']],
    ['name:aeon', ['apart']],
    ['name:=lodz', ['lodz']],
    ["name:=sam o'n*", ['neill']],
    ['studio:century fox', ['apart']],
    ['studio:centuryf*', ['neill']],
    ['studio:=century-fox', ['neill']],
    ['studio:!=[`Century-Fox`, att]', ['none', 'apart']],
    ['studio:!century', ['none', 'lodz', 'neill']],
    ['studio:=at&t', ['lodz']],
    ['studio:東京', ['none']],
    ['studio:京東', []],
    ['tags:scifi', ['neill']],
    ['tags:=C', ['lodz', 'apart', 'neill']],
    ['tags:[ab123, `hi fi`]', ['lodz', 'apart']],
    ['mail:=jdoe@foobarcom', ['neill']],
    ['mail:foo', []],
    ['mail:r2d2', ['none']],
    ['mail:"info@foo.com"', ['apart']],
  ])('%s', async (filter_by, ids) => {
    expect(await found(people, { filter_by })).toEqual(ids)
  })

  test('part words at separators, and keep symbols', async () => {
    const rules = { token_separators: ['-', '@'], symbols_to_index: ['+', '#'] }
    const apart = await makeCollection('separated', FIELDS, PEOPLE, rules)
    expect(await found(apart, { filter_by: 'studio:century fox' })).toEqual(['apart', 'neill'])
    expect(await found(apart, { filter_by: 'studio:centuryfox' })).toEqual([])
    expect(await found(apart, { filter_by: 'tags:=C' })).toEqual(['apart'])
    expect(await found(apart, { filter_by: 'tags:=[`c++`, `c#`]' })).toEqual(['lodz', 'neill'])
    expect(await found(apart, { filter_by: 'mail:info' })).toEqual(['apart'])
    const own = FIELDS.map((field) => (field.name === 'studio' ? { ...field, ...rules } : field))
    const mixed = await makeCollection('mixed', own, PEOPLE)
    expect(await found(mixed, { filter_by: 'studio:fox && tags:scifi' })).toEqual(['neill'])
  })

  test('part texts without spaces into words where a field has a locale', async () => {
    const fields = ['facet', 'plain'].flatMap((name) => [
      { name, type: 'string', facet: name === 'facet' },
      { name: `${name}_ja`, type: 'string', locale: 'ja', facet: name === 'facet' },
    ])
    const text = '日本語を勉強する'
    const lessons = await makeCollection('lessons', fields, [
      { id: '1', facet: text, facet_ja: text, plain: text, plain_ja: text },
    ])
    for (const name of ['facet', 'plain']) {
      expect(await found(lessons, { filter_by: `${name}:勉強する` })).toEqual(['1'])
      expect(await found(lessons, { filter_by: `${name}:勉強日本語` })).toEqual([])
      expect(await found(lessons, { filter_by: `${name}_ja:勉強日本語` })).toEqual(['1'])
      expect(await found(lessons, { filter_by: `${name}_ja:英語` })).toEqual([])
      expect(await found(lessons, { filter_by: `${name}_ja:=${text}` })).toEqual(['1'])
    }
  })

  test('of a deletion and of a scoped key are the same', async () => {
    const copy = await makeCollection('signs', FIELDS, PEOPLE)
    const { value } = await client()
      .keys()
      .create({ description: 'signs', actions: ['documents:search'], collections: [copy] })
    const key = client().keys().generateScopedSearchKey(value!, { filter_by: 'studio:=`Century-Fox`' })
    const seen = await client(key).collections(copy).documents().search({ q: '*' })
    expect(seen.hits!.map(({ document }) => document)).toMatchObject([{ id: 'neill' }])
    await documents(copy).delete({ filter_by: 'studio:centuryfox || tags:AB123' })
    expect(await found(copy, {})).toEqual(['none', 'apart'])
  })

  test('tell owners apart by signs only where the field indexes them', async () => {
    const owners = await makeCollection(
      'signs',
      [
        { name: 'owner', type: 'string', facet: true },
        { name: 'exact', type: 'string', facet: true, symbols_to_index: ['.', '@', '-'] },
      ],
      ['john.doe@x.com', 'johndoe@x.com', '1-23', '12-3'].map((owner) => ({
        id: owner,
        owner,
        exact: owner,
      })),
    )
    expect(await found(owners, { filter_by: 'owner:=`john.doe@x.com`' })).toHaveLength(2)
    expect(await found(owners, { filter_by: 'owner:=`1-23`' })).toHaveLength(2)
    expect(await found(owners, { filter_by: 'exact:=`john.doe@x.com`' })).toEqual(['john.doe@x.com'])
    expect(await found(owners, { filter_by: 'exact:=`1-23`' })).toEqual(['1-23'])
  })
})

test('orders put letters with signs and ligatures where they belong', async () => {
  expect(await found(people, { sort_by: 'name:asc' })).toEqual(['apart', 'lodz', 'neill', 'none'])
  expect(await found(people, { sort_by: 'name(missing_values: first):asc' })).toEqual([
    'none',
    'apart',
    'lodz',
    'neill',
  ])
})

test.each(['studio', 'tags', 'year'])('a facet query of signs alone finds no value of %s', async (field) => {
  const fields = [...FIELDS, { name: 'year', type: 'int32', facet: true, optional: true }]
  const named = await makeCollection('signs', fields, [...PEOPLE, { ...PEOPLE[0], id: 'dated', year: 1990 }])
  const asked = { q: '*', facet_by: field, facet_query: `${field}:&` }
  const { facet_counts } = await documents(named).search(asked)
  expect(facet_counts![0]!.counts).toEqual([])
})

test('a facet query finds a value by its letters, and marks them', async () => {
  const { facet_counts } = await documents(people).search({
    q: '*',
    facet_by: 'studio,tags',
    facet_query: 'studio:centuryf',
    facet_query_num_typos: 0,
  })
  expect(facet_counts![0]!.counts).toMatchObject([
    { value: 'Century-Fox', highlighted: '<mark>Century-F</mark>ox' },
  ])
})

test('a curation meets a word and a value with signs', async () => {
  const set = unique('signs')
  const items = [
    { id: 'word', rule: { query: 'wi-fi', match: 'exact' }, filter_by: 'tags:scifi' },
    { id: 'value', rule: { query: '{studio} films', match: 'exact' }, filter_by: 'studio:={studio}' },
  ].map((item) => ({ ...item, replace_query: '*' }))
  await request('PUT', `/curation_sets/${set}`, { items })
  const asked = { query_by: 'name', curation_sets: set }
  expect(await found(people, { ...asked, q: 'wifi' })).toEqual(['neill'])
  expect(await found(people, { ...asked, q: 'centuryfox films' })).toEqual(['neill'])
  expect(await found(people, { ...asked, q: 'century-fox films' })).toEqual(['neill'])
  expect(await found(people, { ...asked, q: 'century fox films' })).toEqual(['apart'])
})
