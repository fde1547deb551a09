/** What keys may see of collections that a search joins. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, request, unique } from './harness'
import { fillAll, found, ids, load, make, namesOfJoins, search } from './joins-stage'

const names = namesOfJoins()
const { products, customers, authors, books } = names

beforeAll(() => fillAll(names))

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

  test('of one collection lets nobody see more of it by way of another', async () => {
    const [teams, members, orders] = [unique('teams'), unique('members'), unique('orders')]
    await make(teams, [{ name: 'name', type: 'string' }])
    await load(teams, [{ id: 't', name: 'T' }])
    await make(members, [
      { name: 'team', type: 'string', reference: `${teams}.id` },
      { name: 'age', type: 'int32' },
    ])
    await load(members, [
      { id: 'ann', team: 't', age: 3 },
      { id: 'bob', team: 't', age: 5 },
    ])
    await make(orders, [
      { name: 'member', type: 'string', reference: `${members}.id` },
      { name: 'team', type: 'string', reference: `${teams}.id` },
    ])
    await load(orders, [
      { id: '1', member: 'ann', team: 't' },
      { id: '2', member: 'bob', team: 't' },
    ])
    const alias = `${members}-alias`
    await client().aliases().upsert(alias, { collection_name: members })
    const ann = await scoped([teams, members, alias], { filter_by: 'id:=ann' })
    for (const name of [members, alias]) {
      const own = `$${teams}(id, $${name}(id, related_docs_count: count, strategy: nest_array) as people) as team`
      expect(await found(members, { include_fields: `id, ${own}` }, ann)).toEqual([
        { id: 'ann', team: { id: 't', count: 1, people: [{ id: 'ann' }] } },
      ])
      expect(await ids(members, { filter_by: `$${teams}($${name}(age:5))` }, ann)).toEqual([])
      expect(await ids(members, { filter_by: `$${teams}($${name}(age:3))` }, ann)).toEqual(['ann'])
    }
    const hers = await scoped([teams, members, orders], { filter_by: `$${members}(id:=ann)` })
    const include_fields = `id, $${teams}(id, $${orders}(id, strategy: nest_array) as orders) as team`
    expect(await found(orders, { include_fields }, hers)).toEqual([
      { id: '1', team: { id: 't', orders: [{ id: '1' }] } },
    ])
    // A key's filter may itself come back to its collection.
    const circle = await scoped([teams, members], { filter_by: `$${teams}($${members}(age:5)) && id:=ann` })
    expect(await ids(members, {}, circle)).toEqual(['ann'])
    // It narrows joined documents too: no member is both 5 and Ann.
    const include = `id, $${teams}(id, $${members}(id, strategy: nest_array) as people) as team`
    expect(await found(members, { include_fields: include }, circle)).toEqual([
      { id: 'ann', team: { id: 't' } },
    ])
  })

  test('hides fields of a joined collection, in several parts and by whatever name it is joined', async () => {
    const alias = `${customers}-clients`
    await client().aliases().upsert(alias, { collection_name: customers })
    const exclude_fields = `$${customers}(customer_id), $${customers}(customer_name, available)`
    const fields = (shown: object) => JSON.stringify(shown).match(/customer_id|customer_name|available/g)
    const include = (name: string) => ({ include_fields: `id, $${name}(*, strategy: nest_array) as them` })
    for (const [name, more] of [
      [customers, {}],
      [alias, {}],
      [alias, { collection: products, filter_by: `$${alias}(id:*)` }],
    ] as const) {
      // The key need not have the right to the name that its fields are hidden by.
      const hidden = await scoped([products, name], { exclude_fields, ...more })
      const shown = await found(products, include(name), hidden)
      expect(shown[0]!.them).toHaveLength(2)
      expect(fields(shown)).toBeNull()
      const nested = `id, $${name}(id, $${products}(id, $${name}(*) as them) as good)`
      const deep = await scoped([products, name], { exclude_fields })
      const deeper = await found(products, { include_fields: nested }, deep)
      expect(JSON.stringify(deeper)).toContain('product_price')
      expect(fields(deeper)).toBeNull()
    }
    const whole = await scoped([products, alias], { exclude_fields: `$${customers}(id), $${customers}(*)` })
    expect(await found(products, include(alias), whole)).toEqual([{ id: '1' }, { id: '0' }])
    // A caller's own list works the same way.
    const [own] = await found(products, { ...include(alias), exclude_fields })
    expect(fields(own!)).toBeNull()
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
