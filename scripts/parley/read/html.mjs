/** A web page: what people read of it, as Markdown, and where it leads. */
import { strikethrough, taskListItems } from '@joplin/turndown-plugin-gfm'
import { parseHTML } from 'linkedom/worker'
import Turndown from 'turndown'
import { ELEMENT, titleOfPath } from './article.mjs'
import { clean, codeRules, mathsIn, namePlaces, plainBlocks, removeHidden } from './html-blocks.mjs'
import { tableRules } from './html-tables.mjs'

/** Less text than this is a sign that the main content was not found. */
const FEW_CHARACTERS = 140

/** Share of what a page says, without its links, from which the main content was found. */
const MOST_OF_PAGE = 0.8

/** Characters of text that make a paragraph of content. */
const PARAGRAPH = 60
const LINKS_OF_MENU = 4
const HEADINGS = 'h1, h2, h3, h4, h5, h6'

const NAVIGATION = '[role="navigation"], [role="search"], [role="contentinfo"]'
/** Links to the pages around (DocBook, Texinfo), and characters beside each: "Previous: " and a comma. */
const AROUND = 'a[rel="prev"], a[rel="next"], a[accesskey]'
const BESIDE_LINK = 12

/**
 * What a page marks as its main part. Articles are that if no heading of the page stands outside: one, or a list of posts.
 * @param {Document} document
 * @returns {Element[]}
 */
export function mainOf(document) {
  const main = document.querySelector('main, [role="main"]')
  if (main) return [main]
  const isOutside = [...document.querySelectorAll('h1')].some((each) => !each.closest('article'))
  if (isOutside) return []
  return [...document.querySelectorAll('article')].filter((each) => !each.parentElement?.closest('article'))
}

/**
 * What a page marks as its main part, whole, or else what stands between its menus, as far as one element holds nearly all of it.
 * A library that scores paragraphs (Readability) drops what it takes for less: lists of links, a section of code, each heading whose
 * id is `extra` or the like. Pages of manuals lost up to a fifteenth by it.
 * @param {Document} document is taken apart
 * @returns {string} HTML
 */
export function mainContent(document) {
  const main = mainOf(document)
  const places = placesOf(document)
  for (const each of main) removeMenus(each, places)
  const isFound = main.some((each) => clean(each.textContent).length >= FEW_CHARACTERS)
  if (isFound || !document.body) return main.map((each) => each.innerHTML).join('\n')
  removeMenus(document.body, places)
  for (const each of document.body.querySelectorAll(BESIDE)) if (!each.querySelector('h1')) each.remove()
  return mostOf(document.body).innerHTML
}

/** What stands beside the content of every page. */
const BESIDE =
  'header, footer, aside, dialog, [role="banner"], [role="complementary"], [role="dialog"], [role="alertdialog"]'

/** Deeper than this lies no container of all that a page says. */
const DEEPEST = 32

/** What a page lays its content out with. */
const CONTAINERS = 'div, section, article, main, center, form'
/** What a menu does not have. */
const CONTENT = `${HEADINGS}, table, pre, dl, p + ul, p + ol`

/** The innermost element that holds most of what a part says without links, and all of its headings. @param {Element} whole */
function mostOf(whole) {
  const most = MOST_OF_PAGE * proseLength(whole)
  let part = whole
  for (let depth = 0; depth < DEEPEST; depth += 1) {
    const inner = [...part.children].find((each) => proseLength(each) >= most)
    // A table that lays out a page has its headings in one cell.
    const cell = (inner?.matches('table') ? cellsOf(inner) : []).find(
      (each) => proseLength(each) >= most && each.querySelector(HEADINGS),
    )
    const next = cell ?? (inner?.matches(CONTAINERS) ? inner : undefined)
    if (!next) break
    // What the rest has of content would be lost.
    if (!cell && part.querySelectorAll(CONTENT).length > next.querySelectorAll(CONTENT).length) break
    part = next
  }
  return part
}

/** The cells of a table, and not of those within it. @param {Element} table */
const cellsOf = (table) =>
  [...table.children]
    .flatMap((each) => (each.nodeName === 'TR' ? [each] : [...each.children]))
    .flatMap((row) => [...row.children])

