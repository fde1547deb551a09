/** GET /operations/schema_changes: collections that are being indexed again, as far as a key may know of them. */
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { findCollection } from '../../../src/registry/collections'
import { collectionObject } from '../../../src/search/collection/handle'
import { Reindex } from '../../../src/search/collection/reindex'
import { request } from '../opensearch/api'
import { call } from './api'

it('lists a change until it is done', async () => {
  await call('POST', '/collections', {
    body: { name: 'companies', fields: [{ name: 'name', type: 'string' }] },
  })
  const { objectId } = await findCollection(env, 'companies')
  const object = collectionObject(env, objectId)
  const lines = Array.from({ length: 300 }, (_, n) => JSON.stringify({ name: `c${n}`, size: n }))
  await object.importLines(lines, { action: 'create', returnDocument: false, returnId: false })
  expect(await call('GET', '/operations/schema_changes')).toEqual([200, []])
  // As the Worker does it for a PATCH, but only the first step.
  await object.alter({ fields: [{ name: 'size', type: 'int32', optional: true }] })
  await object.reindex()
  const running = [{ collection: 'companies', validated_docs: 200, altered_docs: 200 }]
  expect(await call('GET', '/operations/schema_changes')).toEqual([200, running])
  const body = { description: '', actions: ['operations/schema_changes:list'], collections: ['other'] }
  const [, { value }] = await call('POST', '/keys', { body })
  expect(await call('GET', '/operations/schema_changes', { key: value })).toEqual([200, []])
  while (!(await object.reindex()).done);
  expect(await call('GET', '/operations/schema_changes')).toEqual([200, []])
})

it('is told of over each wire, by whoever would find only a part', async () => {
  const title = { name: 'title', type: 'string' }
  await call('POST', '/collections', { body: { name: 'altered', fields: [title] } })
  await call('POST', '/collections/altered/documents', { body: { title: 'ships' } })
  const object = collectionObject(env, (await findCollection(env, 'altered')).objectId)
  const step = vi.spyOn(Reindex.prototype, 'step').mockReturnValue({ count: 0, done: false })
  await object.alter({
    fields: [
      { name: 'title', drop: true },
      { ...title, stem: true },
      // With a new text the title does not stay as it was until the change is done.
      { name: 'note', type: 'string', optional: true },
    ],
  })
  const words =
    /^The field `title` is being indexed again .* `GET \/operations\/schema_changes` shows how far it is\.$/
  const search = { collection: 'altered', q: 'ship', query_by: 'title' }
  expect(await call('POST', '/multi_search', { body: { searches: [search] } })).toEqual([
    200,
    { results: [{ code: 503, error: expect.stringMatching(words) }] },
  ])
  const query = { match: { title: 'ships' } }
  // Where the answer takes more than half a second, the status of the reply is sent before it is known (api/http/deliver.ts).
  const refused = { error: { reason: expect.stringMatching(words) }, status: 500 }
  expect((await request('POST', '/altered/_search', { query }))[1]).toMatchObject(refused)
  expect((await request('POST', '/altered/_delete_by_query', { query }))[1]).toMatchObject(refused)
  step.mockRestore()
  expect(await request('POST', '/altered/_search', { query })).toMatchObject([
    200,
    { hits: { total: { value: 1 } } },
  ])
  expect(await call('POST', '/multi_search', { body: { searches: [search] } })).toMatchObject([
    200,
    { results: [{ found: 1 }] },
  ])
})
