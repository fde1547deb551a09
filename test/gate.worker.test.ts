/** The one gate: whatever the protocol, a request without a key that may do it comes to nothing. */
import { expect, it, vi } from 'vitest'
import { app } from '../src/app'
import { call, send } from './api/typesense/api'
import { HISTORY, scopedKey } from './api/typesense/conversing'

// Every test asks all routes.
vi.setConfig({ testTimeout: 180_000 })

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
  const asked = routes.filter(({ method, path }) => !open.includes(`${method} ${path}`))
  await Promise.all(
    asked.map(async ({ method, path, isHandled }) => {
      const response = await send(method, path, { key, ...(method === 'GET' ? {} : { body: '{}' }) })
      await response.text()
      found[isHandled ? 'handled' : 'other'].push(response.status)
    }),
  )
  return found
}

/** What a client reads to learn which key a server of MCP takes. */
const METADATA = [
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /.well-known/oauth-protected-resource/mcp/x',
]

// `GET /` is a page for whoever brings no key (test/api/opensearch/indices.worker.test.ts).
it.each([null, 'wrong'])('keeps a stranger out of every route but /health: %s', async (key) => {
  const { handled, other } = await statuses(key, ['GET /health', 'GET /', ...METADATA])
  expect(handled.length).toBeGreaterThan(50)
  expect(new Set(handled)).toEqual(new Set([401]))
  // What no route takes, and methods that none has, are told to anybody.
  expect(other.filter((status) => ![401, 404, 405].includes(status))).toEqual([])
})

it('keeps a key to what it may do', async () => {
  const body = { description: '', actions: ['debug:list'], collections: ['*'] }
  const [, { value }] = await call('POST', '/keys', { body })
  expect((await send('GET', '/debug', { key: value })).status).toBe(200)
  const { handled } = await statuses(value, ['GET /health', 'GET /', ...SEEING, ...METADATA])
  expect(new Set(handled)).toEqual(new Set([401]))
})

/** What a key sees that may see which server this is. */
const SEEING = ['GET /debug', 'GET /_cluster/health', 'GET /_cluster/health/x', 'GET /_cluster/settings']

/** Routes that ask an assistant, of every protocol. */
const ASKING = [
  'GET /a/x',
  'GET /a/x/search',
  'POST /a/x/conversations',
  'POST /a/x/conversations/x/handover',
  'POST /ask',
  'POST /a/x/ask',
  'POST /ui/x',
  'GET /ui/x',
  'GET /ui/x/x/stream',
  'POST /ui/x/x/stop',
  'POST /ui/x/feedback',
  'GET /ui/x/x/messages',
  'GET /config',
  'GET /auth_setup',
  'GET /a/x/config',
  'GET /a/x/auth_setup',
  'POST /v1/vector_stores/x/search',
  'POST /v1/completions',
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'GET /v1/models',
  'GET /v1/models/x',
  'POST /mcp',
  'POST /mcp/x',
  'POST /agui/x',
  'GET /.well-known/agent-card.json',
  'GET /a2a/x/.well-known/agent-card.json',
  'POST /a2a/x',
  'GET /copilotkit/info',
  'POST /copilotkit/agent/x/run',
  'POST /copilotkit/agent/x/connect',
  'POST /copilotkit/agent/x/stop/x',
  'POST /deep-chat/x',
  'GET /deep-chat/x/x',
  'POST /n8n/x',
  'POST /ui/x/text',
  'GET /agents/x/x',
  'GET /agents/x/x/get-messages',
]
/** Paths that each of some methods takes. */
function methods(names: string[], paths: string[]): string[] {
  return paths.flatMap((path) => names.map((name) => `${name} ${path}`))
}

