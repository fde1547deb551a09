/** What a crawl of a site, the Worker, which reads one again, and who registers one hold to. */

export const AGENT = 'ParleyImporter'

/** What a server answers that has no time now: too many requests, or a part of it that is down. */
export const BUSY = new Set([429, 502, 503, 504])
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 60_000

/**
 * Tells which addresses belong to a site. Below /docs/guide are /docs/guide/x, and below /docs/index.html are /docs/x.
 * @param {string} start
 * @returns {(address: string) => boolean}
 */
export function belowOf(start) {
  const { origin, pathname } = new URL(start)
  const below = /\.[a-z0-9]+$/i.test(pathname) ? pathname.replace(/[^/]*$/, '') : pathname
  const prefix = below.replace(/\/+$/, '')
  return (address) => {
    const { origin: its, pathname: path } = new URL(address)
    return its === origin && (path === prefix || path.startsWith(`${prefix}/`))
  }
}

/**
 * An address as pages are told apart by it.
 * @param {string} address
 */
export function normal(address) {
  const url = URL.parse(address)
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  url.hash = ''
  for (const name of [...url.searchParams.keys()])
    if (/^(utm_\w+|fbclid|gclid)$/.test(name)) url.searchParams.delete(name)
  return url.href
}

/**
 * How long a server wants to be left alone, in milliseconds (RFC 9110, 10.2.3, "Retry-After").
 * @param {string | null} after seconds, or a date
 * @param {number} attempt from 1
 */
export function waitOf(after, attempt) {
  const named =
    after === null ? Number.NaN : /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now()
  const wait = Number.isNaN(named) ? FIRST_WAIT_MS * 2 ** (attempt - 1) : named
  return Math.min(Math.max(0, wait), LONGEST_WAIT_MS)
}

/**
 * The name of a source that is given none: two sites of one machine, a site and its feed, and folders of an archive
 * have different ones.
 * @param {string} url
 */
export function nameOf(url) {
  const { host, pathname, hash } = new URL(url)
  const parts = [host, ...`${pathname}/${hash.slice(1)}`.split('/').filter(Boolean)]
  return parts
    .map((part) => part.replace(/[^\w.-]+/g, '-'))
    .join('-')
    .slice(0, 128)
}
