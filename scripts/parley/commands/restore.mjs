/** `parley restore`: a backup into a deployment. What was stored before the command broke off is not sent again. */

import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { linesOf, openBackup, readJson, writeJson } from '../backup/folder.mjs'
import { progress } from '../progress.mjs'
import { batchesOf, EXIT, Failure, refusal, sendLines } from '../server.mjs'

/** Names under which an embedding model's configuration has secrets. They are shown masked: with asterisks at the end. */
const NAMES = [
  'api_key',
  'access_token',
  'refresh_token',
  'client_id',
  'client_secret',
  'project_id',
  'private_key',
  'client_email',
]

/**
 * `path`: in a file of secrets, for example `collections.shop.embedding.api_key`
 * @typedef {{ path: string[] }} Secret
 */

/**
 * Secrets of conversation models. A model is restored without them, and refuses questions until it has them.
 * @param {string} folder @param {Manifest} manifest @returns {Promise<Secret[]>}
 */
export async function secretsOfModels(folder, manifest) {
  /** @type {Secret[]} */
  const secrets = []
  for await (const line of linesOf(folder, manifest.parts.models)) {
    const { id, secrets: names, deleted_at: deleted } = JSON.parse(line)
    if (deleted === null)
      for (const name of JSON.parse(names ?? '[]')) secrets.push({ path: ['models', id, name] })
  }
  return secrets
}

/**
 * Secrets of embedding models in schemas. Without them a collection cannot be made.
 * @param {string} folder @param {Manifest} manifest @returns {Promise<Secret[]>}
 */
export async function secretsOfFields(folder, manifest) {
  /** @type {Secret[]} */
  const secrets = []
  for await (const line of linesOf(folder, manifest.parts.collections)) {
    const { name, fields } = JSON.parse(line)
    for (const field of fields) {
      for (const at of maskedIn(field.embed?.model_config)) {
        secrets.push({ path: ['collections', name, field.name, ...at] })
      }
    }
  }
  return secrets
}

/** @param {unknown} config @returns {string[][]} */
function maskedIn(config) {
  if (typeof config !== 'object' || config === null) return []
  return Object.entries(config).flatMap(([name, value]) => {
    if (name === 'service_account') return maskedIn(value).map((path) => [name, ...path])
    return NAMES.includes(name) && typeof value === 'string' && value.endsWith('*') ? [[name]] : []
  })
}

/** @param {any} given what a file of secrets holds @param {Secret} secret @returns {string | undefined} */
export function secretIn(given, { path }) {
  const value = path.reduce((at, name) => at?.[name], given)
  return typeof value === 'string' ? value : undefined
}

/** @typedef {import('../backup/folder.mjs').Manifest} Manifest */

/** What collections refer to, and what refers to them, in the order in which they are stored. */
const BEFORE_COLLECTIONS = ['resources', 'aliases']
const AFTER_COLLECTIONS = ['models', 'assistants', 'keys', 'usage', 'erasures']
const CONVERSATIONS = ['conversations', 'turns', 'feedback']

/** Of one request. It stores at most 500 rows, and each conversation costs it a call of the conversation's object. */
const ROWS_BATCH = { lines: 100, characters: 1 << 20 }
/** Documents with vectors have 5 to 20 KB. */
const DOCUMENTS_BATCH = { lines: 500, characters: 4 << 20 }

/** What the server adds to a schema when it shows it. */
const SHOWN = ['created_at', 'num_documents', 'num_memory_shards', 'pending_embeddings', 'failed_embeddings']

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
  const secrets = await secretsOfFields(folder, manifest)
  const missing = secrets.filter((secret) => secretIn(given, secret) === undefined)
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

  const restoring = new Restoring({ server, folder, manifest, json, state, keep, showKeys })
  const { result } = restoring
  for (const kind of BEFORE_COLLECTIONS) await restoring.rows(kind)
  const schemas = await schemasOf(folder, manifest, secrets, given)
  await restoring.once('collections', async () => {
    for (const schema of schemas) await create(server, schema)
  })
  for (const kind of AFTER_COLLECTIONS) await restoring.rows(kind)
  await restoring.documents(schemas.map(({ name }) => name))
  for (const kind of CONVERSATIONS) await restoring.rows(kind)
  result.unset = await setModelSecrets(server, await secretsOfModels(folder, manifest), given)
  result.differences = await differences(server, manifest, { merge, expired: restoring.expired })
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

/**
 * The schemas of a backup with the secrets that it does not have, in the order in which collections can be made.
 * @param {string} folder
 * @param {Manifest} manifest
 * @param {Secret[]} secrets
 * @param {unknown} given
 */
async function schemasOf(folder, manifest, secrets, given) {
  const schemas = []
  for await (const line of linesOf(folder, manifest.parts.collections)) schemas.push(JSON.parse(line))
  for (const { path } of secrets) {
    const [, name, field, ...at] = path
    const schema = schemas.find((one) => one.name === name)
    const config = schema.fields.find((/** @type {any} */ one) => one.name === field).embed.model_config
    const last = /** @type {string} */ (at.at(-1))
    at.slice(0, -1).reduce((object, key) => object[key], config)[last] = secretIn(given, { path })
  }
  return inOrder(schemas)
}

