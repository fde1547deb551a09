/** Makes parts of a web page plain before they are read, because Markdown has no word for them. */

import { decodeSafely } from './article.mjs'
import { isNumbers } from './html-code.mjs'

/** Longer terms are signatures or sentences of their own. */
const LONGEST_TERM = 200
const BLOCKS = /^(P|DIV|DL|UL|OL|PRE|TABLE|H[1-6]|BLOCKQUOTE|SECTION|FIGURE|DETAILS)$/
/** Notes that DocBook and Asciidoctor set as tables. */
const NOTES = '.note, .tip, .warning, .caution, .important, .admonitionblock'
const SOURCE = /^\s*\[(source|src)\]\s*$/i

/** Tabs, and what each of them shows, as generators write them. Those that write each panel behind its label need nothing. */
const TABS = [
  ['[role="tablist"]', '[role="tab"]', '[role="tabpanel"], .tab-pane, .tabcontent'],
  ['.tabbed-labels', 'label', '.tabbed-block'],
  ['.vp-code-group > .tabs', 'label', '.blocks > div'],
]
const PANELS = '[role="tabpanel"], .tab-pane, .tabcontent, .tabbed-block, details'
const HIDDEN =
  'template, dialog:not([open]), [hidden]:not([hidden="until-found"]), [style*="display"], [style*="visibility"]'
/** Maths that a library shows, with what it was made of in it. */
const MATHS = '.katex, mjx-container, .MathJax, .MathJax_Display, .mwe-math-element'

/**
 * Removes what a page never shows. What a reader can unfold stays, such as the panels of tabs.
 * @param {Document} document
 */
export function removeHidden(document) {
  plainMaths(document)
  const shown = new Set(
    [...document.querySelectorAll('[aria-controls], [data-target], [data-bs-target], [href^="#"]')].flatMap(
      (each) =>
        ['aria-controls', 'data-target', 'data-bs-target', 'href'].flatMap((name) =>
          (each.getAttribute(name) ?? '').replaceAll('#', '').split(/\s+/),
        ),
    ),
  )
  for (const each of document.querySelectorAll(HIDDEN)) {
    const style = each.getAttribute('style') ?? ''
    if (
      !each.matches('template, dialog, [hidden]') &&
      !/(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style)
    )
      continue
    const isDialog = each.matches('dialog, [role="dialog"], .modal')
    const unfolds = each.matches(PANELS) || shown.has(each.getAttribute('id') ?? ' ')
    if ((!unfolds || isDialog) && each !== document.body) each.remove()
    else {
      each.removeAttribute('hidden')
      each.removeAttribute('style')
    }
  }
}

/**
 * Leaves of each formula what it was written in, which a library sets twice and more: for the eye, and for readers of the page aloud.
 * @param {Document} document
 */
function plainMaths(document) {
  const scripts = document.querySelectorAll('script[type^="math/tex"]')
  if (scripts.length > 0)
    for (const each of document.querySelectorAll('.MathJax, .MathJax_Display, .MathJax_Preview'))
      each.remove()
  for (const script of scripts) {
    const math = document.createElement('math')
    math.setAttribute('alttext', script.textContent ?? '')
    math.append(script.textContent ?? '')
    script.replaceWith(math)
  }
  for (const each of document.querySelectorAll(MATHS)) {
    const math = each.querySelector('math')
    if (math) each.replaceWith(math)
  }
}

/** What a formula says, in TeX where it has that. @param {Element} math */
export function mathsIn(math) {
  const tex = math.querySelector('annotation[encoding*="tex"]')?.textContent ?? math.getAttribute('alttext')
  const said = tex?.replace(/^\s*\{\\displaystyle\s*([\s\S]*)\}\s*$/, '$1') ?? linear(math)
  return said.trim() === '' ? '' : `$${clean(said)}$`
}

