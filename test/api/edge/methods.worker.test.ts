/** Every route says which methods its path takes, to `OPTIONS` and to any other method. */
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { app } from '../../../src/app'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const send = (method: string, path: string, headers: Record<string, string> = {}) =>
  app.fetch(
    new Request(`http://parley${path}`, { method, headers: { 'x-typesense-api-key': 'xyz', ...headers } }),
    env,
  )

/** The path of every route, with names in the place of its parameters, and the methods that are registered for it. */
const paths = new Map<string, Set<string>>()
for (const { method, path } of app.routes) {
  if (path.endsWith('/*')) continue
  const named = path.replace(/:\w+(\{[^}]*\})?/g, 'x')
  const methods = paths.get(named) ?? new Set()
  if (method !== 'ALL') methods.add(method)
  paths.set(named, methods)
}

const allowedBy = (response: Response): string[] => (response.headers.get('allow') ?? '').split(', ')

it('every path names the methods that it takes, and refuses the others by name', {
  timeout: 60_000,
}, async () => {
  expect(paths.size).toBeGreaterThan(90)
  for (const [path, registered] of paths) {
    const asked = await send('OPTIONS', path)
    expect([path, asked.status]).toEqual([path, 204])
    const allowed = allowedBy(asked).filter((method) => method !== 'OPTIONS')
    expect(allowedBy(asked)).toContain('OPTIONS')
    for (const method of registered) expect([path, ...allowed]).toContain(method)
    for (const method of METHODS.filter((each) => !allowed.includes(each))) {
      const response = await send(method, path)
      const body = await response.text()
      expect(response.status, `${method} ${path}`).toBe(405)
      expect(allowedBy(response).sort()).toEqual(allowed.toSorted())
      const said = JSON.stringify(JSON.parse(body))
      expect(said, `${method} ${path}`).toMatch(
        new RegExp(`not ${method}|Only ${allowed.join('|')}|Incorrect HTTP method`),
      )
    }
  }
})

it.each([
  [
    '/v1/chat/completions',
    { error: { type: 'invalid_request_error', message: expect.stringMatching(/POST, not GET/) } },
  ],
  ['/mcp', { jsonrpc: '2.0', error: { message: expect.stringMatching(/POST, not GET/) } }],
  ['/multi_search', { message: '/multi_search takes POST, not GET.' }],
])('writes the refusal in the words of the protocol: %s', async (path, body) => {
  const response = await send('GET', path)
  expect(response.status).toBe(405)
  expect(await response.json()).toMatchObject(body)
})

it.each([
  ['POST', '/chat/completions'],
  ['POST', '/responses'],
  ['GET', '/models'],
  ['GET', '/models/nothing'],
])('serves OpenAI at a base address without /v1: %s %s', async (method, path) => {
  const headers = { authorization: 'Bearer xyz' }
  const [plain, versioned] = [await send(method, path, headers), await send(method, `/v1${path}`, headers)]
  expect(plain.status).toBe(versioned.status)
  expect(await plain.text()).toBe(await versioned.text())
})

it('leaves an index of the name `models` to whoever sends no Bearer token', async () => {
  const response = await send('GET', '/models')
  expect(await response.text()).toContain('index_not_found_exception')
})
