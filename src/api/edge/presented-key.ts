/** Finds the key of a request. */
import { ApiError } from '../../errors'
import type { SearchParameters } from '../../search/types'
import { errorResponse } from './response'

const PARAMETER = 'x-typesense-api-key'
const HEADERS = [PARAMETER, 'x-api-key', 'api-key']

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
  return bearer ?? new URL(request.url).searchParams.get(PARAMETER) ?? undefined
}

/** The key of a request to Typesense's routes: in its header, or else in its query parameter (contract 0). */
export const typesenseKey = (request: Request, query: SearchParameters): string | undefined =>
  request.headers.get(PARAMETER) ?? query[PARAMETER]

/**
 * Refuses a key in the URL where KEYS_IN_URLS is `off`: exported traces, proxies and browsers keep whole URLs. The platform
 * has recorded this one by then, so the key counts as lost.
 */
export const refuseKeyInUrl = (env: Cloudflare.Env, request: Request): Response | undefined =>
  env.KEYS_IN_URLS === 'off' && new URL(request.url).searchParams.has(PARAMETER)
    ? errorResponse(new ApiError(400, KEY_IN_URL))
    : undefined

const KEY_IN_URL =
  'This deployment takes no key in the URL (KEYS_IN_URLS). Send it in the header `x-typesense-api-key`, and replace the key: URLs are logged.'
