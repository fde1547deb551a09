/**
 * Names of a Worker's resources. Those in wrangler.toml are the ones of the Worker `parley`; a Worker of another name
 * in the same account has its own, or the two would share a database, an index and the counters of their limits.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { root } from '../wrangler.mjs'

/** The name that wrangler.toml, as it comes, gives to the Worker and to the database. */
export const BASE = 'parley'
/** The ids that it gives to the limits. */
const BASE_NAMESPACES = ['1001', '1002', '1003']

/**
 * What of wrangler's configuration names resources of an account.
 * @typedef {object} Config
 * @property {{ database_name?: string, database_id?: string, migrations_dir?: string }[]} [d1_databases]
 * @property {{ index_name: string }[]} [vectorize]
 * @property {{ name: string, namespace_id: string }[]} [ratelimits]
 */

/**
 * The configuration with the names of a Worker. A database that is named by its id was chosen on purpose, as by the
 * deploy button: it and the indexes stay. So does every name that is not the one that wrangler.toml comes with.
 * @template {Config} C
 * @param {C} config
 * @param {string} worker
 * @returns {C}
 */
export function namedFor(config, worker) {
  if (worker === BASE) return config
  const chosen = config.d1_databases?.some(({ database_id: id }) => id !== undefined)
  return {
    ...config,
    name: worker,
    d1_databases: config.d1_databases?.map((database) =>
      !chosen && database.database_name === BASE ? { ...database, database_name: worker } : database,
    ),
    vectorize: config.vectorize?.map((index) => ({
      ...index,
      // An index has no underscores in its name.
      index_name: chosen
        ? index.index_name
        : index.index_name.replace(new RegExp(`^${BASE}(?=-\\d+$)`), worker.replaceAll('_', '-')),
    })),
    ratelimits: config.ratelimits?.map((limit) =>
      BASE_NAMESPACES.includes(limit.namespace_id)
        ? { ...limit, namespace_id: namespaceId(`${worker}/${limit.name}`) }
        : limit,
    ),
  }
}

/**
 * The configuration of an environment: the one at the top, with what its `[env.NAME]` says in the place of it.
 * Variables are replaced one by one. wrangler would pass neither variables nor bindings on to an environment, so each
 * would have to repeat all of them.
 * @param {Record<string, any>} raw wrangler.toml as it was parsed
 * @param {string | undefined} environment
 * @returns {Record<string, any>} without environments, its name that of the environment's Worker
 */
export function inEnvironment(raw, environment) {
  const { env = {}, ...base } = raw
  if (environment === undefined) return base
  const own = env[environment] ?? {}
  return {
    ...base,
    ...own,
    name: own.name ?? `${base.name ?? BASE}-${environment}`,
    vars: { ...base.vars, ...own.vars },
    // An environment that sets one of these keeps traces and invocation logs off.
    ...(base.observability && { observability: { ...base.observability, ...own.observability } }),
  }
}

/** A positive number of up to 31 bits that hardly another name has. @param {string} name */
function namespaceId(name) {
  const number = createHash('sha256').update(name).digest().readUInt32BE() >>> 1
  return String(Math.max(number, 10_000))
}

/**
 * Writes a configuration for wrangler to read. Its paths are relative to the file, as wrangler takes them.
 * @param {Record<string, any>} config with paths relative to the project
 * @param {string} file
 */
export function writeConfig(config, file) {
  const from = (/** @type {string} */ path) => relative(dirname(file), resolve(root, path))
  const written = {
    ...config,
    main: from(config.main),
    ...(config.base_dir && { base_dir: from(config.base_dir) }),
    assets: { ...config.assets, directory: from(config.assets.directory) },
    d1_databases: config.d1_databases.map((/** @type {{ migrations_dir?: string }} */ database) => ({
      ...database,
      migrations_dir: from(database.migrations_dir ?? 'migrations'),
    })),
  }
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(written, null, 2)}\n`)
}
