/** `parley connect`: a collection that lives in an existing cluster. */
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { COMMAND, quoted } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'

/*
 * The `engine` of a collection, from the options of the command line. A secret is no argument, which a shell's history and the list of
 * processes show.
 */

/** The variable that is read where no other is named. */
export const SECRET_VARIABLE = 'PARLEY_CLUSTER_SECRET'

/**
 * The secret of a cluster: from a file, a variable of the environment, or a terminal, which does not show it.
 * @param {{ secretFile?: string, secretEnv?: string }} options
 * @param {string} asked what a terminal asks for
 * @returns {Promise<string | undefined>} undefined if none is given
 * @throws Failure for a file that cannot be read, and for a variable that was named and is not set
 */
async function readSecret({ secretFile, secretEnv }, asked) {
  if (secretFile !== undefined) {
    const text = await readFile(secretFile, 'utf8').catch(() => {
      throw new Failure(EXIT.usage, `The file ${secretFile} of --secret-file cannot be read.`)
    })
    return text.trim() || undefined
  }
  const given = process.env[secretEnv ?? SECRET_VARIABLE]
  if (given) return given
  if (secretEnv !== undefined) {
    throw new Failure(EXIT.usage, `The variable ${secretEnv} of --secret-env is not set.`)
  }
  return process.stdin.isTTY ? (await typed(asked)) || undefined : undefined
}

/** @param {string} asked */
async function typed(asked) {
  process.stderr.write(`${asked}: `)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return (await terminal.question('')).trim()
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}

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

/**
 * Names a collection of a cluster, or gives a connected one other nodes or credentials.
 * @param {import('../server.mjs').Server} server
 * @param {string} name of the collection here
 * @param {EngineOptions & { schema?: string }} options
 *   `schema`: a file with the `fields` of a collection that the cluster does not have yet
 * @returns {Promise<{ created: boolean, collection: any }>} the collection as the server shows it
 * @throws Failure
 */
export async function connect(server, name, options) {
  const path = `/collections/${encodeURIComponent(name)}`
  const listed = await server.call('GET', '/collections')
  const present = listed.find((/** @type {{ name: string }} */ one) => one.name === name)
  if (present && present.engine === undefined) {
    throw new Failure(
      EXIT.usage,
      `The collection ${name} does not live in a cluster. \`${COMMAND} move ${quoted(name)} --to ENGINE\` copies it to one.`,
    )
  }
  const engine = await engineFrom(options.engine ?? present?.engine.type, options)
  if (present) return { created: false, collection: await server.call('PATCH', path, { body: { engine } }) }
  const schema = options.schema === undefined ? {} : await readSchema(options.schema)
  const collection = await server.call('POST', '/collections', { body: { ...schema, name, engine } })
  return { created: true, collection }
}

/**
 * @param {string} file JSON with the `fields` of a collection, or a list of them
 * @returns {Promise<{ fields: import('../import/schema.mjs').Field[] } & Record<string, unknown>>}
 * @throws Failure
 */
export async function readSchema(file) {
  try {
    const schema = JSON.parse(await readFile(file, 'utf8'))
    const { fields, ...rest } = Array.isArray(schema) ? { fields: schema } : schema
    if (!Array.isArray(fields)) throw new Error('it has no list `fields`')
    return { ...rest, fields }
  } catch (error) {
    throw new Failure(EXIT.usage, `${file} is no schema: ${/** @type {Error} */ (error).message}`)
  }
}
