/**
 * Parley in a process group of its own, to be killed or to have other bindings: `node own-server.mjs BUNDLE STORAGE`.
 * Tells its parent where it answers.
 *
 * VECTORIZE_URL and WORKERS_AI_URL are where counterparts of Vectorize and Workers AI play their bindings' other side.
 * The binding of Workers AI is the runtime's own: only what it calls is replaced, as for a remote binding of
 * `wrangler dev`. VARS is JSON of variables that go before those below.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { directOptions, directUrl } from '../../scripts/direct.mjs'
import { migrateIn, runner } from '../../scripts/migrations.mjs'

/** A Vectorize index that lies in another process, which is not killed: its calls as requests to VECTORIZE_URL. */
const VECTORIZE = `
import { WorkerEntrypoint } from 'cloudflare:workers'
const plain = (_, value) => (value instanceof Float32Array ? [...value] : value)
const call = (method) =>
  async function (...args) {
    const body = JSON.stringify({ method, args }, plain)
    const answer = await fetch(this.env.VECTORIZE_URL, { method: 'POST', body })
    const { value, error } = await answer.json()
    if (error !== undefined) throw new Error(error)
    return value
  }
export class Vectorize extends WorkerEntrypoint {}
for (const method of ['query', 'upsert', 'deleteByIds', 'getByIds', 'describe']) {
  Vectorize.prototype[method] = call(method)
}
export default { fetch: () => new Response() }
`

const { VECTORIZE_URL, WORKERS_AI_URL, VARS = '{}' } = process.env
const [bundle, storage] = process.argv.slice(2)
const root = join(import.meta.dirname, '../..')
const pass = randomUUID()

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    workers: [
      { name: 'migrations', modules: true, script: runner(pass), d1Databases: { DB: 'parley' } },
      {
        name: 'parley',
        // Reached as in a local start. Nobody asks it for pages.
        ...directOptions({
          name: 'parley',
          bundle,
          main: 'index.js',
          assets: { run_worker_first: ['/*'] },
          serviceBindings:
            VECTORIZE_URL === undefined
              ? {}
              : { VECTORIZE_384: { name: 'vectorize', entrypoint: 'Vectorize' } },
          host: '127.0.0.1',
          port: 0,
        }),
        compatibilityDate: '2026-08-15',
        bindings: {
          AI_BACKEND: WORKERS_AI_URL === undefined ? 'local' : 'workers-ai',
          ALLOWED_HOSTS: 'localhost, 127.0.0.1',
          LOG_REQUESTS: 'off',
          RATE_LIMITS: 'off',
          ADMIN_API_KEY: 'xyz',
          ENCRYPTION_KEY: 'a key for tests only',
          VECTORS: VECTORIZE_URL === undefined ? 'embedded' : 'vectorize',
          ...JSON.parse(VARS),
        },
        ...(WORKERS_AI_URL !== undefined && {
          ai: { binding: 'AI', remoteProxyConnectionString: new URL(WORKERS_AI_URL) },
        }),
        assets: {
          directory: join(root, 'ui'),
          binding: 'ASSETS',
          routerConfig: { has_user_worker: true },
        },
        d1Databases: { DB: 'parley' },
        durableObjects: {
          CONVERSATION: { className: 'Conversation', useSQLite: true },
          COLLECTION: { className: 'Collection', useSQLite: true },
        },
      },
      ...(VECTORIZE_URL === undefined
        ? []
        : [
            {
              name: 'vectorize',
              modules: true,
              script: VECTORIZE,
              compatibilityDate: '2026-08-15',
              bindings: { VECTORIZE_URL },
            },
          ]),
    ],
    resourcePersistencePath: storage,
  }),
)
await migrateIn(miniflare, pass, join(root, 'migrations'))
process.send?.(await directUrl(miniflare, 'parley'))
// Nobody is left to test with it.
process.once('disconnect', () => process.exit())
