/** What every answer has in common, whatever route gave it. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { app } from '../src/app'
import { HISTORY, scopedKey } from './api/typesense/conversing'

interface Sending {
  key?: string
  body?: unknown
  headers?: Record<string, string>
  settings?: Partial<Cloudflare.Env>
}

async function send(method: string, path: string, sending: Sending = {}): Promise<Response> {
  const { key = 'xyz', body, headers, settings } = sending
  const context = createExecutionContext()
  const request = new Request(`https://parley.test${path}`, {
    method,
    headers: { ...(key !== '' && { 'x-typesense-api-key': key }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const response = await app.fetch(request, { ...env, ...settings } as Cloudflare.Env, context)
  await waitOnExecutionContext(context)
  return response
}

const makeKey = async (parts: Record<string, unknown> = {}): Promise<string> => {
  const body = { description: '', actions: ['documents:search'], collections: ['*'], ...parts }
  const response = await send('POST', '/keys', { body })
  return (await response.json<{ value: string }>()).value
}

beforeAll(async () => {
  await send('POST', '/collections', { body: HISTORY })
  await send('POST', '/collections', { body: { name: 'facts', fields: [{ name: 'text', type: 'string' }] } })
  const model = { model_name: 'local/extractive', history_collection: 'history', max_bytes: 16_384 }
  const response = await send('POST', '/conversations/models', { body: { ...model, id: 'm' } })
  expect(response.status).toBe(201)
})

describe('origins', () => {
  const origins = (CORS_ORIGINS: string, origin?: string, method = 'GET') =>
    send(method, '/health', {
      settings: { CORS_ORIGINS },
      headers: {
        ...(origin !== undefined && { origin }),
        ...(method === 'OPTIONS' && { 'access-control-request-headers': 'x-typesense-api-key' }),
      },
    })

  it('are all of them with *', async () => {
    const { headers } = await origins('*', 'https://a.example')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-expose-headers')).toMatch(/Retry-After, X-Request-Id/)
    expect(headers.get('vary')).toBeNull()
  })

  it.each(['GET', 'OPTIONS'])('are those that are listed, for %s', async (method) => {
    const list = 'https://a.example, https://b.example:8443/'
    for (const origin of ['https://a.example', 'https://b.example:8443']) {
      const { headers, status } = await origins(list, origin, method)
      expect(status).toBe(200)
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      expect(headers.get('vary')).toBe('Origin')
    }
    for (const origin of [
      'https://evil.example',
      'https://a.example.evil',
      'http://a.example',
      'null',
      undefined,
    ]) {
      const { headers } = await origins(list, origin, method)
      for (const name of headers.keys()) expect(name).not.toMatch(/^access-control/)
      expect(headers.get('vary')).toBe('Origin')
    }
  })
})

describe('headers', () => {
  it.each(['/health', '/nope', '/keys', '/collections/nope'])('protect the answer to %s', async (path) => {
    const { headers } = await send('GET', path)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'strict-transport-security': 'max-age=31536000',
    })
  })

  it('carry an id of the request: the caller’s own where it can be nothing else', async () => {
    const idOf = async (given?: string) =>
      (
        await send('GET', '/nope', { headers: given === undefined ? {} : { 'x-request-id': given } })
      ).headers.get('x-request-id')
    expect(await idOf('abc-1.2_3')).toBe('abc-1.2_3')
    for (const given of [undefined, '', 'a b', '{"x":1}', 'x'.repeat(65)]) {
      expect(await idOf(given)).toMatch(/^[0-9a-f-]{36}$/)
    }
  })
})

describe('rates', () => {
  const refusing = { limit: async () => ({ success: false }) }
  const settings = { RATE_LIMITS: 'on', RATE_LIMIT: refusing }

  it.each([
    ['GET', '/collections/facts/documents/search?q=x&query_by=text', undefined],
    ['POST', '/multi_search', { searches: [{ collection: 'facts', q: 'x', query_by: 'text' }] }],
    ['POST', '/collections/facts/documents', { text: 'x' }],
    ['GET', '/keys', undefined],
  ])('hold for %s %s', async (method, path, body) => {
    const response = await send(method, path, { body, settings })
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('10')
    expect(await response.json()).toEqual({ message: 'Rate limit exceeded or blocked' })
  })

  it('of turns leave searches alone', async () => {
    const path = '/collections/facts/documents/search?q=x&query_by=text'
    const turns = { RATE_LIMITS: 'on', RATE_LIMIT_TURNS: refusing }
    expect((await send('GET', path, { settings: turns })).status).toBe(200)
    const response = await send('GET', `${path}&conversation=true&conversation_model_id=m`, {
      settings: turns,
    })
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '60'])
    // An empty conversation costs what a first question stores.
    const opened = await send('POST', '/v1/conversations', { body: {}, settings: turns })
    expect([opened.status, opened.headers.get('retry-after')]).toEqual([429, '60'])
  })

  it('hold for an address that tries keys; who has none is not counted', async () => {
    expect((await send('GET', '/keys', { key: 'wrong', settings })).status).toBe(429)
    expect((await send('GET', '/keys', { key: '', settings })).status).toBe(401)
    expect((await send('GET', '/health', { key: '', settings })).status).toBe(200)
  })

  it('are counted by what a scoped key says, however it is spelt', async () => {
    const counted: string[] = []
    const limit = async ({ key }: { key: string }) => {
      if (!key.startsWith('address')) counted.push(key)
      return { success: true }
    }
    const parent = await makeKey()
    const ann = await scopedKey(parent, { user_id: 'ann!' })
    const search = (key: string) =>
      send('GET', '/collections/facts/documents/search?q=x&query_by=text', {
        key,
        settings: { RATE_LIMITS: 'on', RATE_LIMIT: { limit } },
      })
    for (const key of [parent, ann, ann.replace(/=+$/, ''), await scopedKey(parent, { user_id: 'bob' })]) {
      expect((await search(key)).status).toBe(200)
    }
    const [digest, anns, family, again, , bobs] = counted
    expect(again).toBe(anns)
    expect(new Set([digest, anns, bobs]).size).toBe(3)
    // Beside its own, a scoped key counts in one of its parent's counters.
    expect(family).toMatch(new RegExp(`^${digest}/\\d+$`))
    expect(counted).toHaveLength(7)
    for (const key of counted) expect(key).not.toContain(parent)
  })
})

describe('the log', () => {
  afterEach(() => vi.restoreAllMocks())

  const lines = async (work: () => Promise<unknown>): Promise<Record<string, unknown>[]> => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    await work()
    const written = log.mock.calls.map(([line]) => JSON.parse(String(line)))
    log.mockRestore()
    return written
  }
  const on = { LOG_REQUESTS: 'on' }

  it('has one line a request, without path, query or key', async () => {
    const key = await makeKey()
    const path = '/collections/facts/documents/search?q=secret-question&query_by=text'
    const [line, ...rest] = await lines(() =>
      send('GET', path, { key, headers: { 'x-request-id': 'abc' }, settings: on }),
    )
    expect(rest).toEqual([])
    expect(line).toEqual({
      type: 'request',
      ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      request_id: 'abc',
      method: 'GET',
      route: '/collections/:collection/documents/search',
      status: 200,
      ms: expect.any(Number),
      key: expect.stringMatching(/^\d+$/),
    })
    expect(JSON.stringify(line)).not.toContain('secret-question')
  })

  it('has the question only where that is switched on', async () => {
    const [line] = await lines(() =>
      send('GET', '/collections/facts/documents/search?q=secret-question&query_by=text', {
        settings: { ...on, LOG_CONTENT: 'on' },
      }),
    )
    expect(line).toMatchObject({ question: 'secret-question' })
  })

  it.each([
    ['', {}, 'no key'],
    ['wrong', {}, 'unknown or expired key'],
    [undefined, { actions: ['keys:list'] }, 'action'],
    [undefined, { collections: ['other'] }, 'collection'],
  ])('says why a key was refused, which the answer does not: %s %j', async (given, parts, denied) => {
    const key = given ?? (await makeKey(parts))
    const [line] = await lines(() =>
      send('GET', '/collections/facts/documents/search?q=x', { key, settings: on }),
    )
    expect(line).toMatchObject({ status: 401, denied })
  })

  const audited = (method: string, path: string, sending: Sending = {}) =>
    send(method, path, { ...sending, settings: { LOG_REQUESTS: 'audit' } })

  it('has an audit line for an administrator’s change, with its key and its target', async () => {
    const model = {
      id: 'audited',
      model_name: 'local/extractive',
      history_collection: 'history',
      max_bytes: 16_384,
      api_key: 'sk-very-secret-key',
    }
    const written = await lines(async () => {
      await audited('POST', '/conversations/models', { body: model })
      await audited('PUT', '/conversations/models/audited', { body: { ttl: 5 } })
      await audited('DELETE', '/conversations/models/audited')
      await audited('POST', '/collections', {
        body: { name: 'audited', fields: [{ name: 'a', type: 'string' }] },
      })
      await audited('DELETE', '/collections/audited')
      await audited('PUT', '/aliases/audited', { body: { collection_name: 'facts' } })
      await audited('DELETE', '/keys/12345')
      await audited('GET', '/keys')
      await audited('POST', '/collections/facts/documents', { body: { text: 'x' } })
    })
    const common = { type: 'audit', key: 'admin', ts: expect.any(String), request_id: expect.any(String) }
    expect(written).toEqual(
      [
        ['conversations/models:create', 'audited', 201],
        ['conversations/models:upsert', 'audited', 200],
        ['conversations/models:delete', 'audited', 200],
        ['collections:create', 'audited', 201],
        ['collections:delete', 'audited', 200],
        ['aliases:upsert', 'audited', 200],
        ['keys:delete', '12345', 404],
      ].map(([action, target, status]) => ({ ...common, action, target, status })),
    )
    expect(JSON.stringify(written)).not.toContain('sk-very')
  })

  it('has one for deleted conversations and for traces that were read, whoever did it', async () => {
    const written = await lines(async () => {
      await audited('DELETE', '/users/someone/conversations')
      await audited('DELETE', '/conversations/none')
      await audited('GET', '/conversations/none/trace')
      await audited('GET', '/conversations/none')
      await audited('POST', '/conversations/none/stop')
      await audited('GET', '/conversations')
      await audited('PUT', '/assistants/shop', { body: {} })
    })
    expect(written.map(({ action, target, status }) => [action, target, status])).toEqual([
      ['conversations:delete', 'someone', 200],
      ['conversations:delete', 'none', 404],
      ['conversations:trace', 'none', 404],
      ['assistants:upsert', 'shop', 400],
    ])
  })

  it('is silent where it is turned off', async () => {
    expect(await lines(() => makeKey())).toEqual([])
  })

  it('names a new key by its id and never by its value', async () => {
    let value = ''
    const [line] = await lines(async () => {
      const body = { description: '', actions: ['*'], collections: ['*'] }
      value = (await (await audited('POST', '/keys', { body })).json<{ value: string }>()).value
    })
    expect(line).toMatchObject({
      type: 'audit',
      action: 'keys:create',
      target: expect.stringMatching(/^\d+$/),
    })
    expect(JSON.stringify(line)).not.toContain(value)
  })
})

describe('pages', () => {
  const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  const open = async (path: string, sending: Sending = {}) => {
    const response = await send('GET', path, { key: '', headers: BROWSER, ...sending })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('show the console where it is turned on, and say how to where it is not', async () => {
    const on = await open('/', { settings: { CONSOLE: 'on' } })
    expect(on).toMatchObject({ status: 200, text: expect.stringContaining('/console/console.js') })
    expect(on.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'/)
    const off = await open('/', { settings: { CONSOLE: 'off' } })
    expect(off).toMatchObject({ status: 200, text: expect.stringContaining('CONSOLE') })
    expect(off.text).not.toContain('console.js')
  })

  it.each([
    ['/nowhere', 401],
    ['/no/where', 404],
    ['/_nowhere', 404],
    ['/collections', 401],
    ['//nowhere:80x/y', 404],
    ['/%5Cnowhere:80x/y', 404],
    ['//collections', 401],
  ])('stand at an address that is none, for whoever opens %s in a browser', async (path, status) => {
    const page = await open(path)
    expect(page.status).toBe(status)
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'/)
    expect(page.text).toContain('There is no page at this address')
  })

  it('stand in no client\u2019s way', async () => {
    for (const [path, sending] of [
      ['/collections', { headers: {} }],
      ['/nowhere', { key: 'wrong' }],
      ['/no/where', { headers: { ...BROWSER, authorization: 'Basic eDp5' } }],
      ['/no/where', { headers: { accept: 'application/json' } }],
    ] as [string, Sending][]) {
      expect((await open(path, sending)).headers.get('content-type')).toContain('application/json')
    }
    expect(
      (await send('POST', '/no/where', { key: '', headers: BROWSER })).headers.get('content-type'),
    ).toContain('json')
  })
})
