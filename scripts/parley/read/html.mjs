/** A web page: what people read of it, as Markdown, and where it leads. */
import { gfm } from '@joplin/turndown-plugin-gfm'
import { Readability } from '@mozilla/readability'
import sniff from 'html-encoding-sniffer'
import { parseHTML } from 'linkedom'
import Turndown from 'turndown'
import { titleOfPath } from './article.mjs'

/** Less text than this is a sign that the main content was not found. */
const FEW_CHARACTERS = 140

const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' })
turndown.use(gfm)
turndown.remove(['script', 'style', 'noscript', 'iframe', 'button', 'form', 'template'])
turndown.addRule('images', {
  filter: 'img',
  replacement: (_, node) => /** @type {any} */ (node).getAttribute('alt') ?? '',
})

/**
 * HTML as Markdown.
 * @param {string} html
 */
export const htmlToMarkdown = (html) => turndown.turndown(html).trim()

/**
 * @typedef {object} Page
 * @property {import('./article.mjs').Article} article
 * @property {string[]} links addresses of the page's links, without fragments
 * @property {string} [canonical] what the page says its address is
 * @property {boolean} indexed false where the page asks not to be
 */

/**
 * @param {string} html
 * @param {string} address of the page: links are resolved against it
 * @returns {Page}
 */
export function readPage(html, address) {
  const { document } = parseHTML(html)
  const base = resolve(document.querySelector('base[href]')?.getAttribute('href'), address) ?? address
  const links = [...document.querySelectorAll('a[href]')]
    .map((link) => resolve(link.getAttribute('href'), base))
    .filter((link) => link !== undefined)
  const canonical = resolve(document.querySelector('link[rel="canonical"]')?.getAttribute('href'), base)
  const robots = document.querySelector('meta[name="robots" i]')?.getAttribute('content') ?? ''
  const headline = document.querySelector('h1')?.textContent?.trim()
  const named = document.querySelector('title')?.textContent?.trim()
  const text = mainContent(document)
  return {
    article: {
      title: collapse(headline || named || titleOfPath(new URL(address).pathname)),
      text,
      url: canonical ?? address,
    },
    links,
    ...(canonical && { canonical }),
    indexed: !/\b(noindex|none)\b/i.test(robots),
  }
}

/**
 * A file of HTML.
 * @param {Uint8Array} bytes
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 */
export function readHtml(bytes, path) {
  const { article } = readPage(decodeHtml(bytes), new URL(encodeURI(path), 'file:///').href)
  const { url, ...rest } = article
  return { article: { ...rest, ...(url?.startsWith('http') && { url }) } }
}

/**
 * @param {Uint8Array} bytes
 * @param {string} [charset] as the server says
 */
export const decodeHtml = (bytes, charset) =>
  new TextDecoder(sniff(bytes, { transportLayerEncodingLabel: charset, defaultEncoding: 'utf-8' })).decode(
    bytes,
  )

/**
 * The main content as a readability library finds it; what the page marks as its main part where that is little.
 * @param {Document} document is taken apart
 */
function mainContent(document) {
  const marked = document.querySelector('main, [role="main"], article') ?? document.body
  const whole = marked ? htmlToMarkdown(marked.innerHTML) : ''
  const found = new Readability(document, { charThreshold: FEW_CHARACTERS, keepClasses: true }).parse()
    ?.content
  const main = found ? htmlToMarkdown(found) : ''
  return main.length >= FEW_CHARACTERS ? main : whole
}

/** @param {string} text */
const collapse = (text) => text.replace(/\s+/g, ' ').trim()

/**
 * @param {string | null | undefined} href
 * @param {string} base
 */
function resolve(href, base) {
  if (!href) return undefined
  try {
    const url = new URL(href, base)
    url.hash = ''
    return /^(https?|file):$/.test(url.protocol) ? url.href : undefined
  } catch {
    return undefined
  }
}
