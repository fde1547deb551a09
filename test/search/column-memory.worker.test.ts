/** What memory keeps of a collection's values, and what filters read of them. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { type Open, openCollection } from '../../src/search/collection/open'
import { removeAll } from '../../src/search/documents/bulk'
import { readAll, type SqlFragment } from '../../src/search/fragment'
import { Memory } from '../../src/search/memory'
import { writeMeta } from '../../src/search/meta'
import { LongSearches } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { BLOCK, PackedColumns } from '../../src/search/schema/column'
import { ColumnMemory } from '../../src/search/schema/column-memory'
import { readSchema } from '../../src/search/schema/plan'
import { idsOf, makeCollection } from './make-collection'

async function inside<Result>(
  fields: Record<string, unknown>[],
  documents: Record<string, unknown>[],
  run: (open: Open, storage: DurableObjectStorage) => Promise<Result>,
): Promise<Result> {
  const { objectId } = await makeCollection(fields, documents)
  return runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, { storage, id }: DurableObjectState) =>
      run(
        openCollection(
          { storage, env, objectId: String(id), alarm: new Alarm(storage) },
          readSchema(storage.sql)!,
        ),
        storage,
      ),
  )
}

const numbered = <Fields extends object>(count: number, make: (n: number) => Fields) =>
  Array.from({ length: count }, (_, n) => ({ id: `d${n}`, ...make(n) }))

/** The search with another limit of memory, and what it keeps there afterwards. */
const searchWith = async (open: Open, limit: number, params: Record<string, string>) => {
  const memory = new Memory(limit)
  const columns = new ColumnMemory(memory)
  const context = Object.create(open.context, { columns: { value: columns } })
  const { search_time_ms: _, ...result } = await executeSearch(context, params)
  return { result, bytes: memory.bytes }
}

const ALL = { q: '*', facet_by: 'kind', filter_by: 'points:>3', sort_by: 'points:desc' }
const FIELDS = [
  { name: 'kind', type: 'string', facet: true },
  { name: 'points', type: 'int32' },
]

it('takes two bytes a document for a string and eight for a number', async () => {
  const documents = numbered(300, (n) => ({ kind: `k${n % 3}`, points: n % 10 }))
  await inside(FIELDS, documents, async (open) => {
    const { bytes } = await searchWith(open, 1 << 20, ALL)
    expect(bytes).toBeGreaterThan(BLOCK * (2 + 8))
    // The numbers of documents, and what is kept of no and three different strings.
    expect(bytes).toBeLessThan(BLOCK * (2 + 8) + BLOCK * 2 + 4 * 200)
  })
})

it('reads a block by one statement, and one more where documents are missing', async () => {
  const documents = numbered(40, (n) => ({ points: n % 10, ...(n % 4 > 0 && { kind: `k${n % 3}` }) }))
  const fields = [{ ...FIELDS[0]!, optional: true }, FIELDS[1]!]
  await inside(fields, documents, async ({ context }) => {
    const { sql, schema } = context
    const statements: string[] = []
    const read = <Row extends object>(storage: SqlStorage, { sql: text, bindings }: SqlFragment): Row[] => {
      statements.push(text)
      return storage.exec(text, ...bindings).toArray() as unknown as Row[]
    }
    const valuesOf = () => {
      const columns = new ColumnMemory()
      statements.length = 0
      return fields.map((field) => {
        const own = schema.fields.find(({ name }) => name === field.name)
        const { values, words } = columns.blocks(sql, schema, read)(own!, 0)
        return Array.from({ length: 40 }, (_, at) => words?.texts[Number(values[at])] ?? values[at])
      })
    }
    const kinds = documents.map((document) => ('kind' in document ? document.kind : ''))
    expect(valuesOf()).toEqual([kinds, documents.map(({ points }) => points)])
    expect(statements).toHaveLength(2)
    sql.exec('DELETE FROM columns WHERE seq = 2')
    expect(valuesOf()).toEqual([kinds.with(2, ''), documents.map(({ points }) => points).with(2, Number.NaN)])
    expect(statements).toHaveLength(4)
  })
})

