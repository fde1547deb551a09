/**
 * Names of a Worker's resources. Those in wrangler.toml are the ones of the Worker `parley`; a Worker of another name
 * in the same account has its own, or the two would share a database, an index and the counters of their limits.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { readConfig, root } from '../wrangler.mjs'

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

/*
 * The secrets of a deployment. Cloudflare gives none back, so those that are made here are kept in a file of the
 * project's folder that git leaves out: a first deployment that fails after its upload would otherwise leave a Worker
 * whose key nobody knows.
 */

const SHORTEST = 16

/** @typedef {{ [name: string]: string }} Secrets */

/**
 * Where the secrets of a deployment are kept.
 * @param {string} account
 * @param {string} worker
 * @param {Record<string, string | undefined>} env
 */
export const secretsFile = (account, worker, env) => join(folder(env), `${account}-${worker}.json`)

/** @param {Record<string, string | undefined>} env */
const folder = (env) => resolve(root, env.PARLEY_DEPLOY_FOLDER || '.parley-deploy')

/**
 * Where wrangler's configuration of a Worker is written that wrangler.toml is not for.
 * @param {string} worker
 */
export const configFile = (worker) => join(folder(process.env), `${worker}.wrangler.json`)

/**
 * What earlier runs kept.
 * @param {string} file
 * @returns {Secrets}
 * @throws Error when the file cannot be read: making new secrets over it could lose the only copy
 */
export function keptSecrets(file) {
  if (!existsSync(file)) return {}
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`${file} holds the secrets of earlier runs and cannot be read: ${error}`)
  }
}

/**
 * Values for the secrets that a Worker lacks: from the environment, else as a run made them that failed later, else new.
 * New ones are in the file before this returns.
 * @param {string[]} missing
 * @param {Record<string, string | undefined>} env
 * @param {string} file
 * @returns {{ values: Secrets, made: string[] }} `made` names those that are not from the environment
 * @throws Error for a value of the environment that is too short to be a secret
 */
export function makeSecrets(missing, env, file) {
  const kept = keptSecrets(file)
  /** @type {Secrets} */
  const values = {}
  /** @type {Secrets} */
  const made = {}
  for (const name of missing) {
    const given = env[name]
    if (given && given.length < SHORTEST) {
      throw new Error(`${name} has ${given.length} characters, and needs ${SHORTEST}: openssl rand -hex 32`)
    }
    const value = given || kept[name] || randomBytes(32).toString('hex')
    values[name] = value
    if (!given) made[name] = value
  }
  if (Object.keys(made).length > 0) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${JSON.stringify({ ...kept, ...made }, null, 2)}\n`, { mode: 0o600 })
  }
  return { values, made: Object.keys(made) }
}

/** Without them nobody may ask (ADMIN_API_KEY), and no provider's credential can be stored (ENCRYPTION_KEY). */
const SECRETS = ['ADMIN_API_KEY', 'ENCRYPTION_KEY']

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
    })),
    secrets: SECRETS,
  }
}
