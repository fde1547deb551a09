/** Finds the key of a request. */
import type { SearchParameters } from '../../search/types'

const HEADERS = ['x-typesense-api-key', 'x-api-key', 'api-key']

/**
 * The key of a request to Parley's own routes or an assistant: in one of several headers, as a Bearer token, or in
 * Typesense's query parameter.
 */
export function presentedKey(request: Request): string | undefined {
  const { headers } = request
  for (const name of HEADERS) {
    const value = headers.get(name)
    if (value) return value
  }
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.get('authorization') ?? '')?.[1]
  return bearer ?? new URL(request.url).searchParams.get('x-typesense-api-key') ?? undefined
}

/** The key of a request to Typesense's routes: in its header, or else in its query parameter (contract 0). */
export const typesenseKey = (request: Request, query: SearchParameters): string | undefined =>
  request.headers.get('x-typesense-api-key') ?? query['x-typesense-api-key']
