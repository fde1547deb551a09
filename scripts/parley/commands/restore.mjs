/** `parley restore`: a backup into a deployment. What was stored before the command broke off is not sent again. */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { linesOf, openBackup, readJson, writeJson } from '../backup/folder.mjs'
import {
  restoreCollections,
  secretIn,
  secretsOfFields,
  secretsOfModels,
} from '../backup/restore-collections.mjs'
import { progress } from '../progress.mjs'
import { batchesOf, EXIT, Failure } from '../server.mjs'

/** @typedef {import('../backup/folder.mjs').Manifest} Manifest */

/** What collections refer to, and what refers to them, in the order in which they are stored. */
const BEFORE_COLLECTIONS = ['resources', 'aliases']
const AFTER_COLLECTIONS = ['models', 'assistants', 'keys', 'usage', 'erasures']
const CONVERSATIONS = ['conversations', 'turns', 'feedback']

/** A request stores at most 500 rows. Each conversation costs it a call of the conversation's object. */
const BATCH = { lines: 100, characters: 1 << 20 }

/**
 * @typedef {object} Restored
 * @property {Record<string, number>} rows by kind, stored now
 * @property {Record<string, number>} documents by collection, stored now
 * @property {number} expired conversations, turns and feedback that had expired and were left out
 * @property {{ id: number, description: string, value: string }[]} keys with their new values
 * @property {string[]} unset secrets of models that are to be set again
 * @property {{ collection: string, id: string, error: string }[]} refused documents
 * @property {string[]} differences between the backup and the deployment, in the end
 */

/**
 * @typedef {object} State
 * @property {string} backup the checksum of the manifest
 * @property {string[]} done kinds
 * @property {Record<string, number>} documents lines sent, by collection
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} folder
 * @param {{ json: boolean, merge: boolean, secrets?: string }} options
 * @param {(keys: Restored['keys']) => void} showKeys called at once: a key's value is not shown again
 * @returns {Promise<Restored>}
 * @throws Failure
 */
export async function restore(server, folder, { json, merge, secrets: secretsFile }, showKeys) {
  const manifest = await openBackup(folder)
  const given = secretsFile === undefined ? {} : await readJson(secretsFile)
  if (given === undefined) throw new Failure(EXIT.usage, `There is no file ${secretsFile}.`)
  const missing = (await secretsOfFields(folder, manifest)).filter(
    (secret) => secretIn(given, secret) === undefined,
  )
  if (missing.length > 0) {
    throw new Failure(
      EXIT.usage,
      `Collections need secrets that a backup does not have. Write them into a JSON file and name it with --secrets:\n${missing
        .map(({ path }) => `  ${path.join('.')}`)
        .join('\n')}`,
    )
  }
  const stateFile = join(folder, `restore-${new URL(server.url).host.replace(/[^\w.-]/g, '_')}.json`)
  const backup = createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
  const before = /** @type {State | undefined} */ (await readJson(stateFile))
  const state = before?.backup === backup ? before : { backup, done: [], documents: {} }
  if (state !== before && !merge) await requireEmpty(server)
  const keep = () => writeJson(stateFile, state)

  /** @type {Restored} */
  const result = { rows: {}, documents: {}, expired: 0, keys: [], unset: [], refused: [], differences: [] }
  const rows = new Rows(server, folder, manifest, result, showKeys)
  const store = async (/** @type {string[]} */ kinds) => {
    for (const kind of kinds) {
      if (state.done.includes(kind)) continue
      await rows.store(kind, json)
      state.done.push(kind)
      await keep()
    }
  }
  await store(BEFORE_COLLECTIONS)
  await restoreCollections(server, {
    folder,
    manifest,
    given,
    json,
    state,
    keep,
    result,
    between: () => store(AFTER_COLLECTIONS),
  })
  await store(CONVERSATIONS)
  result.unset = await setModelSecrets(server, await secretsOfModels(folder, manifest), given)
  result.differences = await differences(server, manifest, { merge, expired: rows.expiredOf })
  return result
}

/** @param {import('../server.mjs').Server} server @throws Failure */
async function requireEmpty(server) {
  const [{ counts }, collections] = await Promise.all([
    server.call('GET', '/operations/backup'),
    server.call('GET', '/collections?exclude_fields=fields'),
  ])
  const filled = Object.entries(counts).filter(([, count]) => Number(count) > 0)
  if (collections.length > 0) filled.unshift(['collections', collections.length])
  if (filled.length === 0) return
  throw new Failure(
    EXIT.rejected,
    `${server.url} is not empty: ${filled.map(([kind, count]) => `${count} ${kind}`).join(', ')}. ` +
      'Restore into a fresh deployment, or pass --merge: then everything that is there stays as it is.',
  )
}

