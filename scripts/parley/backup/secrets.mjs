/** Secrets that a backup does not have: which they are, and where a file with them puts them. */
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
