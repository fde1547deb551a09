/** The façade as a client sees it, inside workerd. */
import { exports } from 'cloudflare:workers'
import { expect } from 'vitest'

export const ADMIN_KEY = 'xyz'

export const FORBIDDEN = { message: 'Forbidden - a valid `x-typesense-api-key` header must be sent.' }

/** What a known key is told that may not do something. */
export const MAY_NOT = { ...FORBIDDEN, detail: expect.stringMatching(/^This key may not `/) }

/** What is told of a text that is no JSON. */
export const BAD_JSON = { message: 'Bad JSON.', detail: expect.stringMatching(/^Line \d+, column \d+: /) }

/** What is told of a name that no collection has. */
export const noCollection = (name: string) => ({
  message: 'Collection not found',
  detail: `There is no collection or alias \`${name}\`.`,
})

interface Options {
  /** null: none is sent */
  key?: string | null
  /** a string or bytes are sent as they are, anything else as JSON */
  body?: unknown
  headers?: Record<string, string>
}

const isRaw = (body: unknown): body is string | Uint8Array<ArrayBuffer> =>
  typeof body === 'string' || body instanceof Uint8Array

/** Sends a request to the Worker. */
export function send(method: string, path: string, { key = ADMIN_KEY, body, headers }: Options = {}) {
  return exports.default.fetch(
    new Request(`http://parley${path}`, {
      method,
      headers: { ...(key === null ? {} : { 'x-typesense-api-key': key }), ...headers },
      ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
    }),
  )
}

/** Sends a request and reads its answer: `[status, JSON]`. */
// biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
export async function call(method: string, path: string, options: Options = {}): Promise<[number, any]> {
  const response = await send(method, path, options)
  return [response.status, await response.json()]
}

/** `{ q: 'a b', x: 1 }` as a query string. */
export const queryString = (parameters: Record<string, unknown>): string =>
  `?${Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
    .join('&')}`
