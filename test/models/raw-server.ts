/** A provider that can do what a mock cannot: cut a stream, garble it, split it at any byte, or say nothing. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  method: string
  path: string
  headers: Record<string, string | string[] | undefined>
  body: Record<string, unknown>
}

export interface RawServer {
  url: string
  received: Received[]
  /** what to do with the next requests */
  respond: (response: ServerResponse, request: Received) => void | Promise<void>
  stop(): Promise<void>
}

async function read(request: IncomingMessage): Promise<Received> {
  let text = ''
  for await (const chunk of request) text += chunk
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: text === '' ? {} : JSON.parse(text),
  }
}

export async function startRawServer(): Promise<RawServer> {
  const server = createServer(async (request, response) => {
    const received = await read(request)
    raw.received.push(received)
    await raw.respond(response, received)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const raw: RawServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    respond: (response) => void response.end(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return raw
}

export const sse = (...events: unknown[]): string =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')

/** Sends server-sent events in pieces of `size` bytes, each in a network write of its own. */
export async function sendSplit(response: ServerResponse, text: string, size: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size))
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
