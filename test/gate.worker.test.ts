/** The one gate: whatever the protocol, a request without a key that may do it comes to nothing. */
import { expect, it } from 'vitest'
import { app } from '../src/app'
import { call, send } from './api/typesense/api'

/** Every route that there is, as a request: the words in its path stand for themselves, its parameters for nothing. */
const routes = app.routes
  .filter(({ path }) => path !== '/*')
  .map(({ method, path }) => ({
    method: method === 'ALL' ? 'POST' : method,
    path: path.replace(/:\w+(\{[^}]*\})?/g, 'x'),
    isHandled: method !== 'ALL' && !path.includes('*'),
  }))

/** The statuses of all routes but those named: of routes that a protocol has, and of the rest of its addresses. */
async function statuses(key: string | null, open: string[]): Promise<{ handled: number[]; other: number[] }> {
  const found = { handled: [] as number[], other: [] as number[] }
  for (const { method, path, isHandled } of routes) {
    if (open.includes(`${method} ${path}`)) continue
    const response = await send(method, path, { key, ...(method === 'GET' ? {} : { body: '{}' }) })
    await response.text()
    found[isHandled ? 'handled' : 'other'].push(response.status)
  }
  return found
}

it.each([null, 'wrong'])('keeps a stranger out of every route but /health: %s', async (key) => {
  const { handled, other } = await statuses(key, ['GET /health'])
  expect(handled.length).toBeGreaterThan(50)
  expect(new Set(handled)).toEqual(new Set([401]))
  // What no route takes, and methods that none has, are told to anybody.
  expect(other.filter((status) => ![401, 404, 405].includes(status))).toEqual([])
})

it('keeps a key to what it may do', async () => {
  const body = { description: '', actions: ['debug:list'], collections: ['*'] }
  const [, { value }] = await call('POST', '/keys', { body })
  expect((await send('GET', '/debug', { key: value })).status).toBe(200)
  const { handled } = await statuses(value, ['GET /health', 'GET /debug'])
  expect(new Set(handled)).toEqual(new Set([401]))
})
