/** What a page of a source says. What a Worker cannot read is told with what can. */
import type { Article } from '../../scripts/parley/import/reader.mjs'
import type { Fetched } from './fetch-page'
import type { Reader } from './load-reader'
import type { Source } from './source'

export interface Page {
  /** absent: there is nothing to show, or the page asks not to be shown */
  article?: Article
  links: string[]
  canonical?: string
  /** what it says of its site */
  site?: Source['site']
  /** another site, to which all of this one leads */
  moved?: string
}

/** @throws Error for a document that only the command line reads, and for a page without text */
export function articleOf(use: Reader, { headers, bytes }: Fetched, address: string): Page {
  const [type = '', ...parameters] = (headers.get('content-type') ?? 'text/html').split(';')
  const charset = /charset=["']?([\w-]+)/i.exec(parameters.join(';'))?.[1]
  const robots = headers.get('x-robots-tag') ?? ''
  const kind = type.trim().toLowerCase()
  if (DOCUMENTS.test(kind))
    throw new Error(
      `is ${kind}, which is not read here: save it, and import it from a terminal with \`parley import FILE --into COLLECTION\``,
    )
  if (kind === 'text/html' || kind === 'application/xhtml+xml') {
    const page = use.readPage(decoded(bytes, charset), address)
    const links = use.asksRobots(robots, 'nofollow') ? [] : page.links
    if (!page.indexed || use.asksRobots(robots, 'noindex')) return { links }
    if (page.article.text === '') throw new Error('holds no text')
    return {
      article: page.article,
      links,
      site: page.site,
      ...(page.canonical !== undefined && { canonical: page.canonical }),
    }
  }
  if (!/^text\/(?:plain|markdown|x-markdown)$/.test(kind) || use.asksRobots(robots, 'noindex'))
    return { links: [] }
  const text = decoded(bytes, charset).trim()
  if (text === '') throw new Error('holds no text')
  return { article: use.textArticle(text, new URL(address).pathname), links: [] }
}

/** A file of a bucket or an archive, read as its name says. @throws Error for a file without text */
export function fileOf(use: Reader, bytes: Uint8Array, path: string): Page {
  const content = use.readFile(decoded(bytes, undefined), path)
  if (!('article' in content) || content.indexed === false) return { links: [] }
  if (content.article.text === '') throw new Error('holds no text')
  return { article: content.article, links: [] }
}

const DOCUMENTS =
  /^application\/(?:pdf|epub\+zip|msword|rtf|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-)[\w.-]*)/

/**
 * Text in the encoding that the server names, else the page, else UTF-8 if it is that, else Windows-1252. The import's own way tells
 * more encodings apart, with tables that are too large for a Worker. Each line ends with \n, whatever it ended with.
 */
function decoded(bytes: Uint8Array, charset: string | undefined): string {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 1024))
  const named = charset ?? /<meta[^<>]+charset=["']?\s*([\w-]+)/i.exec(head)?.[1]
  return textIn(bytes, named).replace(/\r\n?/g, '\n')
}

function textIn(bytes: Uint8Array, named: string | undefined): string {
  try {
    return new TextDecoder(named ?? 'utf-8', { fatal: named === undefined, ignoreBOM: false }).decode(bytes)
  } catch {
    // An encoding of which nobody knows, or bytes that are not UTF-8.
    return named === undefined ? new TextDecoder('windows-1252').decode(bytes) : textIn(bytes, undefined)
  }
}
