/** Values that do not fit into one bound value or one row of SQLite: 2 MB. */
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { createCollection } from '../../src/registry/collections'
import { call } from '../api/typesense/api'
import { importAll, newCollection } from './object'

const FACETS = [
  { name: 'tags', type: 'string[]', facet: true },
  { name: 'tag', type: 'string', facet: true, optional: true },
  { name: 'secret', type: 'string', facet: true, store: false, optional: true },
]

it('a long list is filtered and counted by each of its elements', async () => {
  const object = await newCollection(FACETS)
  const tags = Array.from({ length: 120_000 }, (_, n) => `Tag ${n}`)
  expect(JSON.stringify(tags).length).toBeLessThan(1_990_000)
  expect(
    await importAll(object, [
      { id: 'long', tags },
      { id: 'short', tags: ['Tag 119999'] },
    ]),
  ).toEqual([{ success: true }, { success: true }])
  const found = async (filter_by: string) =>
    unwrap(await object.search({ q: '*', filter_by }))
      .hits!.map(({ document }) => document.id)
      .sort()
  expect(await found('tags:=`tag 119999`')).toEqual(['long', 'short'])
  expect(await found('tags:=`tag 60000`')).toEqual(['long'])
})

it('values whose row would be too long are refused, and the rest is imported', async () => {
  const object = await newCollection(FACETS)
  const long = 'a'.repeat(1_200_000)
  const results = await importAll(object, [
    { id: 'list', tags: [long] },
    { id: 'single', tags: [], tag: long },
    { id: 'both', tags: [], tag: long, secret: long },
    { id: 'good', tags: ['b'] },
  ])
  const refused = { success: false, code: 400, error: expect.stringContaining('at most 1990000 bytes') }
  expect(results).toMatchObject([{ success: true }, { success: true }, refused, { success: true }])
  const { hits } = unwrap(await object.search({ q: '*', filter_by: 'tag:a*' }))
  expect(hits!.map(({ document }) => document.id)).toEqual(['single'])
})

it('a document with more references than fit is refused, not a fault of the server', async () => {
  await createCollection(env, { name: 'referred', fields: [{ name: 'n', type: 'int32' }] })
  const fields = [{ name: 'to', type: 'string[]', reference: 'referred.id' }]
  await createCollection(env, { name: 'referring', fields })
  const body = { to: Array.from({ length: 200_000 }, (_, n) => `document-${n}`) }
  const [status, { message }] = await call('POST', '/collections/referring/documents', { body })
  expect([status, message]).toEqual([400, 'A document can have at most 1990000 bytes.'])
})
