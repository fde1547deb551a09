/** Searches that are read in slices find what they would have found at once, and let others in between. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { unwrap } from '../../src/errors'
import { openCollection } from '../../src/search/collection/open'
import { exportPage } from '../../src/search/documents/bulk'
import { Store } from '../../src/search/documents/store'
import { LongSearches, type Slice } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { readSchema } from '../../src/search/schema/plan'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

const opened = ({ storage, id }: DurableObjectState) =>
  openCollection({ storage, env, objectId: String(id), alarm: new Alarm(storage) }, readSchema(storage.sql)!)
const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'kind', type: 'string', facet: true, optional: true, sort: true },
  { name: 'tags', type: 'string[]', facet: true },
  { name: 'points', type: 'int32', facet: true },
  { name: 'size', type: 'float', facet: true, optional: true },
  { name: 'big', type: 'int64', facet: true },
  { name: 'place', type: 'geopoint' },
  { name: 'v', type: 'float[]', num_dim: 2 },
]

const WORDS = ['wolf', 'hare', 'owl', 'bee', 'yew', 'fern']

const documents = Array.from({ length: 160 }, (_, n) => ({
  id: `d${n}`,
  title: `animal ${WORDS[n % 6]} ${WORDS[(n * 5) % 4]}`,
  text: Array.from({ length: 1 + (n % 9) }, (_, at) => WORDS[(n * at) % 6]).join(' '),
  ...(n % 7 === 0 ? {} : { kind: `Kind ${String.fromCharCode(65 + (n % 5))}${n % 2 ? 'a' : 'B'}` }),
  tags: [`t${n % 3}`, `t${n % 11}`],
  points: (n * 37) % 50,
  ...(n % 4 === 0 ? {} : { size: ((n * 13) % 40) / 8 }),
  big: ((n * 7) % 12) - 4,
  place: [n % 90, n % 60],
  v: [Math.cos(n), Math.sin(n)],
}))

let things: TestCollection

const stub = () => env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))

beforeAll(async () => {
  things = await makeCollection(FIELDS, documents, { default_sorting_field: 'points' })
})

/** A search with slices as they are given, in the object that holds the collection. */
const search = (params: SearchParameters, slice?: Partial<Slice>): Promise<SearchResult> =>
  runInDurableObject(stub(), async (_, state: DurableObjectState) => {
    const { context } = opened(state)
    const others = new LongSearches({ ms: 1e9, rows: 1e9, width: 1e9, ...slice })
    return await executeSearch(context, params, {}, { others })
  })

/** What does not depend on how long it took. */
const told = ({ search_time_ms: _, ...result }: SearchResult) => result

const TEXT = { query_by: 'title,text' }

/** The statements of a search, with their bound values. */
const statementsOf = (params: SearchParameters): Promise<{ query: string; bindings: unknown[] }[]> =>
  runInDurableObject(stub(), async (_, state: DurableObjectState) => {
    const { context } = opened(state)
    const statements: { query: string; bindings: unknown[] }[] = []
    const exec: SqlStorage['exec'] = (query, ...bindings) => {
      statements.push({ query, bindings })
      return state.storage.sql.exec(query, ...bindings)
    }
    const others = new LongSearches({ ms: 1e9, rows: 1e9, width: 1e9 })
    await executeSearch(Object.create(context, { sql: { value: { exec } } }), params, {}, { others })
    return statements
  })

it('reads the matches of a question that follows another one once', async () => {
  const statements = await statementsOf({ ...TEXT, q: 'wolf hare', context_q: 'owl bee' })
  const read = statements.filter(({ query }) => query.includes('rank MATCH'))
  expect(read).toHaveLength(2)
  expect(new Set(read.map(({ bindings }) => bindings[0])).size).toBe(2)
})

/** How a filter reads documents. */
const READING = 'SELECT seq, body FROM documents'

it('reads the documents of a filter once for the page, its facets and its groups', async () => {
  const asked = { q: '*', filter_by: 'title: wolf', facet_by: 'kind,tags,points(low:[0,10])' }
  for (const params of [asked, { ...asked, group_by: 'kind' }, { ...asked, sort_by: '_rand(7):asc' }]) {
    const statements = await statementsOf(params)
    const reading = statements.filter(({ query }) => query.startsWith(READING))
    const read = reading.flatMap(({ bindings: [seqs] }) => JSON.parse(String(seqs)))
    expect(read.length).toBeGreaterThan(0)
    expect(new Set(read).size).toBe(read.length)
  }
})

