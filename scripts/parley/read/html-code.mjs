/**
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
