/** Server-sent events as a careful client reads them: over a socket, with a position to go on from. */
import { createParser } from 'eventsource-parser'
import { KEY, type question, url } from './harness'

export interface Received {
  id: string
  event: string
  /** biome-ignore lint/suspicious/noExplicitAny: events are checked field by field */
  data: any
}

export interface Connection {
  status: number
  headers: Headers
  /** Complete events, as they come. Ends with the stream, or where it is cut. */
  events: AsyncGenerator<Received, void>
  /** every byte so far */
  bytes(): Buffer
  close(): void
}

export interface Connect {
  method?: string
  body?: unknown
  key?: string
  headers?: Record<string, string>
  lastEventId?: string | undefined
  /** the connection is broken off after this many bytes, wherever that is in an event */
  cutAfter?: number
}

/** Opens a stream. */
export async function connect(path: string, options: Connect = {}): Promise<Connection> {
  const { method = 'GET', body, key = KEY, headers, lastEventId, cutAfter = Infinity } = options
  const abort = new AbortController()
  const response = await fetch(url + path, {
    method,
    headers: {
      'x-typesense-api-key': key,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: abort.signal,
  })
  const chunks: Uint8Array[] = []

  async function* read(): AsyncGenerator<Received, void> {
    const decoder = new TextDecoder()
    const waiting: Received[] = []
    const parser = createParser({
      onEvent: ({ id = '', event = 'message', data }) => waiting.push({ id, event, data: JSON.parse(data) }),
    })
    let left = cutAfter
    try {
      for await (const chunk of response.body ?? []) {
        const bytes = chunk.subarray(0, left)
        left -= bytes.length
        chunks.push(bytes)
        parser.feed(decoder.decode(bytes, { stream: true }))
        yield* waiting.splice(0)
        if (left === 0) return
      }
    } catch (error) {
      if (!abort.signal.aborted) throw error
    } finally {
      abort.abort()
    }
  }

  return {
    status: response.status,
    headers: response.headers,
    events: read(),
    bytes: () => Buffer.concat(chunks),
    close: () => abort.abort(),
  }
}

/** Asks on Parley's own route, for a stream. */
export const askInStream = (body: ReturnType<typeof question>, headers: Record<string, string> = {}) =>
  connect('/conversations', { method: 'POST', body, headers })

/** All events to the end. */
export async function gather({ events }: Connection): Promise<Received[]> {
  const all: Received[] = []
  for await (const event of events) all.push(event)
  return all
}

export const textOf = (events: Received[]): string =>
  events
    .filter(({ event }) => event === 'delta')
    .map(({ data }) => data.text)
    .join('')
