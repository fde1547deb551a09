/** Which lines of a PDF say nothing: page numbers, running heads and feet. What may be text stays. */
import { comparable, HEADING_SIZE, textSize, usualGap } from './pdf-lines.mjs'

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
function contentsOf(pages, size) {
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

/** @typedef {'top' | 'bottom'} Edge */

/**
 * A line at the edge of a page.
 * @typedef {object} Place
 * @property {Line} line
 * @property {number} at index of the page
 * @property {Edge} edge
 * @property {string} key what it says but for the page's number
 * @property {string | undefined} rest what stands beside the page's number; nothing if it has none
 * @property {boolean} isWide whether it goes from one margin of the text to the other
 */

/** So many lines are looked at above and below the text. */
const MOST_LINES = 3
/** A running line is as far from the text, in distances of lines. */
const APART = 1.6
/** Points; a running line stands at one height on all of its pages. */
const SAME_HEIGHT = 3
/** Numbers that run behind the pages counted do so on as many pages, and by a front matter that is no longer. */
const FEWEST_NUMBERED = 5
const LONGEST_FRONT = 40
const TOTAL = String.raw`(?:\s*(?:/|of|von|de|sur|di|van|av|z|из)\s*\d{1,4})?`
const LAST = new RegExp(String.raw`^(.*?)(?<![\p{L}\p{N}.,])(\d{1,4}|[ivxlc]{1,7})${TOTAL}\s*[-–—]?$`, 'iu')
const FIRST = new RegExp(String.raw`^[-–—]?\s*(\d{1,4}|[ivxlc]{1,7})${TOTAL}(?=$|[\s|·–—-])(.*)$`, 'iu')
/** An amount of its own, or a row of a list. */
const AMOUNT = /^\P{L}*\d\P{L}*$/u
const LEADERS = /(?:\.\s?){4,}/
/** In a form filled in on each page, more of all lines recur than in a text with a head and a foot. */
const FORM = 0.2
/** What stands beside a page's number and says no more. */
const PAGE_WORD =
  /^[\s|·/–—-]*(?:page|seite|p\.|pg\.|s\.|página|pagina|pág\.|strana|strona|sida|side|slide|folie|стр\.|страница)?[\s|·/–—-]*$/iu
const SEPARATED = /^\s*[|·–—-]|[|·–—-]\s*$/u

/**
 * Lines that are left out, with the rule that names them.
 * @param {Page[]} pages
 * @returns {Map<Line, 'contents' | 'running'>}
 */
export function leftOut(pages) {
  const size = textSize(pages)
  /** @type {Map<Line, 'contents' | 'running'>} */
  const found = new Map()
  for (const line of contentsOf(pages, size)) found.set(line, 'contents')
  for (const line of runningLines(pages, size)) found.set(line, 'running')
  // A file of nothing else is a list, or a form.
  return pages.some(({ lines }) => lines.some((line) => !found.has(line))) ? found : new Map()
}

/**
 * Lines at the edges of pages, apart from the text, that recur at one height. A line stays if one outside of it stays.
 * @param {Page[]} pages
 * @param {number} size of the text
 * @returns {Line[]}
 */
function runningLines(pages, size) {
  const shift = numbersBehind(pages)
  const titles = titlesOf(pages, size)
  const places = pages.flatMap((page, at) => [
    ...placesOf(page, at, 'top', shift),
    ...placesOf(page, at, 'bottom', shift),
  ])
  const gap = usualGap(pages, size) * APART
  const isForm = isFilledForm(pages)
  /** @type {Map<string, Place[]>} */
  const byHeight = Map.groupBy(places, ({ edge, line }) => `${edge} ${Math.round(line.base / SAME_HEIGHT)}`)
  /** @param {Place} place @returns {Place[]} places at its edge and its height */
  const beside = ({ edge, line }) =>
    [-1, 0, 1]
      .flatMap((step) => byHeight.get(`${edge} ${Math.round(line.base / SAME_HEIGHT) + step}`) ?? [])
      .filter((other) => Math.abs(other.line.base - line.base) <= SAME_HEIGHT)
  /** @param {Place} place */
  const recurs = (place) => {
    if (place.line.size >= size * HEADING_SIZE || (place.rest === undefined && AMOUNT.test(place.line.text)))
      return false
    if (LEADERS.test(place.line.text)) return false
    const near = beside(place)
    const same = pagesOf(near.filter(({ key }) => key === place.key))
    if (place.rest === undefined) return !isForm && isOnMost(same, pages.length)
    const numbered = pagesOf(near.filter(({ rest }) => rest !== undefined)).length
    if (PAGE_WORD.test(place.rest)) return numbered >= 2
    const isTitle = titles.has(comparable(place.rest.replace(/^[\s|·–—-]+|[\s|·–—-]+$/gu, '')))
    if (isTitle && numbered >= 3) return true
    return (place.isWide || SEPARATED.test(place.rest)) && same.length >= 2 && numbered >= 3
  }
  return pages.flatMap((page, at) =>
    /** @type {const} */ (['top', 'bottom']).flatMap((edge) => {
      const lines = ordered(page, edge)
      const outer = placesOf(page, at, edge, shift)
      const kept = outer.findIndex((place) => !recurs(place))
      let count = kept < 0 ? outer.length : kept
      const isApart = () => {
        const [last, next] = [lines[count - 1], lines[count]]
        return !last || !next || Math.abs(last.base - next.base) >= gap
      }
      while (!isApart()) count--
      return lines.slice(0, count)
    }),
  )
}

/**
 * Whether pages are one form, filled in: many of their lines recur at one height.
 * @param {Page[]} pages
 */
function isFilledForm(pages) {
  const lines = pages.flatMap((page) => page.lines)
  const all = Map.groupBy(lines, ({ text, base }) => `${Math.round(base)} ${text}`)
  const recurring = [...all.values()].filter(({ length }) => length >= 3 && length * 2 >= pages.length)
  return recurring.flat().length > lines.length * FORM
}

/** @param {Page} page @param {Edge} edge @returns {Line[]} from the edge to the middle */
const ordered = ({ lines }, edge) =>
  lines.toSorted((a, b) => (edge === 'top' ? b.base - a.base : a.base - b.base))

/**
 * @param {Page} page
 * @param {number} at
 * @param {Edge} edge
 * @param {number} shift
 * @returns {Place[]}
 */
function placesOf(page, at, edge, shift) {
  const left = Math.min(...page.lines.map((line) => line.left))
  const right = Math.max(...page.lines.map((line) => line.right))
  return ordered(page, edge)
    .slice(0, MOST_LINES)
    .map((line) => {
      const rest = besideNumber(line.text, [page.label, String(at + 1), String(at + 1 - shift)])
      return {
        line,
        at,
        edge,
        key: rest === undefined ? line.text : `# ${rest.trim()}`,
        rest,
        isWide: line.left < left + line.size && line.right > right - line.size,
      }
    })
}

/**
 * What stands beside a page's number.
 * @param {string} text
 * @param {string[]} numbers of the page
 * @returns {string | undefined} nothing if the line neither begins nor ends with one of them
 */
function besideNumber(text, numbers) {
  const [, before = '', last = ''] = LAST.exec(text) ?? []
  if (numbers.includes(last)) return before
  const [, first = '', after = ''] = FIRST.exec(text) ?? []
  return numbers.includes(first) ? after : undefined
}

/**
 * By how much numbers in print are behind the pages counted, as behind a front matter.
 * @param {Page[]} pages
 * @returns {number} 0 if they are not, or if that is unsure
 */
function numbersBehind(pages) {
  const shifts = pages.flatMap((page, at) => {
    const byHeight = ordered(page, 'top')
    const alone = [byHeight[0], byHeight.at(-1)].filter((line) =>
      /^[-–—\s]*\d{1,4}[-–—\s]*$/.test(line?.text ?? ''),
    )
    return [...new Set(alone.map((line) => at + 1 - Number(/\d+/.exec(line?.text ?? '')?.[0])))]
  })
  const counts = [...Map.groupBy(shifts, (shift) => shift)]
    .map(([shift, all]) => ({ shift, count: all.length }))
    .filter(({ shift, count }) => shift > 0 && shift <= LONGEST_FRONT && count >= FEWEST_NUMBERED)
    .toSorted((a, b) => b.count - a.count)
  const [most] = counts
  return most && most.count * 2 >= pages.length - most.shift ? most.shift : 0
}

/** @param {Place[]} places @returns {number[]} their pages, without doubles */
const pagesOf = (places) => [...new Set(places.map(({ at }) => at))].toSorted((a, b) => a - b)

/**
 * Whether a line recurs: on all pages, or on three or more of which most follow each other or are every other one.
 * @param {number[]} on pages
 * @param {number} all number of pages
 */
function isOnMost(on, all) {
  if (on.length >= 2 && on.length === all) return true
  const near = on.filter((at, place) => {
    const before = at - (on[place - 1] ?? Number.NEGATIVE_INFINITY)
    const after = (on[place + 1] ?? Number.POSITIVE_INFINITY) - at
    return Math.min(before, after) <= 2
  })
  return on.length >= 3 && near.length * 2 >= on.length
}