// Each search of a multi_search may bring its own key; here there is none.
const SEARCHING = [
  'GET /collections/x/documents/search',
  'POST /multi_search',
  'POST /v1/embeddings',
  ...methods(['GET', 'POST'], ['/_search', '/x/_search', '/_count', '/x/_count', '/x/_refresh']),
  // Which index is meant is in the id.
  ...methods(['GET', 'POST', 'DELETE'], ['/_search/scroll', '/_search/scroll/x']),
  ...methods(['GET', 'POST'], ['/_msearch', '/x/_msearch', '/_refresh']),
  ...ASKING,
]
const WRITING = [
  ...methods(['GET', 'POST'], ['/_mget', '/x/_mget']),
  ...methods(['POST', 'PUT'], ['/_bulk', '/x/_bulk', '/x/_doc/x', '/x/_create/x']),
  'POST /x/_doc',
  'POST /x/_update/x',
  'POST /x/_delete_by_query',
  'GET /x/_doc/x',
  'GET /x/_source/x',
  'DELETE /x/_doc/x',
  'POST /collections/x/documents/import',
  'GET /collections/x/documents/export',
  'POST /collections/x/documents',
  'PATCH /collections/x/documents',
  'DELETE /collections/x/documents',
  'GET /collections/x/documents/x',
  'PATCH /collections/x/documents/x',
  'DELETE /collections/x/documents/x',
]
const ALIASES = [
  'PUT /aliases/x',
  'GET /aliases/x',
  'DELETE /aliases/x',
  'GET /x/_aliases',
  'GET /x/_alias',
  'GET /x/_alias/x',
  ...methods(['PUT', 'POST', 'DELETE'], ['/x/_alias/x', '/x/_aliases/x']),
]
// Which aliases are meant is in the body, or whatever the key may see.
const OF_ALIASES = ['GET /aliases', 'GET /_aliases', 'GET /_alias', 'GET /_alias/x', 'POST /_aliases']
const BOUND = { limits: { assistant: 'x' } }
const SEARCH = { actions: ['documents:search'] }

const KINDS: [kind: string, key: Record<string, unknown>, isScoped: boolean, entered: string[]][] = [
  ['that can only search', { ...SEARCH, collections: ['x'] }, false, SEARCHING],
  ['that is scoped', SEARCH, true, SEARCHING],
  ['that is bound', { actions: ['*'], ...BOUND }, false, ASKING],
  ['that is bound and scoped', { ...SEARCH, ...BOUND }, true, ASKING],
  ['for documents', { actions: ['documents:*'], collections: ['x'] }, false, [...SEARCHING, ...WRITING]],
  ['for aliases', { actions: ['aliases:*'], collections: ['x'] }, false, [...OF_ALIASES, ...ALIASES]],
  ['for other aliases', { actions: ['aliases:*'], collections: ['y'] }, false, OF_ALIASES],
]

/** Whose conversations are is another matter: test/conversation/ownership.worker.test.ts. */
const OF_CONVERSATIONS =
  /^\/(conversations(?!\/models)|users|_plugins\/_ml\/memory|v1\/(conversations|responses\/))/

it.each(KINDS)('lets a key %s go where it may, and nowhere else', async (_, key, isScoped, expected) => {
  const [, { value }] = await call('POST', '/keys', { body: { description: '', collections: ['*'], ...key } })
  const presented = isScoped ? await scopedKey(value, { filter_by: 'id:=1' }) : value
  const entered: string[] = []
  const asked = routes.filter(
    ({ path, isHandled }) => isHandled && path !== '/' && !OF_CONVERSATIONS.test(path),
  )
  await Promise.all(
    asked.map(async ({ method, path }) => {
      const response = await send(method, path, {
        key: presented,
        ...(method === 'GET' ? {} : { body: '{}' }),
      })
      await response.text()
      if (response.status !== 401) entered.push(`${method} ${path}`)
    }),
  )
  expect(entered.sort()).toEqual(['GET /health', ...METADATA, ...expected].sort())
})

