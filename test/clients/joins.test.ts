/** References, and filters that join, through the official client over a socket. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, request, unique } from './harness'
import { fillAll, found, ids, load, make, namesOfJoins, search } from './joins-stage'

const names = namesOfJoins()
const { products, customers, authors, books, users, documents, access } = names

beforeAll(() => fillAll(names))

describe('references', () => {
  test('are described as they were given', async () => {
    const { fields } = await client().collections(books).retrieve()
    expect(fields!.find(({ name }) => name === 'author_id')).toMatchObject({
      reference: `${authors}.id`,
      async_reference: false,
    })
  })

  test('a malformed definition is refused in the words of Typesense', async () => {
    const refused = async (field: object) => {
      const { status, body } = await request('POST', '/collections', { name: unique('no'), fields: [field] })
      return `${status} ${body.message}`
    }
    expect(await refused({ name: 'a.*', type: 'string', reference: 'b.id' })).toBe(
      '400 Wildcard field cannot have a reference.',
    )
    expect(await refused({ name: 'a', type: 'string', reference: 'b' })).toBe('400 Invalid reference `b`.')
    expect(await refused({ name: 'a.b.c', type: 'string', reference: 'b.id' })).toBe(
      '400 `a.b.c` field cannot have a reference. Only the top-level field of an object is allowed.',
    )
    expect(await refused({ name: 'a', type: 'string', async_reference: true })).toBe(
      '400 The `async_reference` property of the field `a` is only applicable if `reference` is specified.',
    )
    expect(await refused({ name: 'a', type: 'string', reference: 'b.id', cascade_delete: false })).toBe(
      '400 The `cascade_delete` property of the field `a` can be `false` only if `async_reference` is `true`.',
    )
    const self = unique('self')
    const { body } = await request('POST', '/collections', {
      name: self,
      fields: [{ name: 'a', type: 'string', reference: `${self}.id` }],
    })
    expect(body.message).toBe(
      `Referencing a field of the same collection is not allowed: \`a\` field references \`${self}\` collection.`,
    )
  })

  test('a document that refers to none is refused, one by one and in an import', async () => {
    const missing = `Referenced document having \`id: 9\` not found in the collection \`${authors}\`.`
    const book = { title: 'Lost', popularity: 1, author_id: '9' }
    const { status, body } = await request('POST', `/collections/${books}/documents`, book)
    expect([status, body.message]).toEqual([400, missing])
    const { text } = await request(
      'POST',
      `/collections/${books}/documents/import?action=upsert`,
      [
        { ...book, id: '0', author_id: '0', title: 'Famous Five', popularity: 4.1 },
        book,
        { title: 'x', popularity: 1 },
      ]
        .map((line) => JSON.stringify(line))
        .join('\n'),
    )
    expect(text.split('\n').map((line) => JSON.parse(line))).toEqual([
      { success: true },
      { success: false, code: 400, error: missing },
      {
        success: false,
        code: 400,
        error: 'Missing the required reference field `author_id` in the document.',
      },
    ])
    const price = { customer_id: 'c', customer_name: 'C', product_price: 1, available: true, product_id: 'a' }
    expect((await request('POST', `/collections/${customers}/documents`, price)).body.message).toBe(
      `Reference document having \`product_id:= \`a\`\` not found in the collection \`${products}\`.`,
    )
    const typed = await request('POST', `/collections/${books}/documents`, { ...book, author_id: 1 })
    expect(typed.body.message).toBe('Field `author_id` must have string value.')
  })

  test('an unknown collection, an unknown field and a type without keys are refused', async () => {
    const fault = async (reference: string, value: unknown, type = 'string') => {
      const name = unique('refers')
      await make(name, [{ name: 'to', type, reference }])
      return (await request('POST', `/collections/${name}/documents`, { to: value })).body.message
    }
    expect(await fault('nowhere.id', 'a')).toBe('Referenced collection `nowhere` not found.')
    expect(await fault(`${products}.foo`, 'a')).toBe(
      `Referenced field \`foo\` not found in the collection \`${products}\`.`,
    )
    expect(await fault(`${customers}.product_price`, 'a')).toBe(
      `Cannot add a reference to \`${customers}.product_price\` of type \`float\`.`,
    )
    expect(await fault(`${customers}.customer_id`, 'customer_a')).toBe(
      `Multiple documents having \`customer_id:= \`customer_a\`\` found in the collection \`${customers}\`.`,
    )
    expect(await fault(`${products}.rating`, 5, 'int32')).toBe(
      `Reference document having \`rating: 5\` not found in the collection \`${products}\`.`,
    )
  })

  test('an asynchronous one is resolved when its document comes', async () => {
    const [orders, goods] = [unique('orders'), unique('goods')]
    await make(orders, [
      { name: 'good', type: 'string', reference: `${goods}.sku`, async_reference: true, optional: true },
    ])
    await load(orders, [{ id: 'o1', good: 'g1' }])
    await make(goods, [{ name: 'sku', type: 'string' }])
    expect(await found(orders, { include_fields: `$${goods}(sku)` })).toEqual([{ id: 'o1', good: 'g1' }])
    await load(goods, [{ id: '7', sku: 'g1' }])
    expect(await found(orders, { include_fields: `$${goods}(sku)` })).toEqual([
      { id: 'o1', good: 'g1', [goods]: { sku: 'g1' } },
    ])
  })
})

describe('filters', () => {
  test('find documents by those that refer to them', async () => {
    expect(
      await ids(products, { filter_by: `$${customers}(customer_id:=customer_a && product_price:<100)` }),
    ).toEqual(['1'])
    expect(await ids(authors, { filter_by: `$${books}(id:*)` })).toEqual(['1', '0'])
  })

  test('find documents by those that they refer to', async () => {
    expect(await ids(books, { filter_by: `$${authors}(last_name:Lupoff)` })).toEqual(['2', '1'])
    expect(await ids(books, { filter_by: `$${authors}(id: 0) || popularity:>4.5` })).toEqual(['2', '0'])
    expect(await ids(books, { filter_by: `$${authors}(id: 1) && popularity:>4.5` })).toEqual(['2'])
  })

  test('are negated: documents without a related one that matches', async () => {
    const shown = await found(authors, { filter_by: `!$${books}(author_id: 1)` })
    expect(shown.map(({ id }) => id)).toEqual(['2', '0'])
    expect(shown[0]).not.toHaveProperty(books)
    expect(shown[1]).toMatchObject({ [books]: { title: 'Famous Five' } })
    expect(await ids(authors, { filter_by: `!$${books}(id: *)` })).toEqual(['2'])
  })

  test('nest', async () => {
    expect(await ids(documents, { filter_by: `$${access}($${users}(username:Bob))` })).toEqual(['d2', 'd1'])
    expect(await ids(documents, { filter_by: `!$${access}($${users}(username:Bob))` })).toEqual(['d3'])
  })

  test('use an alias of the other collection', async () => {
    const alias = unique('alias')
    await client().aliases().upsert(alias, { collection_name: authors })
    expect(await ids(books, { filter_by: `$${alias}(id: 0)` })).toEqual(['0'])
    const aliased = unique('aliased')
    await make(aliased, [{ name: 'author', type: 'string', reference: `${alias}.id` }])
    await load(aliased, [{ id: 'a', author: '1' }])
    expect(await ids(authors, { filter_by: `$${aliased}(id:*)` })).toEqual(['1'])
    expect(await ids(aliased, { filter_by: `$${authors}(id:1)` })).toEqual(['a'])
  })

  test('an error of the other collection names it', async () => {
    await expect(search(products, { filter_by: `$${customers}(nothing:1)` })).rejects.toThrow(
      `400 Referenced collection \`${customers}\`: Could not find a filter field named \`nothing\` in the schema.`,
    )
    await expect(search(products, { filter_by: '$foo(a:1)' })).rejects.toThrow(
      '400 Referenced collection `foo` in `filter_by` not found.',
    )
    await expect(search(products, { filter_by: `$${authors}(id:1)` })).rejects.toThrow(
      `Failed to join on \`${authors}\`: No reference field found.`,
    )
    await expect(search(products, { filter_by: `$${customers}(a:1` })).rejects.toThrow(
      `Could not parse the reference filter: \`$${customers}(a:1\`.`,
    )
  })
})

describe('cascades', () => {
  test('a document goes with the last one that it refers to', async () => {
    const [people, teams] = [unique('people'), unique('teams')]
    await make(people, [{ name: 'name', type: 'string' }])
    await load(people, [
      { id: 'a', name: 'A' },
      { id: 'b', name: 'B' },
      { id: 'c', name: 'C' },
    ])
    await make(teams, [
      { name: 'lead', type: 'string', reference: `${people}.id`, optional: true },
      { name: 'members', type: 'string[]', reference: `${people}.id` },
    ])
    await load(teams, [
      { id: '1', lead: 'a', members: ['b', 'c'] },
      { id: '2', members: ['b'] },
    ])
    await client().collections(people).documents('b').delete()
    expect(await found(teams, {})).toEqual([{ id: '1', lead: 'a', members: ['c'] }])
    await client().collections(people).documents('a').delete()
    expect(await found(teams, {})).toEqual([{ id: '1', members: ['c'] }])
    await client().collections(people).documents().delete({ filter_by: 'name:C' })
    expect(await found(teams, {})).toEqual([])
  })

  test('`cascade_delete: false` keeps the document', async () => {
    const [goods, orders] = [unique('goods'), unique('orders')]
    await make(goods, [{ name: 'sku', type: 'string' }])
    await load(goods, [{ id: '1', sku: 'x' }])
    await make(orders, [
      {
        name: 'sku',
        type: 'string',
        reference: `${goods}.sku`,
        async_reference: true,
        cascade_delete: false,
      },
    ])
    await load(orders, [{ id: 'o', sku: 'x' }])
    await client().collections(goods).documents('1').delete()
    expect(await found(orders, {})).toEqual([{ id: 'o', sku: 'x' }])
  })

  test('documents stay when the whole collection is dropped', async () => {
    const [goods, orders] = [unique('goods'), unique('orders')]
    await make(goods, [{ name: 'sku', type: 'string' }])
    await load(goods, [{ id: '1', sku: 'x' }])
    await make(orders, [{ name: 'sku', type: 'string', reference: `${goods}.sku` }])
    await load(orders, [{ id: 'o', sku: 'x' }])
    await client().collections(goods).delete()
    expect(await ids(orders, {})).toEqual(['o'])
  })
})
