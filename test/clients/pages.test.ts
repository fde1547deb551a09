/** Web pages at a local start: over sockets as a browser sends, and with a browser that is told lies about names. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CHROMIUM, launch } from '../browser/chromium'
import { serve } from '../serve'
import { freePort, start } from './global-setup'
import { KEY, request, unique, url } from './harness'

/** A request with headers that `fetch` does not let a program set. */
async function send(to: string, method: string, path: string, headers: Record<string, string>, body = '') {
  const { hostname, port } = new URL(to)
  const sent = httpRequest({
    hostname,
    port,
    path,
    method,
    headers: { 'x-typesense-api-key': KEY, ...headers },
  })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, text, headers: response.headers }
}

const schema = (name: string) => JSON.stringify({ name, fields: [{ name: 'text', type: 'string' }] })

test('a page of another site does nothing and reads nothing, one of this machine does', async () => {
  const name = unique('page')
  const path = '/collections?x-typesense-api-key=xyz'
  const simple = { 'content-type': 'text/plain' }
  const refused = await send(url, 'POST', path, { ...simple, origin: 'https://evil.example' }, schema(name))
  expect(refused.status).toBe(403)
  expect(refused.text).toContain('npm start -- --allow-origin https://evil.example')
  expect(refused.headers).not.toHaveProperty('access-control-allow-origin')
  expect((await request('GET', `/collections/${name}`)).status).toBe(404)

  const origin = 'http://localhost:5173'
  const made = await send(url, 'POST', path, { ...simple, origin }, schema(name))
  expect([made.status, made.headers['access-control-allow-origin']]).toEqual([201, origin])
  expect((await request('DELETE', `/collections/${name}`)).status).toBe(200)
})

test('a name that is not of this machine is no way in', async () => {
  const { port } = new URL(url)
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `a.localhost:${port}`]) {
    expect([host, (await send(url, 'GET', '/collections', { host })).status]).toEqual([host, 200])
  }
  for (const host of [`evil.example:${port}`, 'evil.example', `127.0.0.1.evil.example:${port}`, '10.1.2.3']) {
    const { status, text } = await send(url, 'GET', '/collections', { host, origin: `http://${host}` })
    expect([host, status]).toEqual([host, 403])
    expect(text).toContain(`does not answer to the name ${host.split(':')[0]}`)
  }
  expect(await rewritten(url)).toEqual([403, 403, 403])
})

/** Headers that Miniflare believes. */
const BELIEVED: Record<string, string>[] = [
  { 'mf-original-url': 'http://localhost/collections' },
  { 'mf-original-url': 'http://localhost/collections', 'mf-route-override': 'parley' },
  { 'mf-original-url': 'http://localhost/cdn-cgi/local/scheduled' },
]

/** What they achieve in a page whose name leads here. @returns statuses */
const rewritten = (to: string) =>
  Promise.all(
    BELIEVED.map(async (headers) => {
      const { status } = await send(to, 'GET', '/collections', { host: 'evil.example', ...headers })
      return status
    }),
  )

test('a start that is opened says so, and answers to what it was told', { timeout: 120_000 }, async () => {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'parley-open-'))
  const options = [
    '--host',
    '0.0.0.0',
    '--allow-host',
    'parley.lan',
    '--allow-origin',
    'https://shop.example',
  ]
  const parley = await start('--port', String(port), '--persist-to', folder, '--no-sample', ...options)
  try {
    expect(parley.output()).toContain('open     to every machine that reaches 0.0.0.0')
    const to = `http://127.0.0.1:${port}`
    for (const headers of [
      { host: 'parley.lan' },
      { host: '192.168.7.7:8108' },
      { origin: 'https://shop.example' },
      { host: 'parley.lan', origin: 'http://parley.lan' },
    ] as Record<string, string>[]) {
      expect([headers, (await send(to, 'GET', '/collections', headers)).status]).toEqual([headers, 200])
    }
    for (const headers of [
      { host: 'other.lan' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ] as Record<string, string>[]) {
      expect([headers, (await send(to, 'GET', '/collections', headers)).status]).toEqual([headers, 403])
    }
    expect(await rewritten(to)).toEqual([403, 403, 403])
    for (const path of ['/cdn-cgi/local/scheduled', '/cdn-cgi/local/email', '/cdn-cgi/platform-proxy']) {
      expect([path, (await send(to, 'GET', path, {})).status]).toEqual([path, 404])
    }
    // What it notes for itself fires the cron trigger.
    const { entry } = JSON.parse(readFileSync(join(folder, 'in-use.json'), 'utf8'))
    expect(await (await fetch(`${entry}/cdn-cgi/local/scheduled`)).text()).toBe('ok')
  } finally {
    await parley.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test.runIf(CHROMIUM)('a browser whose name server lies gets nowhere', { timeout: 120_000 }, async () => {
  const { port } = new URL(url)
  const site = await serve((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<title>evil</title>')
  })
  const sitePort = (site.server.address() as AddressInfo).port
  // Both names lead here: one to the attacker's own server, one, after it was rebound, to Parley.
  const browser = await launch(['--host-resolver-rules=MAP *.example 127.0.0.1'])
  const name = unique('rebound')
  try {
    const page = await browser.newPage()
    const attack = (at: string) =>
      page.evaluate(
        async ({ at, body }) => {
          const query = '/collections?x-typesense-api-key=xyz'
          const read = await fetch(at + query).then(
            async (response) => `${response.status} ${await response.text()}`,
            () => 'kept from the page',
          )
          await fetch(at + query, { method: 'POST', mode: 'no-cors', body } as RequestInit).catch(() => {})
          return read
        },
        { at, body: schema(name) },
      )
    await page.goto(`http://evil.example:${sitePort}/`)
    expect(await attack(`http://localhost:${port}`)).toBe('kept from the page')
    await page.goto(`http://evil.example:${port}/`)
    expect(await attack('')).toMatch(/^403 .*does not answer to the name evil\.example/)
    expect((await request('GET', `/collections/${name}`)).status).toBe(404)
  } finally {
    await browser.close()
    await site.stop()
  }
})
