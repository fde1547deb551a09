/** What keys may see of collections that a search joins. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, request, unique } from './harness'
import { fillAll, found, ids, load, names, search } from './joins-stage'

const { products, customers, authors, books } = names

beforeAll(fillAll)

const keyFor = async (collections: string[], actions = ['documents:search']): Promise<string> =>
  (await client().keys().create({ description: 'for a test', actions, collections })).value!

const scoped = async (collections: string[], parameters: object): Promise<string> =>
  client()
    .keys()
    .generateScopedSearchKey(await keyFor(collections), parameters as never)

const refusal = (collection: string, parameters: object, key: string): Promise<string> =>
  search(collection, parameters, key).then(
    () => 'accepted',
    ({ message }) => message,
  )

describe('a key without the right to the other collection', () => {
  let key: string
  beforeAll(async () => {
    key = await keyFor([books])
  })

  test.each([
    [{ filter_by: `$${authors}(id:0)` }, 'filter_by'],
    [{ filter_by: `!$${authors}(id:0)` }, 'filter_by'],
    [{ include_fields: `$${authors}(*)` }, 'include_fields'],
    [{ sort_by: `$${authors}(id:asc)` }, 'sort_by'],
  ])('%j: the collection looks as if it did not exist', async (parameters, where) => {
    const unknown = JSON.parse(JSON.stringify(parameters).replaceAll(authors, 'nobody')) as object
    const message = (name: string) => `400 Referenced collection \`${name}\` in \`${where}\` not found.`
    expect(await refusal(books, parameters, key)).toBe(message(authors))
    expect(await refusal(books, unknown, key)).toBe(message('nobody'))
    expect(await refusal(books, parameters, await keyFor([books, authors]))).not.toContain('in `')
  })

  test('nor inside of a join that it may make', async () => {
    const both = await keyFor([products, customers])
    expect(await refusal(products, { filter_by: `$${customers}($${authors}(id:0))` }, both)).toBe(
      `400 Referenced collection \`${customers}\`: Referenced collection \`${authors}\` in \`filter_by\` not found.`,
    )
  })

  test('nor when it reads a document or exports', async () => {
    const reader = await keyFor([books], ['documents:get', 'documents:export'])
    const include = encodeURIComponent(`$${authors}(*)`)
    for (const path of [
      `documents/0?include_fields=${include}`,
      `documents/export?include_fields=${include}`,
    ]) {
      const { status, text } = await request('GET', `/collections/${books}/${path}`, undefined, reader)
      expect([status, text.includes('Enid')]).toEqual([400, false])
    }
    const allowed = await keyFor([books, authors], ['documents:get', 'documents:export'])
    const { body } = await request(
      'GET',
      `/collections/${books}/documents/0?include_fields=${include}`,
      undefined,
      allowed,
    )
    expect(body[authors]).toMatchObject({ first_name: 'Enid' })
  })
})

describe('a scoped key', () => {
  const mine = `$${customers}(customer_id:=customer_a)`
  let key: string
  beforeAll(async () => {
    key = await scoped([products, customers], { filter_by: mine })
  })

  test('restricts the other collection: one document has to meet both conditions', async () => {
    expect(await ids(products, { filter_by: `$${customers}(product_price:<100)` })).toEqual(['1', '0'])
    expect(await ids(products, { filter_by: `$${customers}(product_price:<100)` }, key)).toEqual(['1'])
    const [document] = await found(products, { filter_by: `$${customers}(product_price:<100)` }, key)
    expect(document![customers]).toMatchObject({ customer_id: 'customer_a', product_price: 73.5 })
  })

  test('in an alternative, behind a negation, through an alias, and in fields and orders', async () => {
    const dan = `$${customers}(customer_name:Dan)`
    expect(await ids(products, { filter_by: `${dan} || ${dan}` }, key)).toEqual([])
    expect(await ids(products, { filter_by: `!${dan}` }, key)).toEqual(['1', '0'])
    const alias = `${customers}-alias`
    await client().aliases().upsert(alias, { collection_name: customers })
    const aliased = await scoped([products, customers, alias], { filter_by: mine })
    expect(await ids(products, { filter_by: `$${alias}(customer_name:Dan)` }, aliased)).toEqual([])
    const include_fields = `id, $${customers}(customer_name, product_price, strategy: nest_array) as prices`
    const shown = await found(products, { include_fields, sort_by: `$${customers}(product_price:asc)` }, key)
    expect(shown).toEqual([
      { id: '1', prices: [{ customer_name: 'Joe', product_price: 73.5 }] },
      { id: '0', prices: [{ customer_name: 'Joe', product_price: 143 }] },
    ])
  })

  test('its own join shows nothing by itself', async () => {
    expect((await found(products, {}, key))[0]).not.toHaveProperty(customers)
  })

  test('its own negated join holds beside its other joins', async () => {
    const filter_by = `${mine} && !$${customers}(product_price:>139 && customer_id:=customer_b)`
    const deny = await scoped([products, customers], { filter_by })
    expect(await ids(products, {}, deny)).toEqual(['0'])
  })

  const plainFilter = { filter_by: 'product_price:<100' }
  test.each([
    ['its plain filter', async () => plainFilter],
    [
      'the plain filter of a preset that it fixes',
      async () => {
        const preset = unique('preset')
        await client()
          .presets()
          .upsert(preset, { value: plainFilter } as never)
        return { preset }
      },
    ],
  ])('%s holds in a joined collection that has the field', async (_name, fixing) => {
    const plain = await scoped([books, authors, products, customers], await fixing())
    const include = `$${customers}(product_price, strategy: nest_array) as prices`
    // `products` lacks the field, so the key searches `customers` alone, and joins from there.
    expect(await refusal(products, { include_fields: include }, plain)).toContain('product_price')
    const nested = await found(
      customers,
      { include_fields: `id, $${products}(id, ${include}) as product` },
      plain,
    )
    expect(nested).toEqual([
      { id: '2', product: { id: '0', prices: [{ product_price: 75 }] } },
      { id: '1', product: { id: '1', prices: [{ product_price: 73.5 }] } },
    ])
  })

  test('its fields hold in joined documents', async () => {
    const join = { filter_by: `$${customers}(id:*)` }
    const hidden = await scoped([products, customers], { exclude_fields: 'customer_name, rating' })
    const [document] = await found(products, join, hidden)
    expect(document).not.toHaveProperty('rating')
    expect(JSON.stringify(document)).toContain('customer_id')
    expect(JSON.stringify(document)).not.toContain('customer_name')
    const only = await scoped([products, customers], { include_fields: 'product_name' })
    expect(await found(products, { ...join, include_fields: `$${customers}(*)` }, only)).toEqual([
      { product_name: 'soap' },
      { product_name: 'shampoo' },
    ])
  })

  test('that names its collection joins only what it names', async () => {
    const one = await scoped([products, customers], { collection: products })
    expect(await refusal(products, { filter_by: `$${customers}(id:*)` }, one)).toContain('not found')
    const named = await scoped([products, customers], { collection: products, filter_by: mine })
    expect(await ids(products, { filter_by: `$${customers}(product_price:<100)` }, named)).toEqual(['1'])
  })
})

test('a history collection is joined by nobody who may not read it', async () => {
  const history = `history-${products}`
  await client()
    .collections()
    .create({
      name: history,
      fields: [
        { name: 'conversation_id', type: 'string' },
        { name: 'model_id', type: 'string' },
        { name: 'timestamp', type: 'int32' },
        { name: 'role', type: 'string', index: false },
        { name: 'message', type: 'string', index: false },
        { name: 'product', type: 'string', reference: `${products}.id`, optional: true },
      ],
    } as never)
  await load(history, [
    {
      id: 'h',
      conversation_id: 'c',
      model_id: 'm',
      timestamp: 1,
      role: 'user',
      message: 'secret',
      product: '0',
    },
  ])
  const everything = await keyFor(['.*'])
  const parameters = { include_fields: `$${history}(*)` }
  expect(await refusal(products, parameters, everything)).toContain('401')
  expect(JSON.stringify(await found(products, parameters))).toContain('secret')
})
