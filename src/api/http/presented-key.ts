/** Finds the key of a request. */
import { VISITOR_HEADER } from '../../auth/identity'
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

/** Secrets that a query can hold, and paths with a key in them: those of the AI Search snippet. */
const SECRETS = [PARAMETER, VISITOR_HEADER]
const KEY_IN_PATH = /^\/ai-search\/./

/**
 * Refuses a key or a visitor's secret in the URL where KEYS_IN_URLS is `off`: exported traces, proxies and browsers keep whole
 * URLs. The platform has recorded this one by then, so the secret counts as lost.
 * @param path of the request, without repeated slashes
 */
export function refuseKeyInUrl(env: Cloudflare.Env, request: Request, path: string): Response | undefined {
  if (env.KEYS_IN_URLS !== 'off') return undefined
  const names = [...new URL(request.url).searchParams.keys()].map((name) => name.toLowerCase())
  const found = KEY_IN_PATH.test(path) ? PARAMETER : SECRETS.find((name) => names.includes(name))
  if (found === undefined) return undefined
  return errorResponse(
    new ApiError(
      400,
      `This deployment takes no key and no visitor's secret in the URL (KEYS_IN_URLS). Send it in the header \`${found}\`, and replace it: URLs are logged.`,
    ),
  )
}