it('reads what does not fit without keeping it, and answers the same', async () => {
  const documents = numbered(300, (n) => ({ kind: `k${n % 3}`, points: n % 10 }))
  await inside(FIELDS, documents, async (open) => {
    const kept = await searchWith(open, 1 << 20, ALL)
    const small = await searchWith(open, 100, ALL)
    expect(small.result).toEqual(kept.result)
    expect(kept.result.found).toBe(180)
    expect(small.bytes).toBeLessThanOrEqual(BLOCK * 2)
  })
})

it('drops the field that no search has used for longest', async () => {
  const fields = ['a', 'b', 'c'].map((name) => ({ name, type: 'int32' }))
  const documents = numbered(100, (n) => ({ a: n, b: -n, c: n % 7 }))
  await inside(fields, documents, async (open) => {
    const memory = new Memory(BLOCK * (8 + 8 + 2))
    const columns = new ColumnMemory(memory)
    const context = Object.create(open.context, { columns: { value: columns } })
    const best = async (name: string) => {
      const { hits } = await executeSearch(context, { q: '*', sort_by: `${name}:desc`, per_page: '1' })
      return hits![0]!.document[name]
    }
    expect([await best('a'), await best('b'), await best('c'), await best('a')]).toEqual([99, 0, 6, 99])
    expect(memory.bytes).toBeLessThanOrEqual(BLOCK * (8 + 8 + 2))
  })
})

it('counts and orders numbers that a double would round', async () => {
  const fields = [{ name: 'big', type: 'int64', facet: true }]
  await inside(fields, [], async (open) => {
    const lines = ['9007199254740993', '9007199254740992', '5'].map((big, n) => `{"id":"d${n}","big":${big}}`)
    open.writer.write(lines.map((document) => ({ document, action: 'create' })))
    const { result } = await searchWith(open, 1 << 20, {
      q: '*',
      facet_by: 'big',
      sort_by: 'big:desc',
      filter_by: 'big:>9007199254740992',
    })
    expect(result.hits!.map(({ document }) => document.id)).toEqual(['d0'])
    expect(result.facet_counts![0]!.counts.map(({ value }) => value)).toEqual(['9007199254740993'])
  })
})

it('keeps no long strings, however many they are', async () => {
  const documents = numbered(700, (n) => ({ kind: `${n % 690} ${'x'.repeat(3_000)}` }))
  await inside([{ name: 'kind', type: 'string', facet: true }], documents, async (open) => {
    const { result, bytes } = await searchWith(open, 24 << 20, { q: '*', facet_by: 'kind', group_by: 'kind' })
    expect(result.facet_counts![0]!.stats.total_values).toBe(690)
    expect(result.found).toBe(690)
    expect(bytes).toBeLessThan(700 * 3_000)
  })
})

it('keeps within its limit while searches that need more than it has run together', async () => {
  const fields = ['a', 'b', 'c', 'd'].map((name) => ({ name, type: 'int32' }))
  const documents = numbered(100, (n) => ({ a: n, b: -n, c: n % 7, d: n % 11 }))
  await inside(fields, documents, async (open) => {
    const limit = BLOCK * (8 + 2)
    const memory = new Memory(limit)
    const columns = new ColumnMemory(memory)
    const context = Object.create(open.context, { columns: { value: columns } })
    // Each turn of a search is one block, so that they alternate.
    const others = new LongSearches({ ms: 1e9, rows: 1, width: 1e9 })
    const searches = ['a:desc,b:desc', 'c:asc,a:desc', 'd:desc,c:asc', 'b:asc,d:asc'].map((sort) => ({
      q: '*',
      sort_by: sort,
      filter_by: `${sort.slice(0, 1)}:<50`,
    }))
    const together = await Promise.all(
      searches.map(async (params) => {
        const result = await executeSearch(context, params, {}, { others })
        expect(memory.bytes).toBeLessThanOrEqual(limit)
        return idsOf(result)
      }),
    )
    const alone: string[][] = []
    for (const params of searches) alone.push(idsOf(await executeSearch(open.context, params)))
    expect(together).toEqual(alone)
  })
})

it('keeps no long strings, however few they are', async () => {
  const documents = numbered(1_500, (n) => ({ kind: `${n % 3}${'x'.repeat(3_000)}` }))
  await inside([{ name: 'kind', type: 'string', facet: true }], documents, async (open) => {
    const { result, bytes } = await searchWith(open, 24 << 20, { q: '*', facet_by: 'kind', group_by: 'kind' })
    // Each value is in one group.
    expect(result.facet_counts![0]!.counts.map(({ count }) => count)).toEqual([1, 1, 1])
    expect(result.found).toBe(3)
    expect(bytes).toBeLessThan(1_500 * 3_000)
  })
})

