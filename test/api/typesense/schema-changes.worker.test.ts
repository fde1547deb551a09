/** GET /operations/schema_changes: collections that are being indexed again, as far as a key may know of them. */
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { findCollection } from '../../../src/registry/names'
import { collectionObject } from '../../../src/search/collection/handle'
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
