/** A cluster's credentials, looked for in all that a server writes and says while the cluster works, fails and quotes them. */
import type { RequestListener } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { type Served, serve } from '../serve'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

vi.setConfig({ testTimeout: 120_000 })

const SECRETS = {
  typesense: 'typesense-secret-3f9a1c',
  opensearch: 'opensearch-secret-77b2d0',
  'ai-search': 'ai-search-secret-c40e15',
}

const parley = new OwnParley({
  VARS: JSON.stringify({ LOG_REQUESTS: 'on', ENCRYPTION_KEY: 'the key of this test' }),
})
/** One for each engine: a node that fails is left alone for a while. */
const clusters: Served[] = []
/** what the cluster does with a search */
let fault: number | 'cut' | undefined
/** all that Parley has replied */
const replies: string[] = []

async function call(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
  const response = await fetch(parley.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  replies.push(JSON.stringify([...response.headers]), text)
  return { status: response.status, text }
}

const answer: RequestListener = (incoming, outgoing) => {
  const { url: path = '', headers } = incoming
  incoming.resume()
  const quoted = `refused: ${headers.authorization ?? headers['x-typesense-api-key']}`
  const isSearch = /search/.test(path) && !/stats/.test(path)
  const send = (status: number, body: unknown) => {
    outgoing.writeHead(status, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' })
    outgoing.end(JSON.stringify(body))
  }
  if (isSearch && fault !== undefined) {
    if (fault === 'cut') return void incoming.socket.destroy()
    return send(fault, { message: quoted, error: { reason: quoted }, errors: [{ message: quoted }] })
  }
  const fields = [{ name: 'title', type: 'string' }]
  if (path.endsWith('/multi_search')) {
    const result = {
      found: 0,
      hits: [],
      facet_counts: [],
      request_params: { collection_name: 'x', q: 'a' },
    }
    return send(200, { results: [result] })
  }
  if (path.endsWith('/_mapping')) {
    return send(200, { i: { mappings: { properties: { title: { type: 'text' } } } } })
  }
  if (path.endsWith('/_count')) return send(200, { count: 0 })
  if (path.endsWith('/_search')) {
    return send(200, { took: 1, timed_out: false, hits: { total: { value: 0 }, hits: [] } })
  }
  if (path.endsWith('/stats')) return send(200, { result: { completed: 0 } })
  if (path.endsWith('/search')) return send(200, { result: { chunks: [] } })
  send(200, { name: 'there', num_documents: 0, created_at: 0, fields })
}

beforeAll(async () => {
  for (const _ of Object.keys(SECRETS)) clusters.push(await serve(answer))
  await parley.boot()
}, 120_000)

afterAll(async () => {
  await parley.remove()
  for (const cluster of clusters) await cluster.stop()
})

test('they are in no reply, header, trace or line of the log', async () => {
  const engines = {
    typesense: { credentials: { api_key: SECRETS.typesense } },
    opensearch: { credentials: { username: 'parley', password: SECRETS.opensearch } },
    'ai-search': { credentials: { api_token: SECRETS['ai-search'] }, account_id: 'account' },
  }
  await call('POST', '/collections', { name: 'history', fields: HISTORY_FIELDS })
  await call('POST', '/conversations/models', {
    id: 'plain',
    model_name: 'local/extractive',
    history_collection: 'history',
    max_bytes: 16_384,
  })
  for (const [at, [type, more]] of Object.entries(engines).entries()) {
    const engine = { type, nodes: [clusters[at]!.url], ...more }
    fault = undefined
    expect((await call('POST', '/collections', { name: type, engine })).status).toBe(201)
    for (const how of [undefined, 400, 401, 307, 500, 'cut'] as const) {
      fault = how
      await call('GET', `/collections/${type}/documents/search?q=judge&query_by=title`)
      await call('POST', '/conversations', {
        question: 'Who is the judge?',
        model: 'plain',
        searches: [{ collection: type, query_by: 'title' }],
      })
    }
    fault = undefined
    await call('GET', `/collections/${type}`)
    await call('PATCH', `/collections/${type}`, { engine })
    await call('PATCH', `/collections/${type}`, { engine: { ...engine, unknown: true } })
  }
  await call('GET', '/collections')
  const { text } = await call('GET', '/conversations')
  const { conversations } = JSON.parse(text) as { conversations: { id: string }[] }
  const statuses: number[] = []
  for (const { id } of conversations) {
    await call('GET', `/conversations/${id}`)
    statuses.push((await call('GET', `/conversations/${id}/trace`)).status)
  }
  // Its log lines come a moment after its replies. The last request's is the last one.
  await call('GET', '/collections?limit=1')
  await vi.waitFor(() => expect(parley.output).toContain('/collections'), { timeout: 30_000 })
  const said = [...replies, parley.output].join('\n')
  const basic = Buffer.from(`parley:${SECRETS.opensearch}`).toString('base64')
  for (const secret of [...Object.values(SECRETS), basic]) {
    expect(said).not.toContain(secret)
    expect(said).not.toContain(encodeURIComponent(secret))
  }
  // A conversation whose first question failed has no trace.
  expect(statuses).toContain(200)
  expect(parley.output).toContain('"status":503')
})
