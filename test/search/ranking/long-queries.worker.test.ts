/** Queries of five informative words and more: names of products as people type them, and questions. */
import { beforeAll, expect, it } from 'vitest'
import { idsOf, makeCollection, type TestCollection } from '../make-collection'

const PHONES = ['128GB', '256GB', '512GB'].flatMap((size) =>
  ['natural', 'blue'].map((colour) => ({
    id: `${size}-${colour}`,
    title: `Apple iPhone 15 Pro Max ${size} ${colour} titanium`,
    brand: 'Apple',
  })),
)
const OTHERS = [
  { id: 'case', title: 'Leather case for Apple iPhone 15', brand: 'Nomad' },
  { id: 'samsung', title: 'Samsung Galaxy S24 Ultra 256GB titanium black', brand: 'Samsung' },
  { id: 'macbook', title: 'Apple MacBook Pro 14 with M3 Max', brand: 'Apple' },
  { id: 'care', title: 'How batteries of phones keep most of their charge in winter', brand: 'Guide' },
]

let shop: TestCollection
const search = (q: string, more: Record<string, string> = {}) =>
  shop.search({ q, query_by: 'title', facet_by: 'brand', ...more })

beforeAll(async () => {
  shop = await makeCollection(
    [
      { name: 'title', type: 'string' },
      { name: 'brand', type: 'string', facet: true },
    ],
    [...PHONES, ...OTHERS],
  )
})

it('finds what has all words of the name of a product, and nothing else', async () => {
  const result = await search('Apple iPhone 15 Pro Max 256GB')
  expect(idsOf(result).sort()).toEqual(['256GB-blue', '256GB-natural'])
  expect(result.found).toBe(2)
  expect(result.facet_counts![0]!.counts).toEqual([expect.objectContaining({ value: 'Apple', count: 2 })])
})

it('corrects a mistyped word before any word is enough', async () => {
  expect(idsOf(await search('aple iphnoe 15 pro max 512gb natural titanium'))).toEqual(['512GB-natural'])
})

it('answers a question with whatever has some of its words', async () => {
  const ids = idsOf(await search('why do the batteries of my phone lose charge in cold winter nights'))
  expect(ids[0]).toBe('care')
})

it('drops words as Typesense does if it is told how', async () => {
  const given = { drop_tokens_mode: 'left_to_right' }
  expect(idsOf(await search('cheap refurbished secondhand unlocked samsung galaxy', given))).toEqual([
    'samsung',
  ])
})
