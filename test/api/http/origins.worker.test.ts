/** Pages: which origins may use a Parley, a key or an assistant, on every protocol. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { app } from '../../../src/app'
import { HISTORY, scopedKey } from '../typesense/conversing'

const SHOP = 'https://shop.example'
const EVIL = 'https://evil.example'
const LOCAL: Partial<Cloudflare.Env> = { CORS_ORIGINS: 'loopback' as never, SERVED_HOSTS: 'loopback' }

interface Sending {
  method?: string
  key?: string
  body?: unknown
  headers?: Record<string, string>
  settings?: Partial<Cloudflare.Env>
  url?: string
}

async function send(path: string, sending: Sending = {}) {
  const { key = 'xyz', body, headers, settings, url = 'https://parley.test' } = sending
  const { method = body === undefined ? 'GET' : 'POST' } = sending
  const context = createExecutionContext()
  const request = new Request(url + path, {
    method,
    headers: {
      ...(key !== '' && { 'x-typesense-api-key': key }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const response = await app.fetch(request, { ...env, ...settings } as Cloudflare.Env, context)
  const text = await response.text()
  await waitOnExecutionContext(context)
  const json = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
  const cors = [...response.headers.keys()].filter((name) => name.startsWith('access-control'))
  return { status: response.status, text, json, cors, headers: response.headers }
}

const makeKey = async (limits: Record<string, unknown> = {}): Promise<string> => {
  const body = { description: '', actions: ['documents:search'], collections: ['*'], limits }
  const { status, json } = await send('/keys', { body })
  expect(status).toBe(201)
  return json.value
}

const assistant = (name: string, more: object = {}) =>
  send(`/assistants/${name}`, { method: 'PUT', body: { model: 'm', collections: ['facts'], ...more } })

const UI_MESSAGES = { messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'How high?' }] }] }

/** A question to an assistant on each protocol that has them. */
const asked = (name: string): [path: string, body: unknown][] => [
  [`/a/${name}/chat`, { messages: [{ role: 'user', content: 'How high?' }] }],
  [`/ui/${name}`, UI_MESSAGES],
  ['/v1/chat/completions', { model: name, messages: [{ role: 'user', content: 'How high?' }] }],
  ['/v1/responses', { model: name, input: 'How high?' }],
]

beforeAll(async () => {
  await send('/collections', { body: HISTORY })
  await send('/collections', { body: { name: 'facts', fields: [{ name: 'text', type: 'string' }] } })
  await send('/collections/facts/documents', { body: { text: 'The Eiffel Tower is 330 metres high.' } })
  const model = { id: 'm', model_name: 'local/extractive', history_collection: 'history', max_bytes: 16_384 }
  expect((await send('/conversations/models', { body: model })).status).toBe(201)
  expect((await assistant('open')).status).toBe(200)
  expect((await assistant('shop', { allowed_origins: [SHOP, 'https://*.shop.example'] })).status).toBe(200)
})

