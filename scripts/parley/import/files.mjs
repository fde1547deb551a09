/** Files of a bucket or a Git archive, as the Worker reads them again (src/sources): by their paths, and without a disk. */
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { createTarDecoder } from 'modern-tar'
import { endingOf, readText } from '../read/article.mjs'
import { readHtml } from '../read/html.mjs'
import { readMarkdown } from '../read/markdown.mjs'
import { isLeftOut } from './left-out.mjs'

/** Bytes of a piece of output. */
const PIECE = 64 * 1024

/**
 * What a gzipped stream unpacks to.
 * @param {ReadableStream<Uint8Array>} packed cancelled when the reader of the other leaves
 * @param {number} most bytes
 * @returns {ReadableStream<Uint8Array>} errors with what is wrong with the gzip, and past `most`
 */
// TypeScript's DOM does not know this part of the Streams Standard (4.2.5).
export const unpacked = (packed, most) => /** @type {any} */ (ReadableStream).from(piecesOf(packed, most))

/** @param {ReadableStream<Uint8Array>} packed @param {number} most bytes @returns {AsyncGenerator<Uint8Array>} */
async function* piecesOf(packed, most) {
  // Node's types leave out what its streams take.
  const options = { chunkSize: PIECE, readableHighWaterMark: PIECE, writableHighWaterMark: 1 }
  let length = 0
  try {
    for await (const piece of pipeline(packed.values(), createGunzip(options), () => {})) {
      length += piece.length
      if (length > most) throw new Error(`it unpacks to more than ${most >> 20} MiB`)
      yield new Uint8Array(piece)
    }
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    throw code?.startsWith('Z_') ? new Error(`it is no whole gzip: ${message}`) : error
  }
}

/** @typedef {import('../read/article.mjs').Content} Content */

/** Bytes of an archive when it is unpacked, and what it may hold. A small file can unpack to more than any machine has. */
const LONGEST_ARCHIVE = 512 << 20
const MOST_ENTRIES = 200_000

/** @type {Record<string, (text: string, path: string) => Content>} */
const READERS = {
  md: readMarkdown,
  mdx: readMarkdown,
  markdown: readMarkdown,
  html: readHtml,
  htm: readHtml,
  txt: readText,
  text: readText,
}

/** What people write documents in that a Worker does not read. Data of programs, such as JSON, is none. */
const ELSEWHERE = new Set('rst adoc asciidoc ipynb pdf docx pptx xlsx epub csv tsv'.split(' '))

/**
 * What becomes of a file: it is read, left out with an error that says why, or without a word, as hidden ones and programs are.
 * @param {string} path
 * @returns {{ isRead: boolean, error?: string }}
 */
export function fateOf(path) {
  const names = path.split('/')
  if (names.some((name) => name === '..'))
    return { isRead: false, error: 'has a path that leads out of its folder' }
  if (names.some((name, at) => name === '' || isLeftOut(name, at < names.length - 1)))
    return { isRead: false }
  const ending = endingOf(path)
  if (ELSEWHERE.has(ending)) {
    const error = `is a .${ending} file, which is not read here: import it from a terminal with \`parley import FILE --into COLLECTION\``
    return { isRead: false, error }
  }
  return { isRead: Object.hasOwn(READERS, ending) }
}

/** @param {string} text @param {string} path one that is read (`fateOf`) @returns {Content} */
export const readFile = (text, path) => /** @type {any} */ (READERS[endingOf(path)])(text, path)

/**
 * The files of a gzipped tar archive that are wanted, one after the other, as it comes. A folder that holds all of it, as GitHub's and GitLab's archives
 * have one, is no part of their paths.
 * @param {ReadableStream<Uint8Array>} packed
 * @param {(path: string, size: number) => boolean} wants
 * @returns {AsyncGenerator<{ path: string, bytes: Uint8Array }>}
 * @throws Error for what is no archive, is cut off, or holds more than an archive may
 */
export async function* filesInArchive(packed, wants) {
  const tar = unpacked(packed, LONGEST_ARCHIVE).pipeThrough(createTarDecoder({ strict: true }))
  let entries = 0
  let folder = ''
  for await (const { header, body } of /** @type {AsyncIterable<import('modern-tar').ParsedTarEntry>} */ (
    /** @type {unknown} */ (tar)
  )) {
    entries += 1
    if (entries > MOST_ENTRIES) throw new Error(`the archive has more than ${MOST_ENTRIES} entries`)
    const { name, size, type } = header
    if (entries === 1 && type === 'directory' && /^[^/]+\/?$/.test(name)) folder = name.replace(/\/?$/, '/')
    const path = name.startsWith(folder) ? name.slice(folder.length) : name
    // Links name what is elsewhere in the archive, or nowhere.
    if (type !== 'file' || !wants(path, size)) {
      await body.cancel()
      continue
    }
    yield { path, bytes: new Uint8Array(await new Response(body).arrayBuffer()) }
  }
}
