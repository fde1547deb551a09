/**
 * Origins of web pages (RFC 6454: scheme, host and port), and lists of allowed ones.
 *
 * Like the schemas of the API, this file imports nothing of the Worker.
 */

/**
 * An entry of a list: an origin such as `https://shop.example:8443`, or `https://*.shop.example` for every name below
 * one. Apps have schemes of their own, such as `capacitor://localhost`.
 */
export const ORIGIN_PATTERN =
  /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:\*\.)?(?:[\w-]+(?:\.[\w-]+)*|\[[0-9A-Fa-f:]+\])(?::\d+)?$/

/** Most entries of a list. */
export const MOST_ORIGINS = 50

/** In a variable's list: all origins of this machine, on any port. */
const LOOPBACK = 'loopback'

const DEFAULT_PORTS = /^(http:\/\/.*):80$|^(https:\/\/.*):443$/

const normal = (origin: string): string =>
  origin.trim().toLowerCase().replace(/\/$/, '').replace(DEFAULT_PORTS, '$1$2')

/** Whether the host of a URL can only be this machine. */
export const isLoopbackHost = (host: string): boolean =>
  /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(host)

/** Whether an origin is in a list of entries. */
export function matchesOrigin(entries: readonly string[], origin: string): boolean {
  const wanted = normal(origin)
  return entries.some((given) => {
    const entry = normal(given)
    if (entry === LOOPBACK)
      return /^https?:/.test(wanted) && isLoopbackHost(URL.parse(wanted)?.hostname ?? '')
    if (!entry.includes('://*.')) return entry === wanted
    const [scheme, below] = entry.split('*') as [string, string]
    return wanted.startsWith(scheme) && wanted.endsWith(below) && wanted.length > scheme.length + below.length
  })
}

/** The origin of a page that does not tell it, such as one in a sandbox or from a file. */
const OPAQUE = 'null'

/**
 * The origin of the page that sent a request. With a plain GET to another site, such as an image's, a browser sends no origin,
 * only that the site is another one.
 *
 * @returns undefined if no page sent it, or a page of this server; `null` for a page that does not tell its origin
 */
export function foreignOrigin(request: Request): string | undefined {
  const origin = request.headers.get('origin')
  if (origin === null && request.headers.get('sec-fetch-site') !== 'cross-site') return undefined
  const url = new URL(request.url)
  if (origin !== null) {
    // The scheme is not compared, because a proxy may terminate TLS.
    return normal(origin).replace(/^https?:\/\//, '') === url.host.toLowerCase() ? undefined : origin
  }
  // Following a link is not a request of the page, unless it has parameters, which may include a key.
  return request.headers.get('sec-fetch-mode') === 'navigate' && url.search === '' ? undefined : OPAQUE
}
