/** Tables and lists of objects: CSV, TSV, JSON, JSON Lines. */
import { parse } from 'csv-parse/sync'

/**
 * @param {string} text
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 * @throws Error saying what is wrong, with a line where one can be named
 */
export function readCsv(text, path) {
  // Excel writes its separator into a line of its own.
  const [said = '', named] = /^"?sep=(.)"?[ \t]*\n/i.exec(text) ?? []
  const delimiter = named ?? (/\.tsv$/i.test(path) ? '\t' : delimiterOf(text))
  const records = parse(text.slice(said.length), {
    bom: true,
    info: true,
    delimiter,
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
  })
  const [head, ...found] = /** @type {{ record: string[], info: { lines: number } }[]} */ (
    /** @type {unknown} */ (records)
  )
  const names = columnNames(head?.record ?? [])
  const faults = found.flatMap(({ record }, at) => {
    // Spreadsheets end rows with empty cells.
    const cells = record.findLastIndex((cell) => cell !== '') + 1
    if (cells <= names.length) return []
    const error = `has ${cells} cells, and the table ${names.length} columns: put a cell with "${delimiter}" in it into double quotes`
    return [/** @type {const} */ ([at, error])]
  })
  return {
    rows: found.map(({ record }) =>
      Object.fromEntries(names.slice(0, record.length).map((name, at) => [name, record[at] ?? ''])),
    ),
    lines: found.map(({ record, info }) => info.lines - lineBreaksIn(record) + (said === '' ? 0 : 1)),
    ...(faults.length > 0 && { faults: new Map(faults) }),
  }
}

/**
 * A name for each column. Of those that have the same name, the later ones get a number.
 * @param {unknown[]} head
 */
export function columnNames(head) {
  const given = head.map((name) => String(name ?? '').trim())
  const taken = new Set(given)
  return given.map((name, at) => {
    if (name !== '' && given.indexOf(name) === at) return name
    const free = freeName(name || `column_${at + 1}`, taken)
    taken.add(free)
    return free
  })
}

/** The name, with a number if it is taken. @param {string} name @param {Set<string>} taken */
export function freeName(name, taken) {
  let free = name
  for (let number = 2; taken.has(free); number += 1) free = `${name}_${number}`
  return free
}

/** The parser counts lines up to a row's end, and a cell in quotes may hold some. @param {string[]} cells */
const lineBreaksIn = (cells) => cells.reduce((sum, cell) => sum + cell.split('\n').length - 1, 0)

/** Spreadsheets of many countries separate with semicolons. @param {string} text */
function delimiterOf(text) {
  // In quotes they separate nothing.
  const [head = ''] = text
    .replace(/"[^"]*"/g, '')
    .trimStart()
    .split('\n', 1)
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
  const value = JSON.parse(text)
  if (Array.isArray(value)) return { rows: value.map((each, at) => objectOf(each, `item ${at + 1}`)) }
  const object = objectOf(value, 'the file')
  // What has a name of its own is no wrapper.
  if (['id', '_id', 'name', 'title'].some((name) => name in object)) return { rows: [object] }
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
  for (const [at, line] of text.split('\n').entries()) {
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
