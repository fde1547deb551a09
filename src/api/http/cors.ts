/** Which origins may call the API, which host names it answers to, and what browsers may do with an answer. */

import { VISITOR_HEADER } from '../../auth/access'
import { badRequest } from '../../errors'
import { foreignOrigin, isLoopbackHost, matchesOrigin } from '../../lib/origins'
import type { SearchParameters } from '../../search/types'
import { errorResponse, json } from './deliver'

const METHODS = 'POST, GET, DELETE, PUT, PATCH, OPTIONS'
/** Headers that a page may read besides the standard ones. */
const EXPOSED =
  'Retry-After, X-Request-Id, X-Parley-Conversation-Id, X-Vercel-AI-UI-Message-Stream, WWW-Authenticate'
const MAX_AGE = '3600'

const entries = (list: string): string[] =>
  list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter(Boolean)

const origins = (env: Cloudflare.Env): string[] => entries(env.CORS_ORIGINS ?? '*')

/**
 * Sets the origins that may read the answer: everyone if CORS_ORIGINS is `*` or not set, else the origins that it
 * lists. For any other origin no header is set, and the browser hides the answer from the page.
 */
export function allowOrigin(env: Cloudflare.Env, request: Request, headers: Headers): boolean {
  const listed = origins(env)
  const origin = request.headers.get('origin')
  if (listed.includes('*')) {
    headers.set('access-control-allow-origin', '*')
  } else {
    // So that caches do not serve one origin's answer to another.
    headers.append('vary', 'Origin')
    if (origin === null || !matchesOrigin(listed, origin)) return false
    headers.set('access-control-allow-origin', origin)
  }
  headers.set('access-control-expose-headers', EXPOSED)
  return true
}

/** The answer to a preflight; undefined for any other request. A preflight has no key: the real request brings it. */
export function preflight(env: Cloudflare.Env, request: Request): Response | undefined {
  if (request.method !== 'OPTIONS') return undefined
  const asked = request.headers.get('access-control-request-headers')
  if (asked === null && !request.headers.has('access-control-request-method')) return undefined
  const response = new Response(null, { status: 200 })
  if (allowOrigin(env, request, response.headers)) {
    response.headers.set('access-control-allow-methods', METHODS)
    response.headers.set('access-control-allow-headers', asked ?? '')
    response.headers.set('access-control-max-age', MAX_AGE)
  }
  return response
}

/**
 * Refuses a page whose origin CORS_ORIGINS does not list. The browser would hide the answer from it anyway, but a
 * simple request would already have been executed.
 */
export function refuseOrigin(env: Cloudflare.Env, request: Request): Response | undefined {
  const origin = foreignOrigin(request)
  const listed = origins(env)
  if (origin === undefined || listed.includes('*') || matchesOrigin(listed, origin)) return undefined
  const who = origin === 'null' ? 'A page that does not tell its origin' : `A page of ${origin}`
  const remedy = listed.includes('loopback')
    ? `To let it in, start Parley with: npm start -- --allow-origin ${origin === 'null' ? 'ORIGIN' : origin}`
    : 'Its origin has to be listed in the variable CORS_ORIGINS.'
  return json({ message: `${who} may not use this Parley. ${remedy}` }, 403)
}

/**
 * The names that a request was sent to: that of its URL and that in its header. They differ only where something on the way has
 * rewritten the URL, as Miniflare does for whoever sends `MF-Original-URL`.
 * @returns undefined if the header is none
 */
function hostsOf(request: Request): string[] | undefined {
  const asked = new URL(request.url)
  const header = request.headers.get('host')
  if (header === null) return [asked.hostname]
  const url = URL.parse(`http://${header}/`)
  return url === null || /[@/?#\\\s,]/.test(header) ? undefined : [asked.hostname, url.hostname]
}

/**
 * Refuses a request to a name that this Parley does not answer to: SERVED_HOSTS, where it is set, lists the names.
 * `loopback` stands for those of this machine, `addresses` for every IP address, `*.name` for the names below one.
 *
 * This prevents DNS rebinding: a page can point a name of its own at this machine and then has the same origin.
 */
export function refuseHost(env: Cloudflare.Env, request: Request): Response | undefined {
  const served = entries(env.SERVED_HOSTS ?? '')
  if (served.length === 0) return undefined
  const isOurs = (host: string) => served.some((entry) => isServed(entry, host.toLowerCase()))
  const hosts = hostsOf(request)
  if (!hosts) return errorResponse(badRequest('`Host` must be one name, with a port or without.'))
  const hostname = hosts.find((host) => !isOurs(host))
  if (hostname === undefined) return undefined
  const option = isAddress(hostname)
    ? `--host ${hostname.replace(/^\[|\]$/g, '')}`
    : `--allow-host ${hostname}`
  const remedy = served.includes('loopback')
    ? `To have it do so, start it with: npm start -- ${option}`
    : 'The name has to be listed in the variable SERVED_HOSTS.'
  return json({ message: `This Parley does not answer to the name ${hostname}. ${remedy}` }, 403)
}

const isServed = (entry: string, host: string): boolean => {
  if (entry === 'loopback') return isLoopbackHost(host)
  if (entry === 'addresses') return isAddress(host)
  return entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry
}

/** Whether the host of a URL is an IP address. No name server can redirect that. */
const isAddress = (host: string): boolean => /^\d{1,3}(?:\.\d{1,3}){3}$|^\[.*\]$/.test(host)

// Headers that stop a browser from executing or embedding an answer. Headers of the pages are in ui/_headers.

const HEADERS: Record<string, string> = {
  // Answers are data: nothing in them may load, run or be framed.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** @param secure whether the request came over https: only then is HSTS sent */
export function protect(headers: Headers, secure: boolean): void {
  // A header that the route has set itself wins.
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value)
  // A shared cache must not give one key's answer to the next caller.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  if (secure) headers.set('strict-transport-security', 'max-age=31536000')
}

// =============================================================================
// Finds the key of a request.

const PARAMETER = 'x-typesense-api-key'
const KEY_NAMES = [PARAMETER, 'x-api-key', 'api-key']

/**
 * The key of a request to Parley's own routes or an assistant: in one of several headers, as a Bearer token, or in
 * Typesense's query parameter.
 */
export function presentedKey(request: Request): string | undefined {
  const { headers } = request
  for (const name of KEY_NAMES) {
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
    badRequest(
      `This deployment takes no key and no visitor's secret in the URL (KEYS_IN_URLS). Send it in the header \`${found}\`, and replace it: URLs are logged.`,
    ),
  )
}
