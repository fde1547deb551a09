/** What a site allows robots, and the pages that it lists itself. The Worker reads sites with this, too. */
import parseRobots from 'robots-parser'
import { unpacked } from './files.mjs'

/** Sitemaps and feeds that are read of one site: an index may name many. */
const MOST_SITEMAPS = 50

/** Bytes of a sitemap, unpacked: twice as many as they may have (https://www.sitemaps.org/protocol.html). */
const LONGEST_SITEMAP = 100 << 20

/**
 * @typedef {object} Rules
 * @property {(url: string) => boolean} allows
 * @property {number} delay seconds between two requests that the site asks for; 0: none
 * @property {string[]} sitemaps
 * @property {string} [closed] why nothing at all may be read
 */

/** @typedef {(url: string) => Promise<{ status: number, bytes: Uint8Array } | { reason: string }>} Get `reason`: why there is no answer */

/**
 * The site's robots.txt. A site without one allows everything; one whose robots.txt fails with 5xx is left alone
 * (RFC 9309, 2.3.1).
 * @param {string} origin
 * @param {string} agent
 * @param {Get} get
 * @returns {Promise<Rules>}
 */
export async function robotsOf(origin, agent, get) {
  const url = `${origin}/robots.txt`
  const answer = await get(url)
  const closed =
    'reason' in answer
      ? `nobody answers at ${origin} (${answer.reason})`
      : answer.status >= 500
        ? `its robots.txt answers with ${answer.status}, so that it is not known what may be read`
        : undefined
  if ('reason' in answer || closed !== undefined)
    return { allows: () => false, delay: 0, sitemaps: [], ...(closed !== undefined && { closed }) }
  const text = answer.status < 300 ? new TextDecoder().decode(answer.bytes) : ''
  const robots = parseRobots(url, text)
  return {
    allows: (each) => robots.isAllowed(each, agent) !== false,
    delay: robots.getCrawlDelay(agent) ?? 0,
    sitemaps: robots.getSitemaps(),
  }
}

/**
 * The pages that a site lists itself: those of the sitemap or feed that an address is, else those of its sitemaps.
 * @param {string} start
 * @param {Rules} rules
 * @param {Get} get
 * @returns {Promise<{ pages: string[], isList: boolean }>} `isList`: whether `start` is a list, which may name any page of its site
 */
export async function listedPages(start, { allows, sitemaps }, get) {
  const named = mayBeList(start) && allows(start) ? await pagesInLists([start], get) : []
  if (named.length > 0) return { pages: named, isList: true }
  const lists = sitemaps.length > 0 ? sitemaps : [`${new URL(start).origin}/sitemap.xml`]
  return { pages: await pagesInLists(lists, get), isList: false }
}

/** Whether an address may be that of a sitemap or a feed. @param {string} address */
const mayBeList = (address) =>
  /\.(?:xml(?:\.gz)?|rss|atom|rdf)$|\/(?:feed|rss|atom)\/?$|\/feed\.json$/i.test(new URL(address).pathname)

/**
 * Addresses that a site's sitemaps list, those of an index included, or that feeds do: RSS, Atom and JSON Feed.
 * @param {string[]} lists
 * @param {Get} get
 * @returns {Promise<string[]>}
 */
async function pagesInLists(lists, get) {
  const waiting = [...lists]
  const seen = new Set(waiting)
  const pages = new Set()
  for (let read = 0; waiting.length > 0 && read < MOST_SITEMAPS; read++) {
    const list = /** @type {string} */ (waiting.shift())
    const answer = await get(list)
    if ('reason' in answer || answer.status >= 300) continue
    const xml = await textOf(answer.bytes).catch(() => '')
    for (const entry of pagesInFeed(xml)) if (URL.canParse(entry, list)) pages.add(new URL(entry, list).href)
    const isIndex = /<(?:\w+:)?sitemapindex[\s>]/.test(xml)
    for (const [, found = ''] of xml.matchAll(/<(?:\w+:)?loc\s*>\s*(?:<!\[CDATA\[\s*)?([^<>\s\]]+)/g)) {
      const loc = unescaped(found)
      if (!isIndex) pages.add(loc)
      else if (!seen.has(loc)) {
        seen.add(loc)
        waiting.push(loc)
      }
    }
  }
  return [...pages]
}

/**
 * Addresses of the pages that a feed tells of (RSS 2.0 and 1.0; Atom, RFC 4287, 4.2.7; JSON Feed 1.1, "items").
 * @param {string} text
 * @returns {string[]}
 */
function pagesInFeed(text) {
  if (/^\s*\{/.test(text)) return pagesInJsonFeed(text)
  if (!/<(?:rss|rdf:RDF|(?:\w+:)?feed)[\s>]/.test(text)) return []
  const [, ...entries] = text.split(/<(?:\w+:)?(?:item|entry)[\s>]/)
  return entries.flatMap((begun) => {
    const [entry = ''] = begun.split(/<\/(?:\w+:)?(?:item|entry)>/, 1)
    const written = /<link\s*>\s*(?:<!\[CDATA\[\s*)?([^<>\s\]]+)/.exec(entry)?.[1]
    if (written !== undefined) return [unescaped(written)]
    const links = [...entry.matchAll(/<(?:\w+:)?link\s[^<>]*>/g)].map(([link]) => link)
    const own = links.find((link) => /\srel=["']alternate["']/.test(link) || !/\srel=/.test(link))
    const href = own && /\shref=["']([^"']+)["']/.exec(own)?.[1]
    return href === undefined ? [] : [unescaped(href)]
  })
}

/** @param {string} text @returns {string[]} */
function pagesInJsonFeed(text) {
  try {
    const { items = [] } = JSON.parse(text)
    return items.flatMap((/** @type {{ url?: unknown }} */ { url }) => (typeof url === 'string' ? [url] : []))
  } catch {
    return []
  }
}

/** @param {string} text */
const unescaped = (text) => text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? '')

/** @type {Record<string, string>} */
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** @param {Uint8Array} bytes perhaps gzipped @throws Error when it is too long */
async function textOf(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new TextDecoder().decode(bytes)
  const packed = new Blob([/** @type {BlobPart} */ (bytes)]).stream()
  return new Response(unpacked(packed, LONGEST_SITEMAP)).text()
}
