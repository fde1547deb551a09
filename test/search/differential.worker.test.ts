/**
 * Random searches find what a plain implementation over the same documents finds, whether values are in memory or SQL
 * reads them, and also after documents have changed.
 */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { type Open, openCollection } from '../../src/search/collection/open'
import { removeAll } from '../../src/search/documents/bulk'
import type { FilterNode } from '../../src/search/filter/parse'
import { printFilter } from '../../src/search/filter/parse'
import { Memory } from '../../src/search/memory'
import { writeMeta } from '../../src/search/meta'
import { LongSearches } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { BLOCK } from '../../src/search/schema/column'
import { ColumnMemory } from '../../src/search/schema/column-memory'
import { readSchema } from '../../src/search/schema/plan'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import {
  byTie,
  byValue,
  type Doc,
  document,
  documents,
  FIELDS,
  filter,
  folded,
  groupOf,
  matches,
  tokensOf,
  valuesOf,
} from './filter/reference'
import { makeCollection, type TestCollection } from './make-collection'

/** FUZZ_CASES says how many searches a property tries. */
const CASES = Number(env.FUZZ_CASES) || 100

const SORTED = ['year', 'price', 'genre', 'stock']
const FACETS = ['genre', 'tags', 'year', 'sizes', 'price', 'stock', 'person.name']
const GROUPS = ['genre', 'year', 'stock', 'tags', 'price']

interface Asked {
  q: string
  filter: FilterNode | undefined
  sort: { field: string; direction: 'asc' | 'desc'; missing: 'first' | 'last' | 'normal' }[]
  facets: { field: string; isRange: boolean; alpha: 'asc' | 'desc' | undefined }[]
  facetQuery: string | undefined
  group: string[]
  groupLimit: number
  groupsMissing: boolean
  hidden: string[]
  perPage: number
  page: number
}

const asked: fc.Arbitrary<Asked> = fc.record({
  q: fc.constantFrom('*', '*', 'runner', 'elan', 'c'),
  filter: fc.option(filter, { nil: undefined, freq: 3 }),
  sort: fc.uniqueArray(
    fc.record({
      field: fc.constantFrom(...SORTED),
      direction: fc.constantFrom('asc' as const, 'desc' as const),
      missing: fc.constantFrom('first' as const, 'last' as const, 'normal' as const),
    }),
    { maxLength: 2, selector: ({ field }) => field },
  ),
  facets: fc.uniqueArray(
    fc.record({
      field: fc.constantFrom(...FACETS),
      isRange: fc.boolean(),
      alpha: fc.constantFrom(undefined, undefined, 'asc' as const, 'desc' as const),
    }),
    { maxLength: 3, selector: ({ field }) => field },
  ),
  facetQuery: fc.constantFrom(undefined, 'ru', 'e', 'univ run', 'c'),
  group: fc.uniqueArray(fc.constantFrom(...GROUPS), { maxLength: 2 }),
  groupLimit: fc.integer({ min: 1, max: 4 }),
  groupsMissing: fc.boolean(),
  hidden: fc.array(fc.constantFrom('1', '5', '17', 'none'), { maxLength: 2 }),
  perPage: fc.integer({ min: 1, max: 12 }),
  page: fc.integer({ min: 1, max: 3 }),
})

const RANGES = [
  { label: 'low', from: undefined, to: 1 },
  { label: 'some', from: 1, to: 5 },
  { label: 'high', from: 4, to: undefined },
]

const isNumeric = (field: string): boolean => ['year', 'sizes', 'price'].includes(field)
const isText = (field: string): boolean => ['genre', 'tags', 'person.name'].includes(field)
const rangesOf = ({ field, isRange }: Asked['facets'][number]) => (isRange && isNumeric(field) ? RANGES : [])
const queriedFacet = ({ facets, facetQuery }: Asked) =>
  facetQuery === undefined ? undefined : facets.find(({ field }) => isText(field))

