/**
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
