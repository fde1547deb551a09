/**
 * What an account has of a deployment, and which plan. Cloudflare's API is asked for all that needs no knowledge of wrangler's: each start
 * of wrangler takes two seconds, and a first deployment has thirty steps. The wire: https://developers.cloudflare.com/api/
 */
import { runWrangler } from '../wrangler.mjs'
import { BASE } from './names.mjs'
import { COUNT_TABLES, READ_BOTH, READ_MIGRATIONS, READ_OWNER, READ_RECORDS } from './plan.mjs'

const API = 'https://api.cloudflare.com/client/v4'

/** What Cloudflare refused. */
export class Refused extends Error {
  /**
   * @param {string} what method and path
   * @param {{ code: number, message: string }[]} errors as Cloudflare gives them
   */
  constructor(what, errors) {
    const said = errors.map(({ code, message }) => `${message} [code: ${code}]`)
    super(`${what} failed: ${said.join('; ')}`)
    this.codes = errors.map(({ code }) => code)
  }
}

/**
 * Has Cloudflare's API say, make or delete something.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} the result
 * @throws Refused with what Cloudflare answered
 * @throws Error when Cloudflare cannot be reached
 */
async function call(method, path, body) {
  const base = process.env.CLOUDFLARE_API_BASE_URL || API
  const response = await fetch(base + path, {
    method,
    headers: { 'content-type': 'application/json', ...(await credentials()) },
    signal: AbortSignal.timeout(30_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const what = `${method} ${path.split('?')[0]}`
  const reply = await response.json().catch(() => {
    throw new Error(`${what} failed: Cloudflare answered ${response.status}, and no JSON.`)
  })
  if (reply.success) return reply.result
  throw new Refused(what, reply.errors)
}

/** Asks Cloudflare's API. @param {string} path */
export const ask = (path) => call('GET', path)
/** Has it make or do something. @param {string} path @param {unknown} body */
export const post = (path, body) => call('POST', path, body)
/** Has it delete something. @param {string} path */
export const remove = (path) => call('DELETE', path)

/**
 * Asks for all of a list that comes in pages.
 * @param {string} path
 * @param {number} size of a page: the most that the API gives
 * @returns {Promise<any[]>}
 * @throws Refused and Error as `call`
 */
export async function askAll(path, size) {
  const all = []
  for (let page = 1; ; page += 1) {
    const some = await ask(`${path}?page=${page}&per_page=${size}`)
    all.push(...some)
    if (some.length < size) return all
  }
}

/** @returns {Promise<Record<string, string>>} headers of what wrangler goes by: a login, or a key from the environment */
async function askWrangler() {
  const { token, key, email } = JSON.parse(await runWrangler(['auth', 'token', '--json']))
  if (token === undefined) return { 'x-auth-key': key, 'x-auth-email': email }
  return { authorization: `Bearer ${token}` }
}

/** @type {Promise<Record<string, string>> | undefined} */
let ofLogin

/** @returns {Promise<Record<string, string>>} headers */
async function credentials() {
  const { CLOUDFLARE_API_TOKEN: given } = process.env
  if (given) return { authorization: `Bearer ${given}` }
  ofLogin ??= askWrangler()
  return ofLogin
}

/**
 * @param {string} account
 * @returns {Promise<import('./settings.mjs').Plan>} undefined when the token may not see it
 * @throws Error when Cloudflare cannot be reached
 */
export async function findPlan(account) {
  try {
    return (await ask(`/accounts/${account}/subscriptions`)).some(isWorkersPaid) ? 'paid' : 'free'
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

/**
 * A plan's id names its product: `workers_paid`, or that of a contract.
 * @param {{ state?: string, rate_plan?: { id?: string, public_name?: string } }} subscription
 */
const isWorkersPaid = ({ state, rate_plan: { id = '', public_name: name = '' } = {} }) =>
  /workers/i.test(`${id} ${name}`) &&
  !/free/i.test(`${id} ${name}`) &&
  !/cancelled|expired/i.test(state ?? '')

/** Databases of a page: the most that the API gives. */
const PAGE = 1000
/** What the API says of a Worker that is not there. */
const NO_WORKER = [10007, 10090]

/**
 * The account to deploy to.
 * @param {string | undefined} named in the environment or in wrangler.toml
 * @returns {Promise<string>} its id
 * @throws Error saying how to log in, or how to choose
 */
export async function findAccount(named) {
  /** @type {{ id: string, name: string }[]} */
  const accounts = process.env.CLOUDFLARE_API_TOKEN
    ? await ask('/accounts?per_page=50')
    : JSON.parse(await whoami()).accounts
  if (named !== undefined) return named
  if (accounts.length === 1 && accounts[0] !== undefined) return accounts[0].id
  const list = accounts.map(({ id, name }) => `  ${id}  ${name}`)
  throw new Error(['Set CLOUDFLARE_ACCOUNT_ID to the account to deploy to:', ...list].join('\n'))
}

/** @returns {Promise<string>} what wrangler says of the login, as JSON @throws Error saying how to log in */
const whoami = () =>
  runWrangler(['whoami', '--json']).catch((error) => {
    if (!/"loggedIn": ?false/.test(String(error))) throw error
    throw new Error(
      'You are not logged in to Cloudflare: run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.',
    )
  })

/**
 * Asks all at once: a login that had to be renewed was renewed when the account was asked for.
 * @param {ReturnType<typeof import('./names.mjs').wanted>} wanted
 * @param {string} account
 * @returns {Promise<import('./plan.mjs').Found>}
 * @throws Error when the account cannot be asked
 */
export async function find(wanted, account) {
  const at = `/accounts/${account}`
  const [database, indexes, secrets] = await Promise.all([
    findDatabase(wanted, at),
    wanted.indexes.length === 0 ? { indexes: [], indexNames: [] } : findIndexes(wanted.indexes, at),
    findSecrets(`${at}/workers/scripts/${wanted.worker}`),
  ])
  return { ...database, ...indexes, deployed: secrets !== undefined, secrets: secrets ?? [] }
}

/**
 * @param {string} at the account's path
 * @returns {Promise<{ name: string, uuid: string, jurisdiction?: string | null }[]>}
 */
const listDatabases = (at) => askAll(`${at}/d1/database`, PAGE)

/**
 * @param {string} account
 * @param {{ name: string, id?: string | undefined }} database
 * @returns {Promise<string>} its id @throws Error where the account has no such database
 */
export async function databaseId(account, { name, id }) {
  const found = id ?? (await listDatabases(`/accounts/${account}`)).find((each) => each.name === name)?.uuid
  if (found === undefined) throw new Error(`There is no D1 database ${name} in the account.`)
  return found
}

/** @param {ReturnType<typeof import('./names.mjs').wanted>} wanted @param {string} at the account's path */
async function findDatabase({ worker, database: { name, id }, migrations: all }, at) {
  const databases = id === undefined ? await listDatabases(at) : []
  const { uuid = id, jurisdiction } = databases.find((each) => each.name === name) ?? {}
  const base = name !== BASE && databases.some((each) => each.name === BASE)
  if (uuid === undefined) {
    return { database: false, base, owner: undefined, records: [], blank: false, migrations: [] }
  }
  const query = queries(`${at}/d1/database/${uuid}/query`)
  const mark = await findMark(query)
  // Nothing is asked of another Worker's database.
  const isOwn = (mark.owner ?? worker) === worker
  const applied = ((isOwn && (await query(READ_MIGRATIONS))) || []).map((row) => row.name)
  const migrations = all.filter((each) => applied.includes(each))
  return { database: true, base, ...mark, migrations, ...(jurisdiction && { jurisdiction }) }
}

/**
 * @param {string} path of a database's queries
 * @returns {(sql: string) => Promise<any[] | undefined>} asks for rows; undefined where a table is not there
 */
const queries = (path) => async (sql) => {
  try {
    const [{ results }] = await post(path, { sql })
    return results
  } catch (error) {
    if (/no such table/.test(String(error))) return undefined
    throw error
  }
}

/**
 * What a database holds about its deployment.
 * @param {ReturnType<typeof queries>} query
 * @returns {Promise<Pick<import('./plan.mjs').Found, 'owner' | 'records' | 'blank'>>}
 */
async function findMark(query) {
  const both = await query(READ_BOTH)
  if (both !== undefined) {
    const { name: owner } = both.find(({ kind }) => kind === 'worker') ?? {}
    const records = both.filter(({ kind }) => kind !== 'worker')
    return { owner: owner ?? undefined, records, blank: false }
  }
  // Left by a version that kept no records, or by a deployment that was cut off.
  const owner = (await query(READ_OWNER))?.[0]?.worker ?? undefined
  const records = (await query(READ_RECORDS)) ?? []
  const blank = owner === undefined && (await query(COUNT_TABLES))?.[0]?.tables === 0
  return { owner, records, blank }
}

/**
 * @param {import('./plan.mjs').VectorIndex[]} wanted
 * @param {string} at the account's path
 * @returns {Promise<Pick<import('./plan.mjs').Found, 'indexes' | 'indexNames'>>}
 */
async function findIndexes(wanted, at) {
  /** @type {{ name: string, config: { dimensions: number } }[]} */
  let all
  try {
    all = await ask(`${at}/vectorize/v2/indexes`)
  } catch (error) {
    // The token that Workers Builds makes may not see Vectorize. The deploy button has made the indexes by then.
    if (process.env.WORKERS_CI) return { indexes: undefined, indexNames: [] }
    throw error
  }
  const present = all.filter(({ name }) => wanted.some((index) => index.name === name))
  return {
    indexes: present.map(({ name, config }) => ({ name, dimensions: config.dimensions })),
    indexNames: all.map(({ name }) => name),
  }
}

/** @param {string} path of a Worker @returns {Promise<string[] | undefined>} undefined when there is no such Worker */
async function findSecrets(path) {
  try {
    const secrets = await ask(`${path}/secrets`)
    return secrets.map((/** @type {{ name: string }} */ { name }) => name)
  } catch (error) {
    if (error instanceof Refused && error.codes.some((code) => NO_WORKER.includes(code))) return undefined
    throw error
  }
}