function parametersOf(search: Asked): SearchParameters {
  const { q, filter: tree, sort, facets, facetQuery, group, hidden } = search
  const queried = queriedFacet(search)
  return {
    q,
    ...(q !== '*' && {
      query_by: 'genre',
      prefix: 'false',
      num_typos: '0',
      drop_tokens_threshold: '0',
    }),
    ...(tree && { filter_by: printFilter(tree) }),
    // The last key leaves no two documents equal.
    sort_by: [
      ...sort.map(({ field, direction, missing }) => `${field}(missing_values: ${missing}):${direction}`),
      '_seq_id:desc',
    ].join(),
    ...(facets.length > 0 && {
      facet_by: facets
        .map((facet) => {
          const ranges = rangesOf(facet).map(({ label, from, to }) => `${label}:[${from ?? ''},${to ?? ''}]`)
          const order = facet.alpha === undefined ? [] : [`sort_by: _alpha:${facet.alpha}`]
          const options = ranges.length > 0 ? ranges : order
          return options.length > 0 ? `${facet.field}(${options.join(', ')})` : facet.field
        })
        .join(),
    }),
    ...(queried && { facet_query: `${queried.field}:${facetQuery}`, facet_query_num_typos: '0' }),
    ...(group.length > 0 && {
      group_by: group.join(),
      group_limit: String(search.groupLimit),
      group_missing_values: String(search.groupsMissing),
    }),
    ...(hidden.length > 0 && { hidden_hits: hidden.join() }),
    per_page: String(search.perPage),
    page: String(search.page),
    include_fields: 'id',
  }
}

// The implementation that searches are held against: it reads every document, and knows nothing of tables or blocks.

/** Every document that matches, best first. @param all oldest first */
function matchesOf(all: readonly Doc[], { q, filter: tree, sort, hidden }: Asked): Doc[] {
  const found = all
    .map((doc, age) => ({ doc, age }))
    .filter(
      ({ doc }) =>
        !hidden.includes(doc.id) &&
        (tree === undefined || matches(doc, tree)) &&
        (q === '*' || valuesOf(doc, 'genre').some((value) => tokensOf(String(value)).includes(q))),
    )
  found.sort((a, b) => {
    for (const key of sort) {
      const order = compareBy(key, sortValue(a.doc, key.field), sortValue(b.doc, key.field))
      if (order !== 0) return order
    }
    return b.age - a.age
  })
  return found.map(({ doc }) => doc)
}

function sortValue(doc: Doc, field: string): string | number | undefined {
  const [value] = valuesOf(doc, field)
  if (typeof value === 'boolean') return Number(value)
  if (typeof value === 'number') return value
  return typeof value === 'string' ? tokensOf(value).join(' ') || undefined : undefined
}

function compareBy(
  { field, direction, missing }: Asked['sort'][number],
  a: string | number | undefined,
  b: string | number | undefined,
): number {
  const normal = isText(field) && direction === 'desc' ? 'first' : 'last'
  const nulls = (missing === 'normal' ? normal : missing) === 'first' ? -1 : 1
  if (a === b) return 0
  if (a === undefined || b === undefined) return a === undefined ? nulls : -nulls
  return a < b === (direction === 'asc') ? -1 : 1
}

const told = (value: unknown): string => String(value)

