/** Credentials of embedders at rest, in replies and on their way to the provider; and the change of the key. */
import { createExecutionContext, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { app } from '../../src/app'
import { createKey } from '../../src/auth/keys'
import { seal } from '../../src/db/sealing'
import {
  cloneCollection,
  createCollection,
  dropCollection,
  findCollection,
} from '../../src/registry/collections'
import { createModel, findModel } from '../../src/registry/models'
import { collectionObject } from '../../src/search/collection/handle'
import { openFields, resealSchema, sealFields } from '../../src/search/schema/embedding-secrets'
import type { StoredSchema } from '../../src/search/schema/layout'
import { parseSchema } from '../../src/search/schema/schema'
import { historySchema } from '../history-schema'

const KEY = 'sk-embedding-key-1234'
const seen: string[] = []

beforeEach(() => {
  seen.length = 0
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    seen.push(new Headers(init?.headers).get('authorization') ?? '')
    return Response.json({ data: [{ index: 0, embedding: [1, 0] }] })
  })
})
afterEach(() => vi.restoreAllMocks())

const schema = (name: string, credentials: Record<string, unknown> = { api_key: KEY }) => ({
  name,
  fields: [
    { name: 'text', type: 'string' },
    {
      name: 'e',
      type: 'float[]',
      embed: { from: ['text'], model_config: { model_name: 'openai/x', ...credentials } },
    },
  ],
})

/** All that an object has written down, as text. */
async function stored(name: string): Promise<string> {
  const { objectId } = await findCollection(env, name)
  return runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) =>
    JSON.stringify(storage.sql.exec('SELECT * FROM meta').toArray()),
  )
}

it('are sealed where they lie, masked in replies and used in clear', async () => {
  const summary = await createCollection(env, schema('secretive'))
  expect(JSON.stringify(summary)).toContain('sk-em****************')
  expect(JSON.stringify(summary)).not.toMatch(/sealed|sk-embed/)
  expect(await stored('secretive')).toContain('sealed')
  expect(await stored('secretive')).not.toContain(KEY)
  seen.length = 0
  const { objectId } = await findCollection(env, 'secretive')
  const object = env.COLLECTION.get(env.COLLECTION.idFromName(objectId)) as unknown as {
    write(json: string, options: { action: string }): Promise<{ ok: boolean }>
  }
  expect((await object.write('{"text":"x"}', { action: 'create' })).ok).toBe(true)
  expect(seen).toEqual([`Bearer ${KEY}`])
})

it('go along with a clone', async () => {
  await createCollection(env, schema('origin'))
  seen.length = 0
  const summary = await cloneCollection(env, 'origin', { name: 'clone' }, false)
  expect(seen).toEqual([`Bearer ${KEY}`])
  expect(JSON.stringify(summary)).toContain('sk-em****************')
  expect(await stored('clone')).not.toContain(KEY)
})

it('are never taken for sealed ones where a caller sends what one looks like', async () => {
  const stolen = await seal(KEY, env)
  for (const api_key of [`sealed:sk-em*:${stolen}`, stolen]) {
    seen.length = 0
    await createCollection(env, schema('thief', { api_key }))
    expect(seen).toEqual([`Bearer ${api_key}`])
    seen.length = 0
    await cloneCollection(env, 'thief', { name: 'accomplice' }, false)
    expect(seen).toEqual([`Bearer ${api_key}`])
    const patched = schema('', { api_key: `sealed::${stolen}` }).fields.slice(1)
    const { objectId } = await findCollection(env, 'thief')
    expect((await collectionObject(env, objectId).alter({ fields: patched })).ok).toBe(true)
    seen.length = 0
    await cloneCollection(env, 'thief', { name: 'patched' }, false)
    expect(seen).toEqual([`Bearer sealed::${stolen}`])
    for (const name of ['thief', 'accomplice', 'patched']) await dropCollection(env, name)
  }
})

it('are refused where a caller sends them as they are stored', async () => {
  const sealed = { sealed: await seal(KEY, env), masked: '*' }
  for (const stolen of [{ api_key: sealed }, { service_account: { private_key: sealed } }]) {
    await expect(createCollection(env, schema('thief', stolen))).rejects.toMatchObject({ status: 400 })
  }
  await createCollection(env, { name: 'thief', fields: [{ name: 'text', type: 'string' }] })
  const { objectId } = await findCollection(env, 'thief')
  const patched = schema('', { api_key: sealed }).fields.slice(1)
  expect(await collectionObject(env, objectId).alter({ fields: patched })).toMatchObject({
    error: { status: 400 },
  })
  expect(seen).toEqual([])
  await dropCollection(env, 'thief')
})

it('are sealed anew, in clear or under the previous key, and only once', async () => {
  const old = { ENCRYPTION_KEY: 'the key of last year' }
  const next = { ENCRYPTION_KEY: 'the key of this year', ENCRYPTION_KEY_PREVIOUS: old.ENCRYPTION_KEY }
  const fields = parseSchema(schema('x')).fields
  for (const before of [fields, await sealFields(fields, old)]) {
    const stored = { fields: before } as StoredSchema
    const resealed = await resealSchema(stored, next)
    expect(resealed.count).toBe(1)
    expect((await resealSchema(resealed.schema, next)).count).toBe(0)
    const only = { ENCRYPTION_KEY: next.ENCRYPTION_KEY }
    expect(await openFields(resealed.schema.fields, only)).toEqual(fields)
  }
})

it('POST /operations/reseal ends the change of a key', async () => {
  await createCollection(env, historySchema('talk'))
  const model = {
    id: 'm',
    model_name: 'azure/x',
    api_key: KEY,
    url: 'https://a.openai.azure.com/x',
    history_collection: 'talk',
    max_bytes: 16_384,
  }
  await createModel(env, model)
  await createKey(env, { description: '', actions: ['documents:search'], collections: ['*'] })

  const changed = {
    ...env,
    ENCRYPTION_KEY: 'another key for tests',
    ENCRYPTION_KEY_PREVIOUS: env.ENCRYPTION_KEY,
  } as Cloudflare.Env
  expect((await findModel(changed, 'm'))?.api_key).toBe(KEY)
  const operate = async () => {
    const request = new Request('http://parley/operations/reseal', {
      method: 'POST',
      headers: { 'x-typesense-api-key': 'xyz' },
    })
    const response = await app.fetch(request, changed, createExecutionContext())
    return [response.status, await response.json()]
  }
  expect(await operate()).toEqual([200, { resealed: 2 }])
  expect(await operate()).toEqual([200, { resealed: 0 }])
  const rows = await env.DB.prepare('SELECT sealed_api_key AS sealed FROM conversation_models').all<{
    sealed: string
  }>()
  const { open } = await import('../../src/db/sealing')
  const only = { ENCRYPTION_KEY: changed.ENCRYPTION_KEY! }
  expect(JSON.parse(await open(rows.results[0]!.sealed, only))).toEqual({ api_key: KEY })
})