it.each([
  ['strings', 'string[]', (n: number) => Array.from({ length: 100 }, (_, at) => `the tag ${(n + at) % 200}`)],
  ['numbers', 'int32[]', (n: number) => Array.from({ length: 900 }, (_, at) => (n + at) % 1_000)],
  ['fractions', 'float[]', (n: number) => Array.from({ length: 100 }, (_, at) => ((n + at) % 200) / 7)],
])('counts long lists of %s', async (_, type, listOf) => {
  const documents = numbered(900, (n) => ({ tags: listOf(n) }))
  await inside([{ name: 'tags', type, facet: true }], documents, async (open) => {
    const asked = { q: '*', facet_by: 'tags', max_facet_values: '1000' }
    const { result } = await searchWith(open, 24 << 20, asked)
    const counted = result.facet_counts![0]!.counts.reduce((sum, { count }) => sum + count, 0)
    expect(counted).toBe(900 * listOf(0).length)
  })
})

it('finds after any writes and sleeps what the rows have', async () => {
  const fields = [
    ...FIELDS,
    { name: 'tags', type: 'string[]', facet: true, optional: true },
    { name: 'price', type: 'float', optional: true },
  ]
  const make = (n: number) => ({
    ...{ id: `d${n}`, kind: `k${n % 7}`, points: n % 50 },
    ...(n % 3 > 0 && { tags: Array.from({ length: n % 4 }, (_, at) => `t${(n + at) % 9}`), price: n / 8 }),
  })
  const asked = fc.record({
    q: fc.constant('*'),
    facet_by: fc.constantFrom('kind,tags', 'tags', ''),
    filter_by: fc.constantFrom('points:>25', 'tags:=t3 || kind:k1', 'price:<20', ''),
    sort_by: fc.constantFrom('points:desc', 'price:asc', 'points:asc,price:desc'),
  })
  const kinds = fc.constantFrom('put', 'remove', 'grow', 'refuse', 'sleep', 'tidy')
  const steps = fc.array(fc.record({ kind: kinds, n: fc.nat(320) }), { maxLength: 6 })
  const documents = Array.from({ length: 300 }, (_, n) => make(n))
  await inside(fields, documents, async ({ context, store, writer }, storage) => {
    const { columns } = store
    const item = (n: number, id: number) => ({
      document: { ...make(n), id: `d${id}` },
      action: 'upsert' as const,
    })
    const change = (kind: string, n: number) => {
      if (kind === 'put') writer.write([item(n + 1, n)])
      const seq = store.find([`d${n}`]).get(`d${n}`)
      if (kind === 'remove' && seq !== undefined) removeAll(storage, store, [[seq, `d${n}`]])
      if (kind === 'refuse') {
        const items = [item(n + 2, n), { ...item(n, n), document: { points: 'none' } }]
        expect(() =>
          writer.writeTogether(
            items,
            () => true,
            () => {},
          ),
        ).toThrow()
      }
      if (kind === 'grow') {
        // The next document is in another block.
        writeMeta(storage.sql, 'counters', { nextSeq: store.nextSeq + 3_000, count: store.count })
        store.reset()
        writer.write([item(n, store.nextSeq)])
      }
      if (kind === 'tidy') columns.leaveWritten()
      if (kind === 'tidy' || kind === 'sleep')
        for (; columns.pack(storage.sql, store.readable, store.count); );
      if (kind === 'sleep') columns.evict()
    }
    const run = async (of: ColumnMemory, params: Record<string, string>) => {
      const other = Object.create(context, { columns: { value: of } })
      return { ...(await executeSearch(other, { ...params, per_page: '250' })), search_time_ms: 0 }
    }
    await fc.assert(
      fc.asyncProperty(steps, asked, async (all, params) => {
        for (const { kind, n } of all) change(kind, n)
        expect(await run(columns, params)).toEqual(await run(new ColumnMemory(), params))
      }),
      { numRuns: 100, endOnFailure: true },
    )
    const packed = storage.sql.exec('SELECT DISTINCT block FROM packed_columns').toArray()
    expect(packed.length).toBeGreaterThan(3)
  })
})

