import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readModel } from '../../src/db/registry'
import { open, resealRegistry, seal } from '../../src/db/sealing'
import { createCollection, putAlias } from '../../src/registry/collections'
import {
  createModel,
  deleteModel,
  findModel,
  getModel,
  listModels,
  openSecrets,
  updateModel,
} from '../../src/registry/models'
import { historySchema } from '../history-schema'

const KEY = 'sk-1234567890'
let provider: ReturnType<typeof vi.spyOn>

beforeAll(async () => {
  await createCollection(env, historySchema('talk'))
  await createCollection(env, historySchema('more_talk'))
})

beforeEach(() => {
  provider = vi
    .spyOn(globalThis, 'fetch')
    .mockImplementation(async () => Response.json({ choices: [{ message: { content: 'Hi.' } }] }))
})

afterEach(() => vi.restoreAllMocks())

const body = (parts: Record<string, unknown> = {}) => ({
  model_name: 'openai/gpt-4o-mini',
  history_collection: 'talk',
  api_key: KEY,
  max_bytes: 16_384,
  ...parts,
})

const local = (parts: Record<string, unknown> = {}) => ({
  model_name: 'local/extractive',
  history_collection: 'talk',
  max_bytes: 16_384,
  ...parts,
})

describe('a new model', () => {
  it('is answered whole, with defaults, unknown fields and a masked key', async () => {
    const shown = await createModel(
      env,
      body({ id: 'first', system_prompt: 'Be brief.', colour: { any: [1] } }),
    )
    expect(shown).toEqual({
      id: 'first',
      ...body(),
      api_key: 'sk-12********',
      ttl: 86_400,
      system_prompt: 'Be brief.',
      colour: { any: [1] },
    })
    expect(await getModel(env, 'first')).toEqual(shown)
    expect(await listModels(env)).toContainEqual(shown)
    expect(await findModel(env, 'first')).toEqual({ ...shown, api_key: KEY })
  })

  it('masks a short key whole', async () => {
    expect(await createModel(env, body({ api_key: 'abc' }))).toMatchObject({ api_key: '***********' })
  })

  it.each([undefined, '', 5])('with the id %j is given one', async (id) => {
    expect((await createModel(env, local({ id }))).id).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('does not lie in the database in clear', async () => {
    await createModel(env, body({ id: 'sealed' }))
    expect(JSON.stringify(await readModel(env.DB, 'sealed'))).not.toContain(KEY)
  })

  it.each([[null], [[]], [5], ['x']])('is no %j', async (given) => {
    await expect(createModel(env, given)).rejects.toMatchObject({ status: 400, message: 'Bad JSON.' })
  })

  it('has its faults told in the order of the contract', async () => {
    await createModel(env, local({ id: 'taken' }))
    const faults: [string, unknown, number, string][] = [
      ['id', 'taken', 409, 'Model already exists'],
      ['model_name', 5, 400, 'Property `model_name` is not provided or not a string.'],
      ['system_prompt', 5, 400, 'Property `system_prompt` is not a string.'],
      ['input_guardrail_prompt', 5, 400, 'Property `input_guardrail_prompt` is not a string.'],
      ['history_collection', 5, 400, 'Property `history_collection` is missing or is not a string.'],
      ['max_bytes', '10', 400, 'Property `max_bytes` is not provided or not a positive integer.'],
      ['history_collection', 'nowhere', 400, 'Collection not found'],
      ['ttl', -1, 400, 'Property `ttl` is not a positive integer.'],
      ['model_name', 'mistral/x', 400, 'Model namespace `mistral` is not supported.'],
      ['api_key', 123, 400, 'API key is not a string'],
      ['temperature', 5, 400, 'Property `temperature` is not a number from 0 to 2.'],
      ['headers', { host: 'x' }, 400, 'Property `headers` may not set `host`: leave it out.'],
      [
        'fallbacks',
        ['taken', 'nobody'],
        400,
        'Property `fallbacks` names `nobody`, which is no conversation model.',
      ],
    ]
    for (let first = 0; first < faults.length; first++) {
      // All the faults from this one on, the earlier of two on the same property.
      const wrong = Object.fromEntries(
        faults
          .slice(first)
          .reverse()
          .map(([property, value]) => [property, value]),
      )
      const [, , status, message] = faults[first]!
      await expect(createModel(env, body(wrong))).rejects.toMatchObject({ status, message })
    }
    expect(provider).not.toHaveBeenCalled()
  })

  it.each([0, -1, 1.5, null, undefined])('with max_bytes %j is refused', async (max_bytes) => {
    await expect(createModel(env, local({ max_bytes }))).rejects.toThrow(
      'Property `max_bytes` is not provided or not a positive integer.',
    )
  })

  it('may have a ttl of 0, and its history by an alias', async () => {
    await putAlias(env, 'talk_alias', { collection_name: 'talk' })
    await createModel(env, local({ id: 'zero', ttl: 0, history_collection: 'talk_alias' }))
    expect(await getModel(env, 'zero')).toMatchObject({ ttl: 0, history_collection: 'talk_alias' })
  })

  it('is not stored when its provider refuses it', async () => {
    provider.mockImplementation(async () => Response.json({ error: { message: 'no' } }, { status: 401 }))
    await expect(createModel(env, body({ id: 'refused' }))).rejects.toMatchObject({
      status: 400,
      message: 'OpenAI API error: no',
    })
    await expect(getModel(env, 'refused')).rejects.toMatchObject({ status: 404, message: 'Model not found' })
  })

  it('of one id is stored once when two come at a time', async () => {
    const outcomes = await Promise.allSettled(
      [1, 2, 3].map((n) => createModel(env, local({ id: 'race', n }))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})

describe('the history collection', () => {
  const field = (name: string, parts: Record<string, unknown>) => ({
    ...historySchema('').fields.find((candidate) => candidate.name === name)!,
    ...parts,
  })
  const cases: [string, (fields: { name: string }[]) => { name: string }[], string][] = [
    [
      'conversation_id',
      (f) => f.filter(({ name }) => name !== 'conversation_id'),
      'Schema is missing `conversation_id` field',
    ],
    ['model_id', (f) => f.filter(({ name }) => name !== 'model_id'), 'Schema is missing `model_id` field'],
    [
      'role',
      (f) => f.map((x) => (x.name === 'role' ? field('role', { type: 'int32' }) : x)),
      '`role` field must be a string',
    ],
    [
      'int64',
      (f) => f.map((x) => (x.name === 'timestamp' ? field('timestamp', { type: 'int64' }) : x)),
      '`timestamp` field must be an integer',
    ],
    [
      'sort',
      (f) => f.map((x) => (x.name === 'timestamp' ? field('timestamp', { sort: false }) : x)),
      '`timestamp` field must be a sort field',
    ],
    [
      'model string',
      (f) => f.map((x) => (x.name === 'model_id' ? field('model_id', { type: 'int32' }) : x)),
      '`model_id` field must be a string',
    ],
  ]
  it.each(cases)('is checked: %s', async (_, change, message) => {
    const name = `history_${crypto.randomUUID()}`
    const schema = historySchema(name)
    await createCollection(env, { ...schema, fields: change(schema.fields) })
    await expect(createModel(env, local({ history_collection: name }))).rejects.toMatchObject({
      status: 400,
      message,
    })
  })
})

describe('a changed model', () => {
  it('keeps what was not given, its key included, and is checked anew', async () => {
    await createModel(env, body({ id: 'changed' }))
    provider.mockClear()
    const shown = await updateModel(env, 'changed', { system_prompt: 'x' })
    expect(shown).toMatchObject({ ...body(), api_key: 'sk-12********', system_prompt: 'x' })
    expect(provider).toHaveBeenCalledOnce()
    expect(await findModel(env, 'changed')).toMatchObject({ api_key: KEY, system_prompt: 'x' })
    expect(await updateModel(env, 'changed', {})).toEqual(shown)
  })

  it('takes its own masked key for "unchanged", and any other for a new one', async () => {
    const shown = await createModel(env, body({ id: 'masked' }))
    await updateModel(env, 'masked', shown)
    expect(await findModel(env, 'masked')).toMatchObject({ api_key: KEY })
    await updateModel(env, 'masked', { api_key: 'sk-other-key' })
    expect(await findModel(env, 'masked')).toMatchObject({ api_key: 'sk-other-key' })
  })

  it('is the old one when the check fails', async () => {
    await createModel(env, local({ id: 'steady' }))
    await expect(updateModel(env, 'steady', { max_bytes: 0 })).rejects.toMatchObject({ status: 400 })
    expect(await getModel(env, 'steady')).toMatchObject({ max_bytes: 16_384 })
  })

  it('takes all that several give it at the same time', async () => {
    await createModel(env, local({ id: 'shared' }))
    const parts = [{ system_prompt: 'Be brief.' }, { ttl: 60 }, { max_bytes: 20_000 }, { colour: 'red' }]
    await Promise.all(parts.map((part) => updateModel(env, 'shared', part)))
    expect(await getModel(env, 'shared')).toMatchObject(Object.assign({}, ...parts))
  })

  it('keeps what it was given while it was being renamed', async () => {
    await createModel(env, local({ id: 'moving' }))
    const [renamed, changed] = await Promise.allSettled([
      updateModel(env, 'moving', { id: 'moved' }),
      updateModel(env, 'moving', { ttl: 60 }),
    ])
    expect(renamed.status).toBe('fulfilled')
    const { ttl } = await getModel(env, 'moved')
    // Whoever came too late for the old id is told so, and nothing is lost without a word.
    if (changed.status === 'rejected') expect(changed.reason).toMatchObject({ status: 404 })
    else expect(ttl).toBe(60)
  })

  it('may be renamed, and then its old id is unknown and free', async () => {
    await createModel(env, body({ id: 'old' }))
    await findModel(env, 'old')
    expect(await updateModel(env, 'old', { id: 'new' })).toMatchObject({ id: 'new' })
    await expect(getModel(env, 'old')).rejects.toMatchObject({ status: 404 })
    expect(await findModel(env, 'old')).toBeUndefined()
    expect(await findModel(env, 'new')).toMatchObject({ id: 'new', api_key: KEY })
    await createModel(env, local({ id: 'old' }))
    await expect(updateModel(env, 'new', { id: 'old' })).rejects.toMatchObject({
      status: 409,
      message: 'Model already exists',
    })
    expect(await getModel(env, 'old')).toMatchObject({ model_name: 'local/extractive' })
    expect(await getModel(env, 'new')).toMatchObject({ model_name: 'openai/gpt-4o-mini' })
  })

  it('goes to one name only when two race for it', async () => {
    await createModel(env, local({ id: 'one' }))
    await createModel(env, local({ id: 'two' }))
    const outcomes = await Promise.allSettled(
      ['one', 'two'].map((id) => updateModel(env, id, { id: 'prize', from: id })),
    )
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const winner = (await getModel(env, 'prize')).from
    const loser = winner === 'one' ? 'two' : 'one'
    expect(await getModel(env, loser)).toMatchObject({ id: loser })
    await expect(getModel(env, String(winner))).rejects.toMatchObject({ status: 404 })
  })

  it('must exist', async () => {
    await expect(updateModel(env, 'nobody', {})).rejects.toMatchObject({
      status: 404,
      message: 'Model not found',
    })
  })
})

describe('secrets', () => {
  const SECRETS = {
    api_key: KEY,
    secret_access_key: 'aws-secret-key',
    session_token: 'aws-session',
    headers: { 'x-proxy-key': 'proxy-secret', 'x-tenant': 'acme' },
  }
  const MASKED = {
    api_key: 'sk-12********',
    secret_access_key: 'aws-s*********',
    session_token: 'aws-s******',
    headers: { 'x-proxy-key': 'proxy*******', 'x-tenant': '***********' },
  }

  it('are all sealed at rest, shown masked, and handed to the provider in clear', async () => {
    expect(await createModel(env, body({ id: 'secretive', ...SECRETS }))).toMatchObject(MASKED)
    expect(await getModel(env, 'secretive')).toMatchObject(MASKED)
    expect(await findModel(env, 'secretive')).toMatchObject(SECRETS)
    const row = JSON.stringify(await readModel(env.DB, 'secretive'))
    for (const secret of [KEY, 'aws-secret-key', 'aws-session', 'proxy-secret', 'acme']) {
      expect(row).not.toContain(secret)
    }
  })

  it('stay as they are when they come back masked, one by one', async () => {
    const shown = await createModel(env, body({ id: 'written back', ...SECRETS }))
    expect(await updateModel(env, 'written back', shown)).toEqual(shown)
    expect(await findModel(env, 'written back')).toMatchObject(SECRETS)
    await updateModel(env, 'written back', {
      ...shown,
      session_token: 'another',
      headers: { ...MASKED.headers, 'x-tenant': 'globex' },
    })
    expect(await findModel(env, 'written back')).toMatchObject({
      ...SECRETS,
      session_token: 'another',
      headers: { 'x-proxy-key': 'proxy-secret', 'x-tenant': 'globex' },
    })
  })

  it('go when they are set to null, and headers that are left out of theirs', async () => {
    await createModel(env, body({ id: 'lighter', ...SECRETS }))
    await updateModel(env, 'lighter', { session_token: null, headers: { 'x-tenant': 'acme' } })
    const found = await findModel(env, 'lighter')
    expect(found).not.toHaveProperty('session_token')
    expect(found?.headers).toEqual({ 'x-tenant': 'acme' })
    expect(found).toMatchObject({ secret_access_key: 'aws-secret-key' })
  })

  it.each([
    [{ secret_access_key: 5 }, 'Property `secret_access_key` is not a string.'],
    [{ session_token: {} }, 'Property `session_token` is not a string.'],
    [{ headers: 'x: y' }, 'Property `headers` is not an object of strings.'],
  ])('are strings: %j', async (parts, message) => {
    await expect(createModel(env, body(parts))).rejects.toMatchObject({ status: 400, message })
  })

  it('are sealed anew when the ENCRYPTION_KEY changes', async () => {
    await createModel(env, body({ id: 'rotated', ...SECRETS }))
    const key = 'another key for these tests'
    const changing = { ...env, ENCRYPTION_KEY: key, ENCRYPTION_KEY_PREVIOUS: env.ENCRYPTION_KEY }
    await resealRegistry(env.DB, changing)
    const row = (await readModel(env.DB, 'rotated'))!
    expect(await openSecrets(row, { ...env, ENCRYPTION_KEY: key })).toEqual(SECRETS)
    await resealRegistry(env.DB, { ...env, ENCRYPTION_KEY_PREVIOUS: key })
    expect(await findModel(env, 'rotated')).toMatchObject(SECRETS)
  })

  it('of a row from when the key was the only one are read, kept and sealed anew', async () => {
    await createModel(env, body({ id: 'old row', api_key: 'sk-0987654321' }))
    await env.DB.prepare('UPDATE conversation_models SET sealed_api_key = ?, masked_api_key = ? WHERE id = ?')
      .bind(await seal(KEY, env), 'sk-12********', 'old row')
      .run()
    expect(await getModel(env, 'old row')).toMatchObject({ api_key: 'sk-12********' })
    expect(await findModel(env, 'old row')).toMatchObject({ api_key: KEY })
    await updateModel(env, 'old row', { api_key: 'sk-12********', headers: { 'x-tenant': 'acme' } })
    expect(await findModel(env, 'old row')).toMatchObject({ api_key: KEY, headers: { 'x-tenant': 'acme' } })
  })
})

describe('a deleted model', () => {
  it('is answered once more, masked, and then unknown', async () => {
    await createModel(env, body({ id: 'gone' }))
    await findModel(env, 'gone')
    expect(await deleteModel(env, 'gone')).toMatchObject({ id: 'gone', api_key: 'sk-12********' })
    expect(await findModel(env, 'gone')).toBeUndefined()
    await expect(deleteModel(env, 'gone')).rejects.toMatchObject({ status: 404, message: 'Model not found' })
    expect(await createModel(env, local({ id: 'gone' }))).not.toHaveProperty('api_key')
    expect(await listModels(env)).toContainEqual(expect.objectContaining({ id: 'gone' }))
  })
})

describe('a model just made', () => {
  it('is found where it was unknown a moment ago', async () => {
    expect(await findModel(env, 'soon')).toBeUndefined()
    await createModel(env, local({ id: 'soon' }))
    expect(await findModel(env, 'soon')).toMatchObject({ id: 'soon' })
  })
})

describe('sealing', () => {
  it('opens what it sealed, and nothing else', async () => {
    const sealed = await seal('sécret', env)
    expect(await open(sealed, env)).toBe('sécret')
    expect(await seal('sécret', env)).not.toBe(sealed)
    const other = { ENCRYPTION_KEY: 'another key for tests' }
    await expect(open(sealed, other)).rejects.toMatchObject({ status: 400 })
    await expect(open(`${sealed.slice(0, -4)}AAAA`, env)).rejects.toMatchObject({ status: 400 })
  })

  it('says which secret is missing', async () => {
    await expect(seal('x', {})).rejects.toMatchObject({ status: 400, message: /ENCRYPTION_KEY/ })
    await expect(
      createModel({ ...env, ENCRYPTION_KEY: undefined } as unknown as Cloudflare.Env, body()),
    ).rejects.toThrow(/ENCRYPTION_KEY/)
  })
})
