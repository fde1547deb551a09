/** Collections whose normal forms are those of the version before, which parted words at signs. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { Alarm } from '../../src/alarm'
import { CURATIONS, putSet } from '../../src/registry/named-sets'
import { migrate } from '../../src/search/collection/migrations'
import {
  AFTER_WAKING_MS,
  beginNormFilling,
  isNormFilling,
  normFilling,
  STEP,
} from '../../src/search/collection/norm-filling'
import { openCollection } from '../../src/search/collection/open'
import { outlineOf } from '../../src/search/collection/outline'
import { isOutdated } from '../../src/search/collection/outlining'
import { Store } from '../../src/search/documents/store'
import { compileFilter } from '../../src/search/filter/compile'
import { impliedConditions } from '../../src/search/filter/conditions'
import { writeMeta } from '../../src/search/meta'
import { LongSearches } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { readSchema, writeSchema } from '../../src/search/schema/stored'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from './make-collection'
import { putOldForms } from './old-forms'
import { withLabelled } from './vectorize/labelled'

const FIELDS = [
  { name: 'studio', type: 'string', facet: true, optional: true },
  { name: 'names', type: 'string[]', facet: true, optional: true },
  { name: 'title', type: 'string', sort: true, optional: true },
  { name: 'stemmed', type: 'string', facet: true, stem: true, optional: true },
  { name: 'year', type: 'int32', optional: true },
]

const DOCUMENTS = [
  {
    id: 'joined',
    studio: 'Century-Fox',
    names: ["Sam O'Neill", 'Ann Lee'],
    title: 'Æon',
    stemmed: 'Sign-posts',
  },
  { id: 'apart', studio: 'Century Fox', names: ['O Neill', 'Łódź'], title: 'Beta', stemmed: 'sign posts' },
  { id: 'none', year: 1 },
]

const OTHERS = Array.from({ length: 600 }, (_, n) => ({ id: `other ${n}`, studio: `a-${n}`, title: 'Zed' }))

const CASES: [string, string[]][] = [
  ['studio:=centuryfox', ['joined']],
  ['studio:century fox', ['apart']],
  ['studio:!=[Century-Fox, `century fox`] && year:1', ['none']],
  ['studio:=century*', ['apart', 'joined']],
  ['names:oneill', ['joined']],
  ['names:=[Lodz, `ann lee`]', ['apart', 'joined']],
  ['names:"sam oneill"', ['joined']],
  ['title:aeon', ['joined']],
  ['title:=Æon', ['joined']],
  ['stemmed:signpost', ['joined']],
  ['studio:=`a-599`', ['other 599']],
]

const inObject = <T>(things: TestCollection, work: (state: DurableObjectState) => Promise<T>): Promise<T> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)), (_, state) =>
    work(state),
  )

/** The ids that SQL finds, as in deletions and in collections beyond the memory for values; the latest first. */
function idsInSql(sql: SqlStorage, filterBy: string): string[] {
  const { where, bindings } = compileFilter(sql, readSchema(sql)!, filterBy)
  return sql
    .exec<{ id: string }>(`SELECT id FROM documents d WHERE ${where} ORDER BY seq DESC`, ...bindings)
    .toArray()
    .map(({ id }) => id)
}

it('are filtered as they are now before and after their forms are written again', async () => {
  const things = await makeCollection(FIELDS, [...DOCUMENTS, ...OTHERS])
  await inObject(things, async ({ storage, id }) => {
    const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
    const { context, store } = openCollection(around, readSchema(storage.sql)!)
    putOldForms(storage.sql)
    store.reset()
    const found = async (params: SearchParameters) =>
      idsOf((await executeSearch(context, { q: '*', per_page: '5', ...params })) as SearchResult)
    const expectRight = async () => {
      for (const [filter_by, ids] of CASES) {
        expect(await found({ filter_by }), filter_by).toEqual(ids)
        expect(idsInSql(storage.sql, filter_by), filter_by).toEqual(ids)
      }
    }
    expect(isNormFilling(store.schema)).toBe(true)
    await expectRight()
    const work = normFilling(storage, store)
    // Of each field.
    for (let steps = 1; steps < 4; steps++) {
      expect(await work.step()).toBe(0)
      await expectRight()
    }
    expect(await work.step()).toBeUndefined()
    expect(isNormFilling(readSchema(storage.sql)!)).toBe(false)
    await expectRight()
    const { slot } = store.schema.slots.studio!
    const [row] = storage.sql
      .exec<{ form: string }>(`SELECT n${slot} AS form FROM columns WHERE s${slot} = 'Century-Fox'`)
      .toArray()
    expect(row).toEqual({ form: 'centuryfox' })
  })
})

