/**
 * What a deployment has to do: from what is wanted and what the account has, the steps between. Nothing here talks
 * to anybody.
 *
 * The order is the point. The database is marked as this Worker's before anything is written to it. Tables and indexes
 * come first and the secrets are uploaded with the Worker itself, so no version ever serves without them. Every step is done or not done, and what is done is not planned again: after a
 * failure the next run goes on from there.
 */
import { BASE } from './names.mjs'

/*
 * What D1 holds about its deployment. `owner` is the mark of the Worker that the database belongs to: one row, written
 * before anything else is (src/db/owner.ts says why, and has the same table). `deployment` records what deployments made
 * and cannot be changed later. `npm run destroy` removes only what is recorded there.
 */

export const CREATE_OWNER =
  'CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY CHECK (id = 1), worker TEXT, namespace TEXT)'

const CREATE_RECORDS =
  'CREATE TABLE IF NOT EXISTS deployment (kind TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (kind, name))'

/**
 * Something that a deployment made, where it lives, or the account's plan. Of the last three there is one each.
 * @typedef {{ kind: 'd1' | 'vectorize' | 'jurisdiction' | 'region' | 'plan', name: string }} Record
 */
const SINGLE = ['jurisdiction', 'region', 'plan']

export const READ_OWNER = 'SELECT worker FROM owner'
export const READ_RECORDS = 'SELECT kind, name FROM deployment'

/** As wrangler keeps them: https://developers.cloudflare.com/d1/reference/migrations/ */
export const READ_MIGRATIONS = 'SELECT name FROM d1_migrations'

/** The mark and the records in one statement. It fails unless both tables are there. */
export const READ_BOTH = `SELECT 'worker' AS kind, worker AS name FROM owner UNION ALL ${READ_RECORDS}`

/** Tables that somebody made: neither SQLite's own, nor D1's, nor wrangler's list of migrations. */
export const COUNT_TABLES =
  "SELECT count(*) AS tables FROM sqlite_master WHERE type = 'table' AND name <> 'd1_migrations' AND name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*'"

