/** Routes of backup and restore: who may use them, and what they refuse. */
import { beforeAll, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { ask, setStage } from './stage'

beforeAll(setStage)

it('is for the admin key alone', async () => {
  const body = { description: '', actions: ['*'], collections: ['*'] }
  const [, { value: key }] = await call('POST', '/keys', { body })
  for (const [method, path] of [
    ['GET', '/operations/backup'],
    ['GET', '/operations/backup/turns'],
    ['GET', '/operations/backup/documents/x'],
    ['POST', '/operations/restore/keys'],
  ] as const) {
    const [status, { message }] = await call(method, path, {
      key,
      ...(method === 'POST' && { body: { rows: [] } }),
    })
    expect([status, message]).toEqual([401, 'Forbidden - only the admin key backs up and restores.'])
  }
})

it('gives no secret and no hash of a key', async () => {
  const body = { description: 'page', actions: ['documents:search'], collections: ['*'] }
  const [, { id, value }] = await call('POST', '/keys', { body })
  const [, { rows }] = await call('GET', '/operations/backup/keys')
  const row = rows.find((one: { id: number }) => one.id === id)
  expect(row).toEqual({
    id,
    description: 'page',
    actions: '["documents:search"]',
    collections: '["*"]',
    expires_at: expect.any(Number),
    autodelete: 0,
    limits: null,
  })
  expect(JSON.stringify(rows)).not.toContain(value)
})

it('refuses a key whose id belongs to another key, and rows that are none', async () => {
  const body = { description: 'mine', actions: ['documents:search'], collections: ['*'] }
  const [, { id }] = await call('POST', '/keys', { body })
  const [, { rows }] = await call('GET', '/operations/backup/keys')
  const row = rows.find((one: { id: number }) => one.id === id)
  const restore = (kind: string, given: unknown) =>
    call('POST', `/operations/restore/${kind}`, { body: { rows: given } })
  expect(await restore('keys', [row])).toEqual([200, { stored: 0, keys: [] }])
  expect(await restore('keys', [{ ...row, description: 'yours' }])).toEqual([
    409,
    { message: expect.stringContaining(`Another key has the id ${id} here`), code: expect.any(String) },
  ])
  expect(await restore('assistants', [{ name: 'x' }])).toEqual([
    400,
    { message: expect.stringContaining('`rows.0`'), code: 'bad_request' },
  ])
  expect((await restore('keys', [{ ...row, actions: 'all' }]))[0]).toBe(400)
  expect((await restore('models', [{ id: 'm', config: 'no JSON', ttl: 1, deleted_at: null }]))[0]).toBe(400)
  expect((await restore('conversations', [{ id: 'c', history_collection: 'nowhere' }]))[0]).toBe(404)
  expect((await call('GET', '/operations/backup/turns?after=[1]'))[0]).toBe(400)
  expect((await call('GET', '/operations/backup/turns?after=x'))[0]).toBe(400)
  expect((await call('GET', '/operations/backup/secrets'))[0]).toBe(400)
})

it('leaves a conversation that is there already as it is', async () => {
  const [, { conversation_id }] = await ask()
  const [, before] = await call('GET', `/conversations/${conversation_id}`)
  const [, { rows }] = await call('GET', '/operations/backup/conversations')
  const row = rows.find((one: { id: string }) => one.id === conversation_id)
  const body = { rows: [{ ...row, owner: '77', title: 'Another', last_turn: 40 }] }
  expect(await call('POST', '/operations/restore/conversations', { body })).toEqual([200, { stored: 0 }])
  expect((await call('GET', `/conversations/${conversation_id}`))[1]).toEqual(before)
  const [status, next] = await ask({ question: 'And how high is it?', conversation_id })
  expect([status, next.turn]).toEqual([200, 2])
})

it('refuses rows whose JSON would break a list later', async () => {
  const restore = (kind: string, row: object) =>
    call('POST', `/operations/restore/${kind}`, { body: { rows: [row] } })
  const times = { created_at: 1, updated_at: 1 }
  const key = { id: 7_000, description: '', expires_at: 4_102_444_800, autodelete: 0, limits: null }
  for (const [kind, row] of [
    ['assistants', { name: 'broken', config: '{}', ...times }],
    ['models', { id: 'broken', config: '[]', ttl: 1, deleted_at: null }],
    ['keys', { ...key, actions: '{}', collections: '["*"]' }],
    ['keys', { ...key, actions: '["*"]', collections: '7' }],
  ] as const) {
    expect(await restore(kind, row)).toEqual([
      400,
      { message: expect.stringContaining('`rows.0`'), code: 'bad_request' },
    ])
  }
  for (const path of ['/assistants', '/conversations/models', '/keys']) {
    expect([path, (await call('GET', path))[0]]).toEqual([path, 200])
  }
})

it('refuses a conversation without an id, or with turns that have no number', async () => {
  const { conversation_id } = (await ask())[1]
  const [, { rows }] = await call('GET', '/operations/backup/conversations')
  const row = rows.find((one: { id: string }) => one.id === conversation_id)
  for (const change of [{ id: '' }, { id: 'other', last_turn: 'x' }, { id: 'other', last_turn: 1e30 }]) {
    const body = { rows: [{ ...row, ...change }] }
    const [status, { message }] = await call('POST', '/operations/restore/conversations', { body })
    expect([status, message]).toEqual([400, expect.stringContaining('`rows.0.')])
  }
})