/** Characters of an element that are in no link: menus have few. @param {Element} part */
const proseLength = (part) => clean(part.textContent).length - linkedLength(part)

/**
 * Takes away what leads elsewhere and says nothing: what is marked so, and lists of links above the first paragraph.
 * @param {Element} part
 * @param {Map<string, Element>} places of the page
 */
function removeMenus(part, places) {
  for (const each of part.querySelectorAll(NAVIGATION)) each.remove()
  const around = [...part.querySelectorAll(AROUND)].filter(standsInMenu)
  for (const link of around) link.remove()
  for (const list of part.querySelectorAll('ul, ol')) if (isContents(list, places)) list.remove()
  // In the order of the page: linkedom's compareDocumentPosition is wrong for elements of different parents.
  const blocks = [...part.querySelectorAll('p, pre, dd, ul, ol')]
  const begin = blocks.findIndex((each) => each.matches('p, pre, dd') && proseLength(each) >= PARAGRAPH)
  for (const list of blocks.slice(0, Math.max(0, begin))) {
    if (!list.matches('ul, ol') || list.querySelectorAll('a').length < LINKS_OF_MENU || isIntroduced(list))
      continue
    if (linkedLength(list) >= MOST_OF_PAGE * clean(list.textContent).length) list.remove()
  }
}

/** Whether a sentence leads to a list: "Among them are:". @param {Element} list */
const isIntroduced = (list) => {
  const before = list.previousElementSibling
  return before?.nodeName === 'P' && /[:\uff1a]\s*$/.test(before.textContent ?? '')
}

/** Whether a link stands among links, and in no sentence. @param {Element} link */
function standsInMenu(link) {
  const block = link.closest('p, li, dd, td, th, div') ?? link
  const beside = clean(block.textContent).length - linkedLength(block)
  return beside <= BESIDE_LINK * block.querySelectorAll('a').length
}

/**
 * Whether a list is the table of contents of its page: it names headings of the page alone.
 * @param {Element} list
 * @param {Map<string, Element>} places of the page
 */
function isContents(list, places) {
  const links = [...list.querySelectorAll('a[href]')]
  return (
    links.length > 1 &&
    links.every((link) => leadsToHeading(link, places)) &&
    linkedLength(list) >= MOST_OF_PAGE * clean(list.textContent).length
  )
}

/**
 * What links of a page can lead to, by its name. Looked for link by link, many lists of links take the square of the page.
 * @param {Document} document
 */
function placesOf(document) {
  /** @type {Map<string, Element>} */
  const places = new Map()
  for (const each of document.querySelectorAll('[id], a[name]')) {
    const name = each.id || each.getAttribute('name')
    if (name && !places.has(name)) places.set(name, each)
  }
  return places
}

/**
 * Whether a link leads to a heading of its page, or to a part that has one.
 * @param {Element} link
 * @param {Map<string, Element>} places of the page
 */
function leadsToHeading(link, places) {
  const href = link.getAttribute('href') ?? ''
  const target = href.startsWith('#') ? places.get(href.slice(1)) : undefined
  if (!target) return false
  return Boolean(
    target.closest(HEADINGS) ??
      target.querySelector(HEADINGS) ??
      target.nextElementSibling?.matches(HEADINGS),
  )
}

/** @param {Element} part */
const linkedLength = (part) =>
  [...part.querySelectorAll('a')].reduce((sum, link) => sum + clean(link.textContent).length, 0)

/** Seconds after which a page that reloads itself or goes on is not read first. */
const SHORT_REFRESH = 5

