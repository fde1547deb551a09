/** A provider that can do what a mock cannot: cut a stream, garble it, split it at any byte, or say nothing. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type Served, serve } from '../serve'

export interface Received {
  method: string
  path: string
  headers: Record<string, string | string[] | undefined>
  body: Record<string, unknown>
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

export class RawServer {
  url = ''
  readonly received: Received[] = []
  #served: Served | undefined

  /** what to do with the next requests */
  respond: (response: ServerResponse, request: Received) => void | Promise<void> = (response) =>
    void response.end()

  async start(): Promise<this> {
    this.#served = await serve(async (request, response) => {
      const received = await read(request)
      this.received.push(received)
      await this.respond(response, received)
    })
    this.url = this.#served.url
    return this
  }

  async stop(): Promise<void> {
    await this.#served?.stop()
  }
}

export const startRawServer = (): Promise<RawServer> => new RawServer().start()

/** A server for the tests of a file, or of the group it is called in. Each finds it with nothing received. */
export function rawServer(): RawServer {
  const raw = new RawServer()
  beforeAll(async () => {
    await raw.start()
  })
  beforeEach(() => {
    raw.received.length = 0
  })
  afterAll(() => raw.stop())
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