/** Collections after those that their fields refer to. @param {any[]} schemas */
function inOrder(schemas) {
  const names = new Set(schemas.map(({ name }) => name))
  /** @type {any[]} */
  const ordered = []
  const placed = new Set()
  const place = (/** @type {any} */ schema) => {
    if (placed.has(schema.name)) return
    placed.add(schema.name)
    for (const { reference } of schema.fields) {
      const other = typeof reference === 'string' ? reference.split('.')[0] : undefined
      if (other !== undefined && names.has(other)) place(schemas.find(({ name }) => name === other))
    }
    ordered.push(schema)
  }
  for (const schema of schemas) place(schema)
  return ordered
}

/** @param {import('../server.mjs').Server} server @param {any} schema */
async function create(server, schema) {
  const body = Object.fromEntries(Object.entries(schema).filter(([name]) => !SHOWN.includes(name)))
  const response = await server.send('POST', '/collections', { body })
  // It is there already: the command broke off here before, or --merge was given.
  if (!response.ok && response.status !== 409)
    throw await refusal(response, `POST /collections (${schema.name})`)
  await response.body?.cancel()
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @param {string[]} lines
 * @returns {Promise<{ success: boolean, code?: number, error?: string }[]>}
 */
async function send(server, collection, lines) {
  const outcomes = await sendLines(server, collection, lines, 'create')
  if (outcomes.length !== lines.length) {
    const path = `/collections/${encodeURIComponent(collection)}/documents/import?action=create`
    throw new Failure(EXIT.rejected, `${path}: ${outcomes.at(-1)?.error ?? 'the answer broke off'}`)
  }
  return outcomes
}

/** Stores rows and documents, each kind and each batch once, and tells what came of it. */
class Restoring {
  /** @type {Restored} */
  result = { rows: {}, documents: {}, expired: 0, keys: [], unset: [], refused: [], differences: [] }
  /** rows that were left out, by kind @type {Record<string, number>} */
  expired = {}
  /** conversations and turns that were left out, as feedback names them */
  #left = new Set()

  /**
   * @param {{ server: import('../server.mjs').Server, folder: string, manifest: Manifest, json: boolean, state: State,
   *   keep: () => Promise<void>, showKeys: (keys: Restored['keys']) => void }} given `keep` writes the state down
   */
  constructor(given) {
    this.given = given
  }

  /** Does what no earlier run did. @param {string} what @param {() => Promise<void>} work */
  async once(what, work) {
    const { state, keep } = this.given
    if (state.done.includes(what)) return
    await work()
    state.done.push(what)
    await keep()
  }

  /**
   * Goes through a part in batches, and shows how far it has come.
   * @param {string} name
   * @param {import('../backup/folder.mjs').Part | undefined} part
   * @param {string} unit
   * @param {{ lines: number, characters: number }} most of a batch
   * @param {(lines: string[]) => Promise<void>} work
   */
  async #batches(name, part, unit, most, work) {
    const { folder, json } = this.given
    await progress(name, part?.rows ?? 0, unit, json, async (to) => {
      let done = 0
      for await (const lines of batchesOf(linesOf(folder, part), most, (line) => line)) {
        await work(lines)
        done += lines.length
        to(done)
      }
    })
  }

  /** @param {string} kind */
  rows(kind) {
    const { server, manifest, showKeys } = this.given
    return this.once(kind, async () => {
      this.result.rows[kind] = 0
      await this.#batches(kind, manifest.parts[kind], 'rows', ROWS_BATCH, async (lines) => {
        const rows = lines.map((line) => JSON.parse(line)).filter((row) => !this.#isExpired(kind, row))
        // Values come from here, so that a request whose reply was lost can be sent again.
        if (kind === 'keys') for (const row of rows) row.value = randomBytes(24).toString('base64url')
        if (rows.length === 0) return
        const { stored, keys = [] } = await server.call('POST', `/operations/restore/${kind}`, {
          body: { rows },
        })
        this.result.rows[kind] = (this.result.rows[kind] ?? 0) + stored
        if (keys.length > 0) showKeys(keys)
        this.result.keys.push(...keys)
      })
    })
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
    this.expired[kind] = (this.expired[kind] ?? 0) + 1
    return true
  }

  /** @param {string[]} collections */
  async documents(collections) {
    const { server, manifest, state, keep } = this.given
    const { documents, refused } = this.result
    /** @type {{ collection: string, line: string }[]} */
    const again = []
    for (const collection of collections) {
      documents[collection] = 0
      let skip = state.documents[collection] ?? 0
      const part = manifest.documents[collection]
      await this.#batches(collection, part, 'documents', DOCUMENTS_BATCH, async (lines) => {
        const wanted = lines.slice(skip)
        skip -= lines.length - wanted.length
        if (wanted.length === 0) return
        for (const [at, { success, code }] of (await send(server, collection, wanted)).entries()) {
          if (success) documents[collection] = (documents[collection] ?? 0) + 1
          // A document that is there already stays as it is.
          else if (code !== 409) again.push({ collection, line: /** @type {string} */ (wanted[at]) })
        }
        state.documents[collection] = (state.documents[collection] ?? 0) + wanted.length
        await keep()
      })
    }
    // A document may refer to one that came after it.
    for (const { collection, line } of again) {
      const [outcome] = await send(server, collection, [line])
      if (outcome?.success) documents[collection] = (documents[collection] ?? 0) + 1
      else refused.push({ collection, id: JSON.parse(line).id, error: String(outcome?.error) })
    }
  }
}

/**
 * Gives models their secrets from a file.
 * @param {import('../server.mjs').Server} server
 * @param {Secret[]} secrets
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
