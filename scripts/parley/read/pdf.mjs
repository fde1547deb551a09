/** Reads a PDF: its lines and bookmarks with pdf.js, its paragraphs and headings by `pdf-lines.mjs`. */

import { ownTitle, titleOfPath, withoutElements } from './article.mjs'
import { markdownOf, ofMostLetters, printedTitle, WIDE } from './pdf-lines.mjs'

/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {{ str: string, transform: number[], width: number, fontName: string, hasEOL: boolean }} Item */
/** @typedef {{ str: string, left: number, right: number, base: number, size: number, isMonospaced: boolean }} Part of a line */

/** Points; letters whose sizes differ by less are of one size. */
const SIZES = 0.5
/** Functions whose raised number is an exponent. */
const FUNCTION =
  /(?:^|[^\p{L}])(?:a(?:rc)?)?(?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|log|ln|lg|exp|det|max|min)\s*$/iu

/**
 * @param {{ items: (Item | { type: string })[], styles: Record<string, { fontFamily: string }> }} content of a page
 * @returns {Line[]} in the order in which they are read
 */
export function linesOf({ items, styles }) {
  const upright = angleOf(items)
  const isTurned = (/** @type {Item | { type: string }} */ item) =>
    'str' in item && item.str.trim() !== '' && turnOf(item) !== upright
  const lines = linesOfRows(
    rowsOf(
      items.filter((item) => !isTurned(item)),
      styles,
      upright,
    ),
  )
  const usual = lines.toSorted((a, b) => b.text.length - a.text.length)[0]?.size ?? 0
  const turned = items.filter(isTurned)
  const angles = new Set(turned.map((item) => turnOf(/** @type {Item} */ (item))))
  // What is turned is no heading of the page, and a slanted word over its text no part of it.
  const others = [...angles].flatMap((angle) =>
    linesOfRows(
      rowsOf(
        turned.filter((item) => turnOf(/** @type {Item} */ (item)) === angle),
        styles,
        angle,
      ),
    )
      .filter(({ text }) => (angle - upright) % 90 === 0 || text.length > LONGEST_MARK)
      .map((line) => ({ ...line, size: Math.min(line.size, usual) })),
  )
  return [...lines, ...others]
}

/** A watermark is no longer, in letters. */
const LONGEST_MARK = 40

/** By how many degrees a text is turned. @param {Item} item */
const turnOf = ({ transform: [a = 1, b = 0] }) => Math.round((Math.atan2(b, a) * 180) / Math.PI / 5) * 5

/** How most letters of a page are turned. @param {(Item | { type: string })[]} items */
const angleOf = (items) =>
  ofMostLetters(items.flatMap((item) => ('str' in item ? [[turnOf(item), item.str.trim().length]] : [])))

/** @param {Part[][]} found @returns {Line[]} */
function linesOfRows(found) {
  const rows = columnwise(rowwise(found))
  const notes = footnotesOf(rows)
  return rows.flatMap((parts) => {
    const text = parts
      .map((part, at) => withRaised(part, parts[at - 1], notes))
      .join('')
      .replace(/\s+/g, ' ')
      .trim()
    const letters = parts.filter(({ str }) => str.trim() !== '')
    const largest = letters.toSorted((a, b) => b.str.length - a.str.length)[0]
    if (text === '' || !largest) return []
    const line = {
      text,
      left: Math.min(...letters.map(({ left }) => left)),
      right: Math.max(...letters.map(({ right }) => right)),
      columns: letters
        .slice(1)
        .map(({ left, size }, at) => ({ left, gap: (left - (letters[at]?.right ?? left)) / size })),
      base: largest.base,
      size: Math.round(largest.size / SIZES) * SIZES,
      // Letters of East Asia are as wide as each other in every font.
      isMonospaced: letters.every(({ isMonospaced }) => isMonospaced) && !WIDE.test(text),
    }
    return [line]
  })
}

/** Of a size: so far apart are columns, at least. */
const GUTTER = 1.2
/** So many lines have a text beside them in a page of columns, and so many letters, in the middle. */
const FEWEST_BESIDE = 4
const LINE_OF_COLUMN = 18
/** Of a size: a line that is farther below the one before begins something else. */
const FARTHEST_BELOW = 2.5
/** Points; what begins at one place does so within these. */
const ALIGNED = 3

