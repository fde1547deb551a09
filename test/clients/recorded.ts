/**
 * A server whose replies were recorded. With a target, requests go there and both sides are written down; without one, each
 * request gets the reply that it got then.
 */
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Exchange {
  request: string
  status: number
  type: string
  reply: string
}

export class Recorded {
  url = ''
  readonly #file: string
  readonly #target: string | undefined
  readonly #exchanges: Exchange[]
  /** how many replies of each request were given */
  readonly #given = new Map<string, number>()
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => response.destroy(error))
  })

  /** @param file of the exchanges @param target a real server, to record anew */
  constructor(file: string, target: string | undefined) {
    this.#file = file
    this.#target = target
    this.#exchanges = target === undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  }

  async open(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
    if (this.#target !== undefined) writeFileSync(this.#file, `${JSON.stringify(this.#exchanges, null, 1)}\n`)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = `${request.method} ${request.url}\n${await text(request)}`
    const { status, type, reply } =
      this.#target === undefined ? this.#recall(asked) : await this.#record(asked, request, this.#target)
    response.writeHead(status, { 'content-type': type })
    response.end(reply)
  }

  /** The next reply to this request, or the last one again. */
  #recall(request: string): Exchange {
    const known = this.#exchanges.filter((exchange) => exchange.request === request)
    const before = this.#given.get(request) ?? 0
    this.#given.set(request, before + 1)
    const exchange = known[Math.min(before, known.length - 1)]
    const reply = JSON.stringify({ error: `This request was not recorded: ${request}` })
    return exchange ?? { request, status: 400, type: 'application/json', reply }
  }

  async #record(
    request: string,
    { method, url, headers }: IncomingMessage,
    target: string,
  ): Promise<Exchange> {
    const body = request.slice(request.indexOf('\n') + 1)
    const response = await fetch(new URL(url ?? '/', target), {
      method: method ?? 'GET',
      headers: { 'content-type': headers['content-type'] ?? 'application/json' },
      ...(body !== '' && { body }),
    })
    const exchange = {
      request,
      status: response.status,
      type: response.headers.get('content-type') ?? 'application/json',
      reply: await response.text(),
    }
    this.#exchanges.push(exchange)
    return exchange
  }
}
