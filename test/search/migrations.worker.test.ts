/** The tables of a collection: what was stored before storage format 1 is refused with what to do, and nothing of it changes. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { collectionObject } from '../../src/search/collection/handle'
import { migrate } from '../../src/search/collection/open'
import { writeMeta } from '../../src/search/meta'
import { idsOf, makeCollection } from './make-collection'

it('a collection from before format 1 is refused, and opens again where its version is that of today', async () => {
  const things = await makeCollection([{ name: 'title', type: 'string' }], [{ id: 'a', title: 'wolf' }])
  const stub = () => env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  const mark = (version: number) =>
    runInDurableObject(stub(), (_, { storage: { sql } }) => writeMeta(sql, 'version', version))
  const dump = () =>
    runInDurableObject(stub(), (_, { storage: { sql } }) =>
      sql
        .exec("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE '%vocabulary' ORDER BY name")
        .toArray(),
    )
  const before = await dump()
  await mark(11)
  await abortAllDurableObjects()
  const search = () => collectionObject(env, things.objectId).search({ q: 'wolf', query_by: 'title' })
  expect(await search()).toMatchObject({
    ok: false,
    error: { status: 500, message: expect.stringContaining('before storage format 1') },
  })
  expect(await dump()).toEqual(before)
  await mark(14)
  await abortAllDurableObjects()
  const found = await search()
  expect(found.ok && idsOf(found.value as never)).toEqual(['a'])
})

it('a collection of format 1 has its vectors packed when it is opened, and is searched as before', async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'v', type: 'float[]', num_dim: 3 },
  ]
  const documents = Array.from({ length: 700 }, (_, n) => ({
    id: String(n),
    title: 'wolf',
    v: [Math.cos(n), Math.sin(n), n / 700],
  }))
  const things = await makeCollection(fields, documents)
  const stub = () => env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  const near = async () => {
    const found = await collectionObject(env, things.objectId).search({
      q: '*',
      vector_query: 'v:([1, 0, 0.5], k: 20)',
    })
    return found.ok && idsOf(found.value as never)
  }
  const packed = () =>
    runInDurableObject(stub(), (_, { storage: { sql } }) => {
      const [{ name }] = sql
        .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE name GLOB 'packed_[0-9]*'")
        .toArray() as [{ name: string }]
      return {
        name,
        rows: sql.exec(`SELECT seq, count, length(vectors) AS bytes FROM ${name} ORDER BY seq`).toArray(),
      }
    })
  const [before, expected] = [await packed(), await near()]
  expect(before.rows.length).toBeGreaterThan(2)
  await runInDurableObject(stub(), (_, { storage: { sql } }) => {
    sql.exec(`DROP TABLE ${before.name}`)
    sql.exec('DROP TABLE packed_columns')
    writeMeta(sql, 'version', 12)
  })
  await abortAllDurableObjects()
  expect(await near()).toEqual(expected)
  expect(await packed()).toEqual(before)
})

it('an object that has its tables keeps them as they are', async () => {
  const things = await makeCollection([{ name: 'title', type: 'string' }], [])
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)),
    (_, { storage: { sql } }) => {
      const tables = () => sql.exec('SELECT name, sql FROM sqlite_master ORDER BY name').toArray()
      const before = tables()
      migrate(sql)
      expect(tables()).toEqual(before)
    },
  )
})

it('a collection that has the normal forms of its strings is written, searched and altered as if it had none', async () => {
  const fields = [
    { name: 'tag', type: 'string', facet: true },
    { name: 'tags', type: 'string[]', facet: true },
  ]
  const things = await makeCollection(fields, [{ id: 'a', tag: 'Wolf', tags: ['One'] }])
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)),
    (_, { storage: { sql } }) => {
      sql.exec('ALTER TABLE columns ADD COLUMN n0 TEXT')
      sql.exec("UPDATE columns SET n0 = 'wolf'")
      sql.exec('ALTER TABLE values_1 ADD COLUMN norm TEXT')
    },
  )
  await abortAllDurableObjects()
  const object = collectionObject(env, things.objectId)
  await object.write(JSON.stringify({ id: 'b', tag: 'Fox', tags: ['Two'] }), { action: 'create' })
  const ids = async (filter_by: string) => {
    const found = await object.search({ q: '*', filter_by })
    return found.ok && idsOf(found.value as never)
  }
  expect(await ids('tag:=[wolf, fox]')).toEqual(['b', 'a'])
  expect(await ids('tags:=two')).toEqual(['b'])
  const gone = await object.alter({ fields: fields.map(({ name }) => ({ name, drop: true })) })
  expect(gone).toMatchObject({ ok: true })
  expect(await object.alter({ fields: [fields[0]] })).toMatchObject({ ok: true })
  for (let step = await object.reindex(); !step.done; ) step = await object.reindex()
  expect(await ids('tag:=wolf')).toEqual(['a'])
})
