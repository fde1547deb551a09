/** What a site allows robots, and the pages that it lists itself. The Worker reads sites with this, too. */
import parseRobots from 'robots-parser'

/** Sitemaps that are read of one site: an index may name many. */
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
 * Addresses that a site's sitemaps list, those of an index included.
 * @param {string[]} sitemaps
 * @param {Get} get
 * @returns {Promise<string[]>}
 */
export async function pagesInSitemaps(sitemaps, get) {
  const waiting = [...sitemaps]
  const seen = new Set(waiting)
  const pages = new Set()
  for (let read = 0; waiting.length > 0 && read < MOST_SITEMAPS; read++) {
    const answer = await get(/** @type {string} */ (waiting.shift()))
    if ('reason' in answer || answer.status >= 300) continue
    const xml = await textOf(answer.bytes).catch(() => '')
    const isIndex = /<(?:\w+:)?sitemapindex[\s>]/.test(xml)
    for (const [, found = ''] of xml.matchAll(/<(?:\w+:)?loc\s*>\s*(?:<!\[CDATA\[)?\s*([^<>\s\]]+)/g)) {
      const loc = found.replace(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? '')
      if (!isIndex) pages.add(loc)
      else if (!seen.has(loc)) {
        seen.add(loc)
        waiting.push(loc)
      }
    }
  }
  return [...pages]
}

/** @type {Record<string, string>} */
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** @param {Uint8Array} bytes perhaps gzipped @throws Error when it is too long */
async function textOf(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new TextDecoder().decode(bytes)
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  const plain = new Blob([/** @type {BlobPart} */ (bytes)])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'))
  for await (const piece of /** @type {any} */ (plain)) {
    length += piece.length
    if (length > LONGEST_SITEMAP) throw new Error('is too long')
    text += decoder.decode(piece, { stream: true })
  }
  return text
}
