/** Files of many parts in one archive: Word's documents (ECMA-376, WordprocessingML), slides and books, their formulas, and notebooks. */
import { DOMParser } from 'linkedom'
import { all, openArchive, targetsOf, textOf, within, xmlIn } from './archive.mjs'
import { ownTitle, textArticle, titleOfPath, withoutElements } from './article.mjs'
import { parsers } from './front-matter.mjs'
import { bodyToMarkdown, htmlToMarkdown } from './html.mjs'
import { fenced } from './html-blocks.mjs'
import { writtenTable } from './html-tables.mjs'
import { readMarkdown } from './markdown.mjs'

/** @param {Element} element @param {string} name */
const part = (element, name) => Array.from(element.children).find((each) => each.nodeName === `m:${name}`)

/** @param {Element | undefined} element @param {string} name of a property @param {string} fallback */
const property = (element, name, fallback) =>
  (element && part(element, name))?.getAttribute('m:val') ?? fallback

/** Raised and lowered as one. @param {string} tex */
const group = (tex) => (tex.length > 1 ? `{${tex}}` : tex)

/**
 * @param {Element} element a formula, or a part of one
 * @returns {string} without dollar signs; '' for nothing
 */
function texOf(element) {
  const of = (/** @type {string} */ name) => {
    const inner = part(element, name)
    return inner ? texOf(inner) : ''
  }
  const kind = element.nodeName.replace(/^m:/, '')
  const settings = part(element, `${kind}Pr`)
  switch (kind) {
    case 't':
      return element.textContent ?? ''
    case 'f':
      return `\\frac{${of('num')}}{${of('den')}}`
    case 'sSup':
      return `${of('e')}^${group(of('sup'))}`
    case 'sSub':
      return `${of('e')}_${group(of('sub'))}`
    case 'sSubSup':
      return `${of('e')}_${group(of('sub'))}^${group(of('sup'))}`
    case 'rad':
      return of('deg') === '' ? `\\sqrt{${of('e')}}` : `\\sqrt[${of('deg')}]{${of('e')}}`
    case 'nary': {
      const limits = [of('sub') && `_${group(of('sub'))}`, of('sup') && `^${group(of('sup'))}`]
      return `${property(settings, 'chr', '∫')}${limits.join('')} ${of('e')}`
    }
    case 'd': {
      const parts = Array.from(element.children).filter((each) => each.nodeName === 'm:e')
      return `${property(settings, 'begChr', '(')}${parts.map(texOf).join(property(settings, 'sepChr', '|'))}${property(settings, 'endChr', ')')}`
    }
    default:
      if (kind.endsWith('Pr')) return ''
      return Array.from(element.children)
        .map(texOf)
        .join(kind === 'mr' ? ' & ' : kind === 'm' ? ' \\\\ ' : '')
  }
}

/** Text that is marked as hidden (part 1, 17.3.2.41). */
const HIDDEN = /<w:r[ >](?:(?!<\/w:r>)[\s\S])*?<w:vanish(?: w:val="(?:1|true|on)")?\s*\/>[\s\S]*?<\/w:r>/g
const FORMULA = /<m:oMath(?=[\s>])[\s\S]*?<\/m:oMath>/g
/** Rows of names that a table begins with, at most. */
const MOST_HEADS = 3

/**
 * A document without the text that it marks as hidden, which the library reads like any other, and with its formulas as text, which
 * the library leaves out.
 * @param {Uint8Array} bytes
 * @returns {Promise<{ bytes: Uint8Array, isHiding: boolean }>}
 */
async function prepared(bytes) {
  const { default: JSZip } = await import('jszip')
  const zip = await JSZip.loadAsync(bytes)
  const xml = (await zip.file('word/document.xml')?.async('string')) ?? ''
  const shown = xml.replace(HIDDEN, '')
  const said = shown.replace(FORMULA, (formula) => {
    const root = new DOMParser().parseFromString(`<x>${formula}</x>`, 'text/xml').documentElement
    const tex = texOf(/** @type {Element} */ (/** @type {unknown} */ (root)))
    // The mark is none of Markdown's, so that nothing in it is escaped.
    return tex === '' ? '' : `<w:r><w:t xml:space="preserve">\\(${escapedXml(tex)}\\)</w:t></w:r>`
  })
  if (said === xml) return { bytes, isHiding: false }
  zip.file('word/document.xml', said)
  return { bytes: await zip.generateAsync({ type: 'uint8array' }), isHiding: shown !== xml }
}

/** @param {string} text */
const escapedXml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/**
 * Word marks no row as the head of a table, and Markdown has no table without one: it is the first one, or as many as its tallest cell.
 * @param {string} table
 */
function withHead(table) {
  const [first = ''] = /<tr>[\s\S]*?<\/tr>/.exec(table) ?? []
  const spans = [...first.matchAll(/rowspan="(\d+)"/g)].map(([, rows]) => Number(rows))
  const heads = first.includes('colspan=') ? Math.min(MOST_HEADS, Math.max(1, ...spans)) : 1
  let row = 0
  return table.replace(/<tr>[\s\S]*?<\/tr>/g, (tr) => {
    row += 1
    return row <= heads ? tr.replace(/<(\/?)td\b/g, '<$1th') : tr
  })
}

/** @param {Uint8Array} bytes @param {string} path @returns {Promise<import('./article.mjs').Content>} */
export async function readDocx(bytes, path) {
  const { default: mammoth } = await import('mammoth')
  const { bytes: shown, isHiding } = await prepared(bytes)
  // In Node the library takes a Buffer, in a browser an ArrayBuffer.
  const given =
    typeof Buffer === 'function' ? { buffer: Buffer.from(shown) } : { arrayBuffer: shown.slice().buffer }
  const { value } = await mammoth.convertToHtml(given, { styleMap: [`p[style-name='Title'] => h1:fresh`] })
  const text = htmlToMarkdown(value.replace(/<table>(?:(?!<table>)[\s\S])*?<\/table>/g, withHead))
  return { article: textArticle(text, path), ...(isHiding && { hidden: ['hidden text'] }) }
}

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
