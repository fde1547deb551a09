/** The server before workerd in a local start (scripts/front.mjs), with a server in the Worker's place, over sockets. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as listener, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { front } from '../../scripts/front.mjs'

const LONG = 300 * 1024

/** What the Worker in the test was asked, and how it replies to the next request. */
const asked: { request: IncomingMessage; body: string }[] = []
let reply: (request: IncomingMessage, response: ServerResponse) => void

const plain = (request: IncomingMessage, response: ServerResponse) => {
  request.resume().once('end', () => response.end('well'))
}

const worker = createServer((request, response) => {
  const entry = { request, body: '' }
  asked.push(entry)
  request.setEncoding('utf8').on('data', (text) => {
    entry.body += text
  })
  reply(request, response)
})
worker.on('upgrade', (request, socket, head) => {
  asked.push({ request, body: '' })
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  socket.write(`first ${head}`)
  socket.on('data', (data) => socket.write(`again ${data}`))
  socket.on('end', () => socket.end())
})

let port: number
let end: () => void

async function freePort(): Promise<number> {
  const probe = listener().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const free = (probe.address() as AddressInfo).port
  probe.close()
  await once(probe, 'close')
  return free
}

beforeAll(async () => {
  await once(worker.listen(0, '127.0.0.1'), 'listening')
  port = await freePort()
  end = await front({
    addresses: ['127.0.0.1'],
    port,
    worker: new URL(`http://127.0.0.1:${(worker.address() as AddressInfo).port}`),
    headers: { 'x-pass': 'the pass' },
    tellsAddresses: true,
  })
})
afterAll(() => {
  end()
  worker.closeAllConnections()
  worker.close()
})

