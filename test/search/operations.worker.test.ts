/** `$operations` in documents. */
import { expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { exportAll, importAll, newCollection } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'points', type: 'int32', optional: true },
  { name: 'views', type: 'int64', optional: true },
  { name: 'stats.likes', type: 'int32', optional: true },
  { name: 'sizes', type: 'int32[]', optional: true },
]
const newThings = (fields = FIELDS) => newCollection(fields, { enable_nested_fields: true })

const write = async (
  object: CollectionRpc,
  json: string,
  action: 'create' | 'update' | 'upsert' | 'emplace',
) => unwrap(await object.write(json, { action }))

it('adds to stored values, and to nothing where there is none', async () => {
  const object = await newThings()
  await write(object, '{"id":"0","title":"a","points":100,"stats":{"likes":1,"kept":true}}', 'create')
  const increment = (by: string) => write(object, `{"id":"0","$operations":{"increment":${by}}}`, 'update')
  expect(await increment('{"points":1}')).toEqual({
    id: '0',
    title: 'a',
    points: 101,
    stats: { likes: 1, kept: true },
  })
  expect(await increment('{"points":-11,"views":9007199254740993,"stats.likes":2}')).toMatchObject({
    points: 90,
    views: 9007199254740993n,
    stats: { likes: 3, kept: true },
  })
  expect(await increment('{"views":1}')).toMatchObject({ views: 9007199254740994n })
  expect(
    await write(object, '{"id":"1","title":"b","$operations":{"increment":{"points":5}}}', 'emplace'),
  ).toEqual({ id: '1', title: 'b', points: 5 })
  expect(
    await write(object, '{"id":"2","title":"c","$operations":{"increment":{"points":7}}}', 'create'),
  ).toEqual({
    id: '2',
    title: 'c',
    points: 7,
  })
  const outcome = unwrap(await object.search({ q: '*', filter_by: 'points:[5,90]', sort_by: 'points:asc' }))
  expect(outcome.hits!.map(({ document }) => document.id)).toEqual(['1', '0'])
})

it('counts every one of an import, and of an update by filter', async () => {
  const object = await newThings()
  const line = { id: '0', title: 'a', $operations: { increment: { points: 2 } } }
  const results = await importAll(object, Array(50).fill(line), { action: 'emplace' })
  expect(results.every(({ success }) => success)).toBe(true)
  expect((await exportAll(object))[0]).toEqual({ id: '0', title: 'a', points: 100 })
  unwrap(await object.updateWhere('points:100', '{"$operations":{"increment":{"points":1}}}', 0))
  expect((await exportAll(object))[0]).toMatchObject({ points: 101 })
})

it('stays when a document is replaced', async () => {
  const object = await newThings()
  await write(object, '{"id":"0","title":"a","points":4}', 'create')
  expect(
    await write(object, '{"id":"0","title":"b","$operations":{"increment":{"points":1}}}', 'upsert'),
  ).toEqual({
    id: '0',
    title: 'b',
    points: 5,
  })
})

it('is refused where it cannot be done, and nothing is written', async () => {
  const object = await newThings([...FIELDS, { name: '.*', type: 'auto' }])
  await write(object, '{"id":"0","title":"a","points":2147483647}', 'create')
  const refused = async (json: string) => {
    const outcome = await object.write(`{"id":"0",${json}}`, { action: 'update' })
    return outcome.ok ? 'written' : `${outcome.error.status} ${outcome.error.message}`
  }
  expect(await refused('"$operations":{"increment":{"points":1}}')).toBe(
    '400 Field `points` exceeds maximum value of int32.',
  )
  expect(await refused('"$operations":{"increment":{"points":1.5}}')).toBe(
    '400 Field `points` must be incremented by a whole number.',
  )
  const other = (name: string) =>
    `400 Field \`${name}\` cannot be incremented: it is not an int32 or int64 field of the schema.`
  expect(await refused('"$operations":{"increment":{"pointsx":1}}')).toBe(other('pointsx'))
  expect(await refused('"$operations":{"increment":{"title":1}}')).toBe(other('title'))
  expect(await refused('"$operations":{"increment":{"sizes":1}}')).toBe(other('sizes'))
  expect(await refused('"points":1,"$operations":{"increment":{"points":1}}')).toBe(
    '400 Field `points` has a value and an increment. Send one of them.',
  )
  expect(await refused('"$operations":{"push":{"sizes":1}}')).toMatch(
    /^400 `\$operations` has the operation `push`/,
  )
  expect(await refused('"$operations":1')).toBe('400 `$operations` should be an object.')
  expect(await exportAll(object)).toEqual([{ id: '0', title: 'a', points: 2147483647 }])
})