/** @param {Element} math @returns {string} */
function linear(math) {
  if (/^annotation/i.test(math.nodeName)) return ''
  const parts = Array.from(math.children).map(linear)
  const [first = '', ...rest] = parts
  const name = math.nodeName.toLowerCase()
  const sign = { msup: '^', msub: '_', mfrac: '/' }[name]
  if (sign) return `${first}${sign}${rest.join('')}`
  if (name === 'msubsup') return `${first}_${rest.join('^')}`
  if (name === 'msqrt') return `√(${parts.join('')})`
  return parts.length > 0 ? parts.join('') : clean(math.textContent)
}

/**
 * Puts the label of each tab before what it shows.
 * @param {Document} document
 */
function labelTabs(document) {
  for (const [lists = '', labels = '', shows = ''] of TABS) {
    /** The panels in each element around a list: many lists have the same ones around. @type {Map<Element, Element[]>} */
    const panelsIn = new Map()
    for (const list of document.querySelectorAll(lists)) {
      const tabs = [...list.querySelectorAll(labels)]
      /** @type {Element[]} */
      let panels = []
      for (
        let around = list.parentElement;
        around && panels.length < tabs.length;
        around = around.parentElement
      ) {
        panels = panelsIn.get(around) ?? outermost([...around.querySelectorAll(shows)])
        panelsIn.set(around, panels)
      }
      if (tabs.length === 0 || panels.length === 0) continue
      for (const [at, tab] of tabs.entries()) {
        const link = tab.querySelector('[aria-controls], [href^="#"], [data-bs-target]') ?? tab
        const id = ['aria-controls', 'href', 'data-bs-target', 'data-target']
          .map((name) => link.getAttribute(name)?.replace('#', ''))
          .find((name) => name)
        const panel = panels.find((each) => id !== undefined && each.getAttribute('id') === id) ?? panels[at]
        const label = document.createElement('p')
        label.append(strong(document, clean(tab.textContent)))
        panel?.prepend(label)
      }
      list.remove()
    }
  }
}

/** Elements, in the order of the page, that are in no other of them. @param {Element[]} elements */
function outermost(elements) {
  /** @type {Element[]} */
  const outer = []
  for (const each of elements) if (!outer.at(-1)?.contains(each)) outer.push(each)
  return outer
}

/** What a page shows beside code: its language, numbers of lines, and what copies it. */
const BESIDE_CODE =
  '[class*="copy" i], [class*="clipboard" i], clipboard-copy, [class*="line-number" i], [class*="lineno" i], [class*="gutter" i], [class*="language-"] > .lang'
const COPY = /^(?:copy|copied!?|copy (?:code|to clipboard)|copy page)$/i

/** @param {Document} document */
export function plainBlocks(document) {
  labelTabs(document)
  for (const each of document.querySelectorAll(BESIDE_CODE))
    if (
      each.matches('.lang') ||
      COPY.test(clean(each.textContent)) ||
      (isNumbers(each) && !each.closest('pre, table'))
    )
      each.remove()
  for (const note of document.querySelectorAll(NOTES)) unwrapNote(note)
  // Sphinx and Javadoc link each name to its source.
  for (const link of document.querySelectorAll('dt a')) if (SOURCE.test(link.textContent ?? '')) link.remove()
  for (const list of document.querySelectorAll('dl')) joinTerms(list)
  for (const summary of document.querySelectorAll('details > summary')) headQuestion(summary)
}

const QUESTION = /[?\uff1f\u061f]\s*$/

/**
 * A list of questions that unfold has them in `<summary>`: such a one is the heading of its answer.
 * @param {Element} summary
 */
function headQuestion(summary) {
  const question = clean(summary.textContent)
  if (!QUESTION.test(question) || summary.querySelector('h1, h2, h3, h4, h5, h6')) return
  const heading = summary.ownerDocument.createElement('h4')
  heading.textContent = question
  const { parentElement: details } = summary
  const answer = [...(details?.childNodes ?? [])].filter((each) => each !== summary)
  details?.replaceWith(heading, ...answer)
}

