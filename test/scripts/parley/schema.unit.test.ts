import { expect, test } from 'vitest'
import {
  articleFields,
  collectionOf,
  documentOf,
  fieldsForMany,
  rowFields,
  storedTypes,
} from '../../../scripts/parley/import/schema.mjs'
import { languageOf } from '../../../src/lib/grammar'

const typesOf = (rows: Record<string, unknown>[], wanted = {}) =>
  Object.fromEntries(rowFields(rows, 'local/hash', wanted).map(({ name, type }) => [name, type]))

test('types are what all values of a column agree on', () => {
  expect(
    typesOf([
      {
        name: 'Reef',
        year: '2023',
        price: '1.5',
        zip: '01067',
        sold: 'true',
        big: '1712345678901234567',
        tags: ['a'],
      },
      { name: '7', year: '1999', price: '2', zip: '99999', sold: 'FALSE', big: '1', tags: [] },
    ]),
  ).toMatchObject({
    name: 'string',
    year: 'int64',
    price: 'float',
    zip: 'string',
    sold: 'bool',
    big: 'int64',
    tags: 'string[]',
    embedding: 'float[]',
  })
})

test('what a user names wins over the guess', () => {
  expect(typesOf([{ year: '2023' }], { year: 'string', missing: 'int32' })).toMatchObject({
    year: 'string',
    missing: 'int32',
  })
})

test('a column of few values that come again and again is a facet, and free text is not', () => {
  const rows = Array.from({ length: 12 }, (_, at) => ({
    genre: at % 2 ? 'drama' : 'comedy',
    plot: `Plot ${at}`,
  }))
  const fields = rowFields(rows, 'local/hash')
  expect(fields.find(({ name }) => name === 'genre')?.facet).toBe(true)
  expect(fields.find(({ name }) => name === 'plot')?.facet).toBeUndefined()
})

test('vectors are made of texts, and of no addresses', () => {
  const fields = rowFields([{ title: 'Reef', image_url: 'https://example.com/a.png' }], 'local/hash')
  expect(fields.find(({ name }) => name === 'embedding')?.embed).toMatchObject({ from: ['title'] })
})

test('cells become what their fields are; empty ones go', () => {
  const fields = rowFields([{ year: '2023', sold: 'true', note: 'x', id: '7' }], 'local/hash')
  expect(documentOf({ year: '2023', sold: 'true', note: '', id: '7' }, fields)).toEqual({
    year: 2023,
    sold: true,
    id: '7',
  })
  expect(documentOf({ year: '1712345678901234567' }, fields)).toEqual({ year: '1712345678901234567' })
})

test('objects have fields of their own, and a column of several kinds is written as text', () => {
  const rows = [
    {
      id: 'a',
      size: 38,
      sizes: [38, 'M'],
      tags: 'new',
      address: { city: 'Bern', at: [1, 2] },
      parts: [{ no: 1 }],
    },
    {
      id: 'b',
      size: 'M',
      sizes: [40],
      tags: ['old', 7],
      address: { city: 3000 },
      parts: [{ no: 2.5 }, { no: 3 }],
    },
    { id: 'c', size: { wide: 1 }, grid: [[1, 2], [3]], address: null, parts: { no: 4 }, note: {} },
  ]
  const fields = rowFields(rows, 'local/hash')
  expect(Object.fromEntries(fields.map(({ name, type }) => [name, type]))).toMatchObject({
    size: 'string',
    sizes: 'string[]',
    tags: 'string[]',
    grid: 'string[]',
    address: 'object',
    'address.city': 'string',
    'address.at': 'int64[]',
    parts: 'object[]',
    'parts.no': 'float[]',
  })
  expect(rows.map((row) => documentOf(row, fields))).toEqual([
    {
      id: 'a',
      size: '38',
      sizes: ['38', 'M'],
      tags: ['new'],
      address: { city: 'Bern', at: [1, 2] },
      parts: [{ no: 1 }],
    },
    {
      id: 'b',
      size: 'M',
      sizes: ['40'],
      tags: ['old', '7'],
      address: { city: '3000' },
      parts: [{ no: 2.5 }, { no: 3 }],
    },
    { id: 'c', size: '{"wide":1}', grid: ['[1,2]', '[3]'], parts: [{ no: 4 }], note: {} },
  ])
  expect(collectionOf('shops', fields)).toEqual({ name: 'shops', fields, enable_nested_fields: true })
  expect(collectionOf('shops', [])).toEqual({ name: 'shops', fields: [] })
})

test('a row needs no text for a vector', () => {
  expect(rowFields([{ note: 'x' }], 'local/hash').find(({ name }) => name === 'embedding')?.optional).toBe(
    true,
  )
})

test('rows for a collection that is there are read as its fields want them', () => {
  const rows = [{ n: 1 }, { n: 'none' }, { n: '3' }]
  const own = storedTypes([
    { name: 'n', type: 'int32' },
    { name: 'any_.*', type: 'auto' },
    { name: 'embedding', type: 'float[]', embed: {} },
  ])
  expect(own).toEqual({ n: 'int32' })
  const fields = rowFields(rows, 'local/hash', own)
  expect(rows.map((row) => documentOf(row, fields).n)).toEqual([1, 'none', 3])
  expect(rows.map((row) => documentOf(row, rowFields(rows, 'local/hash')).n)).toEqual(['1', 'none', '3'])
})

test.each([
  [
    'de',
    'Die Einstellungen werden in einer Datei abgelegt, die nicht von dem Programm gelesen wird, wenn sie leer ist.',
  ],
  ['es', 'El archivo no se lee si está vacío, porque el programa lo busca en la carpeta de los usuarios.'],
  [undefined, 'The settings are kept in a file, which is not read by the program if it is empty.'],
  [undefined, 'Los Angeles, La Paz, Rio de Janeiro, Den Haag, Las Vegas'],
])('texts of a new collection are searched in their language: %s', (locale, text) => {
  const language = locale === undefined ? {} : { locale, stem: true }
  const [title, heading, body, url] = articleFields('local/hash', languageOf([text, text]))
  for (const field of [title, heading, body]) {
    expect({ locale: field?.locale, stem: field?.stem }).toEqual({ locale, stem: locale && true })
  }
  expect(url).not.toHaveProperty('locale')
  const rows = Array.from({ length: 12 }, (_, at) => ({ kind: 'a', note: `${text} ${at}` }))
  const [kind, note] = rowFields(rows, 'local/hash', {}, languageOf)
  expect(note).toEqual({ name: 'note', type: 'string', optional: true, ...language })
  expect(kind).not.toHaveProperty('locale')
})

test('documents that memory has no vectors for are found by words', () => {
  const fields = rowFields([{ name: 'Reef' }], 'local/hash')
  expect(fieldsForMany(fields, 140_000)).toBe(fields)
  expect(fieldsForMany(fields, 140_001).map(({ name }) => name)).not.toContain('embedding')
})
