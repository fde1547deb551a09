/**
 * The HTTP server of a local start. workerd is not made to be reached by strangers: it takes a connection for each caller, however
 * slowly they send, answers a malformed `Host` with 500, and believes what headers named `MF-...` say. On Cloudflare other servers
 * stand before it. Here this one does: it reads a request first, refuses what is malformed, and hands on the rest.
 *
 * Libraries for proxies connect to the next server as soon as the headers of a request are there, which is what this prevents. So it
 * is Node's own server and client.
 */
import { once } from 'node:events'
import { Agent, request as ask, createServer, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** As much as workerd takes of headers. */
const MOST_HEADERS = 128 * 1024
/** For a request's headers, and for as much of a body as is held. */
const READ_MS = 15_000
/** An upload that stands still for as long is given up. */
const STILL_MS = 60_000
/** Of a body is held until it is whole. Longer ones are uploads: they go on while they come. */
const HELD_BYTES = 256 * 1024
/** Of all bodies together. */
const MOST_HELD = 64 * 1024 * 1024
const MOST_UPLOADS = 64
/** Node would take more, until no file can be opened. */
const MOST_CONNECTIONS = 8_000
/** workerd closes a connection that was idle for 5 s, and nothing must be sent at that moment. */
const IDLE_MS = 3_000

/** Headers that are for one connection and not for the next one (RFC 9110, 7.6.1). */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'expect',
  'upgrade',
])

/** A host as a URL has it: a name or an address, with a port or without. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** @typedef {{ status: number, message: string }} Refusal of a request, in the shape of all errors outside the other wires */

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {Refusal | undefined} what is wrong with its first line or its host
 */
function refusal({ url = '', rawHeaders, httpVersion }) {
  if (!url.startsWith('/')) {
    return { status: 400, message: 'Ask for a path, such as GET /health, and name the host in `Host`.' }
  }
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host')
  const isOne = hosts.length === 1 || (hosts.length === 0 && httpVersion === '1.0')
  if (isOne && hosts.every((host) => HOST.test(host))) return undefined
  return { status: 400, message: '`Host` must be there once, as one name, with a port or without.' }
}

/** @param {Refusal} refusal @returns {[number, Record<string, string>, string]} status, headers, body */
function told({ status, message }) {
  const body = JSON.stringify({ message })
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...(status === 503 && { 'retry-after': '1' }),
  }
  return [status, headers, body]
}

/** @param {import('node:stream').Duplex} socket one without a response @param {Refusal} refusal */
function refuseSocket(socket, refusal) {
  if (!socket.writable) return socket.destroy()
  const [status, headers, body] = told(refusal)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}

/** @type {Refusal} */
const NO_REPLY = { status: 502, message: 'Parley broke off before it replied. Try again in a moment.' }

/**
 * Reads a request once more whose first line has characters beyond ASCII as they are, as curl and scripts send what somebody types
 * (`?q=café`). Servers take them everywhere, and Node's parser, which has no option for it, does not.
 * @param {import('node:http').Server} server
 * @param {import('node:net').Socket} socket
 * @param {Buffer} packet what the parser gave up on
 * @returns {boolean} whether there was such a line
 */
function readAgain(server, socket, packet) {
  const end = packet.indexOf('\r\n')
  const line = packet.subarray(0, end).toString('latin1')
  if (end < 0 || !/^[A-Z]+ \/\S*[\x80-\xff]\S* HTTP\/1\.[01]$/.test(line)) return false
  const encoded = line.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
  for (const event of ['data', 'end', 'close', 'error', 'drain']) socket.removeAllListeners(event)
  const read = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk) => read.push(chunk) || socket.pause())
  socket.on('end', () => read.push(null))
  socket.on('error', () => read.destroy())
  socket.on('close', () => read.destroy())
  read.push(Buffer.concat([Buffer.from(encoded), packet.subarray(end)]))
  const { remoteAddress } = socket
  server.emit(
    'connection',
    Object.assign(read, { remoteAddress, setTimeout: socket.setTimeout.bind(socket) }),
  )
  return true
}