/** A permanent link's sign. */
const SIGN = /^[\s\u200b¶§#🔗]*$/u

/** The number or mark of a footnote, in brackets, or bare where the link says that it leads to one. */
const IN_BRACKETS = /^\s*\[\s*(\d{1,3}|[a-z*†‡])\s*\]\s*$/u
const BARE = /^\s*([*†‡]|\d{1,3})\s*$/u
const TO_NOTE = /^#_?(fn|ftn|footnote|endnote|note|cite)/i

/** Whether a link within the page is a sign and no words. @param {Element} link */
function isMark(link) {
  const words = link.textContent ?? ''
  if (SIGN.test(words) || IN_BRACKETS.test(words)) return true
  const leadsToNote =
    link.closest('sup') ||
    link.getAttribute('role') === 'doc-noteref' ||
    TO_NOTE.test(link.getAttribute('href') ?? '')
  return Boolean(leadsToNote) && BARE.test(words)
}

const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' })
turndown.use([strikethrough, taskListItems, tableRules, codeRules])
turndown.remove(['script', 'style', 'noscript', 'iframe', 'button', 'form', 'template', 'nav'])
// A citation opens the place that it quotes (namePlaces).
turndown.addRule('headings', {
  filter: ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'],
  replacement: (content, node) => {
    const { nodeName, id } = /** @type {HTMLElement} */ (node)
    const words = content.replace(/\s+/g, ' ').trim()
    const place = /^[^\s{}]+$/.test(id) ? ` {#${id}}` : ''
    return words === '' ? '' : `\n\n${'#'.repeat(Number(nodeName[1]))} ${words}${place}\n\n`
  },
})
turndown.addRule('images', {
  filter: 'img',
  replacement: (_, node) => /** @type {any} */ (node).getAttribute('alt') ?? '',
})

/** Where words of a line stand: a raised number behind one would be read as a part of it. @param {Node} node */
const before = (node) => node.previousSibling?.textContent?.at(-1) ?? ''
for (const tag of /** @type {const} */ (['sup', 'sub']))
  turndown.addRule(tag, {
    filter: tag,
    replacement: (content, node) => {
      // The number of a footnote in brackets.
      if (IN_BRACKETS.test(node.textContent ?? '') && node.querySelector('a[href^="#"]')) return ''
      const marks = (tag === 'sup' ? raised : lowered)(
        before(/** @type {Node} */ (/** @type {unknown} */ (node))),
        content,
      )
      // Marks of how it looks would be read as a part of it.
      return marks[0] === '' ? content : marks.join(content.replace(/(\*\*|_)(.+?)\1/g, '$2'))
    },
  })

/** What stands around a sum that is raised or lowered as one: x^(n+1). @param {string} sign @param {string} content @returns {[string, string]} */
const around = (sign, content) =>
  /[\p{L}\p{N})][*_]*\s*[+*/·−-]\s*[*_\\]*[\p{L}\p{N}(]/u.test(content) && !/\p{L}{3}/u.test(content)
    ? [`${sign}(`, ')']
    : [sign, '']

/**
 * 10<sup>6</sup> is no 106; 1<sup>st</sup> is 1st, and a note stays beside its word.
 * @param {string} before
 * @param {string} content
 * @returns {[string, string]} what stands before and behind it
 */
export const raised = (before, content) =>
  /[\p{L}\p{N})\]]/u.test(before) &&
  !/^(?:st|nd|rd|th|e|er|ère|ème|o|a|tm|sm|®|™)$/i.test(content.trim()) &&
  /^(?:[*_\\]|<[^>]*>)*[\p{L}\p{N}(+−-]/u.test(content)
    ? around('^', content)
    : ['', '']

/**
 * CO<sub>2</sub> is CO2; x<sub>i</sub> and 10<sub>2</sub> are no xi and 102.
 * @param {string} before
 * @param {string} content
 * @returns {[string, string]} what stands before and behind it
 */
export const lowered = (before, content) =>
  (/\p{L}/u.test(before) && /^[*_]*\p{L}/u.test(content)) ||
  (/\p{N}/u.test(before) && /^[*_]*\p{N}/u.test(content))
    ? around('_', content)
    : ['', '']

// Maths as it was written for TeX, whatever else a library made of it.
turndown.addRule('maths', {
  filter: (node) => /^math$/i.test(node.nodeName),
  replacement: (_, node) => mathsIn(/** @type {Element} */ (/** @type {unknown} */ (node))),
})

// Site generators put a link to itself into or beside each heading, as a sign or around its words. The number of a footnote
// would pass for a citation of an answer, and other links within the page lead nowhere from there.
turndown.addRule('links within the page', {
  filter: (node) => node.nodeName === 'A' && (node.getAttribute('href') ?? '').startsWith('#'),
  replacement: (content, node) =>
    isMark(/** @type {Element} */ (/** @type {unknown} */ (node))) ? '' : content,
})
// Arrows to the next page are links without words.
turndown.addRule('links without words', {
  filter: (node) =>
    node.nodeName === 'A' && node.textContent?.trim() === '' && !node.querySelector('img[alt]'),
  replacement: () => '',
})

/*
 * Text as Markdown. Turndown marks each sign that could mean something somewhere, and people who search or read the text see the
 * marks: `journal\_mode`. Left out are those within words, around a star that stands alone, and of brackets that are no link. It
 * marks no `<`: `~/<user>/cache` would lose its middle where it is shown.
 */
const escaped = Turndown.prototype.escape
/** @param {string} text */
const escapeMarks = (text) =>
  text.includes('\\(') || text.includes('\\[')
    ? text
        .split(TEX)
        .map((part, at) => (at % 3 === 0 ? escapeWords(part) : part === undefined ? '' : `$${part.trim()}$`))
        .join('')
    : escapeWords(text)

/** Maths in a text, of which a library makes formulas where the page is shown. */
const TEX = /\\\(((?:(?!\\[()])[^\n]){1,2000})\\\)|\\\[((?:(?!\\[[\]])[\s\S]){1,4000})\\\]/

/** @param {string} text */
const escapeWords = (text) =>
  escaped(text)
    .replace(/(?<=[\p{L}\p{N}])\\_(?=[\p{L}\p{N}])/gu, '_')
    .replace(/(?<=\s)\\\*(?=\s)/g, '*')
    .replace(/(?<=\S\s*)\\\[([^^[\]\\][^[\]\\]*)\\\](?=\s*[^\s([:])/g, '[$1]')
    .replace(ELEMENT, '\\<')

/**
 * HTML as Markdown.
 * @param {string} html
 * @param {(text: string) => string} [escapeText] how text is written that could be taken for Markdown
 */
export function htmlToMarkdown(html, escapeText = escapeMarks) {
  turndown.escape = escapeText
  return (
    turndown
      .turndown(html)
      // The number of a heading makes no list of it.
      .replace(/^(#{1,6} \d+)\\\. /gm, '$1. ')
      .replace(CODE_OR_MARK, plainInLine)
      .replace(/\u00a0/g, ' ')
      .trim()
  )
}

/** Code as it stands, or an escaped sign that means something only where a line begins. */
const CODE_OR_MARK = /^([ \t>]*)(`{3,})[^\n]*\n[\s\S]*?\n\1\2|(`+)[^`\n]+\3|\\[-+=#>~]/gm

/**
 * Turndown escapes at the beginning of each element, which is often the middle of a line: `lazy\=False`.
 * @param {string} match
 * @param {unknown[]} rest
 */
function plainInLine(match, ...rest) {
  if (!match.startsWith('\\')) return match
  const [offset, whole] = /** @type {[number, string]} */ (rest.slice(-2))
  const before = whole.slice(whole.lastIndexOf('\n', offset - 1) + 1, offset)
  return /^[\s>]*(?:(?:[-*+]|\d+\.)\s+)*$/.test(before) ? match : match.slice(1)
}

/**
 * @typedef {object} Page
 * @property {import('./article.mjs').Article} article
 * @property {string[]} links addresses of the page's links, without fragments
 * @property {string} [canonical] what the page says its address is
 * @property {boolean} indexed false where the page asks not to be, and where it only leads to another one
 * @property {Site} site
 */

/** @typedef {{ name?: string, color?: string }} Site what a page says of its site; `color`: of CSS, and no other text */

/** A page, also one that is only a part of a document. @param {string} html @returns {Document} */
function documentOf(html) {
  const { document: whole } = parseHTML(html)
  const document =
    whole.documentElement?.nodeName === 'HTML'
      ? whole
      : parseHTML(`<html><body>${html}</body></html>`).document
  // In HTML, names of attributes are the same in capitals; the library keeps them apart.
  if (CAPITALS.test(html)) for (const each of document.querySelectorAll('*')) lowerNames(each)
  return document
}

const CAPITALS = /\s[A-Z][A-Z-]*\s*=/

/** @param {Element} element */
function lowerNames(element) {
  for (const { name, value } of [...element.attributes]) {
    if (!/^[A-Z-]+$/.test(name)) continue
    element.removeAttribute(name)
    element.setAttribute(name.toLowerCase(), value)
  }
}

/**
 * @param {string} html
 * @param {string} address of the page: links are resolved against it
 * @returns {Page}
 */
export function readPage(html, address) {
  const document = documentOf(html)
  const base = resolve(document.querySelector('base[href]')?.getAttribute('href'), address) ?? address
  const site = siteOf(document)
  const said = forRobots(document)
  const isFollowed = !asksRobots(said, 'nofollow')
  const links = [...(isFollowed ? document.querySelectorAll('a[href]') : [])]
    .map((link) => resolve(link.getAttribute('href'), base))
    .filter((link) => link !== undefined)
  const canonical = resolve(document.querySelector('link[rel="canonical"]')?.getAttribute('href'), base)
  const forward = resolve(refreshOf(document), base)
  const leads = forward !== undefined && forward !== resolve(address, base)
  if (leads) links.push(forward)
  for (const link of document.querySelectorAll('a[href]')) {
    const href = link.getAttribute('href') ?? ''
    link.setAttribute('href', linkFrom(href, base, address))
    link.removeAttribute('title')
  }
  removeHidden(document)
  namePlaces(document)
  const title = titleOf(document)?.replace(UNNAMED, '') || titleOfPath(new URL(address).pathname)
  plainBlocks(document)
  const text = htmlToMarkdown(mainContent(document))
  return {
    article: {
      title,
      text: withoutTitle(text, title),
      url: canonical ?? address,
    },
    links,
    ...(canonical && { canonical }),
    indexed: !leads && !asksRobots(said, 'noindex'),
    site,
  }
}

/** Characters of a site's name. */
const LONGEST_NAME = 60
/** A colour as CSS writes one, by a word, a number or a function. Whoever writes it into a page has nothing to escape. */
const COLOR = /^#?[\w(),.%/ -]{1,64}$/

/** @param {Document} document @returns {Site} */
function siteOf(document) {
  const metas = ['property="og:site_name"', 'name="application-name"']
  const named = metas.map((each) => document.querySelector(`meta[${each}]`)?.getAttribute('content'))
  const [name] = [...named, document.querySelector('title')?.textContent]
    .map((each) => clean(each ?? ''))
    .filter(Boolean)
  const colored = document.querySelector('meta[name="theme-color"]:not([media*="dark"])')
  const color = colored?.getAttribute('content')?.trim() ?? ''
  return {
    ...(name !== undefined && { name: [...name].slice(0, LONGEST_NAME).join('') }),
    ...(COLOR.test(color) && { color }),
  }
}

/** What Sphinx calls a page without a heading, before the name of the site. */
const UNNAMED = /^<no title>.*/

/** Robots that the word of a page is for: all of them, and those that read pages for others to search. */
const ROBOTS = /^(?:robots|googlebot|bingbot|parleyimporter)$/i

/**
 * Whether words for robots, of a page or its server, say something: `noindex`, or `nofollow`. Those behind the name of a robot
 * are for that one.
 * @param {string} said
 * @param {'noindex' | 'nofollow'} what
 */
export function asksRobots(said, what) {
  let isForAll = true
  return said.split(',').some((part) => {
    const [, name, rest = part] = /^\s*(?!unavailable_after|max-)([\w-]+)\s*:(.*)$/i.exec(part) ?? []
    if (name !== undefined) isForAll = ROBOTS.test(name)
    return isForAll && [what, 'none'].includes(rest.trim().toLowerCase())
  })
}

/** What a page says to robots. @param {Document} document */
const forRobots = (document) =>
  [...document.querySelectorAll('meta[name][content]')]
    .filter((meta) => ROBOTS.test(meta.getAttribute('name') ?? ''))
    .map((meta) => (meta.getAttribute('content') ?? '').replace(/\s+(?=no)/gi, ','))
    .join(',')

/**
 * A whole document as Markdown, without looking for its main part.
 * @param {string} html
 */
export function bodyToMarkdown(html) {
  const document = documentOf(html)
  removeHidden(document)
  namePlaces(document)
  plainBlocks(document)
  return htmlToMarkdown(document.body.innerHTML)
}

/**
 * A file of HTML.
 * @param {string} html
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 */
export function readHtml(html, path) {
  const { article, indexed } = readPage(html, new URL(encodeURI(path), 'file:///').href)
  const { url, ...rest } = article
  return {
    article: { ...rest, ...(url?.startsWith('http') && { url }) },
    ...(!indexed && { indexed }),
  }
}

/**
 * Where a page leads by itself within seconds (HTML, 4.2.5.3, "Refresh state"); undefined for one that stays.
 * @param {Document} document
 */
function refreshOf(document) {
  const refreshes = [...document.querySelectorAll('meta[http-equiv="refresh" i]')]
  // A browser that runs scripts does not follow what stands for those that do not.
  const content = refreshes.find((each) => !each.closest('noscript'))?.getAttribute('content') ?? ''
  const [, seconds, url] = /^\s*(\d+)[\d.]*\s*[;,]\s*url\s*=\s*["']?([^"'\s]+)/i.exec(content) ?? []
  return Number(seconds) <= SHORT_REFRESH ? url : undefined
}

/**
 * A text without the heading that repeats its title.
 * @param {string} markdown
 * @param {string} title
 */
const withoutTitle = (markdown, title) =>
  markdown.replace(/^#{1,6} (.+?)(?: \{#\S+\})?(?:\n+|$)/, (line, heading) => (heading === title ? '' : line))

/**
 * What a page is called: by the heading of its main part. A heading elsewhere may be the site's name, and then the
 * title says both. The first of several headings is called like its part ("1. Introduction"), and only the title like the page.
 * @param {Document} document
 */
function titleOf(document) {
  const [main] = mainOf(document)
  const [own, other, named] = [
    main?.querySelector('h1'),
    document.querySelector('h1'),
    document.querySelector('title'),
  ].map(nameOf)
  const hasParts = (main ?? document).querySelectorAll('h1').length > 1
  if (hasParts && named && !named.includes(own || other || '')) return named
  if (own || !other || !named) return own || other || named
  if (named.startsWith(other)) return other
  const page = named.endsWith(other) ? named.slice(0, -other.length).replace(/[\s|:»·–—-]+$/u, '') : ''
  return page || (main ? named : other)
}

/**
 * The text of a heading, without the buttons and links that lie in it.
 * @param {Element | null | undefined} heading
 */
function nameOf(heading) {
  if (!heading) return ''
  const words = /** @type {Element} */ (heading.cloneNode(true))
  for (const extra of words.querySelectorAll('a, button')) {
    if (extra.nodeName === 'BUTTON' || SIGN.test(extra.textContent ?? '')) extra.remove()
  }
  return clean(words.textContent)
}

/**
 * A link as it leads anywhere from elsewhere: whole, or to a place of the same page. A link of a file is left as it is.
 * @param {string} href
 * @param {string} base
 * @param {string} address
 */
function linkFrom(href, base, address) {
  if (href.startsWith('#') || !base.startsWith('http') || !URL.canParse(href, base)) return href
  const url = new URL(href, base)
  return url.hash !== '' && resolve(href, base) === resolve(address, base) ? url.hash : url.href
}

/**
 * @param {string | null | undefined} href
 * @param {string} base
 */
function resolve(href, base) {
  const url = href ? URL.parse(href, base) : null
  if (!url || !/^(https?|file):$/.test(url.protocol)) return undefined
  url.hash = ''
  return url.href
}
