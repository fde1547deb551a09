/** Collections of a backup, made anew and filled with their documents, and the secrets that a backup does not have. */

import { progress } from '../progress.mjs'
import { batchesOf, EXIT, Failure, refusal, sendLines } from '../server.mjs'
import { linesOf } from './folder.mjs'

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
 * @param {string} folder @param {import('./folder.mjs').Manifest} manifest @returns {Promise<Secret[]>}
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
 * @param {string} folder @param {import('./folder.mjs').Manifest} manifest @returns {Promise<Secret[]>}
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

/** Of one request. Documents with vectors have 5 to 20 KB. */
const BATCH = { lines: 500, characters: 4 << 20 }

/** What the server adds to a schema when it shows it. */
const SHOWN = ['created_at', 'num_documents', 'num_memory_shards', 'pending_embeddings', 'failed_embeddings']

/**
 * @typedef {object} Restoring
 * @property {string} folder
 * @property {import('./folder.mjs').Manifest} manifest
 * @property {unknown} given secrets
 * @property {boolean} json
 * @property {import('../commands/restore.mjs').State} state
 * @property {() => Promise<void>} keep writes the state down
 * @property {import('../commands/restore.mjs').Restored} result
 * @property {() => Promise<void>} between what is stored when collections are there and empty
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {Restoring} restoring
 * @throws Failure
 */
export async function restoreCollections(server, restoring) {
  const { folder, manifest, given, state, keep, result, between } = restoring
  const schemas = []
  for await (const line of linesOf(folder, manifest.parts.collections)) schemas.push(JSON.parse(line))
  for (const { path } of await secretsOfFields(folder, manifest)) {
    const [, name, field, ...at] = path
    const schema = schemas.find((one) => one.name === name)
    const config = schema.fields.find((/** @type {any} */ one) => one.name === field).embed.model_config
    const last = /** @type {string} */ (at.at(-1))
    at.slice(0, -1).reduce((object, key) => object[key], config)[last] = secretIn(given, { path })
  }
  const ordered = inOrder(schemas)
  if (!state.done.includes('collections')) {
    for (const schema of ordered) await create(server, schema)
    state.done.push('collections')
    await keep()
  }
  await between()
  /** @type {{ collection: string, line: string }[]} */
  const again = []
  for (const { name } of ordered) await fill(server, name, restoring, again)
  // A document may refer to one that came after it.
  for (const { collection, line } of again) {
    const [outcome] = await send(server, collection, [line])
    if (outcome?.success) result.documents[collection] = (result.documents[collection] ?? 0) + 1
    else result.refused.push({ collection, id: JSON.parse(line).id, error: String(outcome?.error) })
  }
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
 * @param {string} name
 * @param {Restoring} restoring
 * @param {{ collection: string, line: string }[]} again gets the documents that were refused
 */
async function fill(server, name, { folder, manifest, json, state, keep, result }, again) {
  const part = manifest.documents[name]
  let done = state.documents[name] ?? 0
  const bar = progress(name, part?.rows ?? 0, 'documents', json)
  let stored = 0
  result.documents[name] = 0
  let skip = done
  try {
    for await (const lines of batchesOf(linesOf(folder, part), BATCH, (line) => line)) {
      const wanted = lines.slice(skip)
      skip -= lines.length - wanted.length
      if (wanted.length === 0) continue
      const outcomes = await send(server, name, wanted)
      for (const [at, { success, code }] of outcomes.entries()) {
        if (success) stored += 1
        // A document that is there already stays as it is.
        else if (code !== 409) again.push({ collection: name, line: /** @type {string} */ (wanted[at]) })
      }
      result.documents[name] = stored
      done += wanted.length
      state.documents[name] = done
      await keep()
      bar.to(done)
    }
  } finally {
    bar.stop()
  }
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
