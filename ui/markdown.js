/** Markdown as far as documentation needs it, as elements. Data only ever becomes text: nothing here parses HTML. */
import { element, inline } from './render.js'

const FENCE = /^\s*```/
const HEADING = /^#{1,6} +(.*)$/
const ITEM = /^\s*(?:[-*+]|\d+[.)]) +(.*)$/
const ROW = /^\s*\|(.*)\|\s*$/
const RULE = /^[\s|:-]+$/

/** Text with its code and strong parts; of a link its words. @param {string} text */
const words = (text) => inline(text.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1'))

/**
 * Paragraphs, headings, lists, tables and blocks of code.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export function blocks(text) {
  /** @type {HTMLElement[]} */
  const made = []
  /** @type {string[]} */
  let paragraph = []
  const close = () => {
    if (paragraph.length > 0) made.push(element('p', {}, ...words(paragraph.join(' '))))
    paragraph = []
  }
  const lines = text.split(/\r?\n/)
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const [, heading] = HEADING.exec(line) ?? []
    if (FENCE.test(line)) {
      close()
      const code = []
      for (at += 1; at < lines.length && !FENCE.test(lines[at] ?? ''); at++) code.push(lines[at])
      made.push(element('pre', {}, element('code', {}, code.join('\n'))))
    } else if (ROW.test(line)) {
      close()
      const rows = []
      for (; ROW.test(lines[at] ?? ''); at++) rows.push(lines[at] ?? '')
      at -= 1
      made.push(table(rows))
    } else if (ITEM.test(line)) {
      close()
      /** @type {string[]} */
      const items = []
      for (; at < lines.length && lines[at]?.trim() !== ''; at++) {
        const [, item] = ITEM.exec(lines[at] ?? '') ?? []
        if (item !== undefined) items.push(item)
        else items.push(`${items.pop()} ${lines[at]?.trim()}`)
      }
      made.push(element('ul', {}, ...items.map((item) => element('li', {}, ...words(item)))))
    } else if (heading !== undefined) {
      close()
      made.push(element('h3', {}, ...words(heading)))
    } else if (line.trim() === '') close()
    else paragraph.push(line.trim())
  }
  close()
  return made
}

/** @param {string[]} lines of a table in Markdown, its rule among them */
function table(lines) {
  const headed = RULE.test(lines[1] ?? '')
  const rows = lines
    .filter((line) => !RULE.test(line))
    .map((line, index) => {
      const cells = (ROW.exec(line)?.[1] ?? '').split('|')
      const name = headed && index === 0 ? 'th' : 'td'
      return element('tr', {}, ...cells.map((cell) => element(name, {}, ...words(cell.trim()))))
    })
  return element('div', { class: 'scroll' }, element('table', {}, ...rows))
}