it('reads a document once for all conditions on its words and places', async () => {
  const words = Array.from({ length: 100 }, (_, n) => `text:${WORDS[n % 6]!.slice(0, 2)}${n % 3}*`)
  const corners = Array.from({ length: 500 }, (_, n) => [Math.sin(n / 80) * 80, Math.cos(n / 80) * 80])
  const places = `place:(${corners.flat().join(',')})`
  const values = Array.from({ length: 20_000 }, (_, n) => `title:=x${n}`.slice(7)).join(',')
  for (const filter_by of [
    words.join(' || '),
    words.map((word) => word.replace(':', ':!')).join(' && '),
    `${places} && (${words.join(' || ')})`,
    `title:[${values}] || text:!=[${values}]`,
  ]) {
    const statements = await statementsOf({ q: '*', filter_by })
    const reading = statements.filter(({ query }) => query.startsWith(READING))
    const read = reading.flatMap(({ bindings: [seqs] }) => JSON.parse(String(seqs)))
    expect(read.length).toBeGreaterThan(0)
    expect(new Set(read).size).toBe(read.length)
    expect(statements.filter(({ query }) => query.includes('MATCH'))).toHaveLength(0)
    expect(statements.length).toBeLessThan(20)
  }
})

describe('filters that read documents', () => {
  const FILTER = 'parts.{name:!=none}'
  const NESTED = [
    { name: 'parts', type: 'object[]' },
    { name: 'parts.name', type: 'string[]', facet: true },
  ]
  let nested: TestCollection
  beforeAll(async () => {
    const parts = Array.from({ length: 1_000 }, (_, n) => ({ parts: [{ name: n < 990 ? 'none' : 'some' }] }))
    nested = await makeCollection(NESTED, parts, { enable_nested_fields: true })
  })
  const inside = <Result>(run: (storage: DurableObjectStorage, id: string) => Promise<Result>) =>
    runInDurableObject(
      env.COLLECTION.get(env.COLLECTION.idFromName(nested.objectId)),
      (_, { storage, id }: DurableObjectState) => run(storage, String(id)),
    )

  it('take turns with other searches', async () => {
    const turns = await inside(async (storage, objectId) => {
      const around = { storage, env, objectId, alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const others = new LongSearches({ ms: 1e9, rows: 5_000, width: 1e9 })
      let taken = 0
      const turn = others.turn.bind(others)
      others.turn = () => {
        taken++
        return turn()
      }
      const { found } = await executeSearch(context, { q: '*', filter_by: FILTER }, {}, { others })
      expect(found).toBe(10)
      return taken
    })
    // 5,000 rows are about 100 documents.
    expect(turns).toBeGreaterThan(3)
  })

  /** Reads all pages, and counts the documents that filters read. */
  const exported = (filterBy: string): Promise<{ lines: number; read: number }> =>
    inside(async (storage) => {
      let read = 0
      const exec: SqlStorage['exec'] = (query, ...bindings) => {
        if (query.startsWith(READING)) {
          read += storage.sql.exec(query, ...bindings).toArray().length
        }
        return storage.sql.exec(query, ...bindings)
      }
      const store = new Store({ exec } as SqlStorage, readSchema(storage.sql)!, 0)
      const options = { filterBy, include: '', exclude: '' }
      let lines = 0
      for (let cursor = 0, done = false; !done; ) {
        const page = await exportPage(store, options, cursor)
        lines += page.lines === '' ? 0 : page.lines.split('\n').length
        cursor = page.cursor
        done = page.done
      }
      return { lines, read }
    })

  it('read each document a few times in an export', async () => {
    for (const [filterBy, lines] of [
      [FILTER, 10],
      ['parts.{name:!=some}', 990],
    ] as const) {
      const all = await exported(filterBy)
      expect(all.lines).toBe(lines)
      expect(all.read).toBeLessThanOrEqual(3_000)
    }
  })

  it('update and remove every match once', async () => {
    const { object } = await makeCollection(
      [...NESTED, { name: 'points', type: 'int32' }],
      Array.from({ length: 1_000 }, (_, n) => ({ points: 0, parts: [{ name: n % 3 ? 'none' : 'some' }] })),
      { enable_nested_fields: true },
    )
    const patch = '{"$operations":{"increment":{"points":1}}}'
    let updated = 0
    for (let after = 0, done = false; !done; ) {
      const step = unwrap(await object.updateWhere(FILTER, patch, after))
      updated += step.count
      after = step.cursor
      done = step.done
    }
    expect(updated).toBe(334)
    expect(unwrap(await object.search({ q: '*', filter_by: 'points:1' })).found).toBe(334)
    let removed = 0
    for (let after = 0, done = false; !done; ) {
      const options = { batchSize: 100, returnDocuments: false, returnIds: false, after }
      const step = unwrap(await object.removeWhere(FILTER, options))
      removed += step.count
      after = step.cursor
      done = step.done
    }
    expect(removed).toBe(334)
    expect(unwrap(await object.search({ q: '*' })).found).toBe(666)
  })

  it('pin the documents that pass', async () => {
    const { hits } = await nested.search({
      q: '*',
      filter_by: FILTER,
      pinned_hits: '995:1,3:2',
      filter_curated_hits: 'true',
    })
    expect(idsOf({ hits } as SearchResult).slice(0, 1)).toEqual(['995'])
    expect(idsOf({ hits } as SearchResult)).not.toContain('3')
  })
})

const SEARCHES: SearchParameters[] = [
  { q: '*' },
  { q: '*', page: '3', per_page: '7' },
  { q: '*', sort_by: 'size:asc,kind:desc' },
  {
    q: '*',
    filter_by: 'points:>10 && tags:=t1',
    facet_by: 'kind,tags,points,size,size(low:[0, 2], high:[2, 5])',
  },
  { q: '*', filter_by: 'text:wolf || title:=animal hare wolf', facet_by: 'kind(sort_by: _alpha:asc)' },
  {
    q: '*',
    facet_by: 'kind(sort_by: points:desc),tags(sort_by: size:asc)',
    max_facet_values: '3',
    per_page: '0',
  },
  { q: '*', facet_by: 'tags', facet_query: 'tags:t1', group_by: 'kind' },
  { q: '*', group_by: 'kind,tags', group_limit: '2', sort_by: 'points:desc' },
  { q: '*', group_by: 'size', group_missing_values: 'false', group_limit: '4', page: '2', per_page: '5' },
  { q: '*', group_by: 'tags', sort_by: '_group_found:desc,points:asc', group_limit: '3' },
  {
    q: '*',
    group_by: 'size',
    group_missing_values: 'false',
    sort_by: '_group_found:asc,size:desc',
    per_page: '30',
  },
  { q: '*', sort_by: 'place(45, 30):asc,points:desc' },
  { q: '*', facet_by: 'big(sort_by: _alpha:asc)', max_facet_values: '5', sort_by: 'big:asc' },
  { q: '*', sort_by: '_eval([(kind:`Kind Aa`):3,(tags:[t1,t2,t4]):2]):desc,points:desc', page: '2' },
  { q: '*', pinned_hits: 'd3:1,d150:4', hidden_hits: 'd159,d0' },
  { ...TEXT, q: 'wolf' },
  { ...TEXT, q: 'wolf owl', page: '2', facet_by: 'kind' },
  { ...TEXT, q: 'animal', sort_by: 'points:desc', filter_by: 'size:<3' },
  { ...TEXT, q: 'wolv', group_by: 'kind', group_limit: '1' },
  { ...TEXT, q: 'nothing like that', drop_tokens_threshold: '0' },
  { ...TEXT, q: '-wolf', facet_by: 'points' },
  { ...TEXT, q: 'wolf', vector_query: 'v:([1, 0], k: 40)', facet_by: 'kind' },
  {
    ...TEXT,
    q: 'owl',
    vector_query: 'v:([0, 1], k: 20)',
    rerank_hybrid_matches: 'true',
    sort_by: '_text_match:desc,points:asc',
  },
  { q: '*', vector_query: 'v:([1, 1], k: 30)', filter_by: 'points:<30', group_by: 'kind' },
]

describe('a search in slices', () => {
  it('finds, counts, groups and orders as one that is not', async () => {
    const whole = await Promise.all(SEARCHES.map((params) => search(params)))
    expect(whole.filter(({ found }) => found > 0).length).toBeGreaterThan(20)
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: SEARCHES.length - 1 }),
        fc.integer({ min: 8, max: 100 }),
        fc.constantFrom(1, 50, 1e9),
        async (which, width, rows) => {
          const sliced = await search(SEARCHES[which]!, { width, rows })
          expect(told(sliced)).toEqual(told(whole[which]!))
        },
      ),
      { numRuns: 60 },
    )
  })

  it('puts matches into buckets by all of them', async () => {
    const params = { ...TEXT, q: 'wolf', sort_by: '_text_match(buckets:3):desc,points:desc', per_page: '250' }
    const ids = ({ hits }: SearchResult) => hits!.map(({ document }) => document.id)
    const whole = await search(params)
    const scores = whole.hits!.map(({ text_match: score }) => score!)
    const third = Math.ceil(scores.length / 3)
    // Nothing in a bucket is worse than anything in the next, and within one points decide.
    expect(Math.min(...scores.slice(0, third))).toBeGreaterThanOrEqual(Math.max(...scores.slice(third)))
    expect(scores).not.toEqual([...scores].sort((a, b) => b - a))
    const points = whole.hits!.slice(0, third).map(({ document }) => document.points as number)
    expect(points).toEqual([...points].sort((a, b) => b - a))
    expect(ids(await search(params, { width: 1e9, rows: 10 }))).toEqual(ids(whole))
  })
})

