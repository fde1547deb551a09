/** Workbooks: the tables of their sheets, as people see them. */
import { all, openArchive, targetsOf, xmlIn } from './archive.mjs'
import { columnNames, freeName } from './table.mjs'

/** @typedef {import('./article.mjs').Content} Content */
/** @typedef {import('./article.mjs').Row} Row */

/** Bytes of a workbook's parts together. The library inflates them all. */
const MOST_OF_WORKBOOK = 200_000_000
/** The library fills the rectangle up to the farthest filled cell: these take some 100 MB. */
const MOST_CELLS = 5_000_000
/** Rows and cells, with what they say of themselves, and whether nothing stands in them. */
const SHEET_TAG = /<(?:\w+:)?(?:(row)|(c))(?=[\s/>])([^>]*)>(<\/)?/g
/** Rows of a sheet: no program writes more. */
const MOST_ROWS = 1_048_576

/**
 * A workbook (ECMA-376, SpreadsheetML): each sheet is a table whose first row names its columns. Rows of several sheets say
 * which one they are of.
 * @param {Uint8Array} bytes
 * @returns {Promise<Content>}
 * @throws Error if it is no workbook, or too large a one
 */
export async function readXlsx(bytes) {
  const layouts = await layoutsOf(bytes)
  const { default: readSheets } = await import('read-excel-file/universal')
  const sheets = await readSheets(bytes.slice().buffer)
  const shown = sheets.filter(({ sheet }) => !layouts.get(sheet)?.isHidden)
  const hidden = [...layouts].flatMap(([name, { isHidden, hides }]) =>
    isHidden ? [`the sheet "${name}"`] : hides ? [`rows or columns of the sheet "${name}"`] : [],
  )
  for (const { sheet, data } of shown) writeDurations(data, layouts.get(sheet))
  const tables = shown
    .map(({ sheet, data }) => ({ sheet, ...tableIn(data, layouts.get(sheet)) }))
    .filter(({ rows }) => rows.length > 0)
  if (tables.length === 0)
    throw new Error(
      `it has no table${hidden.length > 0 ? ' that is not hidden' : ''}: a first row of names and rows below it`,
    )
  const without = hidden.length > 0 ? { hidden } : {}
  if (tables.length === 1) return { rows: tables.flatMap(({ rows }) => rows), ...without }
  const sheetField = freeName('sheet', new Set(tables.flatMap(({ names }) => names)))
  return {
    rows: tables.flatMap(({ sheet, rows }) => rows.map((row) => ({ ...row, [sheetField]: sheet }))),
    sheetField,
    ...without,
  }
}

/**
 * What a sheet says beside the values of its cells. Indexes count from 0.
 * @typedef {object} Layout
 * @property {boolean} isHidden
 * @property {boolean} hides whether some of its rows or columns are hidden
 * @property {Set<number>} rows hidden ones. What a filter hides comes back with the next one, and is no secret
 * @property {[from: number, to: number][]} columns hidden ones
 * @property {{ top: number, left: number, bottom: number, right: number }[]} merged rectangles of cells that are one
 * @property {[row: number, column: number][]} durations cells that show hours, minutes or seconds that have passed
 * @property {number} firstDay that the workbook counts from, in milliseconds since 1970
 */

/**
 * The layouts of sheets, by their names. A workbook that would take more memory than there is is refused: one filled cell far
 * from the others is enough for that.
 * @param {Uint8Array} bytes
 * @returns {Promise<Map<string, Layout>>}
 */
async function layoutsOf(bytes) {
  const archive = await openArchive(bytes, MOST_OF_WORKBOOK)
  if (archive.size > MOST_OF_WORKBOOK) {
    throw new Error(
      `it is larger than ${MOST_OF_WORKBOOK / 1_000_000} MB when it is unpacked: split it, or save its sheets as CSV`,
    )
  }
  const main = 'xl/workbook.xml'
  const workbook = await xmlIn(archive, main)
  const sheets = all(workbook, 'sheet')
  const targets = await targetsOf(archive, main)
  const styles = [...targets.values()].find(({ type, path }) => type.endsWith('/styles') && archive.has(path))
  const passing = styles ? passingStyles(await archive.text(styles.path, 'utf-8')) : new Set()
  const isOfOldMacs = /^(?:1|true)$/.test(all(workbook, 'workbookPr')[0]?.getAttribute('date1904') ?? '')
  /** @type {Map<string, Layout>} */
  const layouts = new Map()
  let cells = 0
  for (const [id, { type, path }] of targets) {
    if (!type.endsWith('/worksheet') || !archive.has(path)) continue
    const xml = await archive.text(path, 'utf-8')
    const { rows, columns, farthest } = extentOf(xml)
    cells += rows * columns
    const sheet = sheets.find((each) => each.getAttribute('r:id') === id)
    const name = sheet?.getAttribute('name') ?? path
    if (rows > MOST_ROWS || cells > MOST_CELLS) {
      throw new Error(
        `its sheet "${name}" reaches to the cell ${farthest}, and more than ${MOST_CELLS.toLocaleString('en')} cells are too many: ` +
          'delete the columns and rows beyond the table, or save the sheet as CSV',
      )
    }
    layouts.set(name, {
      ...layoutOf(xml, /hidden$/i.test(sheet?.getAttribute('state') ?? '')),
      durations: passing.size > 0 ? cellsOf(xml, passing) : [],
      firstDay: isOfOldMacs ? OLD_MAC : FIRST_DAY,
    })
  }
  return layouts
}

