/** Fields and orders of joined collections, through the official client over a socket. */
import { beforeAll, describe, expect, test } from 'vitest'
import { request } from './harness'
import { fillAll, found, ids, namesOfJoins, search } from './joins-stage'

const names = namesOfJoins()
const { products, customers, authors, books, users, documents, access } = names

beforeAll(() => fillAll(names))

describe('include_fields', () => {
  const join = `$${customers}(customer_id:=customer_a && product_price:<100)`

  test('nests all fields of a joined collection by default', async () => {
    const [document] = await found(products, { filter_by: join })
    expect(document).toEqual({
      id: '1',
      product_id: 'product_b',
      product_name: 'soap',
      rating: 4,
      [customers]: {
        id: '1',
        customer_id: 'customer_a',
        customer_name: 'Joe',
        product_price: 73.5,
        available: false,
        product_id: 'product_b',
      },
    })
    expect(
      (await found(products, { filter_by: join, exclude_fields: `$${customers}(*)` }))[0],
    ).not.toHaveProperty(customers)
  })

  test.each([
    [`$${customers}(product_price)`, { [customers]: { product_price: 73.5 } }],
    [`$${customers}(product_price, strategy: nest_array) as prices`, { prices: [{ product_price: 73.5 }] }],
    [`$${customers}(product_price, strategy: merge)`, { product_price: 73.5 }],
    [`$${customers}(product_price, strategy: merge) as c`, { 'c.product_price': 73.5 }],
    [
      `$${customers}(product*, related_docs_count: n)`,
      {
        n: 1,
        [customers]: { product_price: 73.5, product_id: 'product_b' },
      },
    ],
  ])('%s', async (include, expected) => {
    const [document] = await found(products, { filter_by: join, include_fields: `product_name, ${include}` })
    expect(document).toEqual({ product_name: 'soap', ...expected })
  })

  test('of documents that a document refers to need no filter', async () => {
    expect(
      await found(books, { filter_by: 'id:=0', include_fields: `title, $${authors}(first_name)` }),
    ).toEqual([{ title: 'Famous Five', [authors]: { first_name: 'Enid' } }])
  })

  test('of several related documents come as a list, sorted and limited', async () => {
    const some = async (options: string) =>
      (
        await found(authors, {
          filter_by: `$${books}(id:*) && id:1`,
          include_fields: `$${books}(title${options})`,
        })
      )[0]![books]
    expect(await some('')).toEqual([{ title: 'Space War Blues' }, { title: '12:01 PM' }])
    expect(await some(', sort_by: popularity:desc')).toEqual([
      { title: '12:01 PM' },
      { title: 'Space War Blues' },
    ])
    expect(await some(', sort_by: id: desc, limit: 1')).toEqual([{ title: '12:01 PM' }])
    expect(await some(', sort_by: _eval(title:war):desc, popularity:desc')).toEqual([
      { title: 'Space War Blues' },
      { title: '12:01 PM' },
    ])
  })

  test('lead through a link collection', async () => {
    expect(
      await found(documents, {
        filter_by: `$${access}(id:*)`,
        include_fields: `id, $${users}(username) as readers, $${access}(id)`,
      }),
    ).toEqual([
      { id: 'd2', [access]: { id: 'x3' }, readers: { username: 'Bob' } },
      {
        id: 'd1',
        [access]: [{ id: 'x1' }, { id: 'x2' }],
        readers: [{ username: 'Ann' }, { username: 'Bob' }],
      },
    ])
  })

  test('nest, and show what the nested filter matched', async () => {
    expect(
      await found(documents, {
        filter_by: `$${access}($${users}(username:Bob))`,
        include_fields: `id, $${access}(id, $${users}(username))`,
      }),
    ).toEqual([
      { id: 'd2', [access]: { id: 'x3', [users]: { username: 'Bob' } } },
      { id: 'd1', [access]: { id: 'x2', [users]: { username: 'Bob' } } },
    ])
  })

  test('left joins keep documents without a related one', async () => {
    const shown = await found(authors, {
      filter_by: `id:* || $${books}(popularity:>4)`,
      include_fields: 'id',
    })
    expect(shown).toEqual([
      { id: '2' },
      { id: '1', [books]: expect.objectContaining({ id: '2' }) },
      { id: '0', [books]: expect.objectContaining({ id: '0' }) },
    ])
  })

  test('refuse what is malformed or in the way', async () => {
    const refusal = (include_fields: string) =>
      search(products, { filter_by: `$${customers}(id:*)`, include_fields }).catch(({ message }) => message)
    expect(await refusal('$foo.bar')).toBe(
      '400 Invalid reference `$foo.bar` in include_fields/exclude_fields, expected `$CollectionName(fieldA, ...)`.',
    )
    expect(await refusal('$foo(bar)')).toBe('400 Referenced collection `foo` in `include_fields` not found.')
    expect(await refusal(`$${customers}(id, foo: bar)`)).toBe(
      '400 Unknown reference `include_fields` parameter: `foo`.',
    )
    expect(await refusal(`$${customers}(id, strategy: foo) as c`)).toBe(
      `400 Error parsing \`$${customers}(id, strategy: foo) as c\`: Unknown include strategy \`foo\`. Valid options are \`merge\`, \`nest\`, \`nest_array\`.`,
    )
    expect(await refusal(`id, $${customers}(id, strategy: merge)`)).toBe(
      `400 Could not include the value of \`id\` key of the reference document of \`${customers}\` collection. Expected \`id\` to be an array. Try adding an alias.`,
    )
  })

  test('work for single documents and in exports', async () => {
    const path = `include_fields=${encodeURIComponent(`title,$${authors}(first_name)`)}`
    const { body } = await request('GET', `/collections/${books}/documents/0?${path}`)
    expect(body).toEqual({ title: 'Famous Five', [authors]: { first_name: 'Enid' } })
    const { text } = await request(
      'GET',
      `/collections/${books}/documents/export?${path}&filter_by=${encodeURIComponent(`$${authors}(id:1)`)}`,
    )
    expect(text.split('\n').map((line) => JSON.parse(line))).toEqual([
      { title: 'Space War Blues', [authors]: { first_name: 'Richard' } },
      { title: '12:01 PM', [authors]: { first_name: 'Richard' } },
    ])
  })
})

