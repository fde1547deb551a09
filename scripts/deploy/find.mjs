/** What an account has of a deployment, asked for through wrangler. */
import { runWrangler } from '../wrangler.mjs'
import { BASE } from './names.mjs'
import { COUNT_TABLES, READ_BOTH, READ_OWNER, READ_RECORDS } from './owner.mjs'

/** @param {string[]} args @returns {Promise<any>} what a command prints as JSON */
const ask = async (...args) => JSON.parse(await runWrangler(args))

/**
 * The account to deploy to.
 * @param {string | undefined} named in the environment or in wrangler.toml
 * @returns {Promise<string>} its id
 * @throws Error saying how to log in, or how to choose
 */
export async function findAccount(named) {
  const { accounts } = await ask('whoami', '--json').catch((error) => {
    if (!/"loggedIn": ?false/.test(String(error))) throw error
    throw new Error(
      'You are not logged in to Cloudflare: run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.',
    )
  })
  if (named !== undefined) return named
  if (accounts.length === 1) return accounts[0].id
  const list = accounts.map((/** @type {{ id: string, name: string }} */ { id, name }) => `  ${id}  ${name}`)
  throw new Error(['Set CLOUDFLARE_ACCOUNT_ID to the account to deploy to:', ...list].join('\n'))
}

/**
 * Asks all at once: a login that had to be renewed was renewed when the account was asked for.
 * @param {ReturnType<typeof import('./wanted.mjs').wanted>} wanted
 * @returns {Promise<import('./plan.mjs').Found>}
 * @throws Error with wrangler's output when the account cannot be asked
 */
export async function find(wanted) {
  const [database, indexes, secrets] = await Promise.all([
    findDatabase(wanted),
    wanted.indexes.length === 0 ? { indexes: [], indexNames: [] } : findIndexes(wanted.indexes),
    findSecrets(wanted.worker),
  ])
  return { ...database, ...indexes, deployed: secrets !== undefined, secrets: secrets ?? [] }
}

/** @param {ReturnType<typeof import('./wanted.mjs').wanted>} wanted */
async function findDatabase(wanted) {
  const { name, chosen } = wanted.database
  const databases = chosen ? [] : await ask('d1', 'list', '--json')
  const has = (/** @type {string} */ wantedName) =>
    databases.some((/** @type {{ name: string }} */ database) => database.name === wantedName)
  const database = chosen || has(name)
  const { jurisdiction } = databases.find((/** @type {{ name: string }} */ each) => each.name === name) ?? {}
  const base = name !== BASE && has(BASE)
  if (!database) return { database, base, owner: undefined, records: [], blank: false, migrations: [] }
  const mark = await findMark(wanted)
  // Another Worker's database is left alone: the list of its migrations would make a table for them.
  const migrations = (mark.owner ?? wanted.worker) === wanted.worker ? await appliedMigrations(wanted) : []
  return { database, base, ...mark, migrations, ...(jurisdiction && { jurisdiction }) }
}

/**
 * What a database holds about its deployment.
 * @param {ReturnType<typeof import('./wanted.mjs').wanted>} wanted
 * @returns {Promise<Pick<import('./plan.mjs').Found, 'owner' | 'records' | 'blank'>>}
 */
async function findMark({ database, configArgs }) {
  const query = async (/** @type {string} */ sql) => {
    const args = ['d1', 'execute', database.binding, '--remote', '--json', `--command=${sql}`]
    try {
      const [{ results }] = await ask(...args, ...configArgs)
      return results
    } catch (error) {
      if (/no such table/.test(String(error))) return undefined
      throw error
    }
  }
  const both = await query(READ_BOTH)
  if (both !== undefined) {
    const { name: owner } = both.find((/** @type {{ kind: string }} */ { kind }) => kind === 'worker') ?? {}
    const records = both.filter((/** @type {{ kind: string }} */ { kind }) => kind !== 'worker')
    return { owner: owner ?? undefined, records, blank: false }
  }
  // Left by a version that kept no records, or by a deployment that was cut off.
  const owner = (await query(READ_OWNER))?.[0]?.worker ?? undefined
  const records = (await query(READ_RECORDS)) ?? []
  const blank = owner === undefined && (await query(COUNT_TABLES))?.[0]?.tables === 0
  return { owner, records, blank }
}

/** @param {ReturnType<typeof import('./wanted.mjs').wanted>} wanted */
async function appliedMigrations({ database, migrations, configArgs }) {
  // wrangler has no other form of this list: the names of those that wait, in a table for people.
  const waiting = await runWrangler(['d1', 'migrations', 'list', database.binding, '--remote', ...configArgs])
  return migrations.filter((name) => !waiting.includes(name))
}

/**
 * @param {import('./plan.mjs').VectorIndex[]} wanted
 * @returns {Promise<Pick<import('./plan.mjs').Found, 'indexes' | 'indexNames'>>}
 */
async function findIndexes(wanted) {
  /** @type {{ name: string, config: { dimensions: number } }[]} */
  let all
  try {
    all = await ask('vectorize', 'list', '--json')
  } catch (error) {
    // The token that Workers Builds makes may not see Vectorize. The deploy button has made the indexes by then.
    if (process.env.WORKERS_CI) return { indexes: undefined, indexNames: [] }
    throw error
  }
  const present = all.filter(({ name }) => wanted.some((index) => index.name === name))
  const indexes = await Promise.all(
    present.map(async ({ name, config }) => {
      const asked = wanted.some((index) => index.name === name && index.metadata.length > 0)
      const properties = asked ? await ask('vectorize', 'list-metadata-index', name, '--json') : []
      const metadata = properties.map(
        (/** @type {{ propertyName: string }} */ property) => property.propertyName,
      )
      return { name, dimensions: config.dimensions, metadata }
    }),
  )
  return { indexes, indexNames: all.map(({ name }) => name) }
}

/** @param {string} worker @returns {Promise<string[] | undefined>} undefined when there is no such Worker */
async function findSecrets(worker) {
  try {
    const secrets = await ask('secret', 'list', '--name', worker)
    return secrets.map((/** @type {{ name: string }} */ { name }) => name)
  } catch (error) {
    if (/not found|does not exist/.test(String(error))) return undefined
    throw error
  }
}
