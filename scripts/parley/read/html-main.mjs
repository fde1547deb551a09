/** Which part of a page is what people came for, and not its menus. */

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
  const isFound = main.some((each) => collapse(each.textContent ?? '').length >= FEW_CHARACTERS)
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
const proseLength = (part) => collapse(part.textContent ?? '').length - linkedLength(part)

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
    if (linkedLength(list) >= MOST_OF_PAGE * collapse(list.textContent ?? '').length) list.remove()
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
  const beside = collapse(block.textContent ?? '').length - linkedLength(block)
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
    linkedLength(list) >= MOST_OF_PAGE * collapse(list.textContent ?? '').length
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
  [...part.querySelectorAll('a')].reduce((sum, link) => sum + collapse(link.textContent ?? '').length, 0)

/** Blanks as one. @param {string} text */
export const collapse = (text) => text.replace(/\s+/g, ' ').trim()