const SHOP = 'https://shop.example'
const EVIL = { origin: 'https://evil.example' }
/** What an open route of any protocol needs to come as far as its assistant. */
const ASKED = JSON.stringify({
  model: 'x',
  input: 'a',
  query: 'a',
  prompt: 'a',
  messages: [{ role: 'user', content: 'a' }],
})
/** Bodies of routes that refuse one of these fields whoever asks. */
const OTHER_BODIES: Readonly<Record<string, string>> = {
  '/a/x/conversations': JSON.stringify({ question: 'a' }),
  '/a/x/conversations/x/handover': JSON.stringify({ contact: 'a' }),
  '/v1/responses': JSON.stringify({ model: 'x', input: 'a' }),
}

/** All routes with this key, from a page that may not use it or what it asks for. */
async function asEvil(key: string, among: (route: (typeof routes)[number]) => boolean) {
  const asked = routes.filter((route) => route.isHandled && route.path !== '/' && among(route))
  return Promise.all(
    asked.map(async ({ method, path }) => {
      const response = await send(
        method,
        path.replace('/ai-search/x/', `/ai-search/${key}/`).replace(/^\/a\/x\/search$/, '$&?q=a'),
        {
          key,
          headers: { ...EVIL, 'content-type': 'application/json' },
          ...(method === 'GET' ? {} : { body: OTHER_BODIES[path] ?? ASKED }),
        },
      )
      const isReadable = response.headers.has('access-control-allow-origin')
      return { route: `${method} ${path}`, status: response.status, isReadable, text: await response.text() }
    }),
  )
}

it('keeps a page that a key does not list out of every route', async () => {
  const key = { description: '', actions: ['*'], collections: ['*'], limits: { allowed_origins: [SHOP] } }
  const [, { value }] = await call('POST', '/keys', { body: key })
  const answers = await asEvil(value, ({ method, path }) => !METADATA.includes(`${method} ${path}`))
  const entered = answers.filter(({ status, isReadable }) => status !== 403 || isReadable)
  expect(entered.map(({ route }) => route)).toEqual(['GET /health'])
  expect(answers.length).toBeGreaterThan(100)
})

it('keeps a page that an assistant does not list out of every route that asks it', async () => {
  await call('POST', '/collections', { body: HISTORY })
  await call('POST', '/collections', { body: { name: 'facts', fields: [{ name: 'text', type: 'string' }] } })
  const model = { id: 'm', model_name: 'local/extractive', history_collection: 'history', max_bytes: 16_384 }
  await call('POST', '/conversations/models', { body: model })
  const assistant = { model: 'm', collections: ['facts'], allowed_origins: [SHOP] }
  for (const name of ['x', 'default']) {
    expect((await send('PUT', `/assistants/${name}`, { body: JSON.stringify(assistant) })).status).toBe(200)
  }
  const isAsking = ({ method, path }: { method: string; path: string }) =>
    [...ASKING, 'POST /v1/embeddings', 'POST /v1/conversations'].includes(`${method} ${path}`)
  const answers = await asEvil('xyz', isAsking)
  const entered = answers.filter(({ status, isReadable }) => status !== 403 || isReadable)
  // Lists leave it out.
  const lists = ['GET /copilotkit/info', 'GET /v1/models']
  expect(entered.map(({ route }) => route).sort()).toEqual(lists)
  for (const { text } of entered) expect(text).not.toMatch(/"(x|default)"/)
})

it('lets a key for another collection touch nothing of this one', async () => {
  const body = { description: '', actions: ['*'], collections: ['y'] }
  const [, { value }] = await call('POST', '/keys', { body })
  for (const { method, path, isHandled } of routes) {
    if (!isHandled || !/^\/((collections|aliases)\/)?x(\/|$)/.test(path)) continue
    expect(
      (await send(method, path, { key: value, ...(method === 'GET' ? {} : { body: '{}' }) })).status,
    ).toBe(401)
  }
})
