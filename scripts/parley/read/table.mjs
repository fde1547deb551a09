/** Tables and lists of objects: CSV, TSV, JSON, JSON Lines. */
import { parse } from 'csv-parse/sync'

/**
 * @param {string} text
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 * @throws Error saying what is wrong, with a line where one can be named
 */
export function readCsv(text, path) {
  const records = parse(text, {
    bom: true,
    columns: (/** @type {string[]} */ names) => names.map((name, at) => name.trim() || `column_${at + 1}`),
    info: true,
    delimiter: /\.tsv$/i.test(path) ? '\t' : delimiterOf(text),
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
  })
  const found = /** @type {{ record: Record<string, string>, info: { lines: number } }[]} */ (
    /** @type {unknown} */ (records)
  )
  return {
    rows: found.map(({ record }) => record),
    lines: found.map(({ record, info }) => info.lines - lineBreaksIn(Object.values(record))),
  }
}

/** The parser counts lines up to a row's end, and a cell in quotes may hold some. @param {string[]} cells */
const lineBreaksIn = (cells) => cells.reduce((sum, cell) => sum + cell.split('\n').length - 1, 0)

/** Spreadsheets of many countries separate with semicolons. @param {string} text */
function delimiterOf(text) {
  const [head = ''] = text.split('\n', 1)
  const counts = [',', ';', '\t', '|'].map((mark) => ({ mark, times: head.split(mark).length - 1 }))
  return counts.reduce((best, each) => (each.times > best.times ? each : best)).mark
}

/**
 * One object, a list of objects, or an object with such a list in it.
 * @param {string} text
 * @returns {import('./article.mjs').Content}
 * @throws Error
 */
export function readJson(text) {
  const value = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (Array.isArray(value)) return { rows: value.map((each, at) => objectOf(each, `item ${at + 1}`)) }
  const object = objectOf(value, 'the file')
  const lists = Object.values(object).filter(
    (each) =>
      Array.isArray(each) && each.length > 0 && each.every((item) => typeof item === 'object' && item),
  )
  return { rows: lists.length === 1 ? /** @type {import('./article.mjs').Row[]} */ (lists[0]) : [object] }
}

/**
 * @param {string} text
 * @returns {import('./article.mjs').Content}
 * @throws Error with the line
 */
export function readJsonLines(text) {
  const rows = []
  const lines = []
  for (const [at, line] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '') continue
    try {
      rows.push(objectOf(JSON.parse(line), 'it'))
      lines.push(at + 1)
    } catch (error) {
      throw new Error(`line ${at + 1}: ${/** @type {Error} */ (error).message}`)
    }
  }
  return { rows, lines }
}

/**
 * @param {unknown} value
 * @param {string} what
 * @returns {import('./article.mjs').Row}
 */
function objectOf(value, what) {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return /** @type {import('./article.mjs').Row} */ (value)
  }
  throw new Error(`${what} is not a JSON object`)
}
