import { expect, test } from 'vitest'
import { documentOf, rowFields } from '../../../scripts/parley/import/schema.mjs'

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
