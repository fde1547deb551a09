/** Files of many parts in one archive: spreadsheets, slides and books. */
import { all, openArchive, targetsOf, textOf, within, xmlIn } from './archive.mjs'
import { ownTitle, titleOfPath, withoutElements } from './article.mjs'
import { parsers } from './front-matter.mjs'
import { bodyToMarkdown } from './html.mjs'
import { fenced } from './html-code.mjs'
import { writtenTable } from './html-tables.mjs'
import { readMarkdown } from './markdown.mjs'
import { texOf } from './office-math.mjs'
import { columnNames, freeName } from './table.mjs'

/** @typedef {import('./article.mjs').Content} Content */
/** @typedef {import('./article.mjs').Row} Row */
/** @typedef {import('./archive.mjs').Archive} Archive */

/** Bytes of a workbook's parts together. The library inflates them all. */
const MOST_OF_WORKBOOK = 200_000_000
/** Bytes of the text of slides and books. */
const MOST_TEXT = 64_000_000
/** Bytes of one slide or chapter. Its tree takes up to 60 times the memory. */
const MOST_OF_TREE = 16_000_000
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
  const sheets = all(await xmlIn(archive, main), 'sheet')
  /** @type {Map<string, Layout>} */
  const layouts = new Map()
  let cells = 0
  for (const [id, { type, path }] of await targetsOf(archive, main)) {
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
    layouts.set(name, layoutOf(xml, /hidden$/i.test(sheet?.getAttribute('state') ?? '')))
  }
  return layouts
}

/** @param {string} xml @param {boolean} isHidden @returns {Layout} */
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
const FIRST_DAYS = [Date.UTC(1904, 0, 1), Date.UTC(1899, 11, 30)]
/** No longer duration is told from a day. */
const LONGEST_MS = 60 * 24 * HOUR_MS

/**
 * Days and times as people write them. A time without a day is a part of the first ones, and a longer one a duration.
 * @param {unknown} cell
 */
function cellValue(cell) {
  if (!(cell instanceof Date)) return cell
  const rounded = Math.round(cell.getTime() / 1000) * 1000
  const [day = '', time = ''] = new Date(rounded).toISOString().split(/[T.]/)
  const short = time.replace(/:00$/, '')
  const past = FIRST_DAYS.map((first) => rounded - first).find((each) => each >= 0 && each < LONGEST_MS)
  if (past === 0 && day.startsWith('1899')) return short
  if (short === '00:00') return day
  if (past === undefined) return `${day} ${short}`
  return `${String(Math.floor(past / HOUR_MS)).padStart(2, '0')}${short.slice(2)}`
}

/**
 * Slides (ECMA-376, PresentationML) in their order, each under its title, with the speaker's notes.
 * @param {Uint8Array} bytes
 * @param {string} path
 * @returns {Promise<Content>}
 * @throws Error if it is no presentation
 */
export async function readPptx(bytes, path) {
  const archive = await openArchive(bytes, MOST_TEXT, MOST_OF_TREE)
  const main = 'ppt/presentation.xml'
  const targets = await targetsOf(archive, main)
  const ids = all(await xmlIn(archive, main), 'p:sldId').map((slide) => slide.getAttribute('r:id') ?? '')
  const parts = []
  const hidden = []
  for (const [at, id] of ids.entries()) {
    const slide = targets.get(id)?.path
    if (slide === undefined) continue
    const part = await slideOf(archive, slide)
    if (part.isHidden) hidden.push(`slide ${at + 1}`)
    else parts.push(part)
  }
  const text = parts
    .filter(({ markdown }) => markdown !== '')
    .map(({ markdown }) => markdown)
    .join('\n\n')
  const core = archive.has('docProps/core.xml') ? await xmlIn(archive, 'docProps/core.xml') : undefined
  const named = core && textOf(all(core, 'dc:title')[0])
  const title = ownTitle(named) ?? parts.find((part) => part.title)?.title
  return {
    article: { title: title || titleOfPath(path), text: withoutElements(text) },
    ...(hidden.length > 0 && { hidden }),
  }
}

/**
 * @param {Archive} archive
 * @param {string} path
 */
async function slideOf(archive, path) {
  const slide = await xmlIn(archive, path)
  const shapes = all(slide, 'p:sp')
  const isTitle = (/** @type {Element} */ shape) =>
    all(shape, 'p:ph').some((each) => /^(title|ctrTitle)$/.test(each.getAttribute('type') ?? ''))
  const title = shapes.filter(isTitle).flatMap(linesOf).join(' ')
  const said = shapes
    .filter((shape) => !isTitle(shape))
    .map((shape) =>
      linesOf(shape)
        .map((line) => `- ${line}`)
        .join('\n'),
    )
  const tables = all(slide, 'a:tbl').map(tableOf)
  const notes = [...(await targetsOf(archive, path)).values()].find(({ type }) =>
    type.endsWith('/notesSlide'),
  )
  const spoken = notes
    ? all(await xmlIn(archive, notes.path), 'p:sp')
        .filter((shape) => all(shape, 'p:ph').some((each) => each.getAttribute('type') === 'body'))
        .flatMap(linesOf)
    : []
  const parts = [title && `## ${title}`, ...said, ...tables, ...spoken]
  const isHidden = /^(?:0|false)$/.test(all(slide, 'p:sld')[0]?.getAttribute('show') ?? '')
  return { title, isHidden, markdown: parts.filter(Boolean).join('\n\n') }
}