/**
 * Rows of a page that is set in columns as the lines of each column, in whatever order they are drawn. Cells of a table are no
 * columns: hardly any of them goes on in the next row.
 * @param {Part[][]} rows
 * @returns {Part[][]}
 */
function columnwise(rows) {
  /** @type {Part[][]} */
  const made = []
  /** `starts` of all columns but the first. @type {{ starts: number[], columns: Part[][][], all: Part[][] } | undefined} */
  let run
  const end = () => {
    if (run) {
      const { columns, all } = run
      const isColumns = columns.every((column) => column.length >= FEWEST_BESIDE && goesOn(column))
      made.push(...(isColumns ? columns.flat() : all))
    }
    run = undefined
  }
  for (const parts of rows) {
    const above = run?.all.at(-1)?.[0]
    if (above && above.base - (parts[0]?.base ?? 0) > above.size * FARTHEST_BELOW) end()
    const sides = sidesOf(parts)
    let places = run && placesOf(sides, run.starts)
    if (!places) {
      end()
      if (sides.length < 2) {
        made.push(parts)
        continue
      }
      run = { starts: sides.slice(1).map(leftOf), columns: sides.map(() => []), all: [] }
      places = [...sides.keys()]
    }
    for (const [at, side] of sides.entries()) run?.columns[places[at] ?? 0]?.push(side)
    run?.all.push(parts)
  }
  end()
  return made
}

/**
 * In which column each text of a row stands.
 * @param {Part[][]} sides
 * @param {number[]} starts of all columns but the first
 * @returns {number[] | undefined} nothing where they do not fit into the columns
 */
function placesOf(sides, starts) {
  const places = sides.map((side) => starts.findLastIndex((start) => leftOf(side) >= start - ALIGNED) + 1)
  const fits = sides.every((side, at) => {
    const place = places[at] ?? 0
    const isAligned = place === 0 || sides.length === 1 || leftOf(side) - (starts[place - 1] ?? 0) < ALIGNED
    return (
      isAligned && rightOf(side) < (starts[place] ?? Number.POSITIVE_INFINITY) && places.indexOf(place) === at
    )
  })
  return fits && sides.length > 0 ? places : undefined
}

/** Rows of a table, and letters of its cells, at most: longer lists side by side are columns. */
const MOST_ROWS = 12
const LONGEST_CELL = 30
const SHORT_CELL = 12

/**
 * Rows of a table that is drawn column by column: short texts at the heights of those to their left, which none of them goes on.
 * @param {Part[][]} rows in the order in which they are drawn
 * @returns {Part[][]}
 */
function rowwise(rows) {
  /** @type {Part[][][]} rows that go down the page */
  const columns = []
  for (const row of rows) {
    const above = columns.at(-1)?.at(-1)
    if (above && baseOf(row) <= baseOf(above)) columns.at(-1)?.push(row)
    else columns.push([row])
  }
  const made = columns.slice(0, 1)
  for (const all of columns.slice(1)) {
    const table = made.at(-1) ?? []
    const rowOf = (/** @type {Part[]} */ cell) =>
      table.find((row) => Math.abs(baseOf(row) - baseOf(cell)) < ALIGNED && rightOf(row) < leftOf(cell))
    // Behind its last cell a page goes on.
    const end = all.findIndex((cell) => rowOf(cell) === undefined)
    const cells = all.slice(0, end < 0 ? all.length : end)
    const beside = cells.flatMap((cell) => {
      const row = rowOf(cell)
      return row ? [row] : []
    })
    if (areCells(cells, beside)) {
      for (const cell of cells) rowOf(cell)?.push(...spaceBefore(cell), ...cell)
      if (end > 0) made.push(all.slice(end))
    } else made.push(all)
  }
  return made.flat()
}

/** @param {Part[][]} cells @param {Part[][]} beside what stands to the left of each */
const areCells = (cells, beside) =>
  cells.length > 1 &&
  cells.length <= MOST_ROWS &&
  beside.flat().every(({ str }) => str.length <= LONGEST_CELL) &&
  cells.every((cell) => textOf(cell).length <= LONGEST_CELL) &&
  cells.filter((cell) => textOf(cell).length <= SHORT_CELL || /\d/.test(textOf(cell))).length * 2 >
    cells.length &&
  // An index has a number behind each of its words.
  beside.filter(([first]) => /\d\s*$/.test(first?.str ?? '')).length * 2 <= beside.length &&
  !goesOn(cells)

