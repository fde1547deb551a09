/** Joins between objects: their bounds, their cycles, and what happens beside them. */
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { createCollection, lookUp } from '../../src/registry/collections'
import { collectionObject } from '../../src/search/collection/handle'
import type { JoinPlace, SearchParameters, SearchScope } from '../../src/search/types'
import { importAll } from './object'

const unique = (stem: string) => `${stem}-${crypto.randomUUID()}`
const joins: Record<string, JoinPlace> = {}
const objectOf = (name: string) => collectionObject(env, joins[name]!.objectId)

async function make(name: string, fields: object[], documents: object[] = [], extra: object = {}) {
  await createCollection(env, { name, fields, ...extra })
  const { objectId } = (await lookUp(env, name))!
  joins[name] = { objectId, name, history: false }
  for (let from = 0; from < documents.length; from += 2_000) {
    const lines = documents.slice(from, from + 2_000) as Record<string, unknown>[]
    const results = await importAll(objectOf(name), lines)
    expect(results.find(({ success }) => success !== true)).toBeUndefined()
  }
}

const search = async (name: string, params: SearchParameters, scope: SearchScope = {}) =>
  unwrap(await objectOf(name).search({ q: '*', ...params }, { joins, ...scope }))

const refusal = async (name: string, params: SearchParameters) => {
  const outcome = await objectOf(name).search({ q: '*', ...params }, { joins })
  return outcome.ok ? 'accepted' : `${outcome.error.status} ${outcome.error.message}`
}

const idsOf = async (name: string, params: SearchParameters) =>
  (await search(name, params)).hits!.map(({ document }) => document.id)

const many = (count: number, documentOf: (index: number) => object) =>
  Array.from({ length: count }, (_, index) => documentOf(index))

describe('bounds of joins', () => {
  it('name themselves', async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(a, [{ name: 'n', type: 'int32' }], [{ id: '0', n: 1 }])
    await make(b, [{ name: 'to', type: 'string', reference: `${a}.id` }], [{ to: '0' }])
    expect(await refusal(a, { filter_by: Array(17).fill(`$${b}(id:*)`).join(' && ') })).toBe(
      '400 A search takes at most 16 joins.',
    )
    expect(await refusal(a, { filter_by: Array(16).fill(`$${b}(id:*)`).join(' && ') })).toBe('accepted')
    const nested = (levels: number) =>
      Array.from({ length: levels }).reduceRight<string>(
        (inner, _, level) => `$${level % 2 ? a : b}(${inner})`,
        'id',
      )
    expect(await refusal(a, { include_fields: nested(5) })).toBe('accepted')
    expect(await refusal(a, { include_fields: nested(6) })).toContain(
      'Joins are nested too deeply: at most 5 levels are allowed.',
    )
  })

  it('count documents that a page shows, and those that are sorted', { timeout: 120_000 }, async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(a, [{ name: 'n', type: 'int32' }], [{ id: '0', n: 1 }])
    const fields = [
      { name: 'to', type: 'string', reference: `${a}.id` },
      { name: 'm', type: 'int32' },
    ]
    await make(
      b,
      fields,
      many(5_001, (m) => ({ to: '0', m })),
    )
    const filter_by = `$${b}(id:*)`
    expect(await refusal(a, { filter_by })).toBe(
      `422 A join adds at most 5000 documents and 8388608 bytes to a page. Set \`limit\` for \`${b}\` in \`include_fields\`, or ask for fewer hits.`,
    )
    const include_fields = `$${b}(m, limit: 2, sort_by: m:desc, related_docs_count: count)`
    expect((await search(a, { filter_by, include_fields })).hits![0]!.document).toMatchObject({
      count: 5_001,
      [b]: [{ m: 5_000 }, { m: 4_999 }],
    })
    expect(await idsOf(a, { filter_by, exclude_fields: `$${b}(*)` })).toEqual(['0'])
    const results = await importAll(
      objectOf(b),
      many(15_000, (m) => ({ to: '0', m })) as Record<string, unknown>[],
    )
    expect(results).toHaveLength(15_000)
    expect(await refusal(a, { filter_by, exclude_fields: `$${b}(*)`, sort_by: `$${b}(m:asc)` })).toBe(
      `422 At most 20000 related documents of \`${b}\` can be joined to a page or sorted by. Narrow the filter, or ask for fewer hits.`,
    )
  })

  it('count keys that go from one object to another, and time: out of it is a 408, and no part of the answer', {
    timeout: 120_000,
  }, async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(a, [{ name: 'n', type: 'int32' }], [{ id: '0', n: 99_999 }])
    const to = { name: 'to', type: 'int32', reference: `${a}.n`, async_reference: true }
    await make(
      b,
      [to, { name: 'm', type: 'int32' }],
      many(100_001, (index) => ({ to: index, m: index })),
    )
    expect(await refusal(a, { filter_by: `$${b}(id:*)` })).toBe(
      `422 A join matches at most 100000 documents. Narrow its condition on \`${b}\`.`,
    )
    expect(await idsOf(a, { filter_by: `$${b}(m:>0)` })).toEqual(['0'])
    expect(await refusal(a, { filter_by: `!$${b}(m:>0)`, search_cutoff_ms: '1' })).toContain('408')
  })
})

