/** The tables of a collection: what was stored before storage format 1 is refused with what to do, and nothing of it changes. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { collectionObject } from '../../src/search/collection/handle'
import { migrate } from '../../src/search/collection/migrations'
import { writeMeta } from '../../src/search/meta'
import { idsOf, makeCollection } from './make-collection'

it('a collection from before format 1 is refused, and opens again where its version is that of format 1', async () => {
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
  await mark(13)
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
