/** Rows of D1 are read by a schema: what no version has written is refused rather than taken for a configuration. */
import { env } from 'cloudflare:workers'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { listApiKeys } from '../../src/db/api-keys'
import { readStored, readStoredObject } from '../../src/lib/stored-json'
import { readAssistant } from '../../src/registry/assistants'
import { getModel, openSecrets, shownSecrets } from '../../src/registry/models'

const assistant = {
  model: 'm',
  questions: [],
  overrides: ['top'],
  category_field: 'category',
  followups: true,
  followup_style: 'list',
  strict: false,
}
const model = { id: 'stored', model_name: 'a/b', history_collection: 'h', max_bytes: 1, ttl: 1, extra: [1] }

const putAssistant = (name: string, config: unknown) =>
  env.DB.prepare('INSERT INTO assistants (name, config, created_at, updated_at) VALUES (?, ?, 1, 1)')
    .bind(name, JSON.stringify(config))
    .run()
const putModel = (id: string, config: unknown) =>
  env.DB.prepare('INSERT INTO conversation_models (id, config, ttl) VALUES (?, ?, 1)')
    .bind(id, JSON.stringify(config))
    .run()

describe('a stored row', () => {
  it('of an assistant is read whole', async () => {
    await putAssistant('whole', { ...assistant, later: 1 })
    expect(await readAssistant(env, 'whole')).toEqual({ ...assistant, later: 1 })
  })

  it.each([
    ['no model', { ...assistant, model: undefined }],
    ['a setting of another type', { ...assistant, strict: 'no' }],
    ['a list', [assistant]],
  ])('of an assistant with %s is refused', async (name, config) => {
    await putAssistant(name, config)
    await expect(readAssistant(env, name)).rejects.toThrow()
  })

  it('of a model is read whole, and refused without what every version wrote', async () => {
    await putModel('stored', model)
    expect(await getModel(env, 'stored')).toEqual(model)
    await putModel('broken', { ...model, ttl: 'soon' })
    await expect(getModel(env, 'broken')).rejects.toThrow()
  })

  it('of secrets holds strings alone', async () => {
    const sealed = { sealedSecrets: 'v', maskedSecrets: '{"headers":{"x":1}}' }
    expect(() => shownSecrets(sealed)).toThrow()
    expect(await openSecrets({ sealedSecrets: null, maskedSecrets: null }, env)).toEqual({})
  })

  it('of a key with limits of another type is refused', async () => {
    await env.DB.prepare(
      `INSERT INTO api_keys (id, prefix, hash, description, actions, collections, expires_at, limits)
       VALUES (9, 'p', 'h', '', '["*"]', '["*"]', 1, '{"turns_per_day":"many"}')`,
    ).run()
    await expect(listApiKeys(env.DB)).rejects.toThrow()
  })

  it('is an object where its properties are checked later', () => {
    expect(readStoredObject('{"a":[1]}')).toEqual({ a: [1] })
    expect(() => readStoredObject('"a"')).toThrow()
    expect(() => readStored(v.unknown(), '{')).toThrow(SyntaxError)
  })
})