describe('a local start', () => {
  const at = (url: string, headers: Record<string, string> = {}, more: Sending = {}) =>
    send('/collections', { url, headers, settings: LOCAL, ...more })

  it('lets pages of this machine in, of any port, and its own', async () => {
    for (const origin of ['http://localhost:3000', 'https://127.0.0.1:5173', 'http://[::1]:80']) {
      const { status, headers } = await at('http://localhost:8108', { origin })
      expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin])
    }
    expect((await at('http://127.0.0.1:8108', { origin: 'http://127.0.0.1:8108' })).status).toBe(200)
  })

  it.each([
    ['another site', { origin: EVIL }],
    ['a sandbox', { origin: 'null' }],
    ['a plain GET of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
  ])('refuses a page of %s before it does anything', async (_, headers) => {
    const query = '?x-typesense-api-key=xyz'
    const path = `/collections${query}`
    const made = { name: 'made-by-a-page', fields: [{ name: 'text', type: 'string' }] }
    for (const body of [undefined, made]) {
      const { status, json, cors } = await send(path, {
        key: '',
        url: 'http://localhost:8108',
        headers: headers as Record<string, string>,
        settings: LOCAL,
        body,
      })
      expect([status, cors]).toEqual([403, []])
      expect(json.message).toContain('npm start -- --allow-origin')
    }
    expect((await send('/collections/made-by-a-page')).status).toBe(404)
  })

  it('says which option lets a page in, which then does', async () => {
    const { json } = await at('http://localhost:8108', { origin: SHOP })
    expect(json.message).toBe(
      `A page of ${SHOP} may not use this Parley. To let it in, start Parley with: npm start -- --allow-origin ${SHOP}`,
    )
    const settings = { ...LOCAL, CORS_ORIGINS: `loopback, ${SHOP}` as never }
    const { status, headers } = await at('http://localhost:8108', { origin: SHOP }, { settings })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, SHOP])
  })

  it('answers to the names of this machine, and to whom it is told', async () => {
    for (const url of ['http://localhost:1', 'http://127.0.0.1:2', 'http://[::1]:3', 'http://a.localhost'])
      expect((await at(url)).status).toBe(200)
    for (const [host, option] of [
      ['rebound.evil.example', '--allow-host rebound.evil.example'],
      ['localhost.evil.example', '--allow-host localhost.evil.example'],
      ['192.168.1.5', '--host 192.168.1.5'],
    ]) {
      // Of the same origin, as a page is that had its own name point here.
      const { status, json, cors } = await at(`http://${host}:8108`, { origin: `http://${host}:8108` })
      expect([status, cors]).toEqual([403, []])
      expect(json.message).toContain(`does not answer to the name ${host}`)
      expect(json.message).toContain(`npm start -- ${option}`)
    }
    const settings = { ...LOCAL, SERVED_HOSTS: 'loopback, addresses, parley.lan, *.app.github.dev' }
    for (const url of ['http://192.168.1.5:8108', 'http://parley.lan', 'https://x-8108.app.github.dev'])
      expect((await at(url, {}, { settings })).status).toBe(200)
    for (const url of ['http://parley.lan.evil', 'http://app.github.dev', 'http://1.2.3.4.nip.io'])
      expect((await at(url, {}, { settings })).status).toBe(403)
  })

  it('goes by the name in the header where something on the way has rewritten the address', async () => {
    const [host, ours] = ['rebound.evil.example:8108', 'localhost:8108']
    const rewritten: Record<string, string>[] = [
      { host },
      { host, origin: `http://${host}` },
      { host, origin: `http://${ours}` },
    ]
    for (const headers of rewritten) {
      const { status, cors } = await at(`http://${ours}`, headers)
      expect([status, cors]).toEqual([403, []])
    }
    expect((await at(`http://${host}`, { host: ours })).status).toBe(403)
    expect((await at(`http://${ours}`, { host: ours })).status).toBe(200)
    for (const two of [
      'localhost, evil.example',
      'evil.example@localhost',
      'localhost/x',
      'local host',
      '[',
    ]) {
      const { status, json } = await at(`http://${ours}`, { host: two })
      expect([two, status, json.message]).toEqual([two, 400, expect.stringContaining('`Host` must be one')])
    }
  })

  it('asks nothing of programs that are no browser', async () => {
    expect((await at('http://localhost:8108')).status).toBe(200)
  })
})

describe('a deployment that lists origins', () => {
  const settings = { CORS_ORIGINS: `${SHOP}` as never }

  it('refuses pages of others, and not its own', async () => {
    const refused = await send('/collections', { settings, headers: { origin: EVIL } })
    expect([refused.status, refused.cors]).toEqual([403, []])
    expect(refused.json.message).toContain('listed in the variable CORS_ORIGINS')
    for (const origin of [SHOP, 'https://parley.test'])
      expect((await send('/collections', { settings, headers: { origin } })).status).toBe(200)
  })
})

