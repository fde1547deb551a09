/** Which file is read how. The command line reads with this, and so does the console, in a browser. */
import { endingOf, readText } from './article.mjs'
import { decodeHtml, decodeText } from './encoding.mjs'
import { parsers } from './front-matter.mjs'
import { readHtml } from './html.mjs'
import { readMarkdown } from './markdown.mjs'
import { readPdf } from './pdf.mjs'
import { readCsv, readJson, readJsonLines } from './table.mjs'

/** @typedef {import('./article.mjs').Content} Content */

/** @param {(text: string, path: string) => Content | Promise<Content>} read */
const ofText = (read) => (/** @type {Uint8Array} */ bytes, /** @type {string} */ path) =>
  read(decodeText(bytes), path)

/** @param {string} text @param {string} path */
const readPage = (text, path) => readMarkdown(text, path, parsers)

/** @param {string} text @param {string} path */
const readAsciiDoc = async (text, path) => (await import('./rst.mjs')).readAdoc(text, path)

const office = () => import('./office.mjs')

/** @type {Record<string, (bytes: Uint8Array, path: string) => Content | Promise<Content>>} */
const READERS = {
  md: ofText(readPage),
  mdx: ofText(readPage),
  markdown: ofText(readPage),
  html: (bytes, path) => readHtml(decodeHtml(bytes), path),
  htm: (bytes, path) => readHtml(decodeHtml(bytes), path),
  rst: ofText(async (text, path) => (await import('./rst.mjs')).readRst(text, path)),
  adoc: ofText(readAsciiDoc),
  asciidoc: ofText(readAsciiDoc),
  txt: ofText(readText),
  text: ofText(readText),
  csv: ofText(readCsv),
  tsv: ofText(readCsv),
  json: ofText(readJson),
  jsonl: ofText(readJsonLines),
  ndjson: ofText(readJsonLines),
  pdf: readPdf,
  docx: async (bytes, path) => (await import('./office.mjs')).readDocx(bytes, path),
  xlsx: async (bytes) => (await import('./workbook.mjs')).readXlsx(bytes),
  pptx: async (bytes, path) => (await office()).readPptx(bytes, path),
  epub: async (bytes, path) => (await office()).readEpub(bytes, path),
  ipynb: ofText(async (text, path) => (await office()).readNotebook(text, path)),
}

/** Endings of the files that can be read. */
export const READABLE = Object.keys(READERS).map((ending) => `.${ending}`)

/** Endings of other files in which people keep text. */
const UNREAD = new Set('doc odt rtf ppt odp xls ods pages key numbers eml msg org tex'.split(' '))

/** @param {string} path */
export const isReadable = (path) => Object.hasOwn(READERS, endingOf(path))

/** Whether a file holds text that cannot be read here, unlike a picture or a program. @param {string} path */
export const isUnreadText = (path) => UNREAD.has(endingOf(path))

/**
 * Reads a file.
 * @param {Uint8Array} bytes
 * @param {string} path its ending says how
 * @returns {Promise<Content>}
 * @throws Error saying why it cannot be read
 */
export async function readContent(bytes, path) {
  const ending = endingOf(path)
  const read = Object.hasOwn(READERS, ending) ? READERS[ending] : undefined
  if (!read) throw new Error(`files of this kind are not read (${READABLE.join(' ')} are)`)
  return read(bytes, path)
}
