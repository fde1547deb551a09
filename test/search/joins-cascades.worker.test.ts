/** What a delete takes with it in other collections, after aliases, fields and documents have changed. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { createCollection, dropCollection, lookUp, putAlias } from '../../src/registry/collections'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { collectionObject } from '../../src/search/collection/handle'
import type { Collection } from '../../src/search/collection/object'
import { ensureKeyed } from '../../src/search/documents/references'
import { Store } from '../../src/search/documents/store'
import type { Referrer } from '../../src/search/schema/layout'
import { readSchema } from '../../src/search/schema/plan'
import { exportAll, importAll } from './object'

const unique = (stem: string) => `${stem}-${crypto.randomUUID()}`

interface Made {
  name: string
  objectId: string
  object: CollectionRpc
}

async function make(
  stem: string,
  fields: object[],
  documents: Record<string, unknown>[] = [],
): Promise<Made> {
  const name = unique(stem)
  await createCollection(env, { name, fields })
  const { objectId } = (await lookUp(env, name))!
  const object = collectionObject(env, objectId)
  await load(object, documents)
  return { name, objectId, object }
}

async function load(object: CollectionRpc, documents: Record<string, unknown>[]): Promise<void> {
  for (let from = 0; from < documents.length; from += 2_000) {
    const results = await importAll(object, documents.slice(from, from + 2_000))
    expect(results.find(({ success }) => success !== true)).toBeUndefined()
  }
}

const inStorage = <T>({ objectId }: Made, work: (storage: DurableObjectStorage) => Promise<T> | T) =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) =>
    work(storage),
  )

const referrersOf = (made: Made): Promise<Referrer[]> =>
  inStorage(made, ({ sql }) => readSchema(sql)!.linked?.referrers ?? [])

const left = (made: Made): Promise<number> =>
  inStorage(
    made,
    ({ sql }) => sql.exec<{ count: number }>('SELECT count(*) AS count FROM cascades').one().count,
  )

const idsOf = async ({ object }: Made) => (await exportAll(object)).map(({ id }) => id)

/** Alters the fields, and waits until the documents follow. */
async function alter({ object }: Made, ...fields: object[]): Promise<void> {
  unwrap(await object.alter({ fields }))
  while (!(await object.reindex()).done);
}

const remove = async ({ object }: Made, id: string) => unwrap(await object.remove(id, false))

const NAME = [{ name: 'name', type: 'string' }]
const referring = (to: string, more: object = {}) => ({ name: 'to', type: 'string', reference: to, ...more })

