/** A node of a cluster that passes requests on to another server, until it is told to fail. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** `cut`: the connection breaks. `stall`: nothing comes. `half`: an error begins and never ends. A number: this status. */
export type Fault = 'cut' | 'stall' | 'half' | number

export class Relay {
  url = ''
  /** paths of the requests so far, with their queries */
  asked: string[] = []
  fault: Fault | undefined
  /** replies of its own, by the end of the path */
  readonly replies: Record<string, unknown> = {}
  readonly #target: string
  readonly #path: (path: string) => string
  readonly #server = createServer((request, response) => this.#answer(request, response))

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

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.asked.push(`${request.method} ${request.url}`)
    if (this.fault === 'cut') return void request.socket.destroy()
    if (this.fault === 'stall') return
    if (this.fault === 'half') {
      response.writeHead(400, { 'content-type': 'application/json' })
      return void response.write('{"message":')
    }
    if (this.fault !== undefined) {
      response.writeHead(this.fault, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' })
      return void response.end('{"message":"told to fail"}')
    }
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
    request.pipe(onward)
  }
}
