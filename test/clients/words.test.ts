/** Words as people type them, through Typesense's own client. */
import { expect, test } from 'vitest'
import { client, unique } from './harness'

async function make(texts: string[], field: object = {}, schema: object = {}): Promise<string> {
  const name = unique('words')
  const fields = [{ name: 'text', type: 'string', ...field }]
  await client()
    .collections()
    .create({ name, fields, ...schema } as never)
  await client()
    .collections(name)
    .documents()
    .import(texts.map((text) => ({ id: text, text })))
  return name
}

async function found(name: string, q: string, more: object = {}): Promise<string[]> {
  const { hits } = await client()
    .collections<{ id: string }>(name)
    .documents()
    .search({ q, query_by: 'text', prefix: false, num_typos: 0, ...more })
  return hits!.map(({ document }) => document.id).sort()
}

test('words are found as they are written, with signs or without', async () => {
  const name = await make([
    'an organ',
    'an organization',
    'a t-shirt',
    'a tshirt',
    "O'Neill",
    'AB-123',
    'Wi-Fi',
  ])
  expect(await found(name, 'organ')).toEqual(['an organ'])
  expect(await found(name, 'organizations')).toEqual([])
  for (const q of ['t-shirt', 'tshirt', 'T-Shirt'])
    expect(await found(name, q)).toEqual(['a t-shirt', 'a tshirt'])
  for (const q of ["O'Neill", 'oneill', 'O’Neill']) expect(await found(name, q)).toEqual(["O'Neill"])
  for (const q of ['AB-123', 'ab123']) expect(await found(name, q)).toEqual(['AB-123'])
  for (const q of ['wifi', 'wi-fi']) expect(await found(name, q)).toEqual(['Wi-Fi'])
})

test('a field is stemmed where it asks, and describes itself', async () => {
  const name = await make(['running', 'runs', 'organ', 'organs'], { stem: true })
  expect(await found(name, 'run')).toEqual(['running', 'runs'])
  expect(await found(name, 'organ')).toEqual(['organ', 'organs'])
  const { fields } = await client().collections(name).retrieve()
  expect(fields).toMatchObject([{ name: 'text', stem: true }])
})

test('a field has separators and symbols of its own', async () => {
  const name = await make(['c++ t-shirt', 'c tshirt'], { symbols_to_index: ['+'], token_separators: ['-'] })
  expect(await found(name, 'c++')).toEqual(['c++ t-shirt'])
  expect(await found(name, 'shirt')).toEqual(['c++ t-shirt'])
  const { fields } = await client().collections(name).retrieve()
  expect(fields).toMatchObject([{ symbols_to_index: ['+'], token_separators: ['-'] }])
})

test('a text without spaces is found by its parts in their order', async () => {
  const name = await make(['東京都の天気', '京都東の気天', '中华人民共和国'])
  expect(await found(name, '東京都')).toEqual(['東京都の天気'])
  expect(await found(name, '人民')).toEqual(['中华人民共和国'])
  expect(await found(name, '国')).toEqual(['中华人民共和国'])
  const { hits } = await client().collections(name).documents().search({ q: '東京都', query_by: 'text' })
  expect(hits![0]!.highlights![0]).toMatchObject({
    snippet: '<mark>東京都</mark>の天気',
    matched_tokens: ['東京都'],
  })
})