/** @param {string} text @returns {string} as a literal of SQL */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`

/**
 * Marks a database that has no name on it.
 * @param {string} worker
 * @param {Record[]} [records] what the deployment has made so far
 * @returns {string} SQL
 */
export const markOwner = (worker, records = []) =>
  [
    CREATE_OWNER,
    `INSERT INTO owner (id, worker) VALUES (1, ${quoted(worker)}) ON CONFLICT (id) DO UPDATE SET worker = excluded.worker WHERE owner.worker IS NULL`,
    addRecords(records),
  ].join('; ')

/**
 * @param {Record[]} records
 * @returns {string} SQL
 */
export const addRecords = (records) =>
  [
    CREATE_RECORDS,
    ...records.flatMap(({ kind, name }) => [
      ...(SINGLE.includes(kind) ? [`DELETE FROM deployment WHERE kind = ${quoted(kind)}`] : []),
      ...(name === ''
        ? []
        : [`INSERT OR IGNORE INTO deployment (kind, name) VALUES (${quoted(kind)}, ${quoted(name)})`]),
    ]),
  ].join('; ')

/**
 * @typedef {{ name: string, dimensions: number, metric: 'cosine' }} VectorIndex
 *
 * @typedef {object} Wanted what wrangler.toml and migrations/ ask for
 * @property {string} worker
 * @property {{ binding: string, name: string, chosen: boolean }} database `chosen` where its id is given
 * @property {string[]} migrations names of files
 * @property {VectorIndex[]} indexes
 * @property {string[]} secrets
 * @property {Place} [place] where its data lives
 * @property {'free' | 'paid' | undefined} [accountPlan] as far as it is known
 *
 * @typedef {{ jurisdiction?: string | undefined, region?: string | undefined }} Place at most one of them
 *
 * @typedef {object} Found what the account has of it
 * @property {boolean} database
 * @property {string | undefined} owner name of the Worker that the database is marked with
 * @property {Record[]} records what deployments made, as the database says
 * @property {string} [jurisdiction] of the database, if it has one
 * @property {boolean} blank whether the database has no tables yet: a deployment was cut off after it made it
 * @property {boolean} deployed whether there is a Worker of this name
 * @property {boolean} base whether there is the database that versions before used for Workers of every name
 * @property {string[]} migrations those that were applied
 * @property {{ name: string, dimensions: number }[] | undefined} indexes those that are wanted; undefined when the
 *   token may not see them
 * @property {string[]} indexNames of all in the account
 * @property {string[]} secrets those that the Worker has
 *
 * @typedef {{ do: 'create-database', name: string, place: Place }
 *   | { do: 'mark', worker: string, records: Record[] }
 *   | { do: 'record', records: Record[] }
 *   | { do: 'create-index', name: string, dimensions: number, metric: string }
 *   | { do: 'migrate', binding: string, migrations: string[] }
 *   | { do: 'deploy', worker: string, secrets: string[] }
 *   | { do: 'verify', worker: string }} Step
 */

/** An account without any of it. @type {Found} */
export const NOTHING = {
  database: false,
  owner: undefined,
  records: [],
  blank: false,
  deployed: false,
  base: false,
  migrations: [],
  indexes: [],
  indexNames: [],
  secrets: [],
}

/**
 * The steps of a deployment, in their order.
 * @param {Wanted} wanted
 * @param {Found} found
 * @returns {Step[]}
 * @throws Error when something is there that does not fit and that no step may replace
 */
export function plan(wanted, found) {
  requireOwn(wanted, found)
  const { binding } = wanted.database
  /** @type {Step[]} */
  const steps = []
  const { place = {} } = wanted
  if (!found.database) steps.push({ do: 'create-database', name: wanted.database.name, place })
  if (found.owner === undefined) {
    const fresh = !found.database || (found.blank && !wanted.database.chosen)
    /** @type {Record[]} */
    const records = fresh ? [{ kind: 'd1', name: wanted.database.name }] : []
    steps.push({ do: 'mark', worker: wanted.worker, records: [...records, ...settingsOf(wanted)] })
  } else {
    const changed = changesOf(wanted, found.records)
    if (changed.length > 0) steps.push({ do: 'record', records: changed })
  }
  steps.push(...planIndexes(wanted.indexes, found.indexes))
  const migrations = wanted.migrations.filter((name) => !found.migrations.includes(name))
  if (migrations.length > 0) steps.push({ do: 'migrate', binding, migrations })
  const secrets = wanted.secrets.filter((name) => !found.secrets.includes(name))
  steps.push({ do: 'deploy', worker: wanted.worker, secrets }, { do: 'verify', worker: wanted.worker })
  return steps
}

/** @param {Wanted} wanted @returns {Record[]} */
const settingsOf = ({ place: { jurisdiction = 'none', region } = {}, accountPlan }) => [
  { kind: 'jurisdiction', name: jurisdiction },
  ...(region === undefined ? [] : [{ kind: /** @type {const} */ ('region'), name: region }]),
  ...(accountPlan === undefined ? [] : [{ kind: /** @type {const} */ ('plan'), name: accountPlan }]),
]

/**
 * Settings of a deployment that differ from those of the one before.
 * @param {Wanted} wanted
 * @param {Record[]} records
 * @returns {Record[]} an empty name takes a setting back
 */
function changesOf({ place: { region = '' } = {}, accountPlan }, records) {
  const before = (/** @type {string} */ kind) => records.find((record) => record.kind === kind)?.name ?? ''
  return [
    ...(region === before('region') ? [] : [{ kind: /** @type {const} */ ('region'), name: region }]),
    ...(accountPlan === undefined || accountPlan === before('plan')
      ? []
      : [{ kind: /** @type {const} */ ('plan'), name: accountPlan }]),
  ]
}

/**
 * @param {Wanted} wanted
 * @param {Found} found
 * @throws Error when the database is another Worker's, or when that cannot be told
 */
function requireOwn({ worker, database, secrets }, found) {
  if (found.owner !== undefined && found.owner !== worker) {
    throw new Error(
      `The D1 database ${database.name} belongs to the Worker ${found.owner}, and ${worker} would expire its history. Nothing was changed. Name another database in wrangler.toml: without a database_id, each Worker gets one of its own name.`,
    )
  }
  // A Worker that somebody else wrote would be replaced. The deploy button creates its Worker before it runs this.
  if (
    found.deployed &&
    found.owner === undefined &&
    !process.env.WORKERS_CI &&
    !secrets.some((name) => found.secrets.includes(name))
  ) {
    throw new Error(
      `There is a Worker ${worker} in the account that no deployment of Parley made. Nothing was changed. Give this one another name in wrangler.toml, or delete the other: npx wrangler delete ${worker}`,
    )
  }
  // Worker and database have one name now. Versions before gave all Workers of an account the same database.
  if (!database.chosen && !found.database && found.base && found.secrets.length > 0) {
    throw new Error(
      `The Worker ${worker} is there, and its database ${database.name} is not: it was deployed with the database ${BASE}. Nothing was changed. To keep that one, give its database_id in wrangler.toml (npx wrangler d1 list). To begin with an empty one: npx wrangler d1 create ${database.name}`,
    )
  }
}

/**
 * @param {Wanted['indexes']} wanted
 * @param {Found['indexes']} found
 * @returns {Step[]}
 */
function planIndexes(wanted, found) {
  if (found === undefined) return []
  return wanted.flatMap(({ name, dimensions, metric }) => {
    const present = found.find((index) => index.name === name)
    if (present !== undefined && present.dimensions !== dimensions) {
      throw new Error(
        `The Vectorize index ${name} has ${present.dimensions} dimensions, and Parley needs ${dimensions}. Name another index_name in wrangler.toml, or delete this one: npx wrangler vectorize delete ${name}`,
      )
    }
    if (present !== undefined) return []
    return [
      { do: 'create-index', name, dimensions, metric },
      // Recorded only once it was made: another's index of this name would fail the step before.
      { do: 'record', records: [{ kind: 'vectorize', name }] },
    ]
  })
}

/**
 * How a step is done: by a POST to Cloudflare's API, where `path` is below the account and `:database` stands for the id of the
 * database, or by wrangler, which knows how to apply migrations and to upload a Worker. Each run of wrangler takes two
 * seconds. `verify` has neither: it asks what was deployed.
 * @typedef {{ path: string, body: object } | { wrangler: string[] }} Action
 */

/** The path of statements for the database. */
const QUERY = '/d1/database/:database/query'

/**
 * Each kind of step, in words and as what is done.
 * @type {{ [Kind in Step['do']]: (step: Extract<Step, { do: Kind }>) => { said: string, action?: Action } }}
 */
const KINDS = {
  'create-database': ({ name, place: { jurisdiction, region } }) => ({
    said: `Create the D1 database ${name}${jurisdiction ? ` in the jurisdiction ${jurisdiction}` : region ? ` in the region ${region}` : ''}`,
    action: {
      path: '/d1/database',
      body: {
        name,
        ...(jurisdiction !== undefined && { jurisdiction }),
        ...(region !== undefined && { primary_location_hint: region }),
      },
    },
  }),
  'create-index': ({ name, dimensions, metric }) => ({
    said: `Create the Vectorize index ${name} (${dimensions} dimensions, ${metric})`,
    action: { path: '/vectorize/v2/indexes', body: { name, config: { dimensions, metric } } },
  }),
  mark: ({ worker, records }) => ({
    said: `Mark the database as the one of the Worker ${worker}`,
    action: { path: QUERY, body: { sql: markOwner(worker, records) } },
  }),
  record: ({ records }) => ({
    said: `Record in the database: ${records.map(({ kind, name }) => `${kind} ${name || 'none'}`).join(', ')}`,
    action: { path: QUERY, body: { sql: addRecords(records) } },
  }),
  migrate: ({ binding, migrations }) => ({
    said: `Apply ${migrations.length} migrations to the database: ${migrations.join(', ')}`,
    action: { wrangler: ['d1', 'migrations', 'apply', binding, '--remote'] },
  }),
  deploy: ({ worker, secrets }) => ({
    said:
      secrets.length === 0
        ? `Deploy the Worker ${worker}; its secrets stay as they are`
        : `Deploy the Worker ${worker}, with new secrets: ${secrets.join(', ')}`,
    action: { wrangler: ['deploy', '--minify'] },
  }),
  verify: () => ({ said: 'Ask for its health, and put one question to it' }),
}

/** @param {Step} step */
const kindOf = (step) => KINDS[step.do](/** @type {any} */ (step))

/** @param {Step} step */
export const action = (step) => kindOf(step).action

/** A step in words. @param {Step} step */
export const describe = (step) => kindOf(step).said
