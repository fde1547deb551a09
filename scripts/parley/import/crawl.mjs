/**
 * The pages of a website: those that its sitemap lists, else those that links lead to, within its origin and below the
 * address that was named. Where a sitemap or a feed is named, those that it lists.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeHtml } from '../read/encoding.mjs'
import { asksRobots, readPage } from '../read/html.mjs'
import { readContent } from '../read/index.mjs'
import { reasonOf } from '../server.mjs'
import { listedPages, robotsOf } from './robots.mjs'
import { AGENT, BUSY, belowOf, normal, waitOf } from './site.mjs'

const TIMEOUT_MS = 30_000
const LONGEST_PAGE = 20 << 20
const AT_ONCE = 4
const ATTEMPTS = 3
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** Files that a page may link to and that hold text. */
const FILES = { 'application/pdf': '.pdf', 'text/plain': '.txt', 'text/markdown': '.md' }

/**
 * @typedef {object} Crawled
 * @property {string} url
 * @property {import('../read/article.mjs').Article} [article]
 * @property {string} [error] why there is none
 * @property {true} [isGone] whether there is none any more
 */

/**
 * Fetches the pages of a site, a few at a time.
 * @param {string} start
 * @param {{ most: number, rate?: number, onPage?: (done: number, known: number) => void }} options
 *   `rate`: requests a second; absent: 5, and as fast as it answers on this machine
 * @returns {Promise<{ pages: Crawled[], leftOut: string[], disallowed: string[], cut: boolean, rate: number }>} `leftOut`: addresses of pages that
 *   redirect or ask not to be indexed; `disallowed`: those that robots.txt forbids; `cut`: there were more than `most`; `rate` is the one that was kept, Infinity for none
 */
export async function crawl(start, { most, rate, onPage = () => {} }) {
  const first = new URL(start)
  first.hash = ''
  const { origin, hostname } = first
  const fetchPage = paced(rate ?? (LOOPBACK.test(hostname) ? Number.POSITIVE_INFINITY : 5))
  const get = async (/** @type {string} */ url) => {
    try {
      return await fetchPage.get(url)
    } catch (error) {
      return { reason: reasonOf(error) }
    }
  }
  const rules = await robotsOf(origin, AGENT, get)
  if (rules.delay > 0) fetchPage.slow(1 / rules.delay)

  /** @type {Set<string>} */
  const disallowed = new Set()
  const { pages: found, isList } = await listedPages(first.href, rules, get)
  const isBelow = belowOf(isList ? origin : start)
  const belongs = (/** @type {string} */ address) => {
    if (!isBelow(address)) return false
    if (!rules.allows(address)) disallowed.add(address)
    return !disallowed.has(address)
  }
  const listed = found.flatMap((each) => normal(each) ?? []).filter(belongs)

  const waiting = listed.length > 0 ? listed : belongs(first.href) ? [first.href] : []
  const follows = listed.length === 0
  const seen = new Set(waiting)
  /** @type {Map<string, Crawled>} */
  const pages = new Map()
  /** @type {string[]} */
  const leftOut = []
  if (waiting.length === 0) {
    pages.set(first.href, { url: first.href, error: rules.closed ?? 'robots.txt does not allow it' })
  }
  let begun = 0

  const visit = async (/** @type {string} */ url) => {
    const { page, links, address, isLeftOut } = await read(url, fetchPage)
    for (const link of follows ? links : []) {
      const next = normal(link)
      if (next === undefined || seen.has(next) || !belongs(next)) continue
      seen.add(next)
      waiting.push(next)
    }
    // The same page under two addresses is one document; a redirect out of the site leads to none.
    if (page && belongs(address) && !pages.has(address)) pages.set(address, { ...page, url: address })
    if (isLeftOut) leftOut.push(address)
    onPage(pages.size, seen.size)
  }
  const work = async () => {
    while (begun < most) {
      const url = waiting.shift()
      if (url === undefined) return
      begun += 1
      await visit(url)
    }
  }
  // A worker that finds nothing waiting ends; what the others find keeps them going.
  do await Promise.all(Array.from({ length: AT_ONCE }, work))
  while (waiting.length > 0 && begun < most)
  return {
    pages: onceEach([...pages.values()]),
    leftOut,
    disallowed: rules.closed === undefined ? [...disallowed] : [],
    cut: waiting.length > 0,
    rate: fetchPage.rate,
  }
}

/**
 * Pages without those that another address has word for word, such as `/docs/` and `/docs/index.html`. The shortest address stays.
 * @param {Crawled[]} pages
 */
