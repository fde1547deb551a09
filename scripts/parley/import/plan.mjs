/** What an import has to send and to remove, so that the collection holds what the source holds now. */
import { HASH, PAGE, SOURCE } from './schema.mjs'

/** @typedef {Record<string, unknown> & { id: string }} Document */

/**
 * @typedef {object} Plan
 * @property {Document[]} changed to send: new ones and others
 * @property {Document[]} remarked documents that say what they said, and have another mark
 * @property {number} added how many of those to send are new
 * @property {number} unchanged
 * @property {string[]} gone ids that its sources had at an earlier import and do not have now
 * @property {string[]} former ids of passages that their pages, which are still there, do not have now
 */

/**
 * What an earlier import left of a document.
 * @typedef {object} Stored
 * @property {string} source
 * @property {string} hash of what the document says
 * @property {string} [page] that it is a passage of
 * @property {string} [place] where its source was (folder.mjs, `placeOf`); absent where that is not known
 * @property {string} [file] of the first document of a file: what the file was (unchanged.mjs)
 */

/** The hash of a document's mark, and what follows it where there is more: `hash-place+file`. @param {unknown} mark */
export const partsOf = (mark) => {
  const [, hash = '', place, file] = /^([^-+]*)(?:-([^+]*))?(?:\+(.*))?$/.exec(String(mark ?? '')) ?? []
  return { hash, ...(place !== undefined && { place }), ...(file !== undefined && { file }) }
}

/** @param {{ hash: string, place?: string | undefined, file?: string | undefined }} parts */
export const markOf = ({ hash, place, file }) =>
  `${hash}${place === undefined ? '' : `-${place}`}${file === undefined ? '' : `+${file}`}`

/** @param {string | Uint8Array} data @param {number} digits hexadecimal ones */
export async function digestOf(data, digits) {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (bytes)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .slice(0, digits)
}

/**
 * Marks a document with where it comes from and what it says.
 * @param {Document} document
 * @param {import('./documents.mjs').Origin} from
 * @param {string} [file] what its file is, for the first document of one
 * @returns {Promise<Document>}
 */
export async function marked(document, { source, place }, file) {
  const hash = await digestOf(JSON.stringify(document), 32)
  return { ...document, [SOURCE]: source, [HASH]: markOf({ hash, place, file }) }
}

/**
 * @param {Document[]} documents marked
 * @param {Map<string, Stored>} stored what earlier imports of the same sources left, by id
 * @returns {Plan}
 */
export function planImport(documents, stored) {
  const changed = documents.filter((document) => !isUnchanged(document, stored))
  const ids = new Set(documents.map(({ id }) => id))
  const pages = new Set(documents.map((document) => document[PAGE]))
  const missing = [...stored].filter(([id]) => !ids.has(id))
  const isFormer = (/** @type {[string, Stored]} */ [, { page }]) => page !== undefined && pages.has(page)
  return {
    changed,
    remarked: documents.filter(
      (document) =>
        isUnchanged(document, stored) && stored.get(document.id)?.file !== partsOf(document[HASH]).file,
    ),
    added: changed.filter(({ id }) => !stored.has(id)).length,
    unchanged: documents.length - changed.length,
    gone: missing.filter((each) => !isFormer(each)).map(([id]) => id),
    former: missing.filter(isFormer).map(([id]) => id),
  }
}

/** @param {Document} document @param {Map<string, Stored>} stored */
const isUnchanged = (document, stored) => stored.get(document.id)?.hash === partsOf(document[HASH]).hash

/** The sources of documents. @param {Document[]} documents @returns {string[]} */
export const sourcesOf = (documents) => [...new Set(documents.map((document) => String(document[SOURCE])))]

/**
 * Whether a source's documents come from where what is stored under its name comes from: `here` from the same place,
 * `moved` from another one that holds the same, as a checkout of another machine does, `other` from what only has that name.
 * Nothing is lost where all that is stored stays as it is. Else half of the documents, of the smaller side, have to be the
 * same word for word: names of files such as index.md are the same in folders that have nothing in common.
 * @param {string} source
 * @param {Document[]} documents of all sources
 * @param {Map<string, Stored>} stored of all sources
 * @returns {'here' | 'moved' | 'other'}
 */
export function whence(source, documents, stored) {
  const its = documents.filter((document) => document[SOURCE] === source)
  const left = [...stored.values()].filter((each) => each.source === source)
  const { place } = partsOf(its[0]?.[HASH])
  const places = new Set(left.map((each) => each.place))
  const same = its.filter((document) => isUnchanged(document, stored)).length
  if (place === undefined || places.has(place) || same === left.length) return 'here'
  if (same * 2 < Math.min(its.length, left.length)) return 'other'
  return [...places].some((each) => each !== undefined) ? 'moved' : 'here'
}

/** @param {string} jsonl documents as they are exported @returns {Map<string, Stored>} by id */
export const storedIn = (jsonl) =>
  new Map(
    jsonl.split('\n').flatMap((line) => {
      if (line === '') return []
      const { id, [SOURCE]: source, [HASH]: mark, [PAGE]: page } = JSON.parse(line)
      return [[id, { source, ...partsOf(mark), ...(page !== undefined && { page }) }]]
    }),
  )

/** Sources that are named in one request. */
const SOURCES_AT_ONCE = 100

/**
 * What earlier imports of sources left in a collection.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @param {string[]} sources
 * @returns {Promise<Map<string, Stored>>} by id
 */
export async function storedBy(server, collection, sources) {
  /** @type {Map<string, Stored>} */
  const stored = new Map()
  for (let at = 0; at < sources.length; at += SOURCES_AT_ONCE) {
    const some = sources.slice(at, at + SOURCES_AT_ONCE).map((source) => `\`${source.replaceAll('`', '')}\``)
    const query = new URLSearchParams({
      filter_by: `${SOURCE}:=[${some.join(',')}]`,
      include_fields: `id,${SOURCE},${HASH},${PAGE}`,
    })
    const response = await server.send(
      'GET',
      `/collections/${encodeURIComponent(collection)}/documents/export?${query}`,
    )
    if (!response.ok) {
      // A collection that no import made has no such field: nothing in it is ours.
      await response.body?.cancel()
      return stored
    }
    for (const [id, each] of storedIn(await response.text())) stored.set(id, each)
  }
  return stored
}

/** Sources in one answer. */
const SOURCES_OF_PAGE = 250

/**
 * The sources whose documents a collection holds, by the places that they came from.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection made by an import
 * @returns {Promise<Map<string, string>>}
 */
export async function sourcesByPlace(server, collection) {
  const sources = new Map()
  for (let page = 1; ; page++) {
    const query = new URLSearchParams({
      q: '*',
      group_by: SOURCE,
      group_limit: '1',
      include_fields: `${SOURCE},${HASH}`,
      per_page: String(SOURCES_OF_PAGE),
      page: String(page),
    })
    const path = `/collections/${encodeURIComponent(collection)}/documents/search?${query}`
    const { grouped_hits: groups } = await server.call('GET', path)
    for (const { hits } of groups) {
      const { place } = partsOf(hits[0].document[HASH])
      if (place !== undefined) sources.set(place, hits[0].document[SOURCE])
    }
    if (groups.length < SOURCES_OF_PAGE) return sources
  }
}