describe('a collection that no longer refers to where documents are deleted', () => {
  it('keeps its documents when its alias has moved', async () => {
    const documents = [{ id: '1', name: 'one' }]
    const [before, after] = [await make('p1', NAME, documents), await make('p2', NAME, documents)]
    const alias = unique('products')
    await putAlias(env, alias, { collection_name: before.name })
    const orders = await make('orders', [referring(`${alias}.id`)], [{ id: 'o', to: '1' }])
    await putAlias(env, alias, { collection_name: after.name })
    await before.object.truncate()
    await expect.poll(() => left(before)).toBe(0)
    expect(await idsOf(orders)).toEqual(['o'])
    expect(await referrersOf(before)).toEqual([])
  })

  it('follows its alias again when that comes back', async () => {
    const documents = [
      { id: '1', name: 'one' },
      { id: '2', name: 'two' },
    ]
    const [before, after] = [await make('p1', NAME, documents), await make('p2', NAME, documents)]
    const alias = unique('products')
    await putAlias(env, alias, { collection_name: before.name })
    const field = referring(`${alias}.id`, { async_reference: true })
    const orders = await make('orders', [field], [{ id: 'o1', to: '1' }])
    await putAlias(env, alias, { collection_name: after.name })
    await remove(before, '1')
    await putAlias(env, alias, { collection_name: before.name })
    await load(orders.object, [{ id: 'o2', to: '2' }])
    await remove(before, '2')
    await expect.poll(() => idsOf(orders)).toEqual(['o1'])
  })

  it('keeps its documents when the field refers to another collection or field by now', async () => {
    const [a, c] = [
      await make('a', NAME, [{ id: '1', name: 'a' }]),
      await make('c', NAME, [{ id: '1', name: 'c' }]),
    ]
    const b = await make('b', [referring(`${a.name}.id`)], [{ id: 'b', to: '1' }])
    await alter(b, { name: 'to', drop: true })
    await alter(b, referring(`${c.name}.id`, { optional: true }))
    await load(b.object, [{ id: 'new', to: '1' }])
    await remove(a, '1')
    expect(await idsOf(b)).toEqual(['b', 'new'])
    expect(await referrersOf(a)).toEqual([])
    await remove(c, '1')
    expect(await idsOf(b)).toEqual([])
  })

  it('keeps its documents when the field no longer cascades, and loses them when it does again', async () => {
    const a = await make('a', NAME, [
      { id: '1', name: 'a' },
      { id: '2', name: 'a' },
    ])
    const asynchronous = { async_reference: true, optional: true }
    const field = referring(`${a.name}.id`, asynchronous)
    const b = await make('b', [field], [{ id: 'b', to: '1' }])
    const replace = async (changed: object) => {
      await alter(b, { name: 'to', drop: true })
      await alter(b, changed)
    }
    await replace({ ...field, cascade_delete: false })
    await remove(a, '1')
    expect(await idsOf(b)).toEqual(['b'])
    await load(b.object, [{ id: 'c', to: '2' }])
    await replace(field)
    await load(b.object, [{ id: 'd', to: '2' }])
    await remove(a, '2')
    expect(await idsOf(b)).toEqual(['b'])
  })
})

describe('a reference field that is dropped and added again in one change', () => {
  const documents = Array.from({ length: 300 }, (_, index) => ({ id: `${index}`, to: `${index % 2}` }))
  const NAMED = [
    { id: '0', name: 'a' },
    { id: '1', name: 'b' },
  ]

  it('joins as before until the change is done; what a delete takes with it waits', async () => {
    const note = { name: 'note', type: 'string', optional: true }
    for (const others of [[], [note]]) {
      const a = await make('a', NAME, NAMED)
      const field = referring(`${a.name}.id`)
      const b = await make('b', [field], documents)
      const joins = Object.fromEntries(
        [a, b].map(({ name, objectId }) => [name, { name, objectId, history: false }]),
      )
      const joined = async ({ object }: Made, filter_by: string) =>
        unwrap(await object.search({ q: '*', filter_by, per_page: '0' }, { joins })).found
      const again = { ...field, facet: true }
      unwrap(await b.object.alter({ fields: [{ name: 'to', drop: true }, again, ...others] }))
      expect(await b.object.reindex()).toEqual({ count: 200, done: false })
      // Beside a new text the field has only the keys of the documents that are done: searches wait for the others.
      expect(await joined(b, `$${a.name}(name:a)`)).toBe(150)
      expect(await joined(a, `$${b.name}(id:*)`)).toBe(2)
      const isGoingOn = (await b.object.schemaProgress()) !== undefined
      expect(isGoingOn).toBe(others.length === 0)
      await remove(a, '1')
      if (isGoingOn) {
        expect(await idsOf(b)).toHaveLength(300)
        expect(await joined(b, `$${a.name}(name:a)`)).toBe(150)
        expect(await joined(b, `$${a.name}(name:b)`)).toBe(0)
      }
      while (!(await b.object.reindex()).done);
      await expect.poll(() => idsOf(b), { timeout: 20_000 }).toHaveLength(150)
      await expect.poll(() => left(a), { timeout: 20_000 }).toBe(0)
      expect(await joined(b, `$${a.name}(name:a)`)).toBe(150)
      await remove(a, '0')
      await expect.poll(() => idsOf(b), { timeout: 20_000 }).toEqual([])
    }
  })
})