/** The paragraphs of a shape, without a slide's number or date. @param {Element} shape */
const linesOf = (shape) =>
  all(shape, 'p:ph').some((each) => /^(sldNum|dt|ftr)$/.test(each.getAttribute('type') ?? ''))
    ? []
    : all(shape, 'a:p').map(paragraph).filter(Boolean)

/** @param {Element} element */
const paragraph = (element) =>
  [...element.querySelectorAll('*')]
    .map((each) =>
      each.localName === 'a:t'
        ? each.textContent
        : each.localName === 'm:oMath'
          ? `$${texOf(each)}$`
          : /^a:(br|tab)$/.test(each.localName)
            ? ' '
            : '',
    )
    .join('')
    .replace(/\s+/g, ' ')
    .trim()

/** @param {Element} table */
function tableOf(table) {
  /** @type {string[][]} */
  const rows = []
  for (const row of all(table, 'a:tr')) {
    /** @type {string[]} */
    const line = []
    for (const cell of all(row, 'a:tc')) {
      // A cell that is a part of another one says the same.
      const isPart = (/** @type {string} */ name) => /^(?:1|true)$/.test(cell.getAttribute(name) ?? '')
      line.push(
        (isPart('hMerge') ? line.at(-1) : isPart('vMerge') ? rows.at(-1)?.[line.length] : undefined) ??
          all(cell, 'a:p').map(paragraph).join(' ').trim(),
      )
    }
    rows.push(line)
  }
  return writtenTable(rows)
}

/**
 * A book (EPUB 3.3): the documents of its spine in their order.
 * @param {Uint8Array} bytes
 * @param {string} path
 * @returns {Promise<Content>}
 * @throws Error if it is no book
 */
export async function readEpub(bytes, path) {
  const archive = await openArchive(bytes, MOST_TEXT, MOST_OF_TREE)
  const [root] = all(await xmlIn(archive, 'META-INF/container.xml'), 'rootfile')
  const opf = root?.getAttribute('full-path') ?? ''
  const book = await xmlIn(archive, opf)
  const items = new Map(all(book, 'item').map((item) => [item.getAttribute('id'), item]))
  const chapters = []
  // Notes and the like lie beside the way through the book, and are read behind it.
  const isBeside = (/** @type {Element} */ reference) => reference.getAttribute('linear') === 'no'
  for (const reference of all(book, 'itemref').toSorted(
    (a, b) => Number(isBeside(a)) - Number(isBeside(b)),
  )) {
    const item = items.get(reference.getAttribute('idref'))
    const isContents = item?.getAttribute('properties')?.split(' ').includes('nav')
    if (!item || isContents) continue
    const chapter = within(opf, item.getAttribute('href') ?? '')
    if (archive.has(chapter)) chapters.push(bodyToMarkdown(withinBook(await archive.text(chapter))))
  }
  const text = chapters.filter(Boolean).join('\n\n')
  return { article: { title: textOf(all(book, 'title')[0]) || titleOfPath(path), text } }
}

/** Places in other chapters are places of this text. @param {string} html */
const withinBook = (html) => html.replace(/(\shref=")[^":#\s]{1,300}\.x?html?(#[^"]*")/gi, '$1$2')

/**
 * A notebook (nbformat 4, and 3 with its worksheets): its text, and its code between.
 * @param {string} text
 * @param {string} path
 * @returns {Content}
 * @throws Error if it is none
 */
export function readNotebook(text, path) {
  const { cells, worksheets, metadata } = JSON.parse(text)
  const all = cells ?? worksheets?.flatMap((/** @type {{ cells: unknown }} */ sheet) => sheet.cells)
  if (!Array.isArray(all)) throw new Error('it has no cells')
  const language = metadata?.language_info?.name ?? metadata?.kernelspec?.language ?? ''
  const parts = all.map(({ cell_type: kind, source, input, level, outputs }) => {
    const said = linesIn(source ?? input).trim()
    if (kind === 'code')
      return [fenced(said, language).trim(), ...(Array.isArray(outputs) ? outputs : []).map(outputOf)]
        .filter(Boolean)
        .join('\n\n')
    return kind === 'heading' ? `${'#'.repeat(level)} ${said}` : said
  })
  return readMarkdown(parts.filter(Boolean).join('\n\n'), path, parsers)
}

/** @param {unknown} lines a text, or the lines of one */
const linesIn = (lines) => (Array.isArray(lines) ? lines.join('') : String(lines ?? ''))

/** Colours of a terminal, and what a bar of progress wrote over. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals use them
const TERMINAL = /\u001b\[[\d;]*[A-Za-z]|^.*\r(?!\n)/gm

/** What code printed or gave: text, a table or Markdown, and no picture or error. @param {any} output */
function outputOf({ output_type: kind, name, text, data }) {
  if (kind === 'stream')
    return name === 'stderr' ? '' : fenced(linesIn(text).replace(TERMINAL, '').trimEnd(), '').trim()
  const html = linesIn(data?.['text/html'])
  if (data?.['text/markdown'] !== undefined) return linesIn(data['text/markdown']).trim()
  if (/<table\b/i.test(html)) return bodyToMarkdown(html)
  const plain = linesIn(data?.['text/plain']).replace(TERMINAL, '')
  // What stands for a picture or a program's object.
  return /^<[^>]*>$/.test(plain.trim()) ? '' : fenced(plain.trimEnd(), '').trim()
}
