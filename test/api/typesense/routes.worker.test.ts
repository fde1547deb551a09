import { describe, expect, it } from 'vitest'
import { call, FORBIDDEN, send } from './api'

describe('routes', () => {
  it('answers /health to anyone', async () => {
    expect(await call('GET', '/health', { key: null })).toEqual([200, { ok: true }])
  })

  it.each([
    ['GET', '/collections'],
    ['POST', '/collections'],
    ['GET', '/collections/a/documents/search?q=x'],
    ['POST', '/multi_search'],
    ['POST', '/collections/a/documents/import'],
    ['GET', '/conversations/models'],
    ['GET', '/aliases'],
    ['GET', '/keys'],
    ['GET', '/debug'],
  ])('%s %s needs a key', async (method, path) => {
    const body = method === 'POST' ? '{}' : undefined
    for (const key of [null, '', 'wrong']) {
      expect(await call(method, path, { key, body })).toEqual([401, FORBIDDEN])
    }
  })

  it.each([
    ['GET', '/nope/nope'],
    ['GET', '/collections/a/nope/b'],
    ['GET', '/conversations/7/nothing'],
  ])('%s %s is not found, key or no key', async (method, path) => {
    for (const key of [null, 'xyz']) {
      const response = await send(method, path, { key })
      expect(response.status).toBe(404)
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(await response.text()).toBe('{ "message": "Not Found"}')
    }
  })

  it.each([
    ['POST', '/health', 'GET'],
    ['PUT', '/collections', 'GET, POST'],
    ['DELETE', '/multi_search', 'POST'],
    // Gone since v27, though the client still has methods for some. GET, PATCH and DELETE are Parley's own routes now.
    ['PUT', '/conversations', 'GET, POST'],
    ['PUT', '/conversations/7', 'DELETE, GET, PATCH'],
  ])('%s %s is no method of the path, key or no key', async (method, path, allowed) => {
    for (const key of [null, 'xyz']) {
      const response = await send(method, path, { key })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe(allowed)
      expect(await response.json()).toEqual({ message: `${path} takes ${allowed}, not ${method}.` })
    }
  })

  it('takes the key from the header in any case, else from the query', async () => {
    const version = { state: 1, version: '30.2' }
    const get = (path: string, headers: Record<string, string>) => call('GET', path, { key: null, headers })
    expect(await get('/debug', { 'X-TYPESENSE-API-KEY': 'xyz' })).toEqual([200, version])
    expect(await get('/debug?x-typesense-api-key=xyz', {})).toEqual([200, version])
    expect(await get('/debug?X-TYPESENSE-API-KEY=xyz', {})).toEqual([401, FORBIDDEN])
    expect(await get('/debug?x-typesense-api-key=xyz', { 'x-typesense-api-key': 'no' })).toEqual([
      401,
      FORBIDDEN,
    ])
  })

  it('does not care for a slash at the end', async () => {
    expect((await send('GET', '/keys/')).status).toBe(200)
  })

  it('answers preflights and lets every origin read', async () => {
    const preflight = await send('OPTIONS', '/multi_search', {
      key: null,
      headers: { 'access-control-request-headers': 'x-typesense-api-key, content-type' },
    })
    expect(preflight.status).toBe(200)
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST, GET, DELETE, PUT, PATCH, OPTIONS',
      'access-control-allow-headers': 'x-typesense-api-key, content-type',
      'access-control-max-age': '3600',
    })
    for (const path of ['/health', '/nope', '/keys']) {
      const response = await send('GET', path, { key: null })
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      await response.text()
    }
  })

  it('refuses a body that is too large', async () => {
    const [status, answer] = await call('POST', '/keys', { body: ' '.repeat(5 * 1024 * 1024) })
    expect(status).toBe(413)
    expect(answer.message).toContain('4194304 bytes')
  })
})