/** @param {Part[]} cell @returns {Part[]} */
const spaceBefore = ([first]) => (first ? [{ ...first, str: ' ', right: first.left }] : [])

/** @param {Part[]} parts */
const textOf = (parts) =>
  parts
    .map(({ str }) => str)
    .join('')
    .trim()
/** @param {Part[]} parts */
const baseOf = (parts) => parts[0]?.base ?? 0
/** @param {Part[]} parts */
const leftOf = (parts) => Math.min(...parts.map(({ left }) => left))
/** @param {Part[]} parts */
const rightOf = (parts) => Math.max(...parts.map(({ right }) => right))

/** The texts of a row, apart from each other. @param {Part[]} parts */
function sidesOf(parts) {
  /** @type {Part[][]} */
  const sides = []
  for (const part of parts.filter(({ str }) => str.trim() !== '')) {
    const side = sides.at(-1)
    if (side && part.left - rightOf(side) <= part.size * GUTTER) side.push(part)
    else sides.push([part])
  }
  return sides
}

/** Whether lines are those of a text: they are long, and many of them go on in the next one. @param {Part[][]} lines */
function goesOn(lines) {
  const texts = lines.map(textOf)
  const middle =
    texts.map(({ length }) => length).toSorted((a, b) => a - b)[Math.floor(texts.length / 2)] ?? 0
  const next = texts
    .slice(1)
    .filter((text, at) => /^[\p{Ll}\p{Lo}(,]/u.test(text) && !/[.!?:;]$/.test(texts[at] ?? ''))
  return middle >= LINE_OF_COLUMN && next.length * 3 >= texts.length - 1
}

/**
 * @param {(Item | { type: string })[]} items that are turned alike
 * @param {Record<string, { fontFamily: string }>} styles
 * @param {number} angle
 * @returns {Part[][]} the parts of each line
 */
function rowsOf(items, styles, angle) {
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)]
  /** @type {Part[][]} */
  const rows = []
  /** @type {Part[]} */
  let parts = []
  const end = () => {
    if (parts.length > 0) rows.push(parts)
    parts = []
  }
  for (const item of items) {
    if (!('str' in item)) continue
    const [, , shear = 0, height = 0, x = 0, y = 0] = item.transform
    const [left, base] = angle === 0 ? [x, y] : [x * cos + y * sin, y * cos - x * sin]
    const size = Math.hypot(shear, height)
    // Exponents stand a little higher, and titles far from what is below them.
    const last = parts.at(-1)
    if (last && Math.abs(last.base - base) > Math.max(last.size, size) * 0.7) end()
    const isMonospaced = styles[item.fontName]?.fontFamily === 'monospace'
    parts.push({ str: item.str, left, right: left + item.width, base, size, isMonospaced })
    if (item.hasEOL) end()
  }
  end()
  // What is drawn beside a line, behind a space of its own, is a part of its row.
  /** @type {Part[][]} */
  const joined = []
  for (const row of rows) {
    const before = joined.at(-1)
    const [last, first] = [before?.at(-1), row[0]]
    if (
      last &&
      first &&
      Math.abs(last.base - first.base) < first.size * 0.2 &&
      first.left > last.right + first.size
    )
      before?.push({ ...first, str: ' ', right: first.left }, ...row)
    else joined.push(row)
  }
  return joined
}

/**
 * The notes at the foot of a page: their numbers, with the size of their letters.
 * @param {Part[][]} rows
 * @returns {Map<string, number>}
 */
function footnotesOf(rows) {
  /** @type {Map<string, number>} */
  const notes = new Map()
  for (const parts of rows) {
    const [, number, text] = /^\s*(\d{1,3})[.)]?\s*(\D.*)$/s.exec(parts.map(({ str }) => str).join('')) ?? []
    const size = Math.max(...parts.map((part) => part.size))
    if (number !== undefined && /\p{L}{2}/u.test(text ?? ''))
      notes.set(number, Math.min(size, notes.get(number) ?? size))
  }
  return notes
}

/**
 * A small raised number: the mark of a footnote on this page is left out, since it would be read as a part of its word, and so
 * would an exponent, which gets a sign.
 * @param {Part} part
 * @param {Part | undefined} before
 * @param {Map<string, number>} notes
 */
