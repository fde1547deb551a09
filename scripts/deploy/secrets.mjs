/**
 * The secrets of a deployment. Cloudflare gives none back, so those that are made here are kept in a file of the
 * project's folder that git leaves out: a first deployment that fails after its upload would otherwise leave a Worker
 * whose key nobody knows.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { root } from '../wrangler.mjs'

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
