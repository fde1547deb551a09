/** What a local start gives callers of the same machine, who reach the Worker without Miniflare's entry (scripts/direct.mjs). */
import { request as open } from 'node:http'
import { expect, inject, test } from 'vitest'
import { createShows, KEY, request, url } from './harness'

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, { headers, redirect: 'manual' })

test('a file comes with its type and its tag, and with 304 to who has it', async () => {
  const file = await get('/icon.svg')
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  expect(await file.text()).toContain('<svg')
  const tag = file.headers.get('etag') ?? ''
  expect(tag).not.toBe('')
  expect((await get('/icon.svg', { 'if-none-match': tag })).status).toBe(304)
})

test('a page has its address without .html, and the API what comes to the Worker first', async () => {
  const named = await get('/document.html')
  expect([named.status, named.headers.get('location')]).toEqual([307, '/document'])
  expect(await (await get('/document')).text()).toContain('<!doctype html>')
  expect(await (await get('/', { accept: 'text/html' })).text()).toContain('<!doctype html>')
  expect(
    await (await get('/', { accept: 'application/json', 'x-typesense-api-key': KEY })).json(),
  ).toHaveProperty('version')
})

test('what is neither a file nor a route is answered by Parley', async () => {
  const lost = await get('/no/such/page', { accept: 'text/html' })
  expect([lost.status, lost.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  expect(lost.headers.get('x-request-id')).not.toBeNull()
})

test('only an address that nobody guesses fires the cron trigger', async () => {
  expect((await get('/cdn-cgi/local/scheduled')).status).toBe(404)
  expect((await get(`/cdn-cgi/${crypto.randomUUID()}/cdn-cgi/local/scheduled`)).status).toBe(404)
  const fired = await fetch(`${inject('entry')}/cdn-cgi/local/scheduled`)
  expect([fired.status, await fired.text()]).toEqual([200, 'ok'])
})

test('the Worker sees the host that was asked, and refuses names that are not served', async () => {
  const asked = (host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      open(`${url}/collections`, { headers: { host, 'x-typesense-api-key': KEY } }, (reply) => {
        reply.resume().once('end', () => resolve(reply.statusCode))
      })
        .once('error', reject)
        .end()
    })
  expect(await asked('localhost:1')).toBe(200)
  expect(await asked('elsewhere.example')).toBe(403)
})

test('a body of many megabytes arrives whole, and one that is refused unread has its reply', async () => {
  const shows = await createShows()
  const line = (id: number) =>
    JSON.stringify({ id: `long-${id}`, title: 'Long', overview: 'long '.repeat(20_000) })
  const lines = Array.from({ length: 200 }, (_, id) => line(id)).join('\n')
  expect(lines.length).toBeGreaterThan(20_000_000)
  const refused = await request('POST', `/collections/${shows}/documents/import?action=nothing`, lines)
  expect(refused.status).toBe(400)
  const imported = await request('POST', `/collections/${shows}/documents/import?action=update`, lines)
  expect(imported.status).toBe(200)
  expect(imported.text.split('\n')).toHaveLength(200)
})

test('a test that stood still while the server closed its idle connections is answered', async () => {
  expect((await get('/health')).status).toBe(200)
  // Nothing is read meanwhile: without connections.ts, the next request goes out on a connection that is closed.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_500)
  expect((await get('/health')).status).toBe(200)
})