function withRaised(part, before, notes) {
  const number = part.str.trim()
  const isRaised =
    before !== undefined &&
    /^\d{1,3}$/.test(number) &&
    part.size < before.size * 0.8 &&
    part.base > before.base + before.size * 0.2
  if (!isRaised || !/[\p{L}\p{N}\p{P}]\s*$/u.test(before.str)) return part.str
  return isFootnoteMark(number, before, notes) ? '' : `^${part.str}`
}

/**
 * Whether a raised number points to a footnote: it stands behind a word, and small text on its page begins with it.
 * @param {string} number
 * @param {Part} before
 * @param {Map<string, number>} notes
 */
function isFootnoteMark(number, { str, size }, notes) {
  const isBehindWord = /(?:\p{L}{3}|[.,;:!?)”"])\s*$/u.test(str)
  const isBehindFormula = FUNCTION.test(str) || /[+*/=^−][^()]*\)\s*$/u.test(str)
  return isBehindWord && !isBehindFormula && (notes.get(number) ?? size) < size * 0.95
}

/** @typedef {import('./article.mjs').Article} Article */
/** @typedef {import('./pdf-lines.mjs').Page} Page */
/** @typedef {Awaited<ReturnType<typeof import('unpdf').getDocumentProxy>>} Pdf */
/** @typedef {Awaited<ReturnType<Pdf['getOutline']>>} Outline */

/**
 * @param {Uint8Array} bytes
 * @param {string} path its name is the title of a PDF that has none
 * @returns {Promise<{ article: Article }>}
 * @throws Error if it is protected by a password, or holds pictures of pages only
 */
export async function readPdf(bytes, path) {
  const pdf = await opened(bytes)
  const labels = await pdf.getPageLabels()
  const outline = await outlineOf(pdf)
  /** @type {Page[]} */
  const pages = []
  for (let at = 1; at <= pdf.numPages; at++) {
    const page = await pdf.getPage(at)
    const label = labels?.[at - 1] || String(at)
    pages.push({
      label,
      number: at,
      lines: linesOf(await page.getTextContent()),
      outline: outline.flatMap(({ page, ...entry }) => (page === at ? [entry] : [])),
    })
    page.cleanup()
  }
  const { info } = await pdf.getMetadata()
  await pdf.loadingTask.destroy()
  const text = withoutElements(markdownOf(pages))
  if (text === '') {
    throw new Error('it holds no text, only pictures of pages: have a text recognition (OCR) read it first')
  }
  return { article: { title: givenTitle(info) ?? printedTitle(pages) ?? titleOfPath(path), text } }
}

/** @param {Uint8Array} bytes @returns {Promise<Pdf>} */
async function opened(bytes) {
  const { getDocumentProxy } = await import('unpdf')
  try {
    // pdf.js takes the bytes over, and refuses a Buffer, whose slice is a Buffer too.
    return await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 })
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException') {
      throw new Error('it is protected by a password: save it without one')
    }
    throw error
  }
}

/**
 * What its author or their program called it. Programs also write the name of the file they made it from.
 * @param {object} info
 * @returns {string | undefined}
 */
function givenTitle(info) {
  const title = 'Title' in info && typeof info.Title === 'string' ? info.Title.trim() : ''
  return ownTitle(title.replace(/^Microsoft (?:Word|PowerPoint|Excel) - /, ''))
}

/**
 * Bookmarks with the page that each leads to, from 1.
 * @param {Pdf} pdf
 * @returns {Promise<{ title: string, level: number, page: number }[]>}
 */
async function outlineOf(pdf) {
  /** @type {{ title: string, level: number, page: number }[]} */
  const found = []
  /** @param {Outline} entries @param {number} level */
  const add = async (entries, level) => {
    for (const { title, dest, items } of entries ?? []) {
      const page = await pageOf(pdf, dest)
      if (page !== undefined) found.push({ title, level, page })
      await add(items, level + 1)
    }
  }
  await add(await pdf.getOutline(), 1)
  return found
}

/**
 * @param {Pdf} pdf
 * @param {Outline[number]['dest']} dest
 * @returns {Promise<number | undefined>} nothing if it leads nowhere, as broken bookmarks do
 */
async function pageOf(pdf, dest) {
  try {
    const [target] = (typeof dest === 'string' ? await pdf.getDestination(dest) : dest) ?? []
    if (typeof target === 'number') return target + 1
    return target ? (await pdf.getPageIndex(target)) + 1 : undefined
  } catch {
    return undefined
  }
}
