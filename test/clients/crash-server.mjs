/**
 * Parley in a process group of its own, to be killed: `node crash-server.mjs BUNDLE STORAGE`. Without the proxy of
 * `wrangler dev`, so that a start takes a second. Tells its parent where it answers.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'

const [bundle, storage] = process.argv.slice(2)
const migrations = join(import.meta.dirname, '../../migrations')

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    modules: true,
    modulesRoot: bundle,
    scriptPath: join(bundle, 'index.js'),
    compatibilityDate: '2026-08-15',
    bindings: {
      AI_BACKEND: 'local',
      ALLOWED_HOSTS: 'localhost, 127.0.0.1',
      LOG_REQUESTS: 'off',
      RATE_LIMITS: 'off',
      ADMIN_API_KEY: 'xyz',
      ENCRYPTION_KEY: 'a key for tests only',
    },
    d1Databases: { DB: 'parley' },
    durableObjects: {
      CONVERSATION: { className: 'Conversation', useSQLite: true },
      COLLECTION: { className: 'Collection', useSQLite: true },
    },
    resourcePersistencePath: storage,
  }),
)
const { origin } = await miniflare.ready
const db = await miniflare.getD1Database('DB')
const applied = await db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'collections'").first()
for (const file of applied ? [] : readdirSync(migrations).sort()) {
  if (!file.endsWith('.sql')) continue
  const statements = readFileSync(join(migrations, file), 'utf8').split('--> statement-breakpoint')
  for (const statement of statements) await db.prepare(statement.trim()).run()
}
process.send?.(origin)
// Nobody is left to test with it.
process.once('disconnect', () => process.exit())
