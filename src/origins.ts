/**
 * Origins of web pages (RFC 6454: scheme, host and port), and lists of those that may do something.
 *
 * As the schemas of the API, this imports nothing of the Worker.
 */

/**
 * An entry of a list: an origin such as `https://shop.example:8443`, or `https://*.shop.example` for every name below
 * one. Apps have schemes of their own, such as `capacitor://localhost`.
 */
export const ORIGIN_PATTERN =
  /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:\*\.)?(?:[\w-]+(?:\.[\w-]+)*|\[[0-9A-Fa-f:]+\])(?::\d+)?$/

/** Entries that a list in one property can have. */
export const MOST_ORIGINS = 50

/** Stands in lists of variables for all origins of this machine, whatever their port. */
const LOOPBACK = 'loopback'

const DEFAULT_PORTS = /^(http:\/\/.*):80$|^(https:\/\/.*):443$/

const normal = (origin: string): string =>
  origin.trim().toLowerCase().replace(/\/$/, '').replace(DEFAULT_PORTS, '$1$2')

/** Whether a host name or address, as a URL has it, can only be this machine. */
export const isLoopbackHost = (host: string): boolean =>
  /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(host)

/** Whether an origin is in a list of entries. */
export function matchesOrigin(entries: readonly string[], origin: string): boolean {
  const wanted = normal(origin)
  return entries.some((given) => {
    const entry = normal(given)
    if (entry === LOOPBACK) return /^https?:/.test(wanted) && isLoopbackHost(hostOf(wanted))
    if (!entry.includes('://*.')) return entry === wanted
    const [scheme, below] = entry.split('*') as [string, string]
    return wanted.startsWith(scheme) && wanted.endsWith(below) && wanted.length > scheme.length + below.length
  })
}

const hostOf = (origin: string): string => {
  try {
    return new URL(origin).hostname
  } catch {
    return ''
  }
}

/** What a page is that does not say from where: one in a sandbox or from a file. */
const OPAQUE = 'null'

/**
 * The origin of the page that a request comes from. A browser sends none with a plain GET, such as an image's, to
 * another site; it then says that the site is another one.
 *
 * @returns undefined where no page asks, or one of the server's own; `null` for a page that does not tell
 */
export function foreignOrigin(request: Request): string | undefined {
  const url = new URL(request.url)
  const origin = request.headers.get('origin')
  if (origin !== null) {
    // TLS may end before the server: the scheme is not compared.
    return normal(origin).replace(/^https?:\/\//, '') === url.host.toLowerCase() ? undefined : origin
  }
  if (request.headers.get('sec-fetch-site') !== 'cross-site') return undefined
  // A link that somebody follows is no page's request, unless it brings parameters, a key's among them.
  return request.headers.get('sec-fetch-mode') === 'navigate' && url.search === '' ? undefined : OPAQUE
}
