/** What a deployment consists of, as wrangler.toml and migrations/ say. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig, root } from '../wrangler.mjs'
import { BASE, inEnvironment, namedFor } from './names.mjs'
import { configFile } from './secrets.mjs'

/** Without them nobody may ask (ADMIN_API_KEY), and no provider's credential can be stored (ENCRYPTION_KEY). */
const SECRETS = ['ADMIN_API_KEY', 'ENCRYPTION_KEY']

/**
 * The properties that vectors are filtered by inside Vectorize: as many as an index can have. What they mean each
 * collection says for itself (src/vectorize/labels.ts has the same names).
 * @type {import('./plan.mjs').MetadataIndex[]}
 */
const METADATA = /** @type {const} */ ([
  ['s', 'string'],
  ['n', 'number'],
]).flatMap(([letter, type]) => [0, 1, 2, 3, 4].map((number) => ({ name: `${letter}${number}`, type })))

/** The size that the name of a binding says. @param {string} binding @throws Error for a name without one */
function dimensions(binding) {
  const size = /^VECTORIZE_(\d+)$/.exec(binding)?.[1]
  if (size === undefined) {
    throw new Error(
      `The Vectorize binding ${binding} in wrangler.toml should be named VECTORIZE_ and its dimensions.`,
    )
  }
  return Number(size)
}

/** @param {string} worker @returns {string[]} */
export const configArgs = (worker) => [`--config=${configFile(worker)}`]

/**
 * `configArgs` names the file that wrangler is to read `config` from. It is empty where wrangler.toml says the same.
 * @typedef {import('./plan.mjs').Wanted & { accountId: string | undefined, config: Record<string, any>,
 *   configArgs: string[], database: { id: string | undefined } }} Goal
 */

/**
 * @param {string} [environment] the name of one, such as `staging`
 * @param {boolean} [temporary] whether it is for a temporary account
 * @returns {Goal}
 * @throws Error when wrangler.toml cannot be read, or lacks what Parley needs
 */
export function wanted(environment, temporary = false) {
  const own = inEnvironment(readConfig(), environment)
  // Workers Builds deploys a fork under the name that its owner chose there.
  const worker = process.env.WRANGLER_CI_OVERRIDE_NAME || own.name || BASE
  const config = namedFor(own, worker)
  const database = config.d1_databases?.[0]
  if (database?.database_name === undefined) throw new Error('wrangler.toml names no [[d1_databases]].')
  /** @type {{ binding: string, index_name: string }[]} */
  const indexes = temporary ? [] : (config.vectorize ?? [])
  return {
    worker,
    accountId: process.env.CLOUDFLARE_ACCOUNT_ID || config.account_id,
    database: {
      binding: database.binding,
      name: database.database_name,
      id: database.database_id,
      chosen: database.database_id !== undefined,
    },
    config,
    configArgs: worker === BASE && environment === undefined ? [] : configArgs(worker),
    migrations: readdirSync(join(root, database.migrations_dir ?? 'migrations'))
      .filter((name) => name.endsWith('.sql'))
      .sort(),
    indexes: indexes.map(({ binding, index_name }) => ({
      name: index_name,
      dimensions: dimensions(binding),
      metric: 'cosine',
      metadata: METADATA,
    })),
    secrets: SECRETS,
  }
}
