/** Archives of many parts, and their XML: spreadsheets, slides and books are that. */
import JSZip from 'jszip'
import { DOMParser } from 'linkedom'
import { decodeHtml } from './encoding.mjs'

/**
 * The parts of an archive, which are inflated when they are asked for.
 * @typedef {object} Archive
 * @property {number} size bytes of all parts together, as the archive states them
 * @property {(path: string) => boolean} has
 * @property {(path: string, defaultEncoding?: string) => Promise<string>} text an Error for a part that is missing, and for
 *   more bytes than the archive may hold
 */

/** @param {number} bytes */
const megabytes = (bytes) => `${Math.round(bytes / 1_000_000)} MB`

/**
 * A small file can inflate to more than the memory holds, so what is inflated is counted.
 * @param {Uint8Array} bytes
 * @param {number} most bytes that the parts that are read may have together when they are inflated
 * @param {number} [mostOfPart] bytes that one of them may have
 * @returns {Promise<Archive>}
 * @throws Error if it is no archive
 */
export async function openArchive(bytes, most, mostOfPart = most) {
  const zip = await JSZip.loadAsync(bytes)
  let left = most
  return {
    size: Object.values(zip.files).reduce((sum, file) => sum + (statedSize(file) ?? 0), 0),
    has: (path) => zip.file(path) !== null,
    async text(path, defaultEncoding) {
      const file = zip.file(path)
      if (!file) throw new Error(`it lacks the part ${path}`)
      const stated = statedSize(file) ?? left
      if (stated > mostOfPart) {
        throw new Error(`its part ${path} is larger than ${megabytes(mostOfPart)}: split the file`)
      }
      if (stated > left) {
        throw new Error(`its parts are larger than ${megabytes(most)} together: split the file`)
      }
      const part = await inflated(file, stated)
      left -= part.length
      return decodeHtml(part, declaredEncoding(part) ?? defaultEncoding)
    },
  }
}

/** What an archive says of the size of a part. JSZip's types leave it out. @param {JSZip.JSZipObject} file */
const statedSize = (file) =>
  /** @type {{ _data?: { uncompressedSize?: number } }} */ (/** @type {unknown} */ (file))._data
    ?.uncompressedSize

/**
 * The bytes of a part. An archive can state a small size and inflate to a large one, so it ends at the stated size.
 * @param {JSZip.JSZipObject} file
 * @param {number} most bytes
 * @returns {Promise<Uint8Array>}
 */
function inflated(file, most) {
  // JSZip documents this method, and its types leave it out.
  const { internalStream } =
    /** @type {{ internalStream(type: 'uint8array'): JSZip.JSZipStreamHelper<Uint8Array> }} */ (
      /** @type {unknown} */ (file)
    )
  const stream = internalStream.call(file, 'uint8array')
  return new Promise((resolve, reject) => {
    /** @type {Uint8Array[]} */
    const chunks = []
    let length = 0
    stream
      .on('data', (chunk) => {
        length += chunk.length
        if (length <= most) chunks.push(chunk)
        else {
          stream.pause()
          chunks.length = 0
          reject(new Error(`it is damaged: its part ${file.name} is larger than it says. Save it again`))
        }
      })
      .on('error', reject)
      .on('end', () => {
        const whole = new Uint8Array(length)
        let at = 0
        for (const chunk of chunks) {
          whole.set(chunk, at)
          at += chunk.length
        }
        resolve(whole)
      })
      .resume()
  })
}

/**
 * The encoding that an XML declaration names (XML 1.0, 4.3.3).
 * @param {Uint8Array} bytes
 * @returns {string | undefined}
 */
function declaredEncoding(bytes) {
  const start = String.fromCharCode(...bytes.subarray(0, 200))
  const name = /^(?:\xEF\xBB\xBF)?<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(start)?.[1]
  // A declaration of single bytes is none of UTF-16, whatever it says.
  return name?.replace(/^utf-16.*/i, 'utf-8')
}

/**
 * @param {Archive} archive
 * @param {string} path
 * @throws Error without it
 */
export async function xmlIn(archive, path) {
  const parsed = new DOMParser().parseFromString(await archive.text(path, 'utf-8'), 'text/xml')
  const document = /** @type {Document} */ (/** @type {unknown} */ (parsed))
  // The same again, for programs that do not know what stands before it (ECMA-376, part 3, 7.7).
  for (const fallback of all(document, 'mc:Fallback')) fallback.remove()
  return document
}

/** An element's name without its prefix. @param {Element} element */
const localName = (element) => element.localName.replace(/^.*:/, '')

/**
 * The elements of a name, in their order: of any prefix if the name has none.
 * @param {Document | Element} part
 * @param {string} name
 * @returns {Element[]}
 */
export const all = (part, name) =>
  [...part.querySelectorAll('*')].filter(
    (each) => (name.includes(':') ? each.localName : localName(each)) === name,
  )

/** @param {Element | undefined} element */
export const textOf = (element) => (element?.textContent ?? '').replace(/\s+/g, ' ').trim()

/**
 * The parts that a part of an Office archive refers to, by their ids (ECMA-376, part 2, 9.3).
 * @param {Archive} archive
 * @param {string} path
 */
export async function targetsOf(archive, path) {
  const relations = path.replace(/[^/]+$/, '_rels/$&.rels')
  const links = archive.has(relations) ? all(await xmlIn(archive, relations), 'Relationship') : []
  return new Map(
    links.map((link) => [
      link.getAttribute('Id') ?? '',
      { type: link.getAttribute('Type') ?? '', path: within(path, link.getAttribute('Target') ?? '') },
    ]),
  )
}

/** The path of what a part of an archive names. @param {string} from @param {string} name */
export const within = (from, name) => decodeURIComponent(new URL(name, `file:///${from}`).pathname.slice(1))
