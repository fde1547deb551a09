/** Which lines of a PDF say nothing: page numbers, running heads and feet. What may be text stays. */
import { contentsOf, titlesOf } from './pdf-contents.mjs'
import { comparable, HEADING_SIZE, textSize, usualGap } from './pdf-measures.mjs'

/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {import('./pdf-lines.mjs').Page} Page */
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
  const byHeight = grouped(places, ({ edge, line }) => `${edge} ${Math.round(line.base / SAME_HEIGHT)}`)
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
  const all = grouped(lines, ({ text, base }) => `${Math.round(base)} ${text}`)
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
  const counts = [...grouped(shifts, (shift) => shift)]
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

/**
 * `Map.groupBy`, which Node 20 does not have.
 * @template Value, Key
 * @param {Value[]} values
 * @param {(value: Value) => Key} keyOf
 * @returns {Map<Key, Value[]>}
 */
function grouped(values, keyOf) {
  /** @type {Map<Key, Value[]>} */
  const groups = new Map()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}
