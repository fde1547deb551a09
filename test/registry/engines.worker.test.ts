/** A collection's engine, as its row in the registry says. */
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { insertCollection } from '../../src/db/registry'
import { createCollection, findCollection } from '../../src/registry/collections'
import { retrieverOf } from '../../src/registry/engines'

it('is the own one where nothing else is said, and searches', async () => {
  await createCollection(env, { name: 'own', fields: [{ name: 'title', type: 'string' }] })
  const place = await findCollection(env, 'own')
  expect(place.engine).toBe('object')
  const outcome = await retrieverOf(env, place).search({ q: 'alien', query_by: 'title' })
  expect(outcome).toMatchObject({ ok: true, value: { found: 0 } })
})

it('of a version to come is refused by its name', async () => {
  const row = { name: 'later', objectId: 'later', createdAt: 1, engine: 'holographic' }
  expect(await insertCollection(env.DB, row)).toBe(true)
  const place = await findCollection(env, 'later')
  expect(() => retrieverOf(env, place)).toThrow(expect.objectContaining({ status: 501 }))
  expect(() => retrieverOf(env, place)).toThrow('`holographic`')
})
