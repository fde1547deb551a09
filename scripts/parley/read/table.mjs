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
  const all = /** @type {{ record: string[], info: { lines: number } }[]} */ (
    /** @type {unknown} */ (records)
  )
  const [head, ...found] = all.slice(titleLines(all.map(({ record }) => record)))
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

/** Lines above a table, at most. */
const MOST_ABOVE = 10

/**
 * How many lines stand above a table and say what it is called: they have one cell, where names of columns and most rows have several.
 * @param {string[][]} records
 */
function titleLines(records) {
  const isWide = (/** @type {string[]} */ record) => record.filter((cell) => cell !== '').length > 1
  const above = records.slice(0, MOST_ABOVE + 1).findIndex(isWide)
  const rows = records.slice(Math.max(0, above))
  const wide = rows.filter(isWide).length
  const isHead = rows[0]?.every((cell) => !/^[\d.,\s-]+$/.test(cell))
  return above > 0 && isHead && wide > 1 && rows.length <= 2 * wide ? above : 0
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

/** Numbers that a computer would round, and names of nothing. */
const INEXACT = /\d{16}|\d[eE]\+?\d{3}|""\s*:/

/**
 * JSON whose numbers keep their digits: those that a number here does not hold become texts. What has no name gets one.
 * @param {string} text
 * @returns {any}
 */
function parsed(text) {
  if (!INEXACT.test(text)) return JSON.parse(text)
  return JSON.parse(
    text,
    /** @param {string} _ @param {any} value @param {{ source?: string }} [context] a newer part of the language */
    (_, value, context) => {
      if (
        typeof value === 'number' &&
        Math.abs(value) > Number.MAX_SAFE_INTEGER &&
        /^-?\d+$|e/i.test(context?.source ?? '')
      )
        return Number.isFinite(value) && /e/i.test(context?.source ?? '') ? value : context?.source
      if (typeof value !== 'object' || value === null || !('' in value)) return value
      const { '': unnamed, ...rest } = value
      return { ...rest, [freeName('unnamed', new Set(Object.keys(rest)))]: unnamed }
    },
  )
}

/**
 * A table as a list of lists, the first of which names the columns, or lists of objects.
 * @param {unknown[][]} lists
 * @returns {import('./article.mjs').Row[]}
 */
function rowsOfLists([head = [], ...rest]) {
  if (!head.every((name) => typeof name === 'string'))
    return [head, ...rest].flat().map((each, at) => objectOf(each, `item ${at + 1}`))
  const names = columnNames(head)
  return rest.map((row) => Object.fromEntries(row.map((cell, at) => [names[at] ?? `column_${at + 1}`, cell])))
}

/**
 * One object, a list of objects, or an object with such a list in it.
 * @param {string} text
 * @returns {import('./article.mjs').Content}
 * @throws Error
 */
export function readJson(text) {
  const value = parsed(text)
  if (Array.isArray(value) && value.length > 0 && value.every(Array.isArray))
    return { rows: rowsOfLists(value) }
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
      rows.push(objectOf(parsed(line), 'it'))
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