function facetOf(found: readonly Doc[], search: Asked, facet: Asked['facets'][number]) {
  const { field, alpha } = facet
  const ranges = rangesOf(facet)
  const queried = queriedFacet(search) === facet ? tokensOf(search.facetQuery!) : []
  // In grouped searches a value counts once for each group that has it.
  const counts = new Map<unknown, Set<string>>()
  const all: unknown[] = []
  for (const doc of found) {
    const values = valuesOf(doc, field)
    all.push(...values)
    const counted =
      ranges.length > 0
        ? ranges
            .filter(({ from, to }) =>
              values.some(
                (value) =>
                  Number(value) >= (from ?? Number.NEGATIVE_INFINITY) &&
                  Number(value) < (to ?? Number.POSITIVE_INFINITY),
              ),
            )
            .map(({ label }) => label)
        : values.filter((value) =>
            queried.every((word) => tokensOf(String(value)).some((token) => token.startsWith(word))),
          )
    const { name } = groupOf(doc, search)
    for (const value of counted) counts.set(value, (counts.get(value) ?? new Set()).add(name))
  }
  const rows = [...counts].map(([value, { size }]) => ({ value: told(value), count: size, raw: value }))
  const numbers = all.map(Number)
  const stats =
    isNumeric(field) && all.length > 0
      ? {
          min: Math.min(...numbers),
          max: Math.max(...numbers),
          sum: numbers.reduce((sum, number) => sum + number, 0),
        }
      : {}
  if (ranges.length > 0) {
    const place = (value: string) => ranges.findIndex(({ label }) => label === value)
    rows.sort((a, b) => b.count - a.count || place(a.value) - place(b.value))
  } else if (alpha === undefined) {
    rows.sort((a, b) => b.count - a.count || byTie(a.raw, b.raw))
  } else {
    const sign = alpha === 'asc' ? 1 : -1
    rows.sort((a, b) => sign * byValue(folded(a.raw), folded(b.raw)) || byTie(a.raw, b.raw))
  }
  return {
    field,
    counts: rows.slice(0, 10).map(({ value, count }) => `${value}: ${count}`),
    total: rows.length,
    ...stats,
  }
}

function groupsOf(found: readonly Doc[], search: Asked) {
  const groups = new Map<string, { key: unknown[]; docs: Doc[] }>()
  for (const doc of found) {
    const { name, key } = groupOf(doc, search)
    const known = groups.get(name)
    if (known === undefined) groups.set(name, { key, docs: [doc] })
    else known.docs.push(doc)
  }
  return [...groups.values()].map(({ key, docs }) => ({
    key,
    found: docs.length,
    ids: docs.slice(0, search.groupLimit).map(({ id }) => id),
  }))
}

function expectedOf(all: readonly Doc[], search: Asked) {
  const found = matchesOf(all, search)
  const [from, to] = [(search.page - 1) * search.perPage, search.page * search.perPage]
  const groups = groupsOf(found, search)
  const isGrouped = search.group.length > 0
  return {
    found: isGrouped ? groups.length : found.length,
    ...(isGrouped
      ? { documents: found.length, groups: groups.slice(from, to) }
      : { ids: found.slice(from, to).map(({ id }) => id) }),
    facets: search.facets.map((facet) => facetOf(found, search, facet)),
  }
}

const seenIn = (result: SearchResult, { group }: Asked) => ({
  found: result.found,
  ...(group.length > 0
    ? {
        documents: result.found_docs,
        groups: result.grouped_hits!.map(({ group_key, found, hits }) => ({
          key: group_key,
          found,
          ids: hits.map(({ document: { id } }) => id),
        })),
      }
    : { ids: result.hits!.map(({ document: { id } }) => id) }),
  facets: result.facet_counts!.map(({ field_name, counts, stats }) => ({
    field: field_name,
    counts: counts.map(({ value, count }) => `${value}: ${count}`),
    total: stats.total_values,
    ...(stats.min !== undefined && { min: stats.min, max: stats.max, sum: stats.sum }),
  })),
})

let collection: TestCollection

const SORTABLE = FIELDS.map((field) => ({
  ...field,
  ...(FACETS.includes(field.name) && { facet: true }),
  ...(field.name === 'genre' && { sort: true }),
}))

const inside = <Result>(run: (open: Open, state: DurableObjectState) => Promise<Result>): Promise<Result> =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(collection.objectId)),
    (_, state: DurableObjectState) => {
      const { storage, id } = state
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      return run(openCollection(around, readSchema(storage.sql)!), state)
    },
  )

const CHUNK = 17