/** Is told when to ring, and does not. */
class SilentAlarm extends Alarm {
  readonly told: number[] = []
  override within(milliseconds: number): void {
    this.told.push(milliseconds)
  }
}

it('are written again in bounded steps that need nothing but what is stored, after the first call', async () => {
  const tags = (count: number, of = 'tag') => Array.from({ length: count }, (_, n) => `${of}-${n}`)
  const wide = 'x-'.repeat(STEP.characters / 3)
  const things = await makeCollection(
    [{ name: 'names', type: 'string[]', facet: true }],
    [
      { id: 'long', names: tags(3 * STEP.values) },
      { id: 'wide', names: [...tags(4, wide), 'w-w'] },
      { id: 'none', names: [] },
      ...tags(10).map((id) => ({ id, names: tags(STEP.values / 10, id) })),
    ],
  )
  await inObject(things, async ({ storage, id }) => {
    const { sql } = storage
    const table = `values_${readSchema(sql)!.slots.names!.slot}`
    putOldForms(sql)
    const old = () =>
      sql
        .exec<{ count: number; characters: number }>(
          `SELECT count(*) AS count, total(length(value)) AS characters FROM ${table} WHERE norm LIKE '% %'`,
        )
        .one()
    const alarm = new SilentAlarm(storage)
    const around = { storage, env, objectId: String(id), alarm }
    let left = old()
    const { store } = openCollection(around, readSchema(sql)!)
    await scheduler.wait(1)
    expect(old()).toEqual(left)
    expect(alarm.told).toEqual([AFTER_WAKING_MS])

    const sizes: number[] = []
    for (let next: number | undefined = 0; next !== undefined; ) {
      store.reset()
      next = await normFilling(storage, store).step()
      const after = old()
      sizes.push(left.count - after.count)
      expect(left.count - after.count).toBeLessThanOrEqual(STEP.values)
      // The value that reaches the limit is part of the step.
      expect(left.characters - after.characters).toBeLessThan(STEP.characters + 2 * wide.length)
      left = after
      expect(idsInSql(sql, 'names:=[tag0, `tag-5999`, `w-w`]')).toEqual(['wide', 'long'])
      expect(idsInSql(sql, 'names:!=tag* && names:!=`w-w`')).toEqual(['none'])
      expect(idsInSql(sql, 'names:`tag9-199`')).toEqual(['tag-9'])
    }
    expect(left.count).toBe(0)
    expect(isNormFilling(readSchema(sql)!)).toBe(false)
    expect(sizes.slice(0, 4)).toEqual([STEP.values, STEP.values, STEP.values, 2])
  })
})

it('are compared a few documents at a time, since their lists may be long', async () => {
  const lists = Array.from({ length: 200 }, (_, d) => Array.from({ length: 100 }, (_, n) => `${d}-${n}`))
  const things = await makeCollection(
    [{ name: 'names', type: 'string[]', facet: true }],
    lists.map((names, n) => ({ id: String(n), names })),
  )
  await inObject(things, async ({ storage, id }) => {
    // Lists of long strings are not kept in memory, so SQL filters them.
    storage.sql.exec(`UPDATE values_0 SET value = value || '${'-'.repeat(100)}'`)
    putOldForms(storage.sql)
    const around = { storage, env, objectId: String(id), alarm: new SilentAlarm(storage) }
    const { context } = openCollection(around, readSchema(storage.sql)!)
    const others = new LongSearches({ ms: 60_000, rows: 5_000, width: 65_536 })
    const turn = vi.spyOn(others, 'turn')
    const params = { q: '*', filter_by: 'names:=`7-9`' }
    expect(idsOf((await executeSearch(context, params, {}, { others })) as SearchResult)).toEqual(['7'])
    expect(turn.mock.calls.length).toBeGreaterThan(1)
  })
})