/** Sends bytes. @returns its socket and, as it comes, what was said back */
async function open(text: string): Promise<{ socket: Socket; said(): string }> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.setEncoding('utf8').on('data', (data) => {
    said += data
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  return { socket, said: () => said }
}

/** Sends a request. @returns what was said until the connection closed */
async function say(text: string): Promise<string> {
  const { socket, said } = await open(text)
  await once(socket, 'close')
  return said()
}

const HOST = 'Host: localhost\r\n'
const LAST = `${HOST}Connection: close\r\n`

test.each([
  ['a host with a user', 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n', 400],
  ['a host with a path', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 400],
  ['two names as one host', 'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n', 400],
  ['a host of spaces', 'GET / HTTP/1.1\r\nHost:   \r\n\r\n', 400],
  ['two hosts', `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
  ['a host in the first line', `GET http://evil.example/ HTTP/1.1\r\n${HOST}\r\n`, 400],
  ['a star', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 400],
  ['another protocol', 'hello\r\n\r\n', 400],
  ['two lengths', `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ['long headers', `GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(140_000)}\r\n\r\n`, 431],
])('%s is refused, and the Worker is not asked', async (_, text, status) => {
  asked.length = 0
  reply = plain
  const [head, body] = (await say(text)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(body).toMatch(/^\{"message":"[A-Z`].+\."\}$/)
  expect(asked).toEqual([])
})

test('a request comes to the Worker as it was sent, but for headers of a connection and those that only servers may set', async () => {
  asked.length = 0
  reply = (_, response) => {
    response.writeHead(201, 'Made', ['set-cookie', 'a=1', 'set-cookie', 'b=2', 'keep-alive', 'timeout=99'])
    response.end('well')
  }
  const said = await say(
    `POST /a%20b?c=d HTTP/1.1\r\n${LAST}X-Own: 1\r\nX-Own: 2\r\nMF-CF-Blob: {"clientIp":"192.0.2.1:1"}\r\nX-Pass: guessed\r\nCF-Connecting-IP: 192.0.2.1\r\n\r\n`,
  )
  expect(said).toMatch(/^HTTP\/1\.1 201 Made\r\n/)
  expect(said).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n')
  expect(said).not.toContain('timeout=99')
  const [{ request } = { request: undefined }] = asked
  expect([request?.method, request?.url]).toEqual(['POST', '/a%20b?c=d'])
  expect(request?.headers).toMatchObject({
    host: 'localhost',
    'x-own': '1, 2',
    'x-pass': 'the pass',
    'cf-connecting-ip': '127.0.0.1',
  })
  expect(request?.headers).not.toHaveProperty('mf-cf-blob')
})

test('a line with characters beyond ASCII as they are is read, also later on a connection, with a body that follows', async () => {
  asked.length = 0
  reply = plain
  const { socket, said } = await open(`GET /first HTTP/1.1\r\n${HOST}\r\n`)
  await expect.poll(said).toContain('well')
  socket.write(`POST /caf\u00e9?q=\u6771\u4eac HTTP/1.1\r\n${HOST}Content-Length: 4\r\n\r\nab`)
  await expect.poll(() => socket.bytesWritten).toBeGreaterThan(60)
  socket.write('cd')
  await once(socket, 'close')
  expect(said().match(/well/g)).toHaveLength(2)
  expect(asked.map(({ request, body }) => [request.url, body])).toEqual([
    ['/first', ''],
    ['/caf%C3%A9?q=%E6%9D%B1%E4%BA%AC', 'abcd'],
  ])
  expect(asked[1]?.request.headers).toMatchObject({ 'cf-connecting-ip': '127.0.0.1' })
})

test('a body that comes slowly is not begun with; the Worker is asked once it is whole', async () => {
  asked.length = 0
  reply = plain
  const { socket, said } = await open(`POST /slow HTTP/1.1\r\n${LAST}Content-Length: 4\r\n\r\nab`)
  // Whoever comes later is answered meanwhile.
  expect(await say(`GET /quick HTTP/1.1\r\n${LAST}\r\n`)).toContain('well')
  expect(asked.map(({ request }) => request.url)).toEqual(['/quick'])
  socket.write('cd')
  await once(socket, 'close')
  expect(said()).toContain('well')
  expect(asked.at(-1)).toMatchObject({ body: 'abcd', request: { url: '/slow' } })
})

test('long bodies go on while they come, 64 at once', async () => {
  asked.length = 0
  reply = plain
  const begin = `POST /long HTTP/1.1\r\n${LAST}Content-Length: ${LONG + 1}\r\n\r\n${'x'.repeat(LONG)}`
  const uploads = await Promise.all(Array.from({ length: 64 }, () => open(begin)))
  await expect.poll(() => asked.length).toBe(64)
  expect(await say(begin)).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*Try again in a moment/)
  expect(await say(`POST / HTTP/1.1\r\n${LAST}Content-Length: 2\r\n\r\nab`)).toContain('well')
  await Promise.all(
    uploads.map(async ({ socket }) => {
      socket.write('x')
      await once(socket, 'close')
    }),
  )
  expect(uploads.map(({ said }) => said().endsWith('well'))).toEqual(Array.from({ length: 64 }, () => true))
  expect(asked.filter(({ body }) => body.length === LONG + 1)).toHaveLength(64)
  const { socket } = await open(begin)
  await expect.poll(() => asked.length).toBe(66)
  socket.destroy()
})

test('a stream is read while it is written, and who leaves it ends it', async () => {
  asked.length = 0
  let left: Promise<unknown> | undefined
  reply = (_, response) => {
    left = once(response, 'close')
    response.writeHead(200).write('one ')
  }
  const { socket, said } = await open(`GET /stream HTTP/1.1\r\n${HOST}\r\n`)
  await expect.poll(said).toContain('one ')
  socket.destroy()
  await left
})

test('a reply that breaks off breaks off for its caller too, and without a beginning it is an error', async () => {
  reply = (_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half', () => response.destroy())
  }
  await expect(fetch(`http://127.0.0.1:${port}/`).then((response) => response.text())).rejects.toThrow()
  reply = (_, response) => response.destroy()
  const broken = await fetch(`http://127.0.0.1:${port}/`)
  expect([broken.status, await broken.json()]).toEqual([
    502,
    { message: 'Parley broke off before it replied. Try again in a moment.' },
  ])
})

test('a WebSocket is passed on, and whatever else an upgrade asks for is a request', async () => {
  reply = plain
  const upgrade = (to: string) =>
    `GET /socket HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: ${to}\r\n\r\n`
  const { socket, said } = await open(`${upgrade('websocket')}early`)
  await expect.poll(said).toContain('early')
  expect(said()).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/)
  socket.write('more')
  await expect.poll(said).toContain('again more')
  socket.end()
  await once(socket, 'close')
  expect(asked.at(-1)?.request.headers['x-pass']).toBe('the pass')

  const other = await open(upgrade('h2c'))
  await expect.poll(other.said).toContain('well')
  other.socket.destroy()
  expect(await say(upgrade('websocket').replace(HOST, 'Host: a@b\r\n'))).toMatch(/^HTTP\/1\.1 400 /)
})