/** The numbers of styles whose format counts on past a day, as `[h]:mm` (ECMA-376, 18.8.31). @param {string} xml @returns {Set<string>} */
function passingStyles(xml) {
  const formats = [...xml.matchAll(/<(?:\w+:)?numFmt\s([^>]*)>/g)]
    .filter(([, its = '']) => /\sformatCode="[^"]*\[(?:h+|m+|s+)\]/i.test(` ${its}`))
    .map(([, its = '']) => /\bnumFmtId="(\d+)"/.exec(its)?.[1])
  // 46 is built in.
  const passing = new Set(['46', ...formats])
  const [, cells = ''] = /<(?:\w+:)?cellXfs[\s>]([\s\S]*?)<\/(?:\w+:)?cellXfs>/.exec(xml) ?? []
  const styles = [...cells.matchAll(/<(?:\w+:)?xf\s([^>]*)>/g)]
  return new Set(
    styles.flatMap(([, its = ''], style) =>
      passing.has(/\bnumFmtId="(\d+)"/.exec(its)?.[1] ?? '') ? [String(style)] : [],
    ),
  )
}

/** @param {string} xml of a sheet @param {Set<string>} styles @returns {Layout['durations']} its cells of these styles */
const cellsOf = (xml, styles) =>
  [...xml.matchAll(/<(?:\w+:)?c\s([^>]*)>/g)].flatMap(([, its = '']) => {
    const [, letters = '', row] = /(?:^|\s)r="([A-Z]+)(\d+)"/.exec(its) ?? []
    return styles.has(/(?:^|\s)s="(\d+)"/.exec(its)?.[1] ?? '') && row !== undefined
      ? [/** @type {[number, number]} */ ([Number(row) - 1, columnOf(letters) - 1])]
      : []
  })

/** @param {string} xml @param {boolean} isHidden @returns {Omit<Layout, 'durations' | 'firstDay'>} */
function layoutOf(xml, isHidden) {
  const isFiltered = /<(?:\w+:)?filterColumn[\s>]/.test(xml)
  const numberIn = (/** @type {string} */ attributes, /** @type {string} */ name) =>
    Number(new RegExp(`(?:^|\\s)${name}="(\\d+)"`).exec(attributes)?.[1]) - 1
  const hidden = [...xml.matchAll(/<(?:\w+:)?(row|col)\s([^>]*\bhidden="(?:1|true)"[^>]*)>/g)]
  const rows = hidden.flatMap(([, tag, its = '']) =>
    tag === 'row' && !isFiltered ? [numberIn(its, 'r')] : [],
  )
  /** @type {[number, number][]} */
  const columns = hidden.flatMap(([, tag, its = '']) =>
    tag === 'col' ? [[numberIn(its, 'min'), numberIn(its, 'max')]] : [],
  )
  const merged = [
    ...xml.matchAll(/<(?:\w+:)?mergeCell\s[^>]*\bref="\$?([A-Z]+)\$?(\d+):\$?([A-Z]+)\$?(\d+)"/g),
  ].map(([, left = '', top, right = '', bottom]) => ({
    top: Number(top) - 1,
    left: columnOf(left) - 1,
    bottom: Number(bottom) - 1,
    right: columnOf(right) - 1,
  }))
  return { isHidden, hides: rows.length + columns.length > 0, rows: new Set(rows), columns, merged }
}

/** The number of a column, from 1. @param {string} letters */
const columnOf = (letters) =>
  Array.from(letters).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0)

/**
 * The rectangle of a sheet that holds all its filled cells. The library drops cells that have a format alone.
 * @param {string} xml
 */