describe('referrers', () => {
  it('are forgotten on the first call when their collection or their field is gone', async () => {
    const a = await make('a', NAME, [
      { id: '1', name: 'a' },
      { id: '2', name: 'a' },
    ])
    const made = []
    for (const stem of ['dropped', 'without', 'stays']) {
      const fields = [referring(`${a.name}.id`), { name: 'n', type: 'int32', optional: true }]
      made.push(await make(stem, fields, [{ id: 'b', to: '1' }]))
    }
    const [dropped, without, stays] = made as [Made, Made, Made]
    expect(await referrersOf(a)).toHaveLength(3)
    await dropCollection(env, dropped.name)
    await alter(without, { name: 'to', drop: true })
    await remove(a, '1')
    expect((await referrersOf(a)).map(({ objectId }) => objectId)).toEqual([stays.objectId])
    expect(await idsOf(without)).toEqual(['b'])
    expect(await idsOf(stays)).toEqual([])
    expect(await left(a)).toBe(0)
  })
})

describe('a cascade', () => {
  it('spares documents that refer to one that was written anew meanwhile', { timeout: 120_000 }, async () => {
    const a = await make('a', NAME, [{ id: '1', name: 'a' }])
    const old = Array.from({ length: 15_000 }, (_, index) => ({ id: `${index}`, to: '1' }))
    const b = await make('b', [referring(`${a.name}.id`)], old)
    const removing = remove(a, '1')
    unwrap(await a.object.write(JSON.stringify({ id: '1', name: 'again' }), { action: 'create' }))
    await load(b.object, [{ id: 'new', to: '1' }])
    await removing
    await expect.poll(() => left(a), { timeout: 20_000 }).toBe(0)
    expect(await idsOf(b)).toContain('new')
  })

  it('spares documents that are written while it looks up what the field refers to', async () => {
    const a = await make('a', NAME, [{ id: '1', name: 'a' }])
    const field = referring(`${a.name}.id`, { async_reference: true })
    const b = await make('b', [field], [{ id: 'old', to: '1' }])
    const from = { objectId: a.objectId, target: 'id' }
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(b.objectId))
    const [answer, written] = await runInDurableObject(stub, (object: Collection) =>
      Promise.all([
        object.cascade('to', '["1"]', from),
        object.write(JSON.stringify({ id: 'new', to: '1' }), { action: 'create' }),
      ]),
    )
    expect([answer, written.ok]).toEqual(['done', true])
    expect(await idsOf(b)).toEqual(['new'])
  })

  it('goes on in the background after the reply', { timeout: 120_000 }, async () => {
    const a = await make('a', NAME, [{ id: '1', name: 'a' }])
    const old = Array.from({ length: 12_000 }, (_, index) => ({ id: `${index}`, to: '1' }))
    const b = await make('b', [referring(`${a.name}.id`)], old)
    await remove(a, '1')
    expect((await idsOf(b)).length).toBeLessThan(12_000)
    await expect.poll(() => idsOf(b), { timeout: 60_000 }).toEqual([])
    await expect.poll(() => left(a)).toBe(0)
  })
})

describe('the keys of a field', () => {
  it('are made once for all who ask at the same time, and again after an error', async () => {
    const a = await make(
      'a',
      NAME,
      Array.from({ length: 1_200 }, (_, index) => ({ name: `n${index}` })),
    )
    await inStorage(a, async ({ sql }) => {
      const store = new Store(sql, readSchema(sql)!, 0)
      const write = vi.spyOn(store, 'writeKeys')
      const broken = vi.spyOn(store, 'read').mockImplementationOnce(() => {
        throw new Error('broken')
      })
      await expect(ensureKeyed(store, a.name, 'name')).rejects.toThrow('broken')
      broken.mockRestore()
      await Promise.all(Array.from({ length: 5 }, () => ensureKeyed(store, a.name, 'name')))
      expect(write).toHaveBeenCalledTimes(1_200)
      await ensureKeyed(store, a.name, 'name')
      expect(write).toHaveBeenCalledTimes(1_200)
    })
  })
})