function onceEach(pages) {
  /** @type {Map<string, Crawled>} */
  const kept = new Map()
  for (const page of pages) {
    const said = page.article ? JSON.stringify([page.article.title, withoutOwnLinks(page)]) : page.url
    const known = kept.get(said)
    if (known === undefined || isBefore(page.url, known.url)) kept.set(said, page)
  }
  const all = new Set(kept.values())
  return pages.filter((page) => all.has(page))
}

/** @param {string} url @param {string} other */
const isBefore = (url, other) => url.length < other.length || (url.length === other.length && url < other)

/** The text of a page with its links to itself as words: those depend on its address. @param {Crawled} page */
const withoutOwnLinks = ({ url, article }) =>
  article?.text.replace(/\[([^\]\n]*)\]\(([^)\s]*)\)/g, (link, words, href) =>
    folderOf(href) === folderOf(url) ? words : link,
  )

/** @param {string} url */
const folderOf = (url) => url.replace(/#.*$/, '').replace(/\/index\.x?html?$/, '/')
/**
 * @param {string} url
 * @param {ReturnType<typeof paced>} fetchPage
 * @returns {Promise<{ page?: Omit<Crawled, 'url'>, links: string[], address: string, isLeftOut?: true }>} no page where there is nothing to import
 */
async function read(url, fetchPage) {
  try {
    const { status, type, charset, bytes, address, robots } = await fetchPage.get(url)
    if (status >= 400) {
      const isGone = status === 404 || status === 410
      return {
        page: { error: `answered with ${status}`, ...(isGone && { isGone }) },
        links: [],
        address: url,
      }
    }
    const isAsked = asksRobots(robots, 'noindex')
    if (type === 'text/html' || type === 'application/xhtml+xml') {
      const { article, links: all, canonical, indexed } = readPage(decodeHtml(bytes, charset), address)
      const links = asksRobots(robots, 'nofollow') ? [] : all
      const own = canonical && new URL(canonical).origin === new URL(address).origin ? canonical : address
      if (!indexed || isAsked) return { links, address: own, isLeftOut: true }
      if (article.text === '') return { page: { error: 'holds no text' }, links, address: own }
      return { page: { article: { ...article, url: own } }, links, address: own }
    }
    if (isAsked) return { links: [], address, isLeftOut: true }
    const ending = FILES[/** @type {keyof typeof FILES} */ (type)]
    if (!ending) return { links: [], address }
    const content = await readContent(bytes, new URL(address).pathname.replace(/(\.[a-z0-9]+)?$/i, ending))
    if (!('article' in content)) return { links: [], address }
    return { page: { article: { ...content.article, url: address } }, links: [], address }
  } catch (error) {
    return { page: { error: /** @type {Error} */ (error).message }, links: [], address: url }
  }
}

/**
 * Requests one after the other in time, so many a second at most.
 * @param {number} rate
 */
function paced(rate) {
  let next = 0
  return {
    get rate() {
      return rate
    },
    /** @param {number} other a lower rate */
    slow(other) {
      rate = Math.min(rate, other)
    },
    /** @param {string} url */
    async get(url) {
      for (let attempt = 1; ; attempt += 1) {
        const now = Date.now()
        const at = Math.max(now, next)
        next = at + 1000 / rate
        if (at > now) await sleep(at - now)
        const response = await fetch(url, {
          headers: { 'user-agent': AGENT, accept: 'text/html, application/xhtml+xml, */*;q=0.5' },
          signal: AbortSignal.timeout(TIMEOUT_MS),
        })
        if (BUSY.has(response.status) && attempt < ATTEMPTS) {
          await response.body?.cancel()
          // All requests wait, since the server has no time for any of them.
          next = Math.max(next, Date.now() + waitOf(response.headers.get('retry-after'), attempt))
          continue
        }
        const [type = '', ...parameters] = (response.headers.get('content-type') ?? 'text/html').split(';')
        const charset = /charset=["']?([\w-]+)/i.exec(parameters.join(';'))?.[1]
        return {
          status: response.status,
          type: type.trim().toLowerCase(),
          charset,
          bytes: await bytesOf(response),
          address: normal(response.url || url) ?? url,
          robots: response.headers.get('x-robots-tag') ?? '',
        }
      }
    },
  }
}

/** @param {Response} response @throws Error when it is too long */
async function bytesOf(response) {
  const pieces = []
  let length = 0
  for await (const piece of response.body ?? []) {
    pieces.push(piece)
    length += piece.length
    if (length > LONGEST_PAGE) throw new Error(`is longer than ${LONGEST_PAGE >> 20} MiB`)
  }
  return new Uint8Array(Buffer.concat(pieces))
}
