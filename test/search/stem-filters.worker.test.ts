/** Filters on fields with `stem` or `stem_dictionary` compare stems, as searches do. */
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { importDictionary } from '../../src/registry/named-sets'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

beforeAll(async () => {
  await importDictionary(env, 'filters', '{"word":"went","root":"go"}\n{"word":"people","root":"person"}')
})

const KINDS: [string, Record<string, unknown>][] = [
  ['a field of words', {}],
  ['a facet', { facet: true }],
  ['a field that is not stored', { store: false }],
]

describe.each(KINDS)('%s', (_, option) => {
  let things: TestCollection

  beforeAll(async () => {
    things = await makeCollection(
      [
        { name: 'text', type: 'string', stem: true, optional: true, ...option },
        { name: 'tags', type: 'string[]', stem: true, optional: true, ...option },
        { name: 'words', type: 'string', stem_dictionary: 'filters', optional: true, ...option },
        { name: 'german', type: 'string', stem: true, locale: 'de', optional: true, ...option },
        { name: 'plain', type: 'string', optional: true, ...option },
      ],
      [
        { id: 'shoes', text: 'Running Shoes', tags: ['running shoe', 'sale'], plain: 'Running Shoes' },
        { id: 'bread', text: 'Baking bread', tags: ['baking', 'breads'], plain: 'Baking' },
        { id: 'went', words: 'They went to the people' },
        { id: 'house', german: 'Alte H\u00e4user' },
      ],
    )
  })

  it.each([
    ['text:run', ['shoes']],
    ['text:=run shoe', ['shoes']],
    ['text:=runs', []],
    ['text:=[baked breads, nothing]', ['bread']],
    ['text:"run shoe"', ['shoes']],
    ['text:"shoe run"', []],
    ['text:bak*', ['bread']],
    ['tags:=run shoes', ['shoes']],
    ['tags:=bread', ['bread']],
    ['words:go', ['went']],
    ['words:=they go to the person', ['went']],
    ['german:haus', ['house']],
    ['german:=alten h\u00e4usern', ['house']],
    ['plain:run', []],
    ['plain:=Running Shoes', ['shoes']],
  ])('%s', async (filter_by, ids) => {
    expect(idsOf(await things.search({ q: '*', filter_by })).sort()).toEqual(ids)
  })

  it('negates them', async () => {
    const others = idsOf(await things.search({ q: '*', filter_by: 'text:!=run shoe' })).sort()
    expect(others).toEqual(['bread', 'house', 'went'])
  })
})

it('compares stems inside of objects', async () => {
  const things = await makeCollection(
    [
      { name: 'parts', type: 'object[]' },
      { name: 'parts.name', type: 'string[]', stem: true },
      { name: 'parts.price', type: 'int32[]' },
    ],
    [
      {
        id: 'cheap',
        parts: [
          { name: 'running shoes', price: 5 },
          { name: 'bread', price: 50 },
        ],
      },
      { id: 'dear', parts: [{ name: 'running shoes', price: 50 }] },
    ],
    { enable_nested_fields: true },
  )
  const filter_by = 'parts.{name:=run shoe && price:<10}'
  expect(idsOf(await things.search({ q: '*', filter_by }))).toEqual(['cheap'])
})