/**
 * A table of an icon, a title and a text becomes the title and the text.
 * @param {Element} note
 */
function unwrapNote(note) {
  const table = [...note.children].find((each) => each.nodeName === 'TABLE')
  const cells = table
    ? [...table.querySelectorAll('td, th')].filter((each) => each.closest('table') === table)
    : []
  const text = cells.findLast((each) => each.nodeName === 'TD')
  if (!table || !text || cells.length > 3) return
  const title = cells.find((each) => each !== text && clean(each.textContent) !== '')
  const paragraph = firstParagraph(text)
  if (title) paragraph.prepend(strong(table.ownerDocument, `${clean(title.textContent)}:`), ' ')
  table.replaceWith(...text.childNodes)
}

/**
 * A term and what it means are read together: both go into one paragraph.
 * @param {Element} list
 */
function joinTerms(list) {
  /** @type {Element[]} */
  let terms = []
  for (const each of [...list.querySelectorAll('dt, dd')].filter((one) => one.closest('dl') === list)) {
    if (each.nodeName === 'DT') {
      terms.push(each)
      continue
    }
    const isPlain = terms.every(
      (term) =>
        !term.querySelector('h1, h2, h3, h4, h5, h6, p, pre, ul, ol, table') &&
        clean(term.textContent) !== '',
    )
    const named = terms.map((term) => clean(term.textContent)).join(', ')
    if (terms.length > 0 && isPlain && named.length <= LONGEST_TERM) {
      const name = strong(list.ownerDocument, '')
      terms.forEach((term, at) => {
        if (at > 0) name.append(', ')
        name.append(...trimmed(term).childNodes)
        term.remove()
      })
      firstParagraph(each).prepend(name, named.endsWith(':') ? ' ' : ': ')
    }
    terms = []
  }
}

/**
 * The paragraph that a part begins with; it is made if there is none.
 * @param {Element} part
 */
function firstParagraph(part) {
  const first = [...part.childNodes].find((each) => clean(each.textContent) !== '')
  if (first?.nodeName === 'P') return /** @type {Element} */ (first)
  const paragraph = part.ownerDocument.createElement('p')
  for (const node of [...part.childNodes]) {
    if (BLOCKS.test(node.nodeName)) break
    paragraph.append(node)
  }
  part.prepend(paragraph)
  return paragraph
}

/**
 * @param {Document} document
 * @param {string} text
 */
function strong(document, text) {
  const element = document.createElement('strong')
  element.append(text)
  return element
}

/**
 * A term without the space around its words.
 * @param {Element} term
 */
function trimmed(term) {
  /** @type {Node | null} */
  let node
  for (node = term; node; node = node.firstChild)
    if (node.nodeType === 3) node.textContent = (node.textContent ?? '').trimStart()
  for (node = term; node; node = node.lastChild)
    if (node.nodeType === 3) node.textContent = (node.textContent ?? '').trimEnd()
  return term
}

/** @param {string | null} text */
const clean = (text) => (text ?? '').replace(/\s+/g, ' ').trim()

/** Elements around a heading that generators give its name, if they begin with it. */
const AROUND_HEADING = 'section, div, hgroup, header'

/**
 * Gives each heading the name of its place: its own, that of a link in it or before it, or that of the section it begins.
 * @param {Document} document
 */
export function namePlaces(document) {
  for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const before = heading.previousElementSibling
    const around = heading.parentElement
    const begins = around?.matches(AROUND_HEADING) && around.firstElementChild === heading
    const named = [
      heading,
      heading.querySelector('[id], a[name]'),
      before?.matches('a[id], a[name], span[id]') && before.textContent?.trim() === '' ? before : null,
      begins ? around : null,
    ].find((each) => each?.id || each?.getAttribute('name'))
    const link = heading.querySelector('a[href^="#"]')
    const place = named?.id || named?.getAttribute('name') || link?.getAttribute('href')?.slice(1)
    if (place) heading.id = decodeSafely(place)
  }
}
