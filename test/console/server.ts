/** A server that the console of a test talks to. Its replies are held against the API's description (`contract.ts`). */
import { bodyFault, eventFault, isAt, queryFault, replyFault } from './contract'

/** A request as the server saw it. */
export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  /** parsed, where it is JSON */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at it field by field
  body: any
  /** the API key */
  key: string | null
}

/** JSON for a reply of status 200, or a whole response. */
export type Answer = (asked: Asked) => unknown

/** An event of a turn: its type, and its data. */
export type Event = [type: string, data: unknown]

/** A reply that refuses or fails. @param detail what to do about it */
export const failure = (status: number, message: string, detail?: string): Response =>
  Response.json({ message, ...(detail !== undefined && { detail }) }, { status })

/** A reply in JSON with a status of its own. */
export const reply = (status: number, value: unknown): Response => Response.json(value, { status })

export class FakeServer {
  /** all requests, in the order in which they came */
  readonly asked: Asked[] = []
  /** what the console asked in vain, and what the API would not have answered */
  readonly faults: string[] = []
  /** what all replies wait for */
  gate: Promise<unknown> = Promise.resolve()
  /** What is answered in the place of anything else; undefined: what the route answers. */
  instead: (asked: Asked) => Response | undefined = () => undefined
  readonly #answers: [route: string, answer: Answer][] = []

  /**
   * Answers a route from now on. Of several that fit, the one with the most words of its own counts, then the one told last.
   * @param route method and path, such as `GET /conversations/{id}`
   */
  on(route: string, answer: Answer | object): this {
    const given: Answer = typeof answer === 'function' ? (answer as Answer) : () => answer
    this.#answers.unshift([route, given])
    return this
  }

  /** The requests of a route that came so far. */
  askedFor(route: string): Asked[] {
    return this.asked.filter(({ method, path }) => isAt(route, method, path))
  }

  /** A turn as it is streamed. @param gates each holds back the event of its place until it resolves */
  turn(id: string, turn: number, events: Event[], gates: Record<number, Promise<unknown>> = {}): Response {
    for (const [type, data] of events) this.#note(eventFault(type, data))
    const encoder = new TextEncoder()
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const [at, [type, data]] of events.entries()) {
          await gates[at]
          const text = `id: ${turn}.${at}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`
          controller.enqueue(encoder.encode(text))
        }
        controller.close()
      },
    })
    return new Response(body, {
      headers: { 'content-type': 'text/event-stream', 'x-parley-conversation-id': id },
    })
  }

  /** Stands in for the browser's `fetch`. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { pathname: path, searchParams: query } = new URL(input, 'http://localhost')
    const { method = 'GET', body, signal } = init
    signal?.throwIfAborted()
    const asked: Asked = {
      method,
      path,
      query,
      body: parsed(body),
      key: new Headers(init.headers).get('x-typesense-api-key'),
    }
    this.asked.push(asked)
    this.#note(queryFault(method, path, query))
    if (body !== undefined) this.#note(bodyFault(method, path, asked.body))
    await this.gate
    const answer = this.#answers
      .filter(([route]) => isAt(route, method, path))
      .sort(([a], [b]) => a.split('{').length - b.split('{').length)[0]?.[1]
    if (!answer) {
      this.#note(`nothing answers ${method} ${path}`)
      return failure(500, `nothing answers ${method} ${path}`)
    }
    const answered = this.instead(asked) ?? (await answer(asked))
    signal?.throwIfAborted()
    const response = answered instanceof Response ? answered : Response.json(answered)
    if (response.headers.get('content-type')?.includes('application/json')) {
      this.#note(replyFault(method, path, response.status, await response.clone().json()))
    }
    return response
  }

  #note(fault: string): void {
    if (fault !== '') this.faults.push(fault)
  }
}

function parsed(body: BodyInit | null | undefined): unknown {
  if (typeof body !== 'string') return undefined
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
