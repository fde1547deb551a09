/** A node of a cluster that passes requests on to another server, until it is told to fail. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * `cut`: the connection breaks. `stall`: nothing comes. `half`: an error begins and never ends. `begun`: a success begins and
 * never ends. A number: this status.
 */
export type Fault = 'cut' | 'stall' | 'half' | 'begun' | number

export class Relay {
  url = ''
  /** paths of the requests so far, with their queries */
  asked: string[] = []
  fault: Fault | undefined
  /** the fault is only for requests whose address or body has this */
  faultFor = ''
  /** replies of its own, by the end of the path */
  readonly replies: Record<string, unknown> = {}
  readonly #target: string
  readonly #path: (path: string) => string
  readonly #server = createServer(
    (request, response) => void this.#answer(request, response).catch(() => response.destroy()),
  )

  /** @param target where requests go @param path theirs there */
  constructor(target: string, path = (same: string) => same) {
    this.#target = target
    this.#path = path
  }

  async open(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked.push(`${request.method} ${request.url}`)
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const body = Buffer.concat(parts)
    if (`${request.url}${body}`.includes(this.faultFor)) {
      if (this.fault !== undefined) return this.#fail(this.fault, request, response)
    }
    this.#pass(body, request, response)
  }

  #fail(fault: Fault, request: IncomingMessage, response: ServerResponse): void {
    if (fault === 'cut') return void request.socket.destroy()
    if (fault === 'stall') return
    if (fault === 'begun') {
      response.writeHead(200, { 'content-type': 'text/plain' })
      return void response.write('{"id":"begun"}\n')
    }
    if (fault === 'half') {
      response.writeHead(400, { 'content-type': 'application/json' })
      return void response.write('{"message":')
    }
    response.writeHead(fault, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' })
    response.end('{"message":"told to fail"}')
  }

  #pass(body: Buffer, request: IncomingMessage, response: ServerResponse): void {
    const own = Object.keys(this.replies).find((end) => request.url?.endsWith(end))
    if (own !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify(this.replies[own]))
    }
    // Of another service: what plays it knows nothing of its tokens.
    const { authorization: _, ...headers } = request.headers
    const onward = send(
      new URL(this.#path(request.url ?? '/'), this.#target).href,
      { method: request.method ?? 'GET', headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    onward.end(body)
  }
}