/** What Node says of a request that it could not read. @param {NodeJS.ErrnoException} error @returns {Refusal} */
function unreadable({ code }) {
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, message: 'The headers are too long.' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, message: 'The request took too long to come.' }
  return { status: 400, message: 'This is not a request of HTTP/1.1.' }
}

/** @param {import('node:http').IncomingMessage} request */
const hasBody = ({ headers }) => 'content-length' in headers || 'transfer-encoding' in headers

/** @param {string[]} rawHeaders @param {(name: string) => boolean} isKept of the name in lower case */
const only = (rawHeaders, isKept) =>
  rawHeaders.filter((_, at) => isKept(String(rawHeaders[at - (at % 2)]).toLowerCase()))

/**
 * Listens, and hands requests on.
 * @param {object} options
 * @param {string[]} options.addresses to listen on; of several, those that this machine has
 * @param {number} options.port
 * @param {URL} options.worker where workerd listens
 * @param {Record<string, string>} options.headers for workerd, over those of the caller
 * @param {boolean} options.tellsAddresses whether `CF-Connecting-IP` tells the Worker where a request came from, as on Cloudflare.
 *   Without it the header is as it was sent
 * @returns {Promise<() => void>} ends it
 * @throws Error if it cannot listen
 */
export async function front({ addresses, port, worker, headers: own, tellsAddresses }) {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 64, timeout: IDLE_MS })
  let uploads = 0
  let heldByAll = 0

  /** @param {import('node:http').IncomingMessage} request @param {string[]} more raw headers */
  const passOn = (request, more = []) => {
    const { method = 'GET', url = '/', rawHeaders, headers, socket } = request
    const isSet = (/** @type {string} */ name) =>
      name in own || (tellsAddresses && name === 'cf-connecting-ip')
    const from = socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
    return ask({
      agent,
      host: worker.hostname,
      port: worker.port,
      method,
      path: url,
      headers: [
        ...only(rawHeaders, (name) => !OF_CONNECTION.has(name) && !name.startsWith('mf-') && !isSet(name)),
        ...Object.entries(own).flat(),
        ...(tellsAddresses && from ? ['cf-connecting-ip', from] : []),
        ...(headers.host === undefined ? ['host', worker.host] : []),
        ...(hasBody(request) || method === 'GET' || method === 'HEAD' ? [] : ['content-length', '0']),
        ...more,
      ],
    })
  }

  /**
   * Reads a body until it is whole (`request.complete`), or long.
   * @param {import('node:http').IncomingMessage} request
   * @param {(refusal: Refusal) => void} refuse
   * @returns {Promise<Buffer[] | undefined>} what there is of it; undefined if the request was refused, or its caller has gone
   */
  const beginning = async (request, refuse) => {
    /** @type {Buffer[]} */
    const held = []
    let size = 0
    const timer = setTimeout(refuse, READ_MS, { status: 408, message: 'The request took too long to come.' })
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        held.push(chunk)
        size += chunk.length
        heldByAll += chunk.length
        if (size > HELD_BYTES || heldByAll > MOST_HELD) break
      }
    } catch {
      return undefined
    } finally {
      clearTimeout(timer)
      heldByAll -= size
    }
    const isTooMuch = heldByAll + size > MOST_HELD || (!request.complete && uploads >= MOST_UPLOADS)
    if (!isTooMuch) return held
    refuse({ status: 503, message: 'Too much is being sent at once. Try again in a moment.' })
    return undefined
  }

  /** @type {import('node:http').RequestListener} */
  const answer = async (request, response) => {
    response.sendDate = false
    // One that was read again: the next one on this connection would be read by two parsers.
    if (!(request.socket instanceof Socket)) response.shouldKeepAlive = false
    const refuse = (/** @type {Refusal} */ refusal) => {
      if (response.headersSent) return response.destroy()
      const [status, headers, body] = told(refusal)
      return response.writeHead(status, headers).end(body)
    }
    const wrong = refusal(request)
    if (wrong) return refuse(wrong)
    const held = hasBody(request) ? await beginning(request, refuse) : []
    if (held === undefined) return undefined

    const worked = passOn(request)
    response.once('close', () => response.writableFinished || worked.destroy())
    worked.on('error', () => refuse(NO_REPLY))
    worked.once('response', (reply) => {
      const headers = only(
        reply.rawHeaders,
        (name) => !OF_CONNECTION.has(name) && name !== 'transfer-encoding',
      )
      response.writeHead(reply.statusCode ?? 502, reply.statusMessage, headers)
      // Of a stream, the client waits for them.
      if (reply.headers['content-length'] === undefined) response.flushHeaders()
      reply.once('error', () => response.destroy())
      reply.pipe(response)
    })
    for (const chunk of held) worked.write(chunk)
    if (request.complete || !hasBody(request)) return worked.end()
    uploads += 1
    request.socket.setTimeout(STILL_MS, () => request.destroy())
    request.once('end', () => request.socket.setTimeout(0))
    worked.once('close', () => {
      uploads -= 1
    })
    return request.pipe(worked)
  }

  /** @param {import('node:http').IncomingMessage} request @param {import('node:stream').Duplex} socket @param {Buffer} head */
  const upgrade = (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const wrong = refusal(request)
    if (wrong) return refuseSocket(socket, wrong)
    const worked = passOn(request, ['connection', 'Upgrade', 'upgrade', 'websocket'])
    socket.once('close', () => worked.destroy())
    worked.on('error', () => refuseSocket(socket, NO_REPLY))
    const tell = (/** @type {import('node:http').IncomingMessage} */ reply, /** @type {string[]} */ raw) => {
      const lines = raw.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
      socket.write(`HTTP/1.1 ${reply.statusCode} ${reply.statusMessage}\r\n${lines}\r\n`, 'latin1')
    }
    worked.once('upgrade', (reply, far, farHead) => {
      tell(reply, reply.rawHeaders)
      if (farHead.length > 0) socket.write(farHead)
      if (head.length > 0) far.write(head)
      far.on('error', () => socket.destroy()).once('close', () => socket.destroy())
      socket.once('close', () => far.destroy())
      far.pipe(socket).pipe(far)
    })
    worked.once('response', (reply) => {
      tell(reply, [
        ...only(reply.rawHeaders, (name) => !OF_CONNECTION.has(name) && name !== 'transfer-encoding'),
        'connection',
        'close',
      ])
      reply.pipe(socket)
    })
    return worked.end()
  }

  const options = {
    maxHeaderSize: MOST_HEADERS,
    headersTimeout: READ_MS,
    // An import may take as long as it takes: `beginning` and STILL_MS see to the others.
    requestTimeout: 0,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    shouldUpgradeCallback: (/** @type {import('node:http').IncomingMessage} */ { headers }) =>
      headers.upgrade?.toLowerCase() === 'websocket',
  }
  /** @type {import('node:http').Server[]} */
  const servers = []
  for (const address of addresses) {
    const server = createServer(options, answer)
    server.maxConnections = MOST_CONNECTIONS
    server.on('upgrade', upgrade)
    server.on('clientError', (error, socket) => {
      const { code, rawPacket } = /** @type {NodeJS.ErrnoException & { rawPacket?: Buffer }} */ (error)
      const again =
        code === 'HPE_INVALID_URL' && rawPacket !== undefined && socket instanceof Socket
          ? readAgain(server, socket, rawPacket)
          : false
      if (!again) refuseSocket(socket, unreadable(error))
    })
    try {
      await once(server.listen(port, address), 'listening')
      servers.push(server)
    } catch (error) {
      const { code = '' } = /** @type {NodeJS.ErrnoException} */ (error)
      const isAbsent = code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
      if (!isAbsent || (address === addresses.at(-1) && servers.length === 0)) throw error
    }
  }
  return () => {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
    agent.destroy()
  }
}
