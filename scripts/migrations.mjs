/**
 * Brings the database of a data folder up to date, as `wrangler d1 migrations apply DB --local` does, and in its table: either
 * can go on where the other was. Wrangler starts a runtime for each migration, which takes most of a start; here one does all.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { readConfig, root } from './wrangler.mjs'

/** What stands between two statements of a file. */
const BETWEEN = '--> statement-breakpoint'

/** Wrangler's own, with its statement word for word. */
const TABLE = `CREATE TABLE IF NOT EXISTS "d1_migrations"(
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		name       TEXT UNIQUE,
		applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`

/**
 * A Worker that runs statements in one transaction, each an array of its SQL and its values, for whoever has the pass: it stands at
 * an open port of this machine. Miniflare's own stand-in for a database outside of workerd starts a thread, and waits for it with each
 * call.
 * @param {string} pass
 */
export const runner = (pass) => `
export default {
  async fetch(request, { DB }) {
    if (request.headers.get('pass') !== ${JSON.stringify(pass)}) return new Response('Not found', { status: 404 })
    const statements = (await request.json()).map(([sql, ...values]) => DB.prepare(sql).bind(...values))
    return DB.batch(statements).then(
      (done) => Response.json({ results: done.map(({ results }) => results) }),
      ({ message }) => Response.json({ error: message }),
    )
  },
}`

/**
 * Under which ids Miniflare keeps databases: those that wrangler gives it.
 * @param {Record<string, any>} config
 * @returns {Record<string, string>} by binding
 */
export const localDatabases = ({ d1_databases }) =>
  Object.fromEntries(
    d1_databases.map(
      (/** @type {{ binding: string, database_id?: string, preview_database_id?: string }} */ database) => [
        database.binding,
        database.preview_database_id ?? database.database_id ?? database.binding,
      ],
    ),
  )

/**
 * @param {string} folder where data is kept: what wrangler calls `--persist-to`
 * @param {string} [migrations] the folder of migrations, applied in the order of their names
 * @returns {Promise<string[]>} the names of those that were applied now
 * @throws Error that names a migration that failed. It left nothing behind: those before it stay applied
 */
export async function migrate(folder, migrations = join(root, 'migrations')) {
  const pass = randomUUID()
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: runner(pass),
      cf: false,
      resourcePersistencePath: join(folder, 'v3'),
      d1Databases: localDatabases(readConfig()),
    }),
  )
  try {
    return await migrateIn(miniflare, pass, migrations)
  } finally {
    await miniflare.dispose()
  }
}

/**
 * @param {Miniflare} miniflare its first Worker is the runner, bound to the database
 * @param {string} pass
 * @param {string} migrations
 * @returns {Promise<string[]>} as `migrate` does
 */
export async function migrateIn(miniflare, pass, migrations) {
  const run = async (/** @type {string[][]} */ ...statements) => {
    const body = JSON.stringify(statements)
    const reply = await miniflare.dispatchFetch('http://migrations', {
      method: 'POST',
      headers: { pass },
      body,
    })
    return /** @type {{ results: { name: string }[][], error?: string }} */ (await reply.json())
  }
  const { results, error: fault } = await run([TABLE], ['SELECT name FROM d1_migrations'])
  if (fault !== undefined) throw new Error(`The database cannot be read: ${fault}`)
  const applied = new Set(results[1]?.map(({ name }) => name))
  const waiting = readdirSync(migrations).filter((name) => name.endsWith('.sql') && !applied.has(name))
  for (const name of waiting.sort()) {
    const statements = readFileSync(join(migrations, name), 'utf8').split(BETWEEN)
    // One transaction: a start that is killed finds it applied whole or not at all.
    const note = ['INSERT INTO d1_migrations (name) VALUES (?)', name]
    const { error } = await run(...statements.map((statement) => [statement]), note)
    if (error !== undefined) throw new Error(`The migration ${name} failed: ${error}`)
  }
  return waiting
}
