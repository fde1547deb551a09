/** Makes parts of a web page plain before they are read, because Markdown has no word for them. */

import { decodeSafely } from './article.mjs'
import { isCode, isNumbers } from './html-code.mjs'
import { clean, labelPanels, PANELS, QUESTION, shownIn, strong } from './html-tabs.mjs'

/** Longer terms are signatures or sentences of their own. */
const LONGEST_TERM = 200
const BLOCKS = /^(P|DIV|DL|UL|OL|PRE|TABLE|H[1-6]|BLOCKQUOTE|SECTION|FIGURE|DETAILS)$/
/** Notes that DocBook and Asciidoctor set as tables. */
const NOTES = '.note, .tip, .warning, .caution, .important, .admonitionblock'
const SOURCE = /^\s*\[(source|src)\]\s*$/i

const HIDDEN =
  'template, dialog:not([open]), [hidden]:not([hidden="until-found"]), [style*="display" i], [style*="visibility" i]'
/** Maths that a library shows, with what it was made of in it. */
const MATHS = '.katex, mjx-container, .MathJax, .MathJax_Display, .mwe-math-element'

/**
 * Removes what a page never shows. What a reader can unfold stays, such as the panels of tabs.
 * @param {Document} document
 */
export function removeHidden(document) {
  plainMaths(document)
  const isShown = shownIn(document)
  const styled = hiddenByStyle(document)
  for (const each of document.querySelectorAll([HIDDEN, ...styled].join(', '))) {
    const style = each.getAttribute('style') ?? ''
    const isMarked = each.matches(['template, dialog, [hidden]', ...styled].join(', '))
    if (!isMarked && !NOT_SHOWN.test(style)) continue
    const isDialog = each.matches('dialog, [role="dialog"], .modal')
    const unfolds = each.matches(PANELS) || isShown(each)
    if ((!unfolds || isDialog) && each !== document.body) each.remove()
    else {
      each.removeAttribute('hidden')
      each.removeAttribute('style')
    }
  }
}

const NOT_SHOWN = /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i
/** Rules of a sheet, without those within others, such as of what is printed. */
const RULE =
  /@[^{};]{0,500}\{(?:[^{}]{0,5000}\{[^{}]{0,5000}\}){0,500}[^{}]{0,5000}\}|([^{}@;]{1,1000})\{([^{}]{0,5000})\}/g
/** In UTF-16 units: rules are looked for from each place of it. */
const LONGEST_SHEET = 65_536
const SIMPLE = /^[a-z]*[.#][\w-]+$/i

/**
 * What a page hides by a sheet of its own. A name that a script or another rule mentions may be shown later.
 * @param {Document} document
 * @returns {string[]} selectors of one class or id each
 */
function hiddenByStyle(document) {
  const sheets = [...document.querySelectorAll('style')].map((each) => each.textContent).join('\n')
  const scripts = [...document.querySelectorAll('script:not([src])')]
    .map((each) => each.textContent)
    .join('\n')
  if (!NOT_SHOWN.test(sheets) || sheets.length > LONGEST_SHEET || scripts.length > LONGEST_SHEET) return []
  const rules = [...sheets.replace(/\/\*[\s\S]{0,5000}?\*\//g, '').matchAll(RULE)]
  /** How often each name is said. @type {Map<string, number>} */
  const said = new Map()
  for (const [name] of [...rules.map(([, names = '']) => names), scripts].join('\n').matchAll(/[\w-]+/g))
    said.set(name, (said.get(name) ?? 0) + 1)
  return rules
    .filter(([, , rule = '']) => NOT_SHOWN.test(rule))
    .flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
    .filter((name) => SIMPLE.test(name) && said.get(name.replace(/^[a-z]*[.#]/i, '')) === 1)
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

/** What a page shows beside code: its language, numbers of lines, and what copies it. */
const BESIDE_CODE =
  '[class*="copy" i], [class*="clipboard" i], clipboard-copy, [class*="line-number" i], [class*="lineno" i], [class*="gutter" i], [class*="language-"] > .lang'
const COPY = /^(?:copy|copied!?|copy (?:code|to clipboard)|copy page)$/i

/** Links to where a page is changed, and what a wiki puts beside each heading. */
const EDIT =
  '.mw-editsection, a[href*="edit"], a[href*="/blob/"], a[href*="/tree/"], a[href*="/raw/"], a[href*="_sources/"], a[class*="edit" i]'
const EDIT_WORDS =
  /^(?:(?:edit|improve|change|suggest (?:an? )?(?:edits?|changes?|improvements?)(?: (?:to|on|for))?)(?: (?:this|the))?(?: (?:page|article|document|file|section|doc))?|(?:view|show|see|page)(?: (?:this|the))?(?: page| file)?(?: source)?)(?: (?:on|in|at|via) (?:github|gitlab|bitbucket|codeberg|gitea))?$/i

/** Whether a link leads to where the page is changed, and stands in no sentence. @param {Element} link */
function isEdit(link) {
  if (link.nodeName !== 'A') return true
  const words = clean(link.textContent)
  const around = clean(link.closest('p, li, div, td, dd, footer')?.textContent ?? '')
  return EDIT_WORDS.test(words.replace(/[^\p{L} ]/gu, '').trim()) && around.length <= words.length + 12
}

/** @param {Document} document */
export function plainBlocks(document) {
  labelPanels(document)
  for (const link of document.querySelectorAll(EDIT)) if (isEdit(link)) link.remove()
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
  for (const table of new Set(
    [...document.querySelectorAll(CODE_CELLS)].map((cell) => cell.closest('table')),
  ))
    if (table && isCode(table)) keepLines(table)
}

/** Lines of code in cells, without `<pre>`: their indent would get lost. */
const CODE_CELLS = 'td.blob-code, td.hljs-ln-code'

/** @param {Element} table of code */
function keepLines(table) {
  if (table.querySelector('pre') ?? table.closest('pre')) return
  const block = table.ownerDocument.createElement('pre')
  table.replaceWith(block)
  block.append(table)
}

/**
 * A list of questions that unfold has them in `<summary>`: such a one is the heading of its answer.
 * @param {Element} summary
 */
function headQuestion(summary) {
  const question = clean(summary.textContent)
  if (!QUESTION.test(question) || summary.querySelector('h1, h2, h3, h4, h5, h6')) {
    // What it stands before is no part of its sentence.
    const block = summary.ownerDocument.createElement('div')
    block.append(...summary.childNodes)
    summary.replaceWith(block)
    return
  }
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
    for (const each of heading.querySelectorAll('a[href^="#"]')) {
      const isBeside = clean(each.textContent) !== clean(heading.textContent)
      if (isBeside && (PERMANENT.test(each.className) || PERMANENT_WORDS.test(clean(each.textContent))))
        each.remove()
    }
  }
}

/** A link beside the words of a heading that leads to it. */
const PERMANENT =
  /(?:^|[\s_-])(?:headerlink|hash-?link|permalink|(?:header|heading)-?(?:link|anchor)|anchor(?:-?link|js-link)?)(?=$|[\s_-])/i
const PERMANENT_WORDS = /^(?:permalink|(?:direct |perma)?link to|section titled|copy link|anchor)\b/i
