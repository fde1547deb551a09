/** The `engine` of a collection, from the options of the command line. */
import { EXIT, Failure } from '../failure.mjs'
import { readSecret, SECRET_VARIABLE } from './secret.mjs'

/**
 * The types of clusters, each with the option that names the collection there.
 * @type {Readonly<Record<string, 'collection' | 'index' | 'instance'>>}
 */
const TYPES = { typesense: 'collection', opensearch: 'index', 'ai-search': 'instance' }
export const ENGINES = Object.keys(TYPES)

/**
 * @typedef {object} EngineOptions
 * @property {string} [engine] one of ENGINES
 * @property {string[]} [node]
 * @property {string} [collection]
 * @property {string} [index]
 * @property {string} [instance]
 * @property {string} [account]
 * @property {string} [user]
 * @property {boolean} [open] whether the cluster takes no credentials
 * @property {string} [secretFile]
 * @property {string} [secretEnv]
 * @property {number} [timeout]
 */

/**
 * @param {string} type one of ENGINES
 * @param {EngineOptions} options
 * @returns {Promise<Record<string, unknown>>} as `POST /collections` takes it
 * @throws Failure for what does not fit the type
 */
export async function engineFrom(type, options) {
  const own = TYPES[type]
  if (own === undefined) {
    throw new Failure(EXIT.usage, `An engine is ${ENGINES.join(', ')}, not "${type}".`)
  }
  for (const option of /** @type {const} */ (['collection', 'index', 'instance'])) {
    if (options[option] !== undefined && option !== own) {
      throw new Failure(EXIT.usage, `The engine ${type} takes --${own}, not --${option}.`)
    }
  }
  const { node: nodes, account, timeout } = options
  if (nodes === undefined && type !== 'ai-search') {
    throw new Failure(
      EXIT.usage,
      `Name the nodes of the cluster with --node, as https://node-1.example.com:9200.`,
    )
  }
  const credentials = await credentialsFrom(type, options)
  return {
    type,
    ...(nodes && { nodes }),
    credentials,
    ...(options[own] !== undefined && { [own]: options[own] }),
    ...(account !== undefined && { account_id: account }),
    ...(timeout !== undefined && { timeout_ms: timeout }),
  }
}

/** @param {string} type @param {EngineOptions} options @returns {Promise<Record<string, string>>} */
async function credentialsFrom(type, { user, open, ...where }) {
  if (open) {
    if (type !== 'typesense') return {}
    throw new Failure(EXIT.usage, 'A Typesense cluster always has an API key: leave out --open.')
  }
  if (user !== undefined && type !== 'opensearch') {
    throw new Failure(EXIT.usage, `--user is for OpenSearch. The engine ${type} takes a key alone.`)
  }
  const asked = user === undefined ? 'API key of the cluster' : `Password of ${user}`
  const secret = await readSecret(where, asked)
  if (secret === undefined) {
    const without = type === 'typesense' ? '' : ' A cluster without credentials takes --open.'
    throw new Failure(
      EXIT.usage,
      `The credentials are missing. Set ${SECRET_VARIABLE}, or name a file with --secret-file.${without}`,
    )
  }
  if (user !== undefined) return { username: user, password: secret }
  return type === 'ai-search' ? { api_token: secret } : { api_key: secret }
}
