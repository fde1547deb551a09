/**
 * `npm start`: Parley on this machine. No account, no network, no questions.
 *
 * Brings the database up to date, serves the Worker, loads the sample, and stands in for the cron trigger.
 */
import './installed.mjs'
import { createServer } from 'node:net'
import { join, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bundleInto } from './bundle.mjs'
import { encryptionKey, endChildren, endLeftovers, occupy, watchChildren, watchNpm } from './folder.mjs'
import { DEFAULT_HOST, isLoopback, optionsOf, readOptions, urlOf, usage } from './options.mjs'
import { loadSample } from './sample.mjs'
import { root } from './wrangler.mjs'

const STOP_MS = 5_000
const TICK_MS = 60_000

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(message)
  process.exit(1)
}

/**
 * Whether nobody listens on a port of this machine.
 * @param {string} host
 * @param {number} port
 */
async function isFree(host, port) {
  for (const address of host === DEFAULT_HOST ? ['127.0.0.1', '::1'] : [host]) {
    const code = await new Promise((resolve) => {
      const probe = createServer()
      probe.once('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(error.code))
      probe.listen(port, address, () => probe.close(() => resolve('')))
    })
    if (code === 'EADDRNOTAVAIL' && host !== DEFAULT_HOST) {
      throw new Error(`This machine has no address ${host}. Choose another one: npm start -- --host ADDRESS`)
    }
    if (code === 'EADDRINUSE' || code === 'EACCES') return false
  }
  return true
}

const {
  host,
  port,
  folder: named,
  sample,
  apiKey,
  allowedHosts,
  servedHosts,
  origins,
  log,
} = optionsOf((args) => readOptions(args, process.env), usage)
const url = urlOf(host, port)
const folder = resolve(root, named)

const place = await occupy(folder, url).catch((error) => refuse(error.message))
try {
  const ended = await endLeftovers(place.left)
  for (const pid of ended) console.log(`Ended process ${pid}, which a start that was killed had left behind.`)
  place.note({ children: [] })
  // What was ended just now may hold its port for a moment more.
  const until = Date.now() + (ended.length > 0 ? STOP_MS : 0)
  let free = await isFree(host, port)
  while (!free && Date.now() < until) {
    await sleep(100)
    free = await isFree(host, port)
  }
  if (!free) {
    throw new Error(`Port ${port} is taken. Choose another one: npm start -- --port ${port + 1}`)
  }
} catch (error) {
  place.release()
  refuse(/** @type {Error} */ (error).message)
}
const children = watchChildren((running) => place.note({ children: running }))

/** @type {Awaited<ReturnType<typeof import('./serve.mjs').serve>> | undefined} */
let server
let stopping = false

/**
 * Ends everything that this script started.
 * @param {number} code
 */
async function stop(code) {
  if (stopping) return
  stopping = true
  await Promise.race([server?.stop(), sleep(STOP_MS)])
  await endChildren(children(), STOP_MS)
  place.release()
  process.exit(code)
}

process.on('SIGINT', () => stop(130))
process.on('SIGTERM', () => stop(143))
process.on('SIGHUP', () => stop(129))
if (process.env.npm_lifecycle_event === 'start') {
  const hasEnded = watchNpm()
  setInterval(() => hasEnded() && stop(0), 500).unref()
}

try {
  console.log('Preparing ...')
  // Miniflare takes most of a second to load: a start that is refused is refused before that.
  const { migrate } = await import('./migrations.mjs')
  const { serve } = await import('./serve.mjs')
  await migrate(folder)

  // Served from a bundle of its own: an edit of the sources then does not restart it under its users.
  const bundle = join(folder, 'bundle')
  await bundleInto(bundle)

  server = await serve({
    bundle,
    folder,
    host,
    port,
    log,
    vars: {
      ADMIN_API_KEY: apiKey,
      ENCRYPTION_KEY: encryptionKey(folder),
      AI_BACKEND: 'local',
      VECTORS: 'embedded',
      CONSOLE: 'on',
      // One person's own machine: its private hosts (Ollama, vLLM) may be called, and nobody is kept waiting.
      ALLOWED_HOSTS: allowedHosts,
      RATE_LIMITS: 'off',
      // The key is known to everybody: which pages may use it, and by which names this Parley can be called.
      CORS_ORIGINS: origins,
      SERVED_HOSTS: servedHosts,
      LOG_REQUESTS: log ? 'on' : 'off',
    },
  })
  const { entry, tick } = server
  place.note({ entry })
  setInterval(() => tick().catch(() => {}), TICK_MS).unref()
  if (sample) {
    const outcome = await loadSample(url, apiKey)
    console.log(outcome)
  }
} catch (error) {
  if (!stopping) console.error(/** @type {Error} */ (error).message)
  await stop(1)
}

const question = sample
  ? `
Ask it about itself:
  curl '${url}/collections/docs/documents/search?q=How+do+I+create+a+conversation+model%3F&query_by=embedding,title,heading,text&exclude_fields=embedding&conversation=true&conversation_model_id=docs' \\
    -H 'X-TYPESENSE-API-KEY: ${apiKey}'
`
  : `
Look around:
  curl '${url}/collections' -H 'X-TYPESENSE-API-KEY: ${apiKey}'
`

const opened = isLoopback(host)
  ? ''
  : `  open     to every machine that reaches ${host}, with that key${apiKey === 'xyz' ? ': set PARLEY_API_KEY to one of your own' : ''}\n`

console.log(`
Parley answers at ${url}
  key      ${apiKey}
  data     ${relative(process.cwd(), folder) || '.'}
  engines  built in: no account, no network
${opened}${question}
Ctrl-C stops it.`)
