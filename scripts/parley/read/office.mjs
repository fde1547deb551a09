/** Files of many parts in one archive: spreadsheets, slides and books. */
import JSZip from 'jszip'
import { DOMParser } from 'linkedom'
import { titleOfPath } from './article.mjs'
import { bodyToMarkdown } from './html.mjs'

/** @typedef {import('./article.mjs').Content} Content */
/** @typedef {import('./article.mjs').Row} Row */

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
  const archive = await JSZip.loadAsync(bytes)
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
  const core = archive.file('docProps/core.xml') ? await xmlIn(archive, 'docProps/core.xml') : undefined
  const named = core && textOf(all(core, 'dc:title')[0])
  // What PowerPoint calls a presentation that nobody has named.
  const title = named && !/^powerpoint/i.test(named) ? named : parts.find((part) => part.title)?.title
  return { article: { title: title || titleOfPath(path), text } }
}

/**
 * @param {JSZip} archive
 * @param {string} path
 */
async function slideOf(archive, path) {
  const shapes = all(await xmlIn(archive, path), 'p:sp')
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
  const tables = all(await xmlIn(archive, path), 'a:tbl').map(tableOf)
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
  all(element, 'a:t')
    .map((each) => each.textContent ?? '')
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
  const archive = await JSZip.loadAsync(bytes)
  const [root] = all(await xmlIn(archive, 'META-INF/container.xml'), 'rootfile')
  const opf = root?.getAttribute('full-path') ?? ''
  const book = await xmlIn(archive, opf)
  const items = new Map(all(book, 'item').map((item) => [item.getAttribute('id'), item]))
  const chapters = []
  for (const reference of all(book, 'itemref')) {
    const item = items.get(reference.getAttribute('idref'))
    const isContents = item?.getAttribute('properties')?.split(' ').includes('nav')
    if (!item || isContents || reference.getAttribute('linear') === 'no') continue
    const file = archive.file(within(opf, item.getAttribute('href') ?? ''))
    if (file) chapters.push(bodyToMarkdown(await file.async('string')))
  }
  const text = chapters.filter(Boolean).join('\n\n')
  return { article: { title: textOf(all(book, 'dc:title')[0]) || titleOfPath(path), text } }
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
  const parts = cells.flatMap(({ cell_type: kind, source }) => {
    const said = (Array.isArray(source) ? source.join('') : String(source ?? '')).trim()
    if (said === '') return []
    return kind === 'code' ? [`\`\`\`${language}\n${said}\n\`\`\``] : [said]
  })
  const markdown = parts.join('\n\n')
  return { article: { title: /^# +(.+)$/m.exec(parts[0] ?? '')?.[1] ?? titleOfPath(path), text: markdown } }
}

/**
 * The parts that a part of an Office archive refers to, by their ids (ECMA-376, part 2, 9.3).
 * @param {JSZip} archive
 * @param {string} path
 */
async function targetsOf(archive, path) {
  const relations = path.replace(/[^/]+$/, '_rels/$&.rels')
  const links = archive.file(relations) ? all(await xmlIn(archive, relations), 'Relationship') : []
  return new Map(
    links.map((link) => [
      link.getAttribute('Id') ?? '',
      { type: link.getAttribute('Type') ?? '', path: within(path, link.getAttribute('Target') ?? '') },
    ]),
  )
}

/** The path of what a part of an archive names. @param {string} from @param {string} name */
const within = (from, name) => decodeURIComponent(new URL(name, `file:///${from}`).pathname.slice(1))

/**
 * @param {JSZip} archive
 * @param {string} path
 * @throws Error without it
 */
async function xmlIn(archive, path) {
  const file = archive.file(path)
  if (!file) throw new Error(`it lacks the part ${path}`)
  const parsed = new DOMParser().parseFromString(await file.async('string'), 'text/xml')
  return /** @type {Document} */ (/** @type {unknown} */ (parsed))
}

/** @param {Document | Element} part @param {string} name @returns {Element[]} */
const all = (part, name) => [...part.getElementsByTagName(name)]

/** @param {Element | undefined} element */
const textOf = (element) => (element?.textContent ?? '').replace(/\s+/g, ' ').trim()