describe('collections that refer to each other', () => {
  it('are asked in both directions at once', { timeout: 60_000 }, async () => {
    const [a, b] = [unique('a'), unique('b')]
    const reference = (other: string) => [
      { name: 'n', type: 'int32' },
      { name: 'to', type: 'string', reference: `${other}.id`, async_reference: true },
    ]
    const documents = many(3_000, (index) => ({
      id: String(index),
      n: index % 7,
      to: String((index + 1) % 3_000),
    }))
    await make(a, reference(b), documents)
    await make(b, reference(a), documents)
    const nested = (first: string, second: string) =>
      `$${first}($${second}($${first}($${second}(n:0) || n:1)) && n:<6)`
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 ? search(a, { filter_by: nested(b, a) }) : search(b, { filter_by: nested(a, b) }),
      ),
    )
    const passes = (index: number, level: number): boolean => {
      const n = (by: number) => ((index + by) % 3_000) % 7
      return level === 0 && n(1) < 6 && (n(4) === 0 || n(3) === 1)
    }
    const expected = many(3_000, (index) => ({ index })).filter((each) =>
      passes((each as { index: number }).index, 0),
    )
    for (const { found: count } of found) expect(count).toBe(expected.length)
  })

  it('delete in a circle, and come to an end', async () => {
    const [a, b] = [unique('a'), unique('b')]
    const to = (other: string) => ({
      name: 'to',
      type: 'string',
      reference: `${other}.id`,
      async_reference: true,
    })
    await make(a, [to(b)])
    await make(b, [to(a)])
    await importAll(objectOf(a), [
      { id: '1', to: '1' },
      { id: '2', to: '3' },
    ])
    await importAll(objectOf(b), [
      { id: '1', to: '2' },
      { id: '3', to: '1' },
    ])
    unwrap(await objectOf(a).remove('1', false))
    for (const name of [a, b]) {
      await expect.poll(async () => (await search(name, {})).found, { timeout: 20_000 }).toBe(0)
    }
  })
})

describe('references in objects', () => {
  it('show their documents inside of the object', async () => {
    const [goods, orders] = [unique('goods'), unique('orders')]
    await make(
      goods,
      [{ name: 'name', type: 'string' }],
      [
        { id: 'x', name: 'X' },
        { id: 'y', name: 'Y' },
      ],
    )
    await make(
      orders,
      [
        { name: 'one', type: 'object', optional: true },
        { name: 'one.good', type: 'string', reference: `${goods}.id`, optional: true },
        { name: 'lines', type: 'object[]', optional: true },
      ],
      [{ id: '1', one: { good: 'x', n: 1 } }],
      { enable_nested_fields: true },
    )
    const include_fields = `$${goods}(name)`
    expect((await search(orders, { include_fields })).hits![0]!.document).toEqual({
      id: '1',
      one: { good: 'x', n: 1, [goods]: { name: 'X' } },
    })
    expect(await idsOf(orders, { filter_by: `$${goods}(name:X)` })).toEqual(['1'])
    expect(await idsOf(goods, { filter_by: `$${orders}(id:1)` })).toEqual(['x'])
  })

  it('in a list of objects, each has its own', async () => {
    const [goods, orders] = [unique('goods'), unique('orders')]
    await make(
      goods,
      [{ name: 'name', type: 'string' }],
      [
        { id: 'x', name: 'X' },
        { id: 'y', name: 'Y' },
      ],
    )
    await make(
      orders,
      [
        { name: 'lines', type: 'object[]' },
        { name: 'lines.good', type: 'string[]', reference: `${goods}.id` },
      ],
      [{ id: '1', lines: [{ good: 'y' }, { good: 'x' }] }],
      { enable_nested_fields: true },
    )
    expect((await search(orders, { include_fields: `$${goods}(name)` })).hits![0]!.document).toEqual({
      id: '1',
      lines: [
        { good: 'y', [goods]: { name: 'Y' } },
        { good: 'x', [goods]: { name: 'X' } },
      ],
    })
    const [result] = await importAll(objectOf(orders), [{ lines: [{ good: 'x' }, { good: 'z' }] }])
    expect(result!.error).toBe(
      `Referenced document having \`id: z\` not found in the collection \`${goods}\`.`,
    )
  })
})

