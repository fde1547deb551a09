/**
 * Brings the database of a data folder up to date, as `wrangler d1 migrations apply DB --local` does, and in its table: either
 * can go on where the other was. Wrangler starts a runtime for each migration, which takes most of a start; here one does all.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { unstable_readConfig, unstable_splitSqlQuery } from 'wrangler'
import { root } from './wrangler.mjs'

/** Wrangler's own, with its statement word for word. */
const TABLE = `CREATE TABLE IF NOT EXISTS "d1_migrations"(
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		name       TEXT UNIQUE,
		applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`

/**
 * @param {string} folder where data is kept: what wrangler calls `--persist-to`
 * @param {string} [migrations] the folder of migrations, applied in the order of their names
 * @returns {Promise<string[]>} the names of those that were applied now
 * @throws Error that names a migration that failed. It left nothing behind: those before it stay applied
 */
export async function migrate(folder, migrations = join(root, 'migrations')) {
  const config = unstable_readConfig({ config: join(root, 'wrangler.toml') }, { hideWarnings: true })
  /** @type {{ binding: string, database_id?: string, preview_database_id?: string }[]} */
  const databases = config.d1_databases
  const database = databases.find(({ binding }) => binding === 'DB')
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: '',
      cf: false,
      resourcePersistencePath: join(folder, 'v3'),
      d1Databases: { DB: database?.preview_database_id ?? database?.database_id ?? 'DB' },
    }),
  )
  try {
    const db = await miniflare.getD1Database('DB')
    await db.prepare(TABLE).run()
    const { results } = await db.prepare('SELECT name FROM d1_migrations').all()
    const applied = new Set(results.map(({ name }) => name))
    const waiting = readdirSync(migrations).filter((name) => name.endsWith('.sql') && !applied.has(name))
    for (const name of waiting.sort()) {
      const statements = unstable_splitSqlQuery(readFileSync(join(migrations, name), 'utf8'))
      const note = db.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name)
      try {
        // One transaction: a start that is killed finds it applied whole or not at all.
        await db.batch([...statements.map((statement) => db.prepare(statement)), note])
      } catch (error) {
        throw new Error(`The migration ${name} failed: ${/** @type {Error} */ (error).message}`)
      }
    }
    return waiting
  } finally {
    await miniflare.dispose()
  }
}
