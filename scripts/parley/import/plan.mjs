/** What an import has to send and to remove, so that the collection holds what the source holds now. */
import { HASH, SOURCE } from './schema.mjs'

/** @typedef {Record<string, unknown> & { id: string }} Document */

/**
 * @typedef {object} Plan
 * @property {Document[]} changed to send: new ones and others
 * @property {number} added how many of them are new
 * @property {number} unchanged
 * @property {string[]} gone ids that the source had at an earlier import and does not have now
 */

/**
 * Marks a document with where it comes from and what it says.
 * @param {Document} document
 * @param {string} source
 * @returns {Promise<Document>}
 */
export async function marked(document, source) {
  const bytes = new TextEncoder().encode(JSON.stringify(document))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).slice(0, 16)
  const hash = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return { ...document, [SOURCE]: source, [HASH]: hash }
}

/**
 * @param {Document[]} documents marked
 * @param {Map<string, string>} stored hashes of what earlier imports of this source left, by id
 * @returns {Plan}
 */
export function planImport(documents, stored) {
  const changed = documents.filter((document) => stored.get(document.id) !== document[HASH])
  const ids = new Set(documents.map(({ id }) => id))
  return {
    changed,
    added: changed.filter(({ id }) => !stored.has(id)).length,
    unchanged: documents.length - changed.length,
    gone: [...stored.keys()].filter((id) => !ids.has(id)),
  }
}

/**
 * What earlier imports of a source left in a collection.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @param {string} source
 * @returns {Promise<Map<string, string>>} hashes by id
 */
export async function storedHashes(server, collection, source) {
  const query = new URLSearchParams({
    filter_by: `${SOURCE}:=\`${source.replaceAll('`', '')}\``,
    include_fields: `id,${HASH}`,
  })
  const response = await server.send(
    'GET',
    `/collections/${encodeURIComponent(collection)}/documents/export?${query}`,
  )
  const stored = new Map()
  if (!response.ok) {
    // A collection that no import made has no such field: nothing in it is ours.
    await response.body?.cancel()
    return stored
  }
  for (const line of (await response.text()).split('\n')) {
    if (line === '') continue
    const document = JSON.parse(line)
    stored.set(document.id, document[HASH] ?? '')
  }
  return stored
}