beforeAll(async () => {
  collection = await makeCollection(SORTABLE, [], { enable_nested_fields: true })
  await inside(async ({ writer, store }, { storage }) => {
    for (let from = 0; from < documents.length; from += CHUNK) {
      const chunk = documents.slice(from, from + CHUNK).map((doc) => JSON.stringify(doc))
      writer.write(chunk.map((doc) => ({ document: doc, action: 'create' })))
      // The next documents are in another block.
      writeMeta(storage.sql, 'counters', { nextSeq: store.nextSeq + BLOCK - 5, count: store.count })
      store.reset()
    }
    expect(store.count).toBe(documents.length)
  })
})

describe('random searches', () => {
  it('find what a plain implementation finds, with values in memory and without', async () => {
    await inside(async ({ context }) => {
      const inSql = Object.create(context, { columns: { value: new ColumnMemory(new Memory(0)) } })
      await fc.assert(
        fc.asyncProperty(asked, async (search) => {
          const params = parametersOf(search)
          const expected = expectedOf(documents, search)
          expect(seenIn(await executeSearch(context, params), search)).toEqual(expected)
          expect(seenIn(await executeSearch(inSql, params), search)).toEqual(expected)
        }),
        { numRuns: 3 * CASES },
      )
    })
  }, 600_000)

  it('find what is there after each of many changes', async () => {
    await inside(async ({ context, writer, store }, { storage }) => {
      const present = new Map(documents.map((doc) => [doc.id, doc]))
      const put = (doc: Doc) => {
        const [result] = writer.write([{ document: JSON.stringify(doc), action: 'upsert' }])
        if (result instanceof Error) throw result
        present.set(doc.id, doc)
      }
      const remove = (id: string) => {
        const seq = store.find([id]).get(id)
        if (seq !== undefined) removeAll(storage, store, [[seq, id]])
        present.delete(id)
      }
      const change = fc.record({
        id: fc.constantFrom('0', '3', '17', '59', '60', '61'),
        doc: fc.option(document, { nil: undefined, freq: 2 }),
      })
      await fc.assert(
        fc.asyncProperty(asked, fc.array(change, { maxLength: 3 }), async (search, changes) => {
          for (const { id, doc } of changes) {
            if (doc === undefined) remove(id)
            else put({ ...doc, id })
          }
          const expected = expectedOf([...present.values()], search)
          expect(seenIn(await executeSearch(context, parametersOf(search)), search)).toEqual(expected)
        }),
        // A shrunk case would begin with other documents.
        { numRuns: CASES, endOnFailure: true },
      )
    })
  }, 600_000)
})

it('forgets what a refused batch had written', async () => {
  await inside(async ({ context, writer, store }) => {
    const before = await executeSearch(context, { q: '*', facet_by: 'year' })
    expect(() =>
      writer.writeTogether(
        [
          { document: { id: 'first', year: 4 }, action: 'create' },
          { document: { id: 'second', year: 'none' }, action: 'create', dirtyValues: 'reject' },
        ],
        () => true,
        () => {},
      ),
    ).toThrow()
    const after = await executeSearch(context, { q: '*', facet_by: 'year' })
    expect(after.found).toBe(before.found)
    expect(after.facet_counts).toEqual(before.facet_counts)
    expect(after.found).toBe(store.count)
  })
})

it('answers with the newest documents when it is cut off', async () => {
  await inside(async ({ context, store }) => {
    const others = new LongSearches({ ms: 1e9, rows: 1, width: 1e9 })
    const asked = { q: '*', filter_by: 'year:!=900', per_page: '250', search_cutoff_ms: '0' }
    const cut = await executeSearch(context, asked, {}, { others })
    const whole = await executeSearch(context, { ...asked, search_cutoff_ms: '30000' }, {}, { others })
    expect([cut.search_cutoff, whole.search_cutoff]).toEqual([true, false])
    expect(whole.found).toBe(store.count)
    expect(cut.found).toBeGreaterThan(0)
    expect(cut.found).toBeLessThan(store.count)
    const ids = whole.hits!.map(({ document }) => document.id)
    expect(cut.hits!.map(({ document }) => document.id)).toEqual(ids.slice(0, cut.found))
  })
})
