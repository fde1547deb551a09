/** Every route says which methods its path takes, to `OPTIONS` and to any other method. */
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { operations } from '../../../src/api/parley/operations'
import { app } from '../../../src/app'
import { wires } from '../../wires'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const send = (method: string, path: string, headers: Record<string, string> = {}) =>
  app.fetch(
    new Request(`http://parley${path}`, { method, headers: { 'x-typesense-api-key': 'xyz', ...headers } }),
    env,
  )

/** The routes of the reference, written by hand: `routes-listed` holds them against those that are registered. */
const listed = [
  ...Object.values(operations).map(({ method, path }) => ({ method, path })),
  ...wires.flatMap(({ groups }) => groups.flatMap(({ routes }) => routes)),
]

const PARAMETER = /:\w+(?:\{([^}]*)\})?|\{\w+\}/g

/** Paths with names in the place of their parameters. A name may stand where another path has a word of its own. */
const routes = listed.map(({ method, path }) => ({
  methods: method.split(', '),
  path: path.replace(PARAMETER, 'x'),
  pattern: new RegExp(`^${path.replace(PARAMETER, (_, own = '[^/]+') => own)}$`),
}))
const methodsOf = (path: string): string[] =>
  routes.flatMap((route) => (route.path === path ? route.methods : []))
const mostMethodsOf = (path: string): string[] =>
  routes.flatMap(({ methods, pattern }) => (pattern.test(path) ? methods : []))

const paths = new Set(routes.map(({ path }) => path))

const allowedBy = (response: Response): string[] => (response.headers.get('allow') ?? '').split(', ')

it('every path names the methods that it takes, and refuses the others by name', {
  timeout: 60_000,
}, async () => {
  expect(paths.size).toBeGreaterThan(90)
  for (const path of paths) {
    const asked = await send('OPTIONS', path)
    expect([path, asked.status]).toEqual([path, 204])
    const allowed = allowedBy(asked).filter((method) => method !== 'OPTIONS')
    expect(allowedBy(asked)).toContain('OPTIONS')
    expect([path, methodsOf(path).filter((method) => !allowed.includes(method))]).toEqual([path, []])
    expect([path, allowed.filter((method) => !mostMethodsOf(path).includes(method))]).toEqual([path, []])
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
