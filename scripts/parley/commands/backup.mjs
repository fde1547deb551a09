/** `parley backup`: a deployment into a folder. */
import {
  appendLines,
  beginBackup,
  closePart,
  finishBackup,
  keepProgress,
  openPart,
} from '../backup/folder.mjs'
import { progress } from '../progress.mjs'
import { secretsOfFields, secretsOfModels } from './restore.mjs'

/** @typedef {import('../backup/folder.mjs').Part} Part */
/** @typedef {import('../backup/folder.mjs').Manifest} Manifest */

/**
 * Kinds of rows in the order in which they are read. What refers to another row is read before it, so a turn in the backup has
 * its conversation, although the deployment goes on working.
 */
const KINDS = [
  'feedback',
  'turns',
  'conversations',
  'assistants',
  'models',
  'resources',
  'aliases',
  'keys',
  'usage',
  'erasures',
]

/**
 * @typedef {object} BackedUp
 * @property {string} folder
 * @property {Record<string, number>} rows by kind
 * @property {Record<string, number>} documents by collection
 * @property {string[]} clusters collections in clusters, which are left out
 * @property {string[]} secrets what has to be set again after a restore
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} folder
 * @param {{ json: boolean }} options
 * @returns {Promise<BackedUp>}
 * @throws Failure
 */
export async function backup(server, folder, { json }) {
  const manifest = await beginBackup(folder, server.url)
  const { counts } = await server.call('GET', '/operations/backup')
  for (const kind of KINDS) {
    if (kind in counts) await backUpKind(server, folder, manifest, kind, { total: counts[kind], json })
  }
  manifest.clusters = await backUpCollections(server, folder, manifest, json)
  await finishBackup(folder, manifest)
  return backedUp(folder, manifest)
}

/**
 * What a whole backup in a folder holds.
 * @param {string} folder
 * @param {Manifest} manifest
 * @returns {Promise<BackedUp>}
 */
export async function backedUp(folder, manifest) {
  const secrets = [...(await secretsOfModels(folder, manifest)), ...(await secretsOfFields(folder, manifest))]
  return {
    folder,
    rows: Object.fromEntries(Object.entries(manifest.parts).map(([kind, { rows }]) => [kind, rows])),
    documents: Object.fromEntries(Object.entries(manifest.documents).map(([name, { rows }]) => [name, rows])),
    clusters: manifest.clusters ?? [],
    secrets: secrets.map(({ path }) => path.join('.')),
  }
}

/**
 * Writes a part page by page, from where an earlier run stopped.
 * @param {{ folder: string, manifest: Manifest, part: Part, to: (rows: number) => void }} target
 * @param {(after: string | undefined) => Promise<{ lines: string[], next?: string | number }>} pageAfter
 */
async function writePages({ folder, manifest, part, to }, pageAfter) {
  await openPart(folder, part)
  for (let more = true; more; ) {
    const { lines, next } = await pageAfter(part.after)
    await appendLines(folder, part, lines)
    more = next !== undefined
    if (more) part.after = String(next)
    await keepProgress(folder, manifest)
    to(part.rows)
  }
  await closePart(folder, part)
  await keepProgress(folder, manifest)
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} folder
 * @param {Manifest} manifest
 * @param {string} kind
 * @param {{ total: number, json: boolean }} shown
 */
async function backUpKind(server, folder, manifest, kind, { total, json }) {
  manifest.parts[kind] ??= newPart(`${kind}.jsonl`)
  const part = manifest.parts[kind]
  if (part.sha256) return
  await progress(kind, total, 'rows', json, (to) =>
    writePages({ folder, manifest, part, to }, async (after) => {
      const query = after === undefined ? '' : `?${new URLSearchParams({ after })}`
      const { rows, next } = await server.call('GET', `/operations/backup/${kind}${query}`)
      return { lines: rows.map((/** @type {unknown} */ row) => JSON.stringify(row)), next }
    }),
  )
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} folder
 * @param {Manifest} manifest
 * @param {boolean} json
 * @returns {Promise<string[]>} the collections that are in clusters
 */
async function backUpCollections(server, folder, manifest, json) {
  const listed = await server.call('GET', '/collections')
  /** @param {{ engine?: unknown }} collection */
  const isOwn = ({ engine }) => engine === undefined
  // Documents in clusters are backed up there, and nobody is told the credentials.
  const collections = listed.filter(isOwn)
  // The list is newest first. It is restored in the order in which collections were made.
  collections.reverse()
  const part = newPart('collections.jsonl')
  manifest.parts.collections = part
  await openPart(folder, part)
  await appendLines(
    folder,
    part,
    collections.map((/** @type {unknown} */ collection) => JSON.stringify(collection)),
  )
  await closePart(folder, part)
  for (const { name, num_documents: total } of collections) {
    const count = Object.keys(manifest.documents).length
    manifest.documents[name] ??= newPart(`documents-${count + 1}.jsonl`)
    const part = manifest.documents[name]
    if (part.sha256) continue
    const path = `/operations/backup/documents/${encodeURIComponent(name)}`
    await progress(name, total, 'documents', json, (to) =>
      writePages({ folder, manifest, part, to }, async (after = '0') => {
        const { lines, next } = await server.call('GET', `${path}?after=${after}`)
        return { lines: lines.split('\n').filter((/** @type {string} */ line) => line !== ''), next }
      }),
    )
  }
  return listed
    .filter((/** @type {{ engine?: unknown }} */ one) => !isOwn(one))
    .map((/** @type {{ name: string }} */ { name }) => name)
}

/** @param {string} file @returns {Part} */
const newPart = (file) => ({ file, rows: 0, bytes: 0 })
