/** Collections with more string fields than a full-text index has columns: from the 91st on, fields share one. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { readSchema, writeSchema } from '../../src/search/schema/plan'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

const COUNT = 300

const FIELDS = [
  ...Array.from({ length: COUNT }, (_, at) => ({
    name: `f${at}`,
    type: 'string',
    optional: true,
    ...(at % 100 === 50 && { facet: true, sort: true }),
  })),
  { name: 'names', type: 'string[]', optional: true },
  { name: 'stemmed', type: 'string', stem: true, optional: true },
  { name: 'parts', type: 'string', infix: true, optional: true },
  { name: 'signs', type: 'string', symbols_to_index: ['+', '"'], optional: true },
  { name: 'points', type: 'int32', optional: true },
]

const DOCUMENTS = [
  {
    id: 'a',
    f0: 'plain beginning',
    f120: 'golden harvest moon',
    f121: 'silver lining',
    f250: 'red',
    points: 3,
  },
  { id: 'b', f120: 'silver harvest', f121: 'golden gate bridge', f250: 'blue', points: 2 },
  {
    id: 'c',
    f299: 'Golden! Gate',
    names: ['Ada Lovelace', 'Grace Hopper'],
    stemmed: 'running shoes',
    points: 1,
  },
  { id: 'd', f5: 'golden gate', f200: '東京タワー', parts: 'unbelievable', signs: 'c++ "code"', f250: 'red' },
]

const ids = async (collection: TestCollection, params: SearchParameters): Promise<string[]> =>
  idsOf(await collection.search({ drop_tokens_threshold: '0', ...params })).toSorted()

describe('a collection of 300 string fields', () => {
  it.each<[string, SearchParameters, string[]]>([
    ['a word of one field', { q: 'golden', query_by: 'f120', prefix: 'false' }, ['a']],
    ['a word of its neighbour', { q: 'golden', query_by: 'f121' }, ['b']],
    ['a word of the last field', { q: 'golden', query_by: 'f299' }, ['c']],
    ['several fields', { q: 'golden', query_by: 'f5,f120,f121,f299' }, ['a', 'b', 'c', 'd']],
    ['words in two of the fields', { q: 'golden silver', query_by: 'f120,f121' }, ['a', 'b']],
    ['words in fields with and without a column', { q: 'plain moon', query_by: 'f0,f120' }, ['a']],
    ['a prefix', { q: 'gol', query_by: 'f120,f299' }, ['a', 'c']],
    ['no prefix', { q: 'gol', query_by: 'f120', prefix: 'false', num_typos: '0' }, []],
    [
      'prefixes of some fields',
      { q: 'gol', query_by: 'f120,f121', prefix: 'false,true', num_typos: '0' },
      ['b'],
    ],
    ['a phrase', { q: '"golden gate"', query_by: 'f120,f121,f299' }, ['b', 'c']],
    ['no phrase across fields', { q: '"moon silver"', query_by: 'f120,f121' }, []],
    ['no phrase across what lies between', { q: '"golden moon"', query_by: 'f120' }, []],
    ['without a word', { q: 'golden -gate', query_by: 'f120,f121,f299' }, ['a']],
    ['a typo', { q: 'harvset', query_by: 'f120' }, ['a', 'b']],
    ['a typo in a prefix', { q: 'goldne', query_by: 'f299' }, ['c']],
    ['typos of some fields', { q: 'goldem', query_by: 'f120,f121', num_typos: '0,1' }, ['b']],
    ['a list', { q: 'grace', query_by: 'names' }, ['c']],
    ['a stem', { q: 'run shoe', query_by: 'stemmed', prefix: 'false', num_typos: '0' }, ['c']],
    ['a part of a word', { q: 'believ', query_by: 'parts', infix: 'always' }, ['d']],
    ['signs', { q: 'c++', query_by: 'signs', prefix: 'false', num_typos: '0' }, ['d']],
    ['a quotation mark', { q: '"cod', query_by: 'signs', num_typos: '0' }, ['d']],
    ['characters without spaces', { q: '京タ', query_by: 'f200' }, ['d']],
    ['words written apart', { q: 'har vest', query_by: 'f120' }, ['a', 'b']],
    ['a question, by stems', { q: 'goldens harvesting', query_by: 'f120', match_stems: 'true' }, ['a']],
    ['a filter', { q: '*', filter_by: 'f121: gate' }, ['b']],
    ['a filter on a whole value', { q: '*', filter_by: 'f299:=golden gate' }, ['c']],
    ['a filter on a beginning', { q: '*', filter_by: 'f120: harv*' }, ['a', 'b']],
    ['a filter on signs', { q: '*', filter_by: 'signs: c++' }, ['d']],
    ['a filter on a facet', { q: '*', filter_by: 'f250:=red' }, ['a', 'd']],
    ['a negated filter', { q: '*', filter_by: 'f121:!=silver lining' }, ['b', 'c', 'd']],
  ])('finds %s', async (_, params, found) => {
    const collection = await makeCollection(FIELDS, DOCUMENTS)
    expect(await ids(collection, params)).toEqual(found)
  })

  it('ranks, highlights, counts and sorts', async () => {
    const collection = await makeCollection(FIELDS, DOCUMENTS)
    const order = async (params: SearchParameters) => idsOf(await collection.search(params))
    const both = { q: 'golden', query_by: 'f120,f121', prefix: 'false' }
    expect(await order({ ...both, query_by_weights: '1,5' })).toEqual(['b', 'a'])
    expect(await order({ ...both, query_by_weights: '5,1' })).toEqual(['a', 'b'])
    // The whole field comes before a part of one.
    expect(await order({ q: 'golden gate', query_by: 'f121,f299' })).toEqual(['c', 'b'])
    expect(await order({ q: '*', filter_by: 'points:>0', sort_by: 'f250:asc' })).toEqual(['b', 'a', 'c'])
    const { hits, facet_counts: facets } = await collection.search({
      q: 'golden gate',
      query_by: 'f121',
      facet_by: 'f250',
    })
    expect(hits![0]!.highlight).toEqual({
      f121: { matched_tokens: ['golden', 'gate'], snippet: '<mark>golden</mark> <mark>gate</mark> bridge' },
    })
    expect(facets[0]!.counts).toMatchObject([{ value: 'blue', count: 1 }])
    const [first] = (await collection.search({ q: 'golden', query_by: 'f120' })).hits!
    expect(first!.text_match_info).toMatchObject({ tokens_matched: 1, fields_matched: 1 })
  })

  it('changes with its documents', async () => {
    const collection = await makeCollection(FIELDS, DOCUMENTS)
    const { object } = collection
    expect((await object.write(JSON.stringify({ id: 'a', f120: 'copper' }), { action: 'update' })).ok).toBe(
      true,
    )
    expect(await ids(collection, { q: 'harvest', query_by: 'f120', num_typos: '0' })).toEqual(['b'])
    expect(await ids(collection, { q: 'copper', query_by: 'f120' })).toEqual(['a'])
    expect(await ids(collection, { q: 'silver', query_by: 'f121' })).toEqual(['a'])
  })
})

describe('a schema that changes', () => {
  const strings = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => ({ name: `f${from + at}`, type: 'string', optional: true }))

  const alter = async ({ object }: TestCollection, fields: Record<string, unknown>[]) => {
    const outcome = await object.alter({ fields })
    if (!outcome.ok) throw new Error(outcome.error.message)
    for (;;) if ((await object.reindex()).done) return
  }

  it('grows past its columns and shrinks again', async () => {
    const wide = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`f${at}`, `word${at}`]))
    const collection = await makeCollection(strings(0, 60), [
      { id: 'w', ...wide },
      { id: 'x', f149: 'other' },
    ])
    await alter(collection, strings(60, 150))
    expect(await ids(collection, { q: 'word149', query_by: 'f149', num_typos: '0' })).toEqual(['w'])
    expect(await ids(collection, { q: 'word3', query_by: 'f3', num_typos: '0', prefix: 'false' })).toEqual([
      'w',
    ])
    const drop = strings(10, 149).map(({ name }) => ({ name, drop: true }))
    await alter(collection, drop)
    await alter(collection, strings(10, 12))
    expect(await ids(collection, { q: 'other', query_by: 'f149' })).toEqual(['x'])
    expect(await ids(collection, { q: 'word11', query_by: 'f11', num_typos: '0' })).toEqual(['w'])
    await alter(collection, [
      { name: 'f149', drop: true },
      { name: 'f149', type: 'string', facet: true, optional: true },
    ])
    expect(await ids(collection, { q: 'word149', query_by: 'f149', num_typos: '0' })).toEqual(['w'])
  })

  it('takes fields that documents bring', async () => {
    const collection = await makeCollection([{ name: '.*', type: 'auto' }], [])
    const { object } = collection
    const wide = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}`, `word${at}`]))
    expect((await object.write(JSON.stringify({ id: 'w', ...wide }), { action: 'create' })).ok).toBe(true)
    for (;;) if ((await object.reindex()).done) break
    expect(await ids(collection, { q: 'word199', query_by: 'f199', num_typos: '0' })).toEqual(['w'])
  })

  it('grows where the version before has made all columns that it could', async () => {
    const collection = await makeCollection(strings(0, 90), [{ id: 'w', f89: 'old', f90: 'new' }])
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(collection.objectId))
    // It made 90 at most, and no column that fields share.
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const columns = Array.from({ length: 90 }, (_, at) => `t${at}`).join(', ')
      for (const table of ['word_index', 'text_index']) {
        const [row] = sql
          .exec<{ sql: string }>('SELECT sql FROM sqlite_master WHERE name = ?', table)
          .toArray()
        sql.exec(`DROP TABLE ${table}`)
        sql.exec(row!.sql.replace(/t0, .*t90/, columns))
        sql.exec(`INSERT INTO ${table} (rowid, t89) VALUES (0, 'old')`)
      }
      writeSchema(sql, { ...readSchema(sql)!, textColumns: 90 })
    })
    await evictDurableObject(stub)
    expect(await ids(collection, { q: 'old', query_by: 'f89' })).toEqual(['w'])
    await alter(collection, strings(90, 91))
    expect(await ids(collection, { q: 'new', query_by: 'f90' })).toEqual(['w'])
    expect(await ids(collection, { q: 'old', query_by: 'f89' })).toEqual(['w'])
  })
})
