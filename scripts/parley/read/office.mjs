/** Files of many parts in one archive: spreadsheets, slides and books. */
import { all, openArchive, targetsOf, textOf, within, xmlIn } from './archive.mjs'
import { firstHeading, titleOfPath } from './article.mjs'
import { bodyToMarkdown } from './html.mjs'
import { fenced } from './html-code.mjs'

/** @typedef {import('./article.mjs').Content} Content */
/** @typedef {import('./article.mjs').Row} Row */
/** @typedef {import('./archive.mjs').Archive} Archive */

/** Bytes of the text of slides and books. */
const MOST_TEXT = 64_000_000
/** Bytes of one slide or chapter. Its tree takes up to 60 times the memory. */
const MOST_OF_TREE = 16_000_000

/**
 * A workbook (ECMA-376, SpreadsheetML): each sheet is a table whose first row names its columns. Rows of several sheets say
 * which one they are of.
 * @param {Uint8Array} bytes
 * @returns {Promise<Content>}
 * @throws Error if it is no workbook
 */
export async function readXlsx(bytes) {
  const { default: readSheets } = await import('read-excel-file/universal')
  const sheets = await readSheets(bytes.slice().buffer)
  const tables = sheets
    .map(({ sheet, data }) => ({ sheet, rows: rowsOf(data) }))
    .filter(({ rows }) => rows.length > 0)
  if (tables.length === 0) throw new Error('it has no table: a first row of names and rows below it')
  const several = tables.length > 1
  return { rows: tables.flatMap(({ sheet, rows }) => rows.map((row) => (several ? { ...row, sheet } : row))) }
}

/**
 * @param {unknown[][]} cells
 * @returns {Row[]}
 */
function rowsOf(cells) {
  const isFilled = (/** @type {unknown} */ cell) => cell !== null && cell !== undefined && cell !== ''
  // Above a table often stands what it is called.
  const most = cells.reduce((highest, row) => Math.max(highest, row.filter(isFilled).length), 0)
  const head = cells.findIndex((row) => row.filter(isFilled).length > most / 2)
  const names = (cells[head] ?? []).map((name, at) => String(name ?? '').trim() || `column_${at + 1}`)
  return cells
    .slice(head + 1)
    .filter((row) => row.some(isFilled))
    .map((row) =>
      Object.fromEntries(
        row.flatMap((cell, at) =>
          isFilled(cell) ? [[names[at] ?? `column_${at + 1}`, cellValue(cell)]] : [],
        ),
      ),
    )
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