describe('a search that takes too long', () => {
  it('refuses a cutoff that is no number', async () => {
    await expect(search({ q: '*', search_cutoff_ms: 'soon' })).rejects.toMatchObject({ status: 400 })
  })
})

describe('long searches of one object', () => {
  it('take turns, and let others in', async () => {
    await runInDurableObject(stub(), async (_, state: DurableObjectState) => {
      const { context } = opened(state)
      const others = new LongSearches({ ms: 1e9, rows: 1, width: 8 })
      const ended: string[] = []
      const run = (name: string, params: SearchParameters, sharing = { others }) =>
        executeSearch(context, params, {}, sharing).then(() => ended.push(name))
      const long = run('long', { q: '*', filter_by: 'points:>=0', facet_by: 'kind,tags,points' })
      const shorter = run('shorter', { q: '*', filter_by: 'points:>=0' })
      await new Promise((resolve) => setTimeout(resolve, 1))
      const quick = run('quick', { q: '*', facet_by: 'kind' }, { others: new LongSearches() })
      await Promise.all([long, shorter, quick])
      expect(ended).toEqual(['quick', 'shorter', 'long'])
    })
  })

  it('end when they are abandoned', async () => {
    await runInDurableObject(stub(), async (_, state: DurableObjectState) => {
      const { context } = opened(state)
      const others = new LongSearches({ ms: 1e9, rows: 1, width: 8 })
      const left = executeSearch(context, { q: '*', filter_by: 'points:>=0' }, {}, { others, ticket: 'a' })
      const stays = executeSearch(context, { q: '*', filter_by: 'points:>=0' }, {}, { others, ticket: 'b' })
      await new Promise((resolve) => setTimeout(resolve, 1))
      others.abandon('a')
      await expect(left).rejects.toMatchObject({ status: 499 })
      expect((await stays).found).toBe(documents.length)
    })
  })

  it('begin again when the schema changes, and end when the collection is deleted', async () => {
    await runInDurableObject(stub(), async (_, state: DurableObjectState) => {
      const { context, store } = opened(state)
      const others = new LongSearches({ ms: 1e9, rows: 1, width: 8 })
      let schema = context.schema
      const changing = Object.defineProperty(Object.create(context), 'schema', { get: () => schema })
      const found = executeSearch(changing, { q: '*', filter_by: 'points:>=0' }, {}, { others })
      await new Promise((resolve) => setTimeout(resolve, 1))
      schema = {
        ...schema,
        fields: schema.fields.filter(({ name }) => name !== 'points'),
        default_sorting_field: '',
      }
      await expect(found).rejects.toMatchObject({
        status: 400,
        message: 'Could not find a filter field named `points` in the schema.',
      })
      const deleted = executeSearch(context, { q: '*', filter_by: 'points:>=0' }, {}, { others })
      await new Promise((resolve) => setTimeout(resolve, 1))
      store.closed = true
      await expect(deleted).rejects.toMatchObject({ status: 404 })
    })
  })
})