describe('keys of documents', () => {
  it('of 64 bits stay exact', async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(a, [{ name: 'big', type: 'int64' }])
    await importAll(objectOf(a), ['{"id":"1","big":9007199254740993}', '{"id":"2","big":9007199254740992}'])
    await make(b, [{ name: 'to', type: 'int64', reference: `${a}.big` }])
    const results = await importAll(objectOf(b), [
      '{"id":"b","to":9007199254740993}',
      '{"id":"c","to":9007199254740994}',
    ])
    expect(results.map(({ success }) => success)).toEqual([true, false])
    expect(await idsOf(a, { filter_by: `$${b}(id:b)` })).toEqual(['1'])
    expect(await idsOf(b, { filter_by: `$${a}(id:1)` })).toEqual(['b'])
    unwrap(await objectOf(a).remove('2', false))
    expect(await idsOf(b, {})).toEqual(['b'])
    unwrap(await objectOf(a).remove('1', false))
    expect(await idsOf(b, {})).toEqual([])
  })

  it('follow updates, and older documents of a field that others begin to refer to', async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(
      a,
      [{ name: 'sku', type: 'string' }],
      many(1_200, (index) => ({ id: `${index}`, sku: `s${index}` })),
    )
    const to = { name: 'to', type: 'string', reference: `${a}.sku` }
    await make(b, [to], [{ id: 'b', to: 's1199' }])
    expect(await idsOf(a, { filter_by: `$${b}(id:*)` })).toEqual(['1199'])
    unwrap(await objectOf(b).patch('b', JSON.stringify({ to: 's3' })))
    expect(await idsOf(a, { filter_by: `$${b}(id:*)` })).toEqual(['3'])
    const refused = await objectOf(b).patch('b', JSON.stringify({ to: 'none' }))
    expect(refused).toMatchObject({ ok: false, error: { status: 400 } })
    unwrap(await objectOf(a).patch('3', JSON.stringify({ sku: 'changed' })))
    expect(await idsOf(a, { filter_by: `$${b}(id:*)` })).toEqual([])
  })
})

describe('changes by filter', () => {
  it('take joins', async () => {
    const [a, b] = [unique('a'), unique('b')]
    await make(
      a,
      [{ name: 'n', type: 'int32' }],
      many(5, (n) => ({ id: `${n}`, n })),
    )
    await make(b, [{ name: 'to', type: 'string', reference: `${a}.id` }], [{ to: '1' }, { to: '3' }])
    const filter = `$${b}(id:*)`
    expect(unwrap(await objectOf(a).updateWhere(filter, '{"n":9}', 0, { joins }))).toMatchObject({ count: 2 })
    const options = { batchSize: 100, returnDocuments: false, returnIds: true }
    expect(unwrap(await objectOf(a).removeWhere(`!${filter}`, options, { joins })).ids).toEqual([
      '0',
      '2',
      '4',
    ])
  })
})

it('passes on keys that are too long for one value of SQLite', { timeout: 120_000 }, async () => {
  const [a, b] = [unique('a'), unique('b')]
  const key = (n: number) => `${n}-${'k'.repeat(900)}`
  await make(
    a,
    [
      { name: 'key', type: 'string' },
      { name: 'n', type: 'int32' },
    ],
    many(4_000, (n) => ({ id: key(n), key: key(n), n })),
  )
  const fields = [
    { name: 'to', type: 'string', reference: `${a}.key` },
    { name: 'kind', type: 'string', facet: true },
    { name: 'm', type: 'int32' },
  ]
  await make(
    b,
    fields,
    many(4_000, (n) => ({ id: String(n), to: key(n), kind: n % 2 ? 'odd' : 'even', m: n })),
  )
  expect(await search(a, { filter_by: `$${b}(m:<3900)`, per_page: '1' })).toMatchObject({ found: 3_900 })
  expect(await search(b, { filter_by: `$${a}(n:>=100)`, per_page: '1' })).toMatchObject({ found: 3_900 })
  const sorted = { filter_by: `$${b}(id:*)`, sort_by: `$${b}(m:desc)`, per_page: '2' }
  expect((await search(a, sorted)).hits!.map(({ document }) => document.n)).toEqual([3_999, 3_998])
  const [facet] = (await search(a, { facet_by: `$${b}(kind)`, per_page: '0' })).facet_counts as {
    counts: { value: string; count: number }[]
  }[]
  expect(facet!.counts.map(({ count }) => count)).toEqual([2_000, 2_000])
})
