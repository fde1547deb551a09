/** Large imports into a Typesense cluster. A server that answers as one plays it, and measures what it is sent. */
import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Served, serve } from '../serve'
import { disconnect, KEY, request, unique, url } from './harness'

const MEGABYTE = 1024 * 1024
/** Results that the cluster sends before it breaks off; undefined: all. */
let told: number | undefined
/** What stands before the cluster answers so. */
let gateway: { status: number; type: string; text: string } | undefined
/** bytes and lines of each import so far */
let imports: { bytes: number; lines: number }[]
let node: Served
let name: string

async function answer(request: IncomingMessage): Promise<{ reply: string; breaks: boolean }> {
  const body = await text(request)
  if (!request.url?.includes('/import')) {
    const fields = [{ name: 'text', type: 'string' }]
    return { reply: JSON.stringify({ name: 'there', fields, num_documents: 0 }), breaks: false }
  }
  const lines = body.split('\n')
  imports.push({ bytes: Buffer.byteLength(body), lines: lines.length })
  const results = lines.map((line) => JSON.stringify({ success: true, id: JSON.parse(line).id }))
  if (told === undefined) return { reply: results.join('\n'), breaks: false }
  const reply = `${results.slice(0, told).join('\n')}\n${results[told]!.slice(0, 9)}`
  told = undefined
  return { reply, breaks: true }
}

beforeAll(async () => {
  node = await serve(async (request, response) => {
    if (gateway !== undefined) {
      response.writeHead(gateway.status, { 'content-type': gateway.type })
      return void response.end(gateway.text)
    }
    const { reply, breaks } = await answer(request)
    response.writeHead(200, { 'content-type': 'text/plain' })
    if (!breaks) return void response.end(reply)
    response.write(reply)
    setTimeout(() => response.destroy(), 100)
  })
  imports = []
  name = unique('through')
  const engine = { type: 'typesense', nodes: [node.url], credentials: { api_key: KEY }, collection: 'there' }
  const reply = await request('POST', '/collections', { name, engine })
  if (reply.status !== 201) throw new Error(reply.text)
})

beforeEach(() => {
  imports = []
  gateway = undefined
})

afterAll(async () => {
  await disconnect([name])
  await node.stop()
})

const path = () => `/collections/${name}/documents/import?action=create&return_id=true`
const document = (id: number, words: number) =>
  JSON.stringify({ id: String(id), text: 'word '.repeat(words) })

test('an import is neither held as a whole nor cut into many requests, and its results come while it is sent', async () => {
  const LINES = 3_000
  const importing = send(url + path(), { method: 'POST', headers: { 'x-typesense-api-key': KEY } })
  // The first half is sent. The second one only follows when there are results of the first one.
  for (let id = 0; id < LINES / 2; id++) importing.write(`${document(id, 2_000)}\n`)
  const [response] = (await once(importing, 'response')) as [IncomingMessage]
  const [first] = (await once(response.setEncoding('utf8'), 'data')) as [string]
  for (let id = LINES / 2; id < LINES; id++) importing.write(`${document(id, 2_000)}\n`)
  importing.end()
  const results = (first + (await text(response))).split('\n').map((line) => JSON.parse(line))
  expect(results.map(({ id }) => Number(id))).toEqual(Array.from({ length: LINES }, (_, id) => id))
  expect(imports.reduce((sum, { lines }) => sum + lines, 0)).toBe(LINES)
  expect(Math.max(...imports.map(({ bytes }) => bytes))).toBeLessThanOrEqual(2 * MEGABYTE)
  expect(imports.length).toBeLessThan(20)
})

test('batches are bounded by their bytes, whatever the script', async () => {
  const text = '灯'.repeat(100_000)
  const body = Array.from({ length: 15 }, (_, id) => JSON.stringify({ id: String(id), text })).join('\n')
  const reply = await request('POST', path(), body)
  expect(reply.text.split('\n')).toHaveLength(15)
  expect(Math.max(...imports.map(({ bytes }) => bytes))).toBeLessThanOrEqual(2 * MEGABYTE)
})

test('if the cluster breaks off its results, just the lines without one have failed', async () => {
  told = 2
  const body = Array.from({ length: 5 }, (_, id) => document(id, 1)).join('\n')
  const reply = await request('POST', path(), body)
  const results = reply.text.split('\n').map((line) => JSON.parse(line))
  expect(reply.status).toBe(200)
  expect(results.map(({ success }) => success)).toEqual([true, true, false, false, false])
  expect(results[2]).toMatchObject({ code: 503, error: expect.stringContaining('broke off') })
  // Documents that may be there already are not created once more.
  expect(imports).toHaveLength(1)
})

test.each([
  ['a page to log in', 200, 'text/html', 'web page (HTTP status 200)'],
  ['a path that is not there', 404, 'text/html; charset=utf-8', 'web page (HTTP status 404)'],
  ['a body that is too large', 413, 'text/html', 'bytes as too large (HTTP status 413)'],
  ['a body that is too large, in plain text', 413, 'text/plain', 'Raise the limit of the proxy'],
  ['a limit of requests', 429, 'text/plain', 'busy'],
])('a gateway that answers in place of the cluster is told of: %s', async (_, status, type, said) => {
  gateway = { status, type, text: '<html>no</html>' }
  const collection = `/collections/${name}/documents`
  for (const [method, at] of [
    ['POST', path()],
    ['GET', `${collection}/export`],
    ['GET', `${collection}/1`],
    ['GET', `${collection}/search?q=*`],
  ] as const) {
    const reply = await request(method, at, method === 'POST' ? document(1, 1) : undefined)
    expect([at, reply.status, reply.body?.message]).toEqual([at, 503, expect.stringContaining(said)])
  }
})
