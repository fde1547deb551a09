/** Collections whose normal forms are those of the version before, which parted words at signs. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { Alarm } from '../../src/alarm'
import { beginNormFilling, isNormFilling, normFilling } from '../../src/search/collection/norm-filling'
import { openCollection } from '../../src/search/collection/open'
import { impliedConditions } from '../../src/search/filter/conditions'
import { executeSearch } from '../../src/search/run/search'
import { readSchema } from '../../src/search/schema/stored'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from './make-collection'
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

/** More documents than one step takes. */
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

/** Leaves forms that no version writes. */
function spoil(sql: SqlStorage): void {
  const { slots } = readSchema(sql)!
  for (const name of ['studio', 'title', 'stemmed']) {
    const { slot } = slots[name]!
    sql.exec(`UPDATE columns SET n${slot} = 'old ' || n${slot}`)
  }
  sql.exec(`UPDATE values_${slots.names!.slot} SET norm = 'old ' || norm`)
  beginNormFilling(sql)
}

it('are filtered as they are now before and after their forms are written again', async () => {
  const things = await makeCollection(FIELDS, [...DOCUMENTS, ...OTHERS])
  await inObject(things, async ({ storage, id }) => {
    const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
    const { context, store } = openCollection(around, readSchema(storage.sql)!)
    spoil(storage.sql)
    store.reset()
    const found = async (params: SearchParameters) =>
      idsOf((await executeSearch(context, { q: '*', per_page: '5', ...params })) as SearchResult)
    const expectRight = async () => {
      for (const [filter_by, ids] of CASES) expect(await found({ filter_by }), filter_by).toEqual(ids)
    }
    expect(isNormFilling(store.schema)).toBe(true)
    await expectRight()
    const work = normFilling(storage, store)
    expect(await work.step()).toBe(0)
    await expectRight()
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