function extentOf(xml) {
  let rows = 0
  let widest = 'A'
  for (const [, row, cell, attributes = '', closing] of xml.matchAll(SHEET_TAG)) {
    const [, letters = '', number] = /\sr\s*=\s*["']([A-Z]*)(\d+)/.exec(attributes) ?? []
    const isEmpty = attributes.endsWith('/') || closing !== undefined
    // The library makes each row up to the last one, empty or not.
    if (row !== undefined && Number(number) > MOST_ROWS) rows = Math.max(rows, Number(number))
    if (cell === undefined || isEmpty || number === undefined) continue
    rows = Math.max(rows, Number(number))
    if (letters.length > widest.length || (letters.length === widest.length && letters > widest))
      widest = letters
  }
  return { rows, columns: columnOf(widest), farthest: `${widest}${rows}` }
}

/** @param {unknown} cell */
const isFilled = (cell) => cell !== null && cell !== undefined && cell !== ''

/**
 * The names of a table's columns, and its rows.
 * @param {unknown[][]} cells
 * @param {Layout} [layout]
 * @returns {{ names: string[], rows: Row[] }}
 */
function tableIn(cells, layout) {
  // Above a table often stands what it is called. A sheet can have more rows than a call takes arguments.
  const most = cells.reduce((widest, row) => Math.max(widest, row.filter(isFilled).length), 0)
  const above = cells.findIndex((row) => row.filter(isFilled).length > most / 2)
  const merged = (layout?.merged ?? []).filter((each) => fillMerged(cells, each))
  // Names in two rows: one over several columns, and theirs below it.
  const inHead = merged.filter(({ top, bottom }) => top <= above && bottom >= above)
  const head = Math.min(above, ...inHead.map(({ top }) => top))
  const last = Math.max(
    above,
    ...inHead.map(({ bottom, left, right }) =>
      right > left &&
      bottom === head &&
      (cells[head + 1] ?? []).every((cell) => !cell || typeof cell === 'string')
        ? head + 1
        : bottom,
    ),
  )
  const heads = cells.slice(head, last + 1)
  const width = Math.max(0, ...heads.map((row) => row.length))
  const names = columnNames(
    Array.from({ length: width }, (_, at) =>
      [
        ...new Set(
          heads
            .map((row) => row[at])
            .filter(isFilled)
            .map(cellValue),
        ),
      ].join(' '),
    ),
  )
  const isShown = (/** @type {number} */ at) => !layout?.columns.some(([from, to]) => from <= at && at <= to)
  const rows = cells
    .filter((row, at) => at > last && row.some(isFilled) && !layout?.rows.has(at))
    .map((row) =>
      Object.fromEntries(
        row.flatMap((cell, at) =>
          isFilled(cell) && isShown(at) ? [[names[at] ?? `column_${at + 1}`, cellValue(cell)]] : [],
        ),
      ),
    )
  return { names, rows }
}

/**
 * Puts what merged cells say into each of them, unless it stands over the others of its row, as a title does.
 * @param {unknown[][]} cells
 * @param {Layout['merged'][number]} rectangle
 * @returns {boolean} whether it did
 */
function fillMerged(cells, { top, left, bottom, right }) {
  const first = cells[top]
  const value = first?.[left]
  if (!isFilled(value)) return false
  if (top === bottom && !first?.some((cell, at) => isFilled(cell) && (at < left || at > right))) return false
  for (const row of cells.slice(top, bottom + 1))
    for (let at = left; at <= right && at < row.length; at += 1) row[at] = value
  return true
}

const HOUR_MS = 3_600_000
/** Spreadsheets count days from here, and some of old Macs from there. */
const FIRST_DAY = Date.UTC(1899, 11, 30)
const OLD_MAC = Date.UTC(1904, 0, 1)
/** A time beyond a day is told from a day for as long, where its format counts no hours. */
const LONGEST_MS = 60 * 24 * HOUR_MS

/** Hours that have passed: 26:15, -01:30:07. @param {number} milliseconds */
function hoursOf(milliseconds) {
  const seconds = Math.round(Math.abs(milliseconds) / 1000)
  const [hours, ...rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(
    (each) => String(each).padStart(2, '0'),
  )
  return `${milliseconds < 0 ? '-' : ''}${[hours, ...rest].join(':').replace(/^(.+:.+):00$/, '$1')}`
}

/** Writes what a sheet shows as hours that have passed, which the library takes for days. @param {unknown[][]} cells @param {Layout} [layout] */
function writeDurations(cells, layout) {
  for (const [row, column] of layout?.durations ?? []) {
    const [its, first] = [cells[row], layout?.firstDay ?? FIRST_DAY]
    const cell = its?.[column]
    if (its && cell instanceof Date) its[column] = hoursOf(cell.getTime() - first)
  }
}

/**
 * Days and times as people write them. A time without a day is a part of the first ones, and a longer one a duration.
 * @param {unknown} cell
 */
function cellValue(cell) {
  if (!(cell instanceof Date)) return cell
  const rounded = Math.round(cell.getTime() / 1000) * 1000
  const [day = '', time = ''] = new Date(rounded).toISOString().split(/[T.]/)
  const short = time.replace(/:00$/, '')
  const past = [OLD_MAC, FIRST_DAY]
    .map((first) => rounded - first)
    .find((each) => each >= 0 && each < LONGEST_MS)
  if (past === 0 && day.startsWith('1899')) return short
  if (short === '00:00') return day
  return past === undefined ? `${day} ${short}` : hoursOf(past)
}
