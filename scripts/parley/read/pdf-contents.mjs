/** Which lines of a PDF are its table of contents. A list of prices has leader dots and numbers too, so that is not enough. */
import { comparable, HEADING_SIZE } from './pdf-measures.mjs'

/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {import('./pdf-lines.mjs').Page} Page */

/**
 * A line that ends with a number, as entries of contents do.
 * @typedef {object} Entry
 * @property {Line} line
 * @property {string} title comparable
 * @property {boolean} hasLeaders whether dots lead to the number
 * @property {string} number as it is written
 */

/** What the heading of a table of contents says. */
const CALLED =
  /^(?:table of contents|contents|list of (?:figures|tables|examples)|inhalt(?:sverzeichnis|sübersicht)?|table des matières|sommaire|índice|índex|indice|sommario|inhoud(?:sopgave)?|spis treści|目次|目录|目錄)$/i
const ENTRY = /^(.*?\S)(?:(\s*(?:\.\s?){4,}\s*)|\s+)(\d{1,4}|[ivxlc]{1,7})$/i
/** Lines between two entries: the first part of a long title, a running head, a page number. */
const MOST_BETWEEN = 3
/** So few entries are no table. */
const FEWEST = 3

/**
 * Entries of tables of contents, and the headings of these tables. A row of entries counts as one if its numbers never fall and
 * either most of its titles stand on the pages that it names, or it stands below a heading such as "Contents" and names pages that
 * there are.
 * @param {Page[]} pages
 * @param {number} size of the text
 * @returns {Set<Line>}
 */
export function contentsOf(pages, size) {
  const titles = titlesOf(pages, size)
  /** @type {Set<Line>} */
  const found = new Set()
  for (const { entries, heading } of rowsOf(pages, size, titles)) {
    const numbers = entries.map(({ number }) => pageValue(number))
    if (entries.length < FEWEST || numbers.some((number, at) => number < (numbers[at - 1] ?? -1000))) continue
    const confirmed = arrivals(entries, titles, pages)
    const hasPages = entries.every(({ number }) => isLabel(number, pages))
    const isContents = confirmed.size >= Math.max(FEWEST, entries.length * 0.6) || (heading && hasPages)
    if (!isContents) continue
    for (const entry of entries) {
      if (entry.hasLeaders || confirmed.has(entry)) found.add(entry.line)
    }
    if (heading) found.add(heading)
  }
  return found
}

/** @param {string} text of a heading */
const isCalledContents = (text) => CALLED.test(text.trim())

/**
 * Where titles stand: bookmarks lead to them, and headings are larger than the text.
 * @param {Page[]} pages
 * @param {number} size
 * @returns {Map<string, Set<number>>} indexes of pages
 */
export function titlesOf(pages, size) {
  /** @type {Map<string, Set<number>>} */
  const titles = new Map()
  for (const [at, { lines, outline }] of pages.entries()) {
    const large = lines.filter((line) => line.size >= size * HEADING_SIZE)
    const broken = large.map(({ text }, place) => `${text} ${large[place + 1]?.text ?? ''}`)
    for (const title of [
      ...outline.map((bookmark) => bookmark.title),
      ...large.map(({ text }) => text),
      ...broken,
    ]) {
      const key = comparable(title)
      titles.set(key, (titles.get(key) ?? new Set()).add(at))
    }
  }
  return titles
}

/**
 * Entries that follow each other. A heading that is none of them ends a row.
 * @param {Page[]} pages
 * @param {number} size
 * @param {Map<string, Set<number>>} titles
 * @returns {{ entries: Entry[], heading: Line | undefined }[]}
 */
function rowsOf(pages, size, titles) {
  /** @type {{ entries: Entry[], heading: Line | undefined }[]} */
  const rows = []
  /** @type {Entry[]} */
  let entries = []
  /** @type {Line | undefined} */
  let heading
  let between = 0
  const end = () => {
    if (entries.length > 0) {
      rows.push({ entries, heading })
      heading = undefined
    }
    entries = []
    between = 0
  }
  const marked = new Set(pages.flatMap(({ outline }) => outline.map(({ title }) => comparable(title))))
  for (const { lines, label } of pages) {
    for (const line of lines) {
      const entry = entryOf(line, titles, marked)
      // A running head ends with the number of its own page.
      if (entry && (entry.hasLeaders || entry.number !== label)) {
        entries.push(entry)
        between = 0
      } else if (isCalledContents(line.text) && !heading) {
        end()
        heading = line
      } else if (isCalledContents(line.text) && line.size < size * HEADING_SIZE) {
        // The running head of the table.
      } else {
        between++
        if (between > MOST_BETWEEN || line.size >= size * HEADING_SIZE) {
          end()
          heading = undefined
        }
      }
    }
  }
  end()
  return rows
}

/**
 * @param {Line} line
 * @param {Map<string, Set<number>>} titles
 * @param {Set<string>} marked titles of bookmarks
 * @returns {Entry | undefined}
 */
function entryOf(line, titles, marked) {
  const [, text = '', leaders, number = ''] = ENTRY.exec(line.text) ?? []
  if (number === '') return undefined
  const title = comparable(text)
  const hasLeaders = leaders !== undefined
  // Without leaders it is one only if it says what a heading says, and is no heading as a whole, like "Windows 11".
  if (!hasLeaders && (!titles.has(title) || marked.has(comparable(line.text)))) return undefined
  return { line, title, hasLeaders, number }
}

/**
 * Entries whose title stands on the page they name. Numbers in print can be ahead of the pages counted, by as much in all entries.
 * @param {Entry[]} entries
 * @param {Map<string, Set<number>>} titles
 * @param {Page[]} pages
 * @returns {Set<Entry>}
 */
function arrivals(entries, titles, pages) {
  /** @type {Map<number, number>} */
  const shifts = new Map()
  const shiftsOf = (/** @type {Entry} */ { title, number }) =>
    [...(titles.get(title) ?? [])].map((at) => at + 1 - pageValue(number))
  for (const entry of entries) {
    for (const shift of shiftsOf(entry)) shifts.set(shift, (shifts.get(shift) ?? 0) + 1)
  }
  return new Set(
    entries.filter(
      (entry) =>
        [...(titles.get(entry.title) ?? [])].some((at) => pages[at]?.label === entry.number) ||
        shiftsOf(entry).some((shift) => shift === 0 || (shifts.get(shift) ?? 0) >= FEWEST),
    ),
  )
}

/** @param {string} number @param {Page[]} pages */
const isLabel = (number, pages) =>
  pages.some(({ label }) => label === number) ||
  (/^\d/.test(number) ? Number(number) <= pages.length : romanOf(number) <= pages.length)

/** Pages in Roman numbers come before all others. @param {string} number */
const pageValue = (number) => (/^\d/.test(number) ? Number(number) : romanOf(number) - 1000)

/** @param {string} number @returns {number} */
function romanOf(number) {
  const values = [...number.toLowerCase()].map(
    (letter) => ({ i: 1, v: 5, x: 10, l: 50, c: 100 })[letter] ?? 0,
  )
  return values.reduce((sum, value, at) => sum + (value < (values[at + 1] ?? 0) ? -value : value), 0)
}
