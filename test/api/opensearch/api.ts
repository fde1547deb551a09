/** OpenSearch's API as a client sees it, inside workerd. */
import { send } from '../typesense/api'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Sends JSON, or ndjson where `body` is a list, and reads the answer: `[status, body]`. */
export async function request(
  method: string,
  path: string,
  body?: unknown,
  key?: string | null,
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
): Promise<[number, any]> {
  const text = Array.isArray(body) ? body.map((line) => `${JSON.stringify(line)}\n`).join('') : body
  const response = await send(method, path, {
    ...(key === undefined ? {} : { key }),
    ...(body === undefined ? {} : { body: text, headers: JSON_TYPE }),
  })
  const answer = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') && answer !== ''
  return [response.status, isJson ? JSON.parse(answer) : answer]
}

let count = 0

/** A name that no other test uses. */
export const indexName = (stem = 'index'): string =>
  `${stem}-${Math.random().toString(36).slice(2, 8)}-${count++}`

/** Writes documents into an index, by their ids. */
export async function fill(index: string, documents: Record<string, Record<string, unknown>>): Promise<void> {
  const lines = Object.entries(documents).flatMap(([_id, source]) => [{ index: { _id } }, source])
  const [status, { errors, items }] = await request('POST', `/${index}/_bulk`, lines)
  if (status !== 200 || errors) throw new Error(JSON.stringify(items))
}

/** The ids that a query finds, in their order; an error's reason where there is one. */
export async function idsOf(
  index: string,
  query: unknown,
  more: Record<string, unknown> = {},
): Promise<string[] | string> {
  const [status, body] = await request('POST', `/${index}/_search`, { query, size: 100, ...more })
  if (status !== 200) return `${status} ${body.error.root_cause[0].reason}`
  return body.hits.hits.map(({ _id }: { _id: string }) => _id)
}
