/** Which pages of other origins may call the API and read its answers. */

const METHODS = 'POST, GET, DELETE, PUT, PATCH, OPTIONS'
/** What a page may read besides the headers that it always may. */
const EXPOSED = 'Retry-After, X-Request-Id, X-Parley-Conversation-Id, X-Vercel-AI-UI-Message-Stream'
const MAX_AGE = '3600'

const listed = (env: Cloudflare.Env): string[] =>
  (env.CORS_ORIGINS ?? '*').split(',').map((origin) => origin.trim().toLowerCase().replace(/\/$/, ''))

/**
 * Says who may read an answer: everyone where CORS_ORIGINS is `*` or not set, else the origins that it lists. An
 * origin that it does not list is told nothing, and its browser keeps the answer from the page.
 */
export function allowOrigin(env: Cloudflare.Env, request: Request, headers: Headers): boolean {
  const origins = listed(env)
  const origin = request.headers.get('origin')
  if (origins.includes('*')) {
    headers.set('access-control-allow-origin', '*')
  } else {
    // Caches must not hand one origin's answer to another.
    headers.append('vary', 'Origin')
    if (origin === null || !origins.includes(origin.toLowerCase())) return false
    headers.set('access-control-allow-origin', origin)
  }
  headers.set('access-control-expose-headers', EXPOSED)
  return true
}

/** The answer to a preflight; undefined for any other request. */
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
