import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { BAD_JSON, call, FORBIDDEN, MAY_NOT } from './api'

const SEARCH_ONLY = { description: 'search', actions: ['documents:search'], collections: ['*'] }

describe('API keys', () => {
  it('are made with ids from 0 and shown whole only once', async () => {
    const [status, created] = await call('POST', '/keys', { body: SEARCH_ONLY })
    expect(status).toBe(201)
    expect(created).toEqual({
      ...SEARCH_ONLY,
      id: 0,
      value: expect.stringMatching(/^[A-Za-z0-9]{32}$/),
      expires_at: 64723363199,
      autodelete: false,
    })
    const { value, ...rest } = created
    const shown = { ...rest, value_prefix: value.slice(0, 4) }
    expect(await call('GET', '/keys/0')).toEqual([200, shown])
    expect(await call('GET', '/keys')).toEqual([200, { keys: [shown] }])
    const stored = await env.DB.prepare('select * from api_keys').all()
    expect(JSON.stringify(stored.results)).not.toContain(value)
  })

  it('take a value of the caller, once', async () => {
    const body = { ...SEARCH_ONLY, value: 'a value of mine', expires_at: 4_000_000_000 }
    const [status, created] = await call('POST', '/keys', { body })
    expect([status, created.value, created.expires_at]).toEqual([201, 'a value of mine', 4_000_000_000])
    expect(await call('POST', '/keys', { body })).toEqual([409, { message: 'API key generation conflict.' }])
  })

  it.each([
    ['[]', 'Bad JSON.'],
    [{}, 'Could not find a `description` key.'],
    [{ description: '' }, 'Could not find a `actions` key.'],
    [{ description: '', actions: ['*'] }, 'Could not find a `collections` key.'],
    [{ ...SEARCH_ONLY, actions: 'x' }, 'Wrong format for `actions`. It should be an array of string.'],
    [{ ...SEARCH_ONLY, actions: [] }, 'Wrong format for `actions`. It should be an array of string.'],
    [
      { ...SEARCH_ONLY, collections: [1] },
      'Wrong format for `collections`. It should be an array of string.',
    ],
    [{ ...SEARCH_ONLY, expires_at: -1 }, 'Wrong format for `expires_at`. It should be an unsigned integer.'],
    [{ ...SEARCH_ONLY, expires_at: '1' }, 'Wrong format for `expires_at`. It should be an unsigned integer.'],
    [{ ...SEARCH_ONLY, autodelete: 1 }, 'Wrong format for `autodelete`. It should be a boolean.'],
  ])('are not made from %j', async (body, message) => {
    expect(await call('POST', '/keys', { body })).toEqual([400, { message }])
  })

  it('are not made from what is no JSON', async () => {
    expect(await call('POST', '/keys', { body: '{' })).toEqual([400, BAD_JSON])
  })

  it('unknown are not found', async () => {
    expect(await call('GET', '/keys/999')).toEqual([404, { message: 'Not found.' }])
    expect(await call('DELETE', '/keys/999')).toEqual([404, { message: 'Not found.' }])
    expect((await call('GET', '/keys/x'))[0]).toBe(400)
  })

  it('allow their actions alone, and stop when deleted', async () => {
    const body = { description: '', actions: ['keys:list', 'aliases:*'], collections: ['*'] }
    const [, { id, value: key }] = await call('POST', '/keys', { body })
    expect((await call('GET', '/keys', { key }))[0]).toBe(200)
    expect((await call('GET', '/aliases', { key }))[0]).toBe(200)
    expect(await call('GET', `/keys/${id}`, { key })).toEqual([401, MAY_NOT])
    expect(await call('GET', '/collections', { key })).toEqual([401, MAY_NOT])
    expect(await call('DELETE', `/keys/${id}`)).toEqual([200, { id }])
    expect(await call('GET', '/keys', { key })).toEqual([401, FORBIDDEN])
  })

  it('expire', async () => {
    const body = { description: '', actions: ['*'], collections: ['*'], expires_at: 1_000_000_000 }
    const [, { value: key }] = await call('POST', '/keys', { body })
    expect(await call('GET', '/keys', { key })).toEqual([401, FORBIDDEN])
  })

  it('change in place, but for what they open', async () => {
    const limits = { allowed_origins: ['https://shop.example'], user_id: 'ann' }
    const [, { id, value: key }] = await call('POST', '/keys', {
      body: { description: 'old', actions: ['keys:list'], collections: ['*'], limits },
    })
    const origin = { origin: 'https://shop.example' }
    expect((await call('GET', '/keys', { key, headers: origin }))[0]).toBe(200)
    const [status, changed] = await call('PATCH', `/keys/${id}`, {
      body: { description: 'new', limits: { turns_per_day: 5, tokens_per_day: null } },
    })
    expect(status).toBe(200)
    expect(changed).toMatchObject({ description: 'new', limits: { ...limits, turns_per_day: 5 } })
    expect(await call('GET', `/keys/${id}`)).toEqual([200, changed])
    expect((await call('PATCH', `/keys/${id}`, { body: { expires_at: 1_000_000_000 } }))[0]).toBe(200)
    expect(await call('GET', '/keys', { key, headers: origin })).toEqual([401, FORBIDDEN])
  })

  it('keep a budget that was removed when something else changes', async () => {
    const bound = { assistant: 'shop', tokens_per_day: null, turns_per_day: null }
    const [, { id }] = await call('POST', '/keys', { body: { ...SEARCH_ONLY, limits: bound } })
    const [, shown] = await call('PATCH', `/keys/${id}`, { body: { limits: { user_id: 'bob' } } })
    expect(shown.limits).toEqual({ assistant: 'shop', user_id: 'bob' })
  })

  it.each([
    [
      { actions: ['*'] },
      '`actions` of a key cannot be changed: only `description`, `expires_at`, `autodelete`, `limits`. Make another key.',
    ],
    [{ limits: null }, 'Wrong format for `limits`. It should be an object.'],
    [
      { limits: { assistant: null } },
      'Wrong format for `limits.assistant`. It should be a string of 1 to 256 characters.',
    ],
    [{ expires_at: -1 }, 'Wrong format for `expires_at`. It should be an unsigned integer.'],
  ])('are not changed by %j', async (body, message) => {
    const [, { id }] = await call('POST', '/keys', { body: SEARCH_ONLY })
    expect(await call('PATCH', `/keys/${id}`, { body })).toEqual([400, { message }])
    expect((await call('PATCH', '/keys/999', { body: {} }))[0]).toBe(404)
  })

  it('are changed only by those who could make them', async () => {
    const [, { id }] = await call('POST', '/keys', { body: SEARCH_ONLY })
    const some = { description: '', actions: ['keys:*'], collections: ['mine'] }
    const [, { value: key }] = await call('POST', '/keys', { body: some })
    expect((await call('PATCH', `/keys/${id}`, { key, body: { description: 'x' } }))[0]).toBe(401)
    const [, other] = await call('POST', '/keys', { body: { ...SEARCH_ONLY, collections: ['mine'] } })
    expect((await call('PATCH', `/keys/${other.id}`, { key, body: { description: 'x' } }))[0]).toBe(200)
  })

  it('allow their collections alone, by name or by pattern', async () => {
    const body = { description: '', actions: ['*'], collections: ['org_.*', 'shared'] }
    const [, { value: key }] = await call('POST', '/keys', { body })
    const statusOf = async (name: string) => (await call('GET', `/collections/${name}`, { key }))[0]
    expect(await statusOf('org_1')).toBe(404)
    expect(await statusOf('shared')).toBe(404)
    expect(await statusOf('my_org_1')).toBe(401)
    expect(await statusOf('shared2')).toBe(401)
    const create = (name: string) => call('POST', '/collections', { key, body: { name, fields: [] } })
    expect(await create('other')).toEqual([401, MAY_NOT])
    expect((await create('org_1'))[0]).not.toBe(401)
  })
})
