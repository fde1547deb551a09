/** Files of many parts in one archive: spreadsheets, slides and books. */
import { all, openArchive, targetsOf, textOf, within, xmlIn } from './archive.mjs'
import { firstHeading, titleOfPath } from './article.mjs'
import { bodyToMarkdown } from './html.mjs'
import { fenced } from './html-code.mjs'
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
  await checkExtent(bytes)
  const { default: readSheets } = await import('read-excel-file/universal')
  const sheets = await readSheets(bytes.slice().buffer)
  const tables = sheets
    .map(({ sheet, data }) => ({ sheet, ...tableIn(data) }))
    .filter(({ rows }) => rows.length > 0)
  if (tables.length === 0) throw new Error('it has no table: a first row of names and rows below it')
  if (tables.length === 1) return { rows: tables.flatMap(({ rows }) => rows) }
  const sheetField = freeName('sheet', new Set(tables.flatMap(({ names }) => names)))
  return {
    rows: tables.flatMap(({ sheet, rows }) => rows.map((row) => ({ ...row, [sheetField]: sheet }))),
    sheetField,
  }
}

/**
 * Refuses a workbook that would take more memory than there is. One filled cell far from the others is enough for that.
 * @param {Uint8Array} bytes
 */
async function checkExtent(bytes) {
  const archive = await openArchive(bytes, MOST_OF_WORKBOOK)
  if (archive.size > MOST_OF_WORKBOOK) {
    throw new Error(
      `it is larger than ${MOST_OF_WORKBOOK / 1_000_000} MB when it is unpacked: split it, or save its sheets as CSV`,
    )
  }
  const main = 'xl/workbook.xml'
  const sheets = all(await xmlIn(archive, main), 'sheet')
  let cells = 0
  for (const [id, { type, path }] of await targetsOf(archive, main)) {
    if (!type.endsWith('/worksheet') || !archive.has(path)) continue
    const { rows, columns, farthest } = extentOf(await archive.text(path, 'utf-8'))
    cells += rows * columns
    if (rows <= MOST_ROWS && cells <= MOST_CELLS) continue
    const name = sheets.find((sheet) => sheet.getAttribute('r:id') === id)?.getAttribute('name') ?? path
    throw new Error(
      `its sheet "${name}" reaches to the cell ${farthest}, and more than ${MOST_CELLS.toLocaleString('en')} cells are too many: ` +
        'delete the columns and rows beyond the table, or save the sheet as CSV',
    )
  }
}

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
  const columns = Array.from(widest).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0)
  return { rows, columns, farthest: `${widest}${rows}` }
}

/**
 * The names of a table's columns, and its rows.
 * @param {unknown[][]} cells
 * @returns {{ names: string[], rows: Row[] }}
 */
function tableIn(cells) {
  const isFilled = (/** @type {unknown} */ cell) => cell !== null && cell !== undefined && cell !== ''
  // Above a table often stands what it is called. A sheet can have more rows than a call takes arguments.
  const most = cells.reduce((widest, row) => Math.max(widest, row.filter(isFilled).length), 0)
  const head = cells.findIndex((row) => row.filter(isFilled).length > most / 2)
  const names = columnNames(cells[head] ?? [])
  const rows = cells
    .slice(head + 1)
    .filter((row) => row.some(isFilled))
    .map((row) =>
      Object.fromEntries(
        row.flatMap((cell, at) =>
          isFilled(cell) ? [[names[at] ?? `column_${at + 1}`, cellValue(cell)]] : [],
        ),
      ),
    )
  return { names, rows }
}

/** Days as people write them. @param {unknown} cell */
const cellValue = (cell) => (cell instanceof Date ? cell.toISOString().replace(/T00:00:00\.000Z$/, '') : cell)

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
  for (const id of ids) {
    const slide = targets.get(id)?.path
    if (slide !== undefined) parts.push(await slideOf(archive, slide))
  }
  const text = parts
    .filter(({ markdown }) => markdown !== '')
    .map(({ markdown }) => markdown)
    .join('\n\n')
  const core = archive.has('docProps/core.xml') ? await xmlIn(archive, 'docProps/core.xml') : undefined
  const named = core && textOf(all(core, 'dc:title')[0])
  // What PowerPoint calls a presentation that nobody has named.
  const title = named && !/^powerpoint/i.test(named) ? named : parts.find((part) => part.title)?.title
  return { article: { title: title || titleOfPath(path), text } }
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
  return { title, markdown: parts.filter(Boolean).join('\n\n') }
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
      each.localName === 'a:t' ? each.textContent : /^a:(br|tab)$/.test(each.localName) ? ' ' : '',
    )
    .join('')
    .replace(/\s+/g, ' ')
    .trim()

/** @param {Element} table */
function tableOf(table) {
  const rows = all(table, 'a:tr').map((row) =>
    all(row, 'a:tc').map((cell) => all(cell, 'a:p').map(paragraph).join(' ').replaceAll('|', '\\|')),
  )
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  const [head = [], ...rest] = rows
  return [line(head), line(head.map(() => '---')), ...rest.map(line)].join('\n')
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
  for (const reference of all(book, 'itemref')) {
    const item = items.get(reference.getAttribute('idref'))
    const isContents = item?.getAttribute('properties')?.split(' ').includes('nav')
    if (!item || isContents || reference.getAttribute('linear') === 'no') continue
    const chapter = within(opf, item.getAttribute('href') ?? '')
    if (archive.has(chapter)) chapters.push(bodyToMarkdown(await archive.text(chapter)))
  }
  const text = chapters.filter(Boolean).join('\n\n')
  return { article: { title: textOf(all(book, 'title')[0]) || titleOfPath(path), text } }
}

/**
 * A notebook (nbformat 4): its text, and its code between.
 * @param {string} text
 * @param {string} path
 * @returns {Content}
 * @throws Error if it is none
 */
export function readNotebook(text, path) {
  const { cells, metadata } = JSON.parse(text)
  if (!Array.isArray(cells)) throw new Error('it has no cells')
  const language = metadata?.language_info?.name ?? metadata?.kernelspec?.language ?? ''
  /** @type {{ kind: unknown, said: string }[]} */
  const parts = cells.map(({ cell_type: kind, source }) => ({
    kind,
    said: (Array.isArray(source) ? source.join('') : String(source ?? '')).trim(),
  }))
  const markdown = parts
    .map(({ kind, said }) => (kind === 'code' ? fenced(said, language).trim() : said))
    .filter(Boolean)
    .join('\n\n')
  // In code, a line that begins with # is a comment.
  const headings = parts.map(({ kind, said }) => (kind === 'markdown' ? firstHeading(said) : undefined))
  return { article: { title: headings.find(Boolean) ?? titleOfPath(path), text: markdown } }
}
