/** Facets of joined collections, through the official client over a socket. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, unique } from './harness'
import { load, make, search } from './joins-stage'

const products = unique('products')
const orders = unique('orders')

interface Facet {
  field_name: string
  counts: { value: string; count: number; facet_filter?: string }[]
  stats: Record<string, number>
}

beforeAll(async () => {
  await make(products, [
    { name: 'sku', type: 'string' },
    { name: 'rating', type: 'int32', facet: true },
  ])
  await load(products, [
    { id: '0', sku: 'a', rating: 2 },
    { id: '1', sku: 'b', rating: 4 },
    { id: '2', sku: 'c', rating: 4 },
  ])
  await make(orders, [
    { name: 'customer', type: 'string', facet: true },
    { name: 'price', type: 'float', facet: true },
    { name: 'email', type: 'string', facet: true },
    { name: 'note', type: 'string' },
    { name: 'sku', type: 'string', reference: `${products}.sku` },
  ])
  await load(
    orders,
    [
      ['Joe', 143, 'a'],
      ['Joe', 73.5, 'b'],
      ['Dan', 75, 'a'],
      ['Dan', 140, 'b'],
    ].map(([customer, price, sku]) => ({
      customer,
      price,
      sku,
      email: `${customer}@example.org`,
      note: 'x',
    })),
  )
})

const facets = async (parameters: object, key?: string): Promise<Facet[]> => {
  const result = await search(products, parameters, key)
  return (result as unknown as { facet_counts: Facet[] }).facet_counts
}

const told = (all: Facet[]) =>
  all.map(({ field_name, counts }) => [field_name, ...counts.map(({ value, count }) => `${value} ${count}`)])

const refusal = (facet_by: string, key?: string): Promise<string> =>
  search(products, { facet_by }, key).then(
    () => 'accepted',
    ({ message }) => message,
  )

describe('facet_by of a joined collection', () => {
  test('counts the related documents that the filter has matched', async () => {
    const joined = await facets({
      filter_by: `$${orders}(customer:=Joe)`,
      facet_by: `rating, $${orders}(price, customer)`,
    })
    expect(told(joined)).toEqual([
      ['rating', '2 1', '4 1'],
      [`${orders}(price)`, '73.5 1', '143 1'],
      [`${orders}(customer)`, 'Joe 2'],
    ])
    expect(joined[1]!.counts[1]!.facet_filter).toBe(`$${orders}(price: 143)`)
    expect(joined[2]!.counts[0]!.facet_filter).toBe(`$${orders}(customer: \`Joe\`)`)
    expect(joined[1]!.stats).toMatchObject({ min: 73.5, max: 143, total_values: 2 })
  })

  test('counts all related documents without a join in the filter, each once', async () => {
    expect(told(await facets({ facet_by: `$${orders}(customer), rating` }))).toEqual([
      [`${orders}(customer)`, 'Joe 2', 'Dan 2'],
      ['rating', '4 2', '2 1'],
    ])
    expect(told(await facets({ filter_by: 'rating:>2', facet_by: `$${orders}(price)` }))).toEqual([
      [`${orders}(price)`, '73.5 1', '140 1'],
    ])
    const either = `$${orders}(price:>140) || ($${orders}(customer:Joe) && rating:>2)`
    expect(told(await facets({ filter_by: either, facet_by: `$${orders}(price)` }))).toEqual([
      [`${orders}(price)`, '73.5 1', '143 1'],
    ])
    expect(told(await facets({ filter_by: 'id:2', facet_by: `$${orders}(price)` }))).toEqual([
      [`${orders}(price)`],
    ])
  })

  test('takes ranges and orders', async () => {
    const [facet] = await facets({ facet_by: `$${orders}(price(dear:[100, ], low:[ , 75], some:[75, 100]))` })
    expect(facet!.counts.map(({ value, count, facet_filter }) => [value, count, facet_filter])).toEqual([
      ['dear', 2, `$${orders}(price: >=100)`],
      ['low', 1, `$${orders}(price: <=75)`],
      ['some', 1, `$${orders}(price: [75..100])`],
    ])
    expect(told(await facets({ facet_by: `$${orders}(customer(sort_by: _alpha:asc))` }))).toEqual([
      [`${orders}(customer)`, 'Dan 2', 'Joe 2'],
    ])
  })

  test('says what is wrong', async () => {
    const problem = 'Error parsing reference facet: '
    expect(await refusal('$nobody(price)')).toBe(`400 ${problem}Referenced collection \`nobody\` not found.`)
    expect(await refusal('$nobody')).toBe(`400 ${problem}\`$nobody\`.`)
    expect(await refusal(`$${orders}(note)`)).toContain(
      'Could not find a facet field named `note` in the schema.',
    )
    expect(await refusal(`$${orders}($${products}(rating))`)).toContain(problem)
  })
})

describe('a key', () => {
  const keyFor = async (collections: string[]): Promise<string> =>
    (
      await client()
        .keys()
        .create({ description: 'for a test', actions: ['documents:search'], collections })
    ).value!

  const scoped = async (parameters: object): Promise<string> =>
    client()
      .keys()
      .generateScopedSearchKey(await keyFor([products, orders]), parameters as never)

  test('without the right to the collection is told that it does not exist', async () => {
    const key = await keyFor([products])
    expect(await refusal(`$${orders}(price)`, key)).toContain(
      `Referenced collection \`${orders}\` not found.`,
    )
    expect(await refusal(`$${orders}(price)`, await keyFor([products, orders]))).toBe('accepted')
  })

  test('counts what its own filter leaves', async () => {
    const key = await scoped({ filter_by: `$${orders}(customer:=Joe)` })
    expect(told(await facets({ facet_by: `$${orders}(customer)` }, key))).toEqual([
      [`${orders}(customer)`, 'Joe 2'],
    ])
    const wider = { filter_by: `$${orders}(price:>0)`, facet_by: `$${orders}(customer)` }
    expect(told(await facets(wider, key))).toEqual([[`${orders}(customer)`, 'Joe 2']])
  })

  test('does not count fields that it hides', async () => {
    const hiding = await scoped({ exclude_fields: `$${orders}(email)` })
    expect(await refusal(`$${orders}(customer)`, hiding)).toBe('accepted')
    expect(await refusal(`$${orders}(email)`, hiding)).toContain('Could not find a facet field named `email`')
    const price = await scoped({ exclude_fields: `$${orders}(price)` })
    expect(await refusal(`$${orders}(customer(sort_by: price:asc))`, hiding)).toBe('accepted')
    expect(await refusal(`$${orders}(customer(sort_by: price:asc))`, price)).toContain('field named `price`')
    expect(await refusal(`$${orders}(e*)`, hiding)).toContain('Could not find a facet field named `email`')
    const showing = await scoped({ include_fields: 'sku' })
    expect(await refusal(`$${orders}(customer)`, showing)).toContain('Could not find a facet field')
  })
})
