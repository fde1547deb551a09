/** Makes parts of a web page plain before they are read, because Markdown has no word for them. */
import { decodeSafely } from './article.mjs'

/*
 * Code in web pages. Turndown knows it as `<pre><code>` alone, and site generators write it in other ways too: without `<code>`
 * (Sphinx, DocBook, Javadoc), line by line (Shiki, Prism), beside a column of line numbers, or as `<div class="fragment">` (Doxygen).
 * Code that is not known as such loses its lines, and `# a comment` becomes a heading.
 */

/** Where generators name the language: `language-js`, `highlight-source-js`, `highlight-python3`, `brush: js`, `sourceCode js`. */
const LANGUAGE = /(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-)?|brush:\s*|sourceCode\s+)([\w+#.-]+)/
/** Names for code of no language, and for shells that show a prompt. */
const NO_LANGUAGE = /^(none|default|text|plain|plaintext|txt|nohighlight)$/i
/** What cells and elements that hold line numbers are called. */
const NUMBERS =
  /(?:^|[\s_-])(?:linenos|linenodiv|line-?no(?:s|div)?|source-line-no|gutter|gl|line-?numbers?(?:-rows)?|hljs-ln-(?:numbers|n)|rouge-gutter|lnt?|blob-num)(?=$|[\s_-])/i

/** Whether an element holds nothing but the numbers of lines. @param {Element} element */
export const isNumbers = (element) =>
  (NUMBERS.test(element.getAttribute('class') ?? '') ||
    (element.nodeName === 'PRE' && element.closest('tr')?.querySelectorAll('pre').length === 2)) &&
  /^[\s\d]*$/.test(element.textContent ?? '')

const MOST_IN_PROSE = 0.6
const WORDS_OF_PROSE = 8

/** @param {import('turndown')} turndown */
export function codeRules(turndown) {
  turndown.addRule('code blocks', {
    filter: (node) =>
      node.nodeName === 'PRE' ||
      (node.nodeName === 'DIV' &&
        node.classList?.contains('fragment') &&
        Boolean(node.querySelector('.line'))),
    replacement: (content, node) => {
      const element = /** @type {Element} */ (/** @type {unknown} */ (node))
      const code = codeIn(element)
      return isProse(element, code) ? `\n\n${content}\n\n` : fenced(code, languageOf(element))
    },
  })
  // The numbers and the code are two cells of one row, and there is nothing else.
  turndown.addRule('numbered code', {
    filter: (node) =>
      node.nodeName === 'TABLE' && isCode(/** @type {Element} */ (/** @type {unknown} */ (node))),
    replacement: (_, node) => {
      const element = /** @type {Element} */ (/** @type {unknown} */ (node))
      // A block, or a row for each line of it.
      const blocks = Array.from(element.querySelectorAll('pre')).filter((each) => !isNumbers(each))
      const code = blocks.length > 0 ? blocks.map(codeIn).join('\n') : codeIn(element)
      return fenced(code, languageOf(blocks[0] ?? element))
    },
  })
  // Code is shown as it stands: marks of its look, and the address of a link in it, would be read as a part of it.
  turndown.addRule('marks in code', {
    filter: (node) =>
      MARKED.test(node.nodeName) && Boolean(/** @type {{ isCode?: boolean }} */ (node).isCode),
    replacement: (content) => content,
  })
  turndown.addRule('code that is a link', {
    filter: (node) => node.nodeName === 'CODE' && addressOf(node) !== '',
    replacement: (content, node) => `[${inline(content)}](${addressOf(node)})`,
  })
  turndown.addRule('code of other names', {
    filter: (node) =>
      /^(TT|SAMP)$/.test(node.nodeName) &&
      !node.querySelector('code, tt, samp') &&
      !node.closest('pre, code'),
    replacement: (content, node) =>
      /[`\n]/.test(node.textContent ?? '') ? content : inline(node.textContent ?? ''),
  })
}

/** Elements that Turndown writes with marks. */
const MARKED = /^(?:A|B|STRONG|I|EM|DEL|S|STRIKE)$/

/** Where code leads that is a link as a whole; '' for any other. @param {{ textContent: string | null, querySelector: Function }} code */
function addressOf(code) {
  const link = code.querySelector('a')
  const href = link?.getAttribute('href') ?? ''
  const isWhole = link?.textContent === code.textContent && !code.textContent?.includes('`')
  return isWhole && !href.startsWith('#') ? href : ''
}

/** Whether a table holds code and its numbers, and no other word. @param {Element} table */
export function isCode(table) {
  // A table around others puts them beside each other.
  if (table.querySelector('table') ?? table.querySelector('th')) return false
  const all = Array.from(table.querySelectorAll('*'))
  if (!all.some(isNumbers)) return false
  const isInCode = /(?:^|\s)(?:blob-code|hljs-ln-code|code)(?=$|[\s-])/
  const words = Array.from(table.querySelectorAll('td')).filter(
    (cell) =>
      (cell.textContent ?? '').trim() !== '' &&
      !isNumbers(cell) &&
      !Array.from(cell.querySelectorAll('*')).some(isNumbers),
  )
  return words.every(
    (cell) => isInCode.test(cell.getAttribute('class') ?? '') || (cell.querySelector('pre') && onlyPre(cell)),
  )
}

/** @param {Element} cell */
function onlyPre(cell) {
  const rest = /** @type {Element} */ (cell.cloneNode(true))
  for (const each of Array.from(rest.querySelectorAll('pre, button'))) each.remove()
  return (rest.textContent ?? '').trim() === ''
}

/** @param {string} text */
const inline = (text) => (text.trim() === '' ? text : text.replace(/^(\s*)(.*?)(\s*)$/s, '$1`$2`$3'))

/**
 * @param {string} code
 * @param {string} language
 */
export function fenced(code, language) {
  if (code.trim() === '') return ''
  const longest = Math.max(2, ...[...code.matchAll(/^`{3,}/gm)].map(([marks]) => marks.length))
  const fence = '`'.repeat(longest + 1)
  return `\n\n${fence}${language}\n${code}\n${fence}\n\n`
}

/**
 * The text of code, a line for each `<br>` and each block, without line numbers and the blank lines around it.
 * @param {Element} element
 */
function codeIn(element) {
  const lines = [...linesOf(element)].join('')
  return lines.replace(/^(?:[ \t]*\n)+/, '').replace(/\s+$/, '')
}

/**
 * @param {Node} node
 * @returns {Generator<string>}
 */
function* linesOf(node) {
  for (const child of node.childNodes) {
    if (child.nodeType === 3) yield child.textContent ?? ''
    if (child.nodeType !== 1) continue
    const element = /** @type {Element} */ (child)
    if (element.nodeName === 'BR') yield '\n'
    else if (element.nodeName === 'BUTTON' || isNumbers(element)) continue
    else {
      const inside = [...linesOf(element)].join('')
      yield inside
      if (/^(DIV|P|LI|TR)$/.test(element.nodeName) && !inside.endsWith('\n')) yield '\n'
    }
  }
}

/** @param {Element} element */
function languageOf(element) {
  const inner = element.querySelector('code')
  const around = [element.parentElement, element.parentElement?.parentElement]
  for (const each of [inner, element, ...around]) {
    const language = LANGUAGE.exec(each?.getAttribute('class') ?? '')?.[1]
    if (language !== undefined) return NO_LANGUAGE.test(language) ? '' : language
  }
  return ''
}

/**
 * Whether this is text that only keeps its line breaks, such as an RFC or a letter: most of its paragraphs are sentences.
 * @param {Element} element
 * @param {string} text
 */
function isProse(element, text) {
  if (element.querySelector('code, span') || languageOf(element) !== '') return false
  const paragraphs = text.split(/\n\s*\n/).filter((each) => each.trim() !== '')
  if (paragraphs.length < 3) return false
  const sentences = paragraphs.filter(
    (each) =>
      each.trim().split(/\s+/).length >= WORDS_OF_PROSE &&
      /^\s*["'(]?\p{Lu}[\s\S]*[.:!?]["')]?\s*$/u.test(each),
  )
  return sentences.length >= MOST_IN_PROSE * paragraphs.length
}

/** Tabs, and what each of them shows, as generators write them. Those that write each panel behind its label need nothing. */
const TABS = [
  ['[role="tablist"]', '[role="tab"]', '[role="tabpanel"], .tab-pane, .tabcontent'],
  ['.tabbed-labels', 'label', '.tabbed-block'],
  ['.vp-code-group > .tabs', 'label', '.blocks > div'],
  ['.nav-tabs, .nav-pills, .tablist, ul.tabs', 'li', '.tab-pane, .tabpanel, .tabs-panel, .tab-content > div'],
  ['.tab, .tabs', '.tablinks', '.tabcontent'],
]
const PANELS =
  '[role="tabpanel"], .tab-pane, .tabcontent, .tabpanel, .tabs-panel, .tab-content > div, .tabbed-block, details'
/** What a reader presses to see something. */
const CONTROLS =
  'button, summary, [role="tab"], [aria-controls], [data-target], [data-bs-target], [data-tab], a[href^="#"]'

/** Words of attributes that name nothing. */
const KINDS = /^(?:true|false|tab|tabs|pill|collapse|modal|dropdown|toggle|panel|open|closed|hidden|on|off)$/

/** What an element names, or is named by: its own id, and in attributes those of others. @param {Element} element @param {string[]} names */
const namesIn = (element, names) =>
  [...element.attributes]
    .filter(({ name }) => names.includes(name) || name.startsWith('data-'))
    .flatMap(({ value }) => value.replace(/^[#.]/, '').split(/\s+/))
    .filter((name) => name !== '' && !KINDS.test(name))

/**
 * Tells what a page unfolds: what a control names, and what stands behind one.
 * @param {Document} document
 * @returns {(element: Element) => boolean}
 */
function shownIn(document) {
  const shown = new Set(
    [...document.querySelectorAll(CONTROLS)].flatMap((each) => namesIn(each, ['aria-controls', 'href'])),
  )
  return (element) => {
    const before = element.previousElementSibling
    return (
      namesIn(element, ['id']).some((name) => shown.has(name)) ||
      Boolean(before?.matches('[aria-expanded]') || before?.querySelector('[aria-expanded]'))
    )
  }
}

/**
 * Puts the label of each tab before what it shows.
 * @param {Document} document
 */
function labelPanels(document) {
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
        if (panel) label(panel, tab)
      }
      list.remove()
    }
  }
  labelNamed(document)
  for (const button of document.querySelectorAll(
    'button[aria-expanded], button[aria-controls], button[data-bs-target], button[data-target]',
  ))
    if (!button.matches('[aria-haspopup]') && !button.closest('nav, pre')) unfold(button)
}

/** @param {Element} panel @param {Element} tab */
function label(panel, tab) {
  const words = panel.ownerDocument.createElement('p')
  words.append(strong(panel.ownerDocument, clean(tab.textContent)))
  panel.prepend(words)
}

/**
 * Tabs without a mark of any library: buttons or links side by side, each of which names one of several parts side by side.
 * @param {Document} document
 */
function labelNamed(document) {
  /** @type {Map<string, Element>} */
  const places = new Map()
  for (const each of document.querySelectorAll('div, section, pre'))
    for (const name of namesIn(each, ['id'])) if (!places.has(name)) places.set(name, each)
  /** @type {Map<Element, Element[]>} */
  const groups = new Map()
  for (const each of document.querySelectorAll('button, li > a[href^="#"]')) {
    const group = each.nodeName === 'A' ? each.parentElement?.parentElement : each.parentElement
    if (!group) continue
    const tabs = groups.get(group) ?? []
    tabs.push(each)
    groups.set(group, tabs)
  }
  for (const [group, tabs] of groups) {
    const panels = tabs.flatMap((tab) => {
      const panel = namesIn(tab, ['aria-controls', 'href'])
        .map((name) => places.get(name))
        .find((each) => each)
      const isAlone =
        tab.nodeName !== 'A' || clean(tab.parentElement?.textContent ?? '') === clean(tab.textContent)
      return panel &&
        isAlone &&
        !/^H\d$/.test(panel.firstElementChild?.nodeName ?? '') &&
        !panel.contains(tab)
        ? [panel]
        : []
    })
    const isTabs =
      tabs.length > 1 &&
      new Set(panels).size === tabs.length &&
      panels.every((each) => each.parentElement === panels[0]?.parentElement)
    if (!isTabs) continue
    for (const [at, tab] of tabs.entries()) {
      const panel = panels[at]
      if (panel) label(panel, tab)
      tab.remove()
    }
    if (clean(group.textContent) === '') group.remove()
  }
}

/** A button that unfolds something says what that is. @param {Element} button */
function unfold(button) {
  const words = clean(button.textContent)
  if (words === '') return
  if (button.closest('h1, h2, h3, h4, h5, h6, summary, dt')) button.replaceWith(...button.childNodes)
  else {
    const heading = button.ownerDocument.createElement(QUESTION.test(words) ? 'h4' : 'p')
    heading.append(words)
    button.replaceWith(heading)
  }
}

export const QUESTION = /[?\uff1f\u061f]\s*$/

/** Elements, in the order of the page, that are in no other of them. @param {Element[]} elements */
function outermost(elements) {
  /** @type {Element[]} */
  const outer = []
  for (const each of elements) if (!outer.at(-1)?.contains(each)) outer.push(each)
  return outer
}

/**
 * @param {Document} document
 * @param {string} text
 */
export function strong(document, text) {
  const element = document.createElement('strong')
  element.append(text)
  return element
}

/** Blanks as one. @param {string | null} text */
export const clean = (text) => (text ?? '').replace(/\s+/g, ' ').trim()

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
