/**
 * What one client sends besides searches, for hostile.mjs: floods of messages, very many slow connections, very long lists, and an
 * administrator's ordinary work on 50,000 documents (hostile-filters.mjs makes them).
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { filteredDocument } from './hostile-filters.mjs'
import { call } from './server.mjs'

const HEADERS = { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json' }
const FILTERED = '/collections/filtered/documents'

const sleep = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal?.addEventListener('abort', () => resolve(clearTimeout(timer)))
  })

const list = (count, of) => Array.from({ length: count }, (_, n) => of(n))

/** @param body its text, or what makes it */
const request = (name, method, path, body) => ({
  name: `client: ${name}`,
  send: async (server, signal) => {
    const response = await fetch(server.url + path, {
      method,
      headers: HEADERS,
      body: typeof body === 'function' ? body() : body,
      signal,
    })
    return { status: response.status, text: await response.text() }
  },
})

/** A socket that sends all of its messages before it reads any. */
const flood = (count) => ({
  name: `client: ${count} messages of one socket at once`,
  send: async (server, signal) => {
    const message = JSON.stringify({ type: 'cf_agent_chat_request_resume', n: 1 })
    const socket = new WebSocket(
      `${server.url.replace('http', 'ws')}/agents/flooded/${crypto.randomUUID()}?x-typesense-api-key=xyz`,
    )
    signal.addEventListener('abort', () => socket.close())
    await once(socket, 'open')
    const closed = once(socket, 'close').then(([event]) => event)
    for (let n = 0; n < count; n++) socket.send(message)
    const event = await Promise.race([closed, sleep(5_000)])
    socket.close()
    return { status: 101, text: event === undefined ? 'still open' : `closed with ${event.code}` }
  },
})

/** Connections that send the beginning of a request, and the rest of it a little at a time. */
const slowConnections = (count) => ({
  name: `client: ${count} slow connections`,
  send: async (server, signal) => {
    const { hostname, port } = new URL(server.url)
    const sockets = list(count, () => connect(Number(port), hostname))
    let lost = 0
    for (const socket of sockets) socket.on('error', () => lost++)
    for (const piece of [
      'GET /health HTTP/1.1\r\n',
      'host: localhost\r\n',
      'x-slow: 1\r\n',
      'x-slow: 2\r\n',
    ]) {
      for (const socket of sockets) socket.write(piece)
      await sleep(1_000, signal)
    }
    for (const socket of sockets) socket.destroy()
    return { status: 0, text: `${count - lost} were taken` }
  },
})

export async function prepareClients(server) {
  const put = (path, body) =>
    call(server, path, { method: 'PUT', headers: HEADERS, body: JSON.stringify(body) })
  await put('/assistants/flooded', { model: 'slow', searches: [{ collection: 'other', query_by: 'title' }] })
  const schema = {
    name: 'listed',
    fields: [
      { name: 'title', type: 'string' },
      { name: 'list', type: 'string[]', facet: true },
    ],
  }
  await call(server, '/collections', { method: 'POST', body: JSON.stringify(schema) })
  const long = { title: 'long', list: list(90_000, (n) => `value ${n}`) }
  await call(server, '/collections/listed/documents', { method: 'POST', body: JSON.stringify(long) })
}

const further = () => list(20_000, (n) => JSON.stringify(filteredDocument(1_000_000 + n))).join('\n')
const million = `{"searches":[${list(1_000_000, () => '{}').join(',')}]}`
const calls = (count) =>
  JSON.stringify(list(count, (n) => ({ jsonrpc: '2.0', id: n, method: 'tools/list', params: {} })))

export const clientCases = [
  flood(500),
  flood(20_000),
  slowConnections(3_000),
  request('a million searches in one request', 'POST', '/multi_search', million),
  request('a batch of 10,000 calls of JSON-RPC', 'POST', '/mcp/flooded', calls(10_000)),
  request(
    'groups by a list of 90,000 values',
    'GET',
    '/collections/listed/documents/search?q=*&group_by=list',
  ),
  request('an import of 20,000 documents', 'POST', `${FILTERED}/import`, further),
  request('an export of all', 'GET', `${FILTERED}/export`),
  request('a change of all by a filter', 'PATCH', `${FILTERED}?filter_by=points:>=0`, '{"kind":"changed"}'),
  request('a backup of the documents', 'GET', '/operations/backup/documents/filtered'),
  request('a removal of all by a filter', 'DELETE', `${FILTERED}?filter_by=points:>=0`),
]