describe('sort_by', () => {
  test.each([
    [`$${customers}(product_price:asc)`, ['1', '0']],
    [`$${customers}(product_price:desc)`, ['0', '1']],
    [`$${customers}(_eval(available:true):desc)`, ['0', '1']],
    [`$${customers}(_eval(available:true):asc)`, ['1', '0']],
  ])('%s takes the documents that the filter matched', async (sort_by, expected) => {
    expect(await ids(products, { filter_by: `$${customers}(customer_id:=customer_a)`, sort_by })).toEqual(
      expected,
    )
  })

  test('needs no filter, and takes the best of several', async () => {
    expect(await ids(products, { sort_by: `$${customers}(product_price:asc)` })).toEqual(['1', '0'])
    expect(await ids(products, { sort_by: `$${customers}(product_price:desc)` })).toEqual(['0', '1'])
    expect(await ids(books, { sort_by: `$${authors}(_eval(first_name:enid):desc), popularity:asc` })).toEqual(
      ['0', '1', '2'],
    )
    expect(await ids(customers, { sort_by: `$${products}(product_name:desc), product_price:asc` })).toEqual([
      '1',
      '3',
      '2',
      '0',
    ])
  })

  test('refuses what is malformed', async () => {
    const refusal = (sort_by: string) => search(products, { sort_by }).catch(({ message }) => message)
    expect(await refusal('$foo(product_price:asc')).toBe('400 Parameter `sort_by` is malformed.')
    expect(await refusal(`$${customers}(product_price)`)).toBe('400 Reference `sort_by` is malformed.')
    expect(await refusal('$foo(product_price:asc)')).toBe(
      '400 Referenced collection `foo` in `sort_by` not found.',
    )
    expect(await refusal(`$${customers}(foo:asc)`)).toContain(
      `Referenced collection \`${customers}\`: Could not find a field named \`foo\` in the schema for sorting.`,
    )
  })
})