describe('a key for origins', () => {
  const search = (key: string, headers: Record<string, string> = {}) =>
    send('/collections/facts/documents/search?q=eiffel&query_by=text', { key, headers })

  it('is for their pages and for no others, and so are its scoped keys', async () => {
    const parent = await makeKey({ allowed_origins: [SHOP, 'https://*.example.org'] })
    for (const key of [parent, await scopedKey(parent, { user_id: 'ann' })]) {
      for (const origin of [SHOP, 'https://a.b.example.org', undefined, 'https://parley.test']) {
        expect((await search(key, origin === undefined ? {} : { origin })).status).toBe(200)
      }
      const foreign: Record<string, string>[] = [
        { origin: EVIL },
        { origin: 'https://example.org' },
        { origin: 'http://shop.example' },
        { origin: 'null' },
        { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      ]
      for (const headers of foreign) {
        const { status, json, cors } = await search(key, headers)
        expect([status, cors]).toEqual([403, []])
        expect(json.message).toContain('`allowed_origins` does not list it')
      }
    }
  })

  it('is refused by every protocol in its own form, without a word to the page', async () => {
    const key = await makeKey({ allowed_origins: [SHOP] })
    const searches = { searches: [{ collection: 'facts', q: 'x', query_by: 'text' }] }
    const own = { question: 'How high?', model: 'm', collections: ['facts'] }
    const questions = [...asked('open'), ['/multi_search', searches], ['/conversations', own]] as const
    for (const [path, body] of questions) {
      const refused = await send(path, { key, body, headers: { origin: EVIL } })
      expect([path, refused.status, refused.cors]).toEqual([path, 403, []])
      expect(refused.text).toContain('allowed_origins')
      const { status, headers } = await send(path, { key, body, headers: { origin: SHOP } })
      expect([path, status, headers.get('access-control-allow-origin')]).toEqual([path, 200, '*'])
    }
    const { json } = await send('/v1/chat/completions', {
      key,
      body: asked('open')[2]![1],
      headers: { origin: EVIL },
    })
    expect(json.error).toMatchObject({ type: 'permission_error', code: 'origin_not_allowed' })
  })

  it('answers the preflight, which cannot know the key, and shows its list', async () => {
    const { status, headers } = await send('/collections', {
      method: 'OPTIONS',
      headers: { origin: EVIL, 'access-control-request-headers': 'x-typesense-api-key' },
    })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    await makeKey({ allowed_origins: [SHOP] })
    const { json } = await send('/keys')
    expect(json.keys.at(-1).limits).toEqual({ allowed_origins: [SHOP] })
  })

  it.each([
    [],
    'https://a.example',
    ['a.example'],
    ['*'],
    ['https://a.example/x'],
    [1],
    Array(51).fill(SHOP),
  ])('is not made for %j', async (allowed_origins) => {
    const body = { description: '', actions: ['documents:search'], collections: ['*'] }
    const { status, json } = await send('/keys', { body: { ...body, limits: { allowed_origins } } })
    expect(status).toBe(400)
    expect(json.message).toContain(
      'Wrong format for `limits.allowed_origins`. It should be an array of 1 to 50',
    )
  })
})

describe('an assistant for origins', () => {
  it('is asked by their pages alone, with whatever key and on whatever protocol', async () => {
    for (const key of ['xyz', await makeKey(), await makeKey({ assistant: 'shop' })]) {
      for (const [path, body] of asked('shop')) {
        const refused = await send(path, { key, body, headers: { origin: EVIL } })
        expect([path, refused.status, refused.cors]).toEqual([path, 403, []])
        expect(refused.text).toContain('This assistant may not be used by pages of https://evil.example')
        for (const headers of [{ origin: SHOP }, { origin: 'https://a.shop.example' }, {}] as Record<
          string,
          string
        >[]) {
          expect([path, (await send(path, { key, body, headers })).status]).toEqual([path, 200])
        }
      }
      const front = await send('/a/shop', { key, headers: { origin: EVIL } })
      expect([front.status, front.cors]).toEqual([403, []])
    }
  })

  it('shows its list, and refuses what is none', async () => {
    const { json } = await send('/assistants/shop')
    expect(json.allowed_origins).toEqual([SHOP, 'https://*.shop.example'])
    for (const allowed_origins of [[], ['shop.example'], ['*'], 'x']) {
      const refused = await assistant('wrong', { allowed_origins })
      expect(refused.status).toBe(400)
      expect(refused.json.message).toContain('allowed_origins')
    }
  })
})

describe('KEYS_IN_URLS', () => {
  const settings = { KEYS_IN_URLS: 'off' as const }
  const routes = ['/collections', '/conversations', '/v1/models', '/assistants', '/_cat/indices?format=json']
  const withKey = (route: string) => `${route}${route.includes('?') ? '&' : '?'}x-typesense-api-key=xyz`

  it('off refuses a key in the URL on every wire, and says what to do', async () => {
    for (const route of routes) {
      const { status, text } = await send(withKey(route), { key: '', settings })
      expect([route, status, text]).toEqual([route, 400, expect.stringContaining('Send it in the header')])
      expect(text).not.toContain('xyz')
      expect([route, (await send(route, { settings })).status]).toEqual([route, 200])
    }
  })

  it('off refuses a key in a path, and every secret however its name is written', async () => {
    const visitor = `${crypto.randomUUID()}${crypto.randomUUID()}`
    for (const [route, secret] of [
      ['/ai-search/xyz/open/chat/completions', 'xyz'],
      ['//ai-search//xyz/open/search', 'xyz'],
      ['/ai-search/xyz', 'xyz'],
      ['/collections?X-TYPESENSE-API-KEY=xyz', 'xyz'],
      ['/collections?x%2Dtypesense%2Dapi%2Dkey=xyz', 'xyz'],
      [`/conversations?x-parley-visitor=${visitor}`, visitor],
      [`/agents/open/${visitor}?x-parley-visitor=${visitor}`, visitor],
    ] as const) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await send(route, { method, settings })
        expect([route, status, text]).toEqual([route, 400, expect.stringContaining('Send it in the header')])
        expect(text).not.toContain(secret)
      }
    }
  })

  it('takes one where it is not set', async () => {
    for (const route of routes) {
      expect([route, (await send(withKey(route), { key: '' })).status]).toEqual([route, 200])
    }
  })
})