it('are compared by their values in facet queries and in diversity until then', async () => {
  await putSet(env, CURATIONS, 'by studio', {
    items: [
      {
        id: 'a',
        rule: { tags: ['diverse'] },
        diversity: { similarity_metric: [{ field: 'studio', method: 'equality' }] },
      },
    ],
  })
  const studios = ['Century-Fox', 'centuryfox', 'Century Fox', 'A-1']
  const documents = studios.map((studio, n) => ({ id: String(n), studio, names: [studio, 'x'] }))
  const things = await makeCollection(FIELDS, documents, { curation_sets: ['by studio'] })
  await inObject(things, async ({ storage, id }) => {
    putOldForms(storage.sql)
    const around = { storage, env, objectId: String(id), alarm: new SilentAlarm(storage) }
    const { context, store } = openCollection(around, readSchema(storage.sql)!)
    const search = async (params: SearchParameters) =>
      (await executeSearch(context, { q: '*', ...params })) as SearchResult
    const expectRight = async () => {
      // SQL counts facets with parents.
      for (const field of ['studio', 'names']) {
        const facet = { facet_by: field, facet_return_parent: field }
        const { facet_counts } = await search({ ...facet, facet_query: `${field}:centuryf` })
        expect(facet_counts![0]!.counts.map(({ value }) => value)).toEqual(['centuryfox', 'Century-Fox'])
        expect(facet_counts![0]!.stats.total_values).toBe(2)
        const none = await search({ ...facet, facet_query: `${field}:1` })
        expect(none.facet_counts![0]!.counts).toEqual([])
        const mistyped = await search({ ...facet, facet_query: `${field}:centuryfux` })
        expect(mistyped.facet_counts![0]!.counts).toHaveLength(2)
      }
      expect(idsOf(await search({ curation_tags: 'diverse', diversity_lambda: '0.1' }))).toEqual([
        '3',
        '2',
        '1',
        '0',
      ])
    }
    await expectRight()
    const work = normFilling(storage, store)
    while ((await work.step()) !== undefined);
    await expectRight()
  })
})

it('are written again once more where an earlier version had the collection open in between', async () => {
  const things = await makeCollection(FIELDS, DOCUMENTS)
  await inObject(things, async ({ storage }) => {
    const { sql } = storage
    const open = () => {
      migrate(sql)
      return isNormFilling(readSchema(sql)!)
    }
    expect(open()).toBe(false)
    putOldForms(sql)
    const schema = readSchema(sql)!
    for (const slot of Object.values(schema.slots)) delete slot.parted
    writeSchema(sql, schema)
    // Versions before note nothing but the outline, in any collection that they open.
    writeMeta(sql, 'outline', JSON.stringify(outlineOf(schema)))
    expect(open()).toBe(true)
    expect(idsInSql(sql, 'studio:=centuryfox')).toEqual(['joined'])
    const store = new Store(sql, readSchema(sql)!, 0)
    expect(isOutdated(store)).toBe(false)
    const work = normFilling(storage, store)
    while ((await work.step()) !== undefined);
    expect(open()).toBe(false)
    expect(idsInSql(sql, 'studio:=centuryfox')).toEqual(['joined'])
  })
})

it('tell Vectorize of no filter on strings until then, and of the labels that change', async () => {
  const vector = Array.from({ length: 384 }, (_, i) => Math.sin(i))
  await withLabelled(async (collection) => {
    const { sql } = collection
    collection.write({ id: 'a', tag: 'Dark-Red', year: 1, vector }, { id: 'b', tag: 'plain', vector })
    await collection.settle()
    const { slot } = collection.store.schema.slots.tag!
    sql.exec(`UPDATE columns SET n${slot} = 'dark red' WHERE seq = 0`)
    beginNormFilling(sql)
    collection.wake()
    const told = () => impliedConditions(collection.store.schema, 'tag:=`dark-red` && year:1')
    expect(told()).toEqual([{ slot: collection.store.schema.slots.year!.slot, among: [1] }])
    await normFilling(collection.storage, collection.store).step()
    expect(told()).toContainEqual({ slot, among: ['darkred'] })
    expect(collection.waiting()).toBe(1)
    await collection.settle()
    expect([...collection.double.metadata.values()]).toMatchObject([{ s0: 'darkred' }, { s0: 'plain' }])
  })
})
