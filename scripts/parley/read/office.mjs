/** Files of many parts in one archive, slides and books, and notebooks. */
import { all, openArchive, targetsOf, textOf, within, xmlIn } from './archive.mjs'
import { ownTitle, titleOfPath, withoutElements } from './article.mjs'
import { parsers } from './front-matter.mjs'
import { bodyToMarkdown } from './html.mjs'
import { fenced } from './html-code.mjs'
import { writtenTable } from './html-tables.mjs'
import { readMarkdown } from './markdown.mjs'
import { texOf } from './office-math.mjs'

/** @typedef {import('./article.mjs').Content} Content */
/** @typedef {import('./archive.mjs').Archive} Archive */

/** Bytes of the text of slides and books. */
const MOST_TEXT = 64_000_000
/** Bytes of one slide or chapter. Its tree takes up to 60 times the memory. */
const MOST_OF_TREE = 16_000_000

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
