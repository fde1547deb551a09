/** Collections that refer to each other: Typesense's own examples of joins. */
import { expect } from 'vitest'
import { client, KEY, unique } from './harness'

type Hits = { found: number; hits?: { document: Record<string, unknown> }[] }

/** Names of a file's own. */
export const namesOfJoins = () => ({
  products: unique('products'),
  customers: unique('customers'),
  authors: unique('authors'),
  books: unique('books'),
  users: unique('users'),
  documents: unique('documents'),
  access: unique('access'),
})

export const make = (name: string, fields: object[], extra: object = {}) =>
  client()
    .collections()
    .create({ name, fields, ...extra } as never)

export const load = async (name: string, lines: object[]) => {
  const results = await client().collections(name).documents().import(lines)
  expect(results.every(({ success }) => success)).toBe(true)
}

export const search = async (collection: string, parameters: object, key = KEY): Promise<Hits> => {
  const { results } = (await client(key).multiSearch.perform({
    searches: [{ collection, q: '*', ...parameters }],
  } as never)) as unknown as { results: (Hits & { error?: string; code?: number })[] }
  const [result] = results
  if (result!.error !== undefined) throw new Error(`${result!.code} ${result!.error}`)
  return result!
}

export const found = async (collection: string, parameters: object, key = KEY) =>
  (await search(collection, parameters, key)).hits!.map(({ document }) => document)

export const ids = async (collection: string, parameters: object, key = KEY) =>
  (await found(collection, parameters, key)).map(({ id }) => id)

export async function fillAll(names: ReturnType<typeof namesOfJoins>): Promise<void> {
  const { products, customers, authors, books, users, documents, access } = names
  await make(products, [
    { name: 'product_id', type: 'string' },
    { name: 'product_name', type: 'string', sort: true },
    { name: 'rating', type: 'int32' },
  ])
  await load(products, [
    { id: '0', product_id: 'product_a', product_name: 'shampoo', rating: 2 },
    { id: '1', product_id: 'product_b', product_name: 'soap', rating: 4 },
  ])
  await make(customers, [
    { name: 'customer_id', type: 'string' },
    { name: 'customer_name', type: 'string' },
    { name: 'product_price', type: 'float' },
    { name: 'available', type: 'bool' },
    { name: 'product_id', type: 'string', reference: `${products}.product_id` },
  ])
  await load(customers, [
    {
      customer_id: 'customer_a',
      customer_name: 'Joe',
      product_price: 143,
      available: true,
      product_id: 'product_a',
    },
    {
      customer_id: 'customer_a',
      customer_name: 'Joe',
      product_price: 73.5,
      available: false,
      product_id: 'product_b',
    },
    {
      customer_id: 'customer_b',
      customer_name: 'Dan',
      product_price: 75,
      available: false,
      product_id: 'product_a',
    },
    {
      customer_id: 'customer_b',
      customer_name: 'Dan',
      product_price: 140,
      available: true,
      product_id: 'product_b',
    },
  ])
  await make(authors, [
    { name: 'first_name', type: 'string' },
    { name: 'last_name', type: 'string' },
  ])
  await load(authors, [
    { id: '0', first_name: 'Enid', last_name: 'Blyton' },
    { id: '1', first_name: 'Richard', last_name: 'Lupoff' },
    { id: '2', first_name: 'William', last_name: 'Shakespeare' },
  ])
  await make(books, [
    { name: 'title', type: 'string' },
    { name: 'popularity', type: 'float' },
    { name: 'author_id', type: 'string', reference: `${authors}.id` },
  ])
  await load(books, [
    { id: '0', title: 'Famous Five', popularity: 4.1, author_id: '0' },
    { id: '1', title: 'Space War Blues', popularity: 3.5, author_id: '1' },
    { id: '2', title: '12:01 PM', popularity: 4.6, author_id: '1' },
  ])
  await make(users, [{ name: 'username', type: 'string' }])
  await load(users, [
    { id: 'user_a', username: 'Ann' },
    { id: 'user_b', username: 'Bob' },
  ])
  await make(documents, [{ name: 'title', type: 'string' }])
  await load(documents, [
    { id: 'd1', title: 'Plan' },
    { id: 'd2', title: 'Budget' },
    { id: 'd3', title: 'Nobody' },
  ])
  await make(access, [
    { name: 'user_id', type: 'string', reference: `${users}.id` },
    { name: 'document_id', type: 'string', reference: `${documents}.id` },
  ])
  await load(access, [
    { id: 'x1', user_id: 'user_a', document_id: 'd1' },
    { id: 'x2', user_id: 'user_b', document_id: 'd1' },
    { id: 'x3', user_id: 'user_b', document_id: 'd2' },
  ])
}