it('reads one row of a block for each field, once a search has read the documents', async () => {
  const documents = numbered(300, (n) => ({ kind: `k${n % 3}`, points: n % 10 }))
  await inside(FIELDS, documents, async ({ context, store }, { sql }) => {
    const first = await executeSearch(context, ALL)
    while (store.columns.pack(sql, store.readable, store.count)) {}
    store.columns.evict()
    let rows = 0
    const counted = {
      exec: (...asked: Parameters<SqlStorage['exec']>) => {
        const cursor = sql.exec(...asked)
        const all = cursor.toArray()
        rows += cursor.rowsRead
        return {
          toArray: () => all,
          one: () => all[0],
          rowsRead: cursor.rowsRead,
          [Symbol.iterator]: () => all.values(),
        }
      },
    }
    const stored = new PackedColumns(counted as never)
    const columns = new ColumnMemory(undefined, stored)
    const again = Object.create(context, { columns: { value: columns }, sql: { value: counted } })
    const { search_time_ms: _, ...found } = await executeSearch(again, ALL)
    expect(first).toMatchObject(found)
    // Three rows of the block, those of ten hits, and where the collection begins and ends.
    expect(rows).toBeLessThan(3 + 4 * 10)
  })
})

it('shares one budget with the other collections of the isolate', async () => {
  const documents = numbered(300, (n) => ({ kind: `k${n % 3}`, points: n % 10 }))
  await inside(FIELDS, documents, async (open) => {
    const limit = BLOCK * (2 + 8 + 2) + 1_000
    const memory = new Memory(limit)
    const memories = Array.from({ length: 3 }, () => new ColumnMemory(memory))
    const alone = await executeSearch(open.context, ALL)
    for (const columns of [...memories, ...memories]) {
      const context = Object.create(open.context, { columns: { value: columns } })
      const found = await executeSearch(context, ALL)
      expect({ ...found, search_time_ms: 0 }).toEqual({ ...alone, search_time_ms: 0 })
      expect(memory.bytes).toBeGreaterThan(BLOCK * (2 + 8))
      expect(memory.bytes).toBeLessThanOrEqual(limit)
    }
  })
})

it('takes the values that a waiting search holds, when all documents are removed', async () => {
  const documents = numbered(300, (n) => ({ kind: 'k', points: n }))
  await inside(FIELDS, documents, async ({ context, store }) => {
    await executeSearch(context, { q: '*', sort_by: 'points:desc' })
    const points = store.schema.fields.find(({ name }) => name === 'points')
    const held = store.columns.blocks(store.sql, store.schema, readAll)
    const valuesNow = () => held(points!, 0).values.slice(0, 300)
    expect([...valuesNow()]).toEqual(documents.map(({ points }) => points))
    store.truncate()
    expect(valuesNow().every(Number.isNaN)).toBe(true)
  })
})

const among = (name: string, count: number, value: (n: number) => string) =>
  `${name}:[${Array.from({ length: count }, (_, n) => value(n)).join(',')}]`

it.each([
  ['words', among('kind', 65, (n) => `w${n}`), 65],
  ['beginnings', among('kind', 65, (n) => `w${n} *`).replace(':', ':='), 300],
  ['ranges', among('points', 65, (n) => `${n}..${n}`), 65],
  ['clauses', Array.from({ length: 65 }, (_, n) => `points:>${n}`).join(' || '), 299],
])('tests a filter with many %s in memory', async (_, filter_by, found) => {
  const documents = numbered(300, (n) => ({ kind: `w${n} x`, points: n }))
  await inside(FIELDS, documents, async (open) => {
    const { result, bytes } = await searchWith(open, 24 << 20, { q: '*', filter_by })
    expect(result.found).toBe(found)
    expect(bytes).toBeGreaterThan(BLOCK * 4 - 1)
  })
})

it('looks many equal values up in memory', async () => {
  const documents = numbered(300, (n) => ({ kind: `w${n} x`, points: n }))
  await inside(FIELDS, documents, async (open) => {
    for (const filter_by of [
      among('points', 100, String),
      among('kind', 100, (n) => `w${n} x`).replace(':', ':='),
    ]) {
      const { result, bytes } = await searchWith(open, 24 << 20, { q: '*', filter_by })
      expect(result.found).toBe(100)
      expect(bytes).toBeGreaterThan(BLOCK * 4 - 1)
    }
  })
})