/** Sends rows. */
class Rows {
  /** conversations and turns that were left out, as feedback names them */
  #left = new Set()
  /** @type {Record<string, number>} */
  expiredOf = {}

  /**
   * @param {import('../server.mjs').Server} server
   * @param {string} folder
   * @param {Manifest} manifest
   * @param {Restored} result
   * @param {(keys: Restored['keys']) => void} showKeys
   */
  constructor(server, folder, manifest, result, showKeys) {
    this.server = server
    this.folder = folder
    this.manifest = manifest
    this.result = result
    this.showKeys = showKeys
  }

  /** @param {string} kind @param {boolean} quiet */
  async store(kind, quiet) {
    const part = this.manifest.parts[kind]
    const bar = progress(kind, part?.rows ?? 0, 'rows', quiet)
    let sent = 0
    let stored = 0
    try {
      for await (const lines of batchesOf(linesOf(this.folder, part), BATCH, (line) => line)) {
        const rows = lines.map((line) => JSON.parse(line)).filter((row) => !this.#isExpired(kind, row))
        // Values come from here, so that a request whose reply was lost can be sent again.
        if (kind === 'keys') for (const row of rows) row.value = randomBytes(24).toString('base64url')
        if (rows.length > 0) {
          const reply = await this.server.call('POST', `/operations/restore/${kind}`, { body: { rows } })
          stored += reply.stored
          if (reply.keys?.length > 0) {
            this.showKeys(reply.keys)
            this.result.keys.push(...reply.keys)
          }
        }
        sent += lines.length
        bar.to(sent)
      }
    } finally {
      bar.stop()
    }
    this.result.rows[kind] = stored
  }

  /** @param {string} kind @param {any} row */
  #isExpired(kind, row) {
    const turn = `${row.conversation_id}/${row.turn}`
    const isExpired =
      kind === 'feedback'
        ? this.#left.has(turn)
        : CONVERSATIONS.includes(kind) && row.expires_at <= Date.now()
    if (!isExpired) return false
    if (kind === 'turns') this.#left.add(turn)
    this.result.expired += 1
    this.expiredOf[kind] = (this.expiredOf[kind] ?? 0) + 1
    return true
  }
}

/**
 * Gives models their secrets from a file.
 * @param {import('../server.mjs').Server} server
 * @param {import('../backup/restore-collections.mjs').Secret[]} secrets
 * @param {unknown} given
 * @returns {Promise<string[]>} those that the file does not have
 */
async function setModelSecrets(server, secrets, given) {
  const unset = []
  /** @type {Map<string, Record<string, string>>} */
  const found = new Map()
  for (const secret of secrets) {
    const value = secretIn(given, secret)
    const [, id, name] = /** @type {[string, string, string]} */ (secret.path)
    if (value === undefined) unset.push(secret.path.join('.'))
    else found.set(id, { ...found.get(id), [name]: value })
  }
  for (const [id, body] of found) {
    await server.call('PUT', `/conversations/models/${encodeURIComponent(id)}`, { body })
  }
  return unset
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {Manifest} manifest
 * @param {{ merge: boolean, expired: Record<string, number> }} options
 * @returns {Promise<string[]>} what the deployment lacks
 */
async function differences(server, manifest, { merge, expired }) {
  const [{ counts }, collections] = await Promise.all([
    server.call('GET', '/operations/backup'),
    server.call('GET', '/collections'),
  ])
  /** @type {string[]} */
  const found = []
  /** @param {string} what @param {number} wanted @param {number} there */
  const compare = (what, wanted, there) => {
    if (there < wanted || (there > wanted && !merge))
      found.push(`${what}: ${wanted} in the backup, ${there} here`)
  }
  for (const [kind, { rows }] of Object.entries(manifest.parts)) {
    if (kind !== 'collections') compare(kind, rows - (expired[kind] ?? 0), counts[kind] ?? 0)
  }
  for (const [name, { rows }] of Object.entries(manifest.documents)) {
    const there = collections.find((/** @type {{ name: string }} */ one) => one.name === name)
    compare(`documents of ${name}`, rows, there?.num_documents ?? 0)
  }
  return found
}
