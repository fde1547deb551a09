/**
 * `npm start`: Parley on this machine. No account, no network, no questions.
 *
 * Brings the database up to date, serves the Worker, loads the sample, and stands in for the cron trigger,
 * which `wrangler dev` does not fire by itself.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, relative, resolve } from 'node:path'
import { occupy, writeSecrets } from './folder.mjs'
import { DEFAULT_FOLDER, readOptions, usage } from './options.mjs'
import { loadSample } from './sample.mjs'
import { root, runWrangler, wrangler } from './wrangler.mjs'

const READY_MS = 120_000
const STOP_MS = 5_000

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(message)
  process.exit(1)
}

const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Whether nobody listens on a port of this machine.
 * @param {number} port
 */
async function isFree(port) {
  for (const host of ['127.0.0.1', '::1']) {
    const code = await new Promise((resolve) => {
      const probe = createServer()
      probe.once('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(error.code))
      probe.listen(port, host, () => probe.close(() => resolve('')))
    })
    if (code === 'EADDRINUSE' || code === 'EACCES') return false
  }
  return true
}

/** The options, or the end of the program. */
function options() {
  try {
    const read = readOptions(process.argv.slice(2), process.env)
    if (!read.help) return read
  } catch (error) {
    return refuse(`${/** @type {Error} */ (error).message}\n\n${usage}`)
  }
  console.log(usage)
  process.exit(0)
}

const { port, folder: named, sample, apiKey, allowedHosts, log } = options()
const url = `http://localhost:${port}`

if (!(await isFree(port))) {
  refuse(`Port ${port} is taken. Choose another one: npm start -- --port ${port + 1}`)
}

let folder = resolve(root, named ?? DEFAULT_FOLDER)
let place = await occupy(folder, url)
if ('takenBy' in place && named === undefined) {
  // Side by side without a word about folders: each port gets one.
  console.log(`${DEFAULT_FOLDER} is in use by ${place.takenBy}: using ${DEFAULT_FOLDER}-${port}.`)
  folder = resolve(root, `${DEFAULT_FOLDER}-${port}`)
  place = await occupy(folder, url)
}
if ('takenBy' in place) {
  refuse(`${folder} is in use by ${place.takenBy}. Choose another one: npm start -- --persist-to DIR`)
}
const { release } = place

/** @type {import('node:child_process').ChildProcess | undefined} */
let server
let stopping = false

/**
 * Ends everything that this script started.
 * @param {number} code
 */
async function stop(code) {
  if (stopping) return
  stopping = true
  if (server?.pid !== undefined && server.exitCode === null) {
    const closed = new Promise((resolve) => server?.once('close', resolve))
    // A group of its own: wrangler, its own child and workerd end together.
    signal(server.pid, 'SIGTERM')
    await Promise.race([closed, sleep(STOP_MS)])
    signal(server.pid, 'SIGKILL')
  }
  release()
  process.exit(code)
}

/**
 * @param {number} group
 * @param {NodeJS.Signals} name
 */
function signal(group, name) {
  try {
    process.kill(-group, name)
  } catch {
    // nobody of the group is left
  }
}

process.on('SIGINT', () => stop(130))
process.on('SIGTERM', () => stop(143))
process.on('SIGHUP', () => stop(129))
if (process.env.npm_lifecycle_event === 'start') {
  // npm can be killed without passing a signal on; its end is ours. (`exec` in package.json leaves no shell between.)
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && stop(0), 500).unref()
}

/**
 * The configuration as it is served here: without the rate limits, whose local stand-in loses connections while
 * the machine is busy, and wrangler's server ends with the first one that is lost.
 * @param {string} folder
 */
function localConfig(folder) {
  const file = join(folder, 'wrangler.toml')
  const config = readFileSync(join(root, 'wrangler.toml'), 'utf8')
    .replace(/^\[\[ratelimits\]\]\n(?:\w.*\n)+/gm, '')
    .replace(
      /^(main|directory|migrations_dir) = "(.*)"/gm,
      (_, key, path) => `${key} = ${JSON.stringify(resolve(root, path))}`,
    )
  writeFileSync(file, config)
  return file
}

/** Waits until the Worker answers. */
async function ready() {
  const deadline = Date.now() + READY_MS
  while (Date.now() < deadline && !stopping) {
    const response = await fetch(`${url}/health`).catch(() => undefined)
    if (response?.ok) return
    await sleep(100)
  }
  throw new Error('The server did not get ready in time.')
}

/** What the cron trigger of wrangler.toml does when deployed. */
const tick = () => fetch(`${url}/cdn-cgi/handler/scheduled`).catch(() => undefined)

try {
  console.log('Preparing ...')
  await runWrangler(['d1', 'migrations', 'apply', 'DB', '--local', '--persist-to', folder])

  // Served from a bundle of its own: an edit of the sources then does not restart it under its users.
  const bundle = join(folder, 'bundle')
  await runWrangler(['deploy', '--dry-run', '--outdir', bundle])

  const args = ['dev', join(bundle, 'index.js'), '--no-bundle', '--config', localConfig(folder)]
  args.push('--local', '--persist-to', folder, '--port', String(port), '--inspector-port', '0')
  args.push('--env-file', writeSecrets(folder, apiKey))
  args.push('--var', 'AI_BACKEND:local', '--var', 'VECTORS:embedded')
  // One person's own machine: its private hosts (Ollama, vLLM) may be called, and nobody is kept waiting.
  args.push('--var', `ALLOWED_HOSTS:${allowedHosts}`, '--var', 'RATE_LIMITS:off')
  args.push('--var', `LOG_REQUESTS:${log ? 'on' : 'off'}`)
  args.push('--show-interactive-dev-session', 'false', '--log-level', log ? 'log' : 'error')
  server = wrangler(args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    // wrangler's list of what runs on this machine: two of the same name would be taken for one
    env: { WRANGLER_REGISTRY_PATH: join(folder, 'registry') },
  })
  server.once('exit', (code) => {
    if (stopping) return
    console.error('The server stopped.')
    stop(code || 1)
  })

  await ready()
  setInterval(tick, 60_000).unref()
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

console.log(`
Parley answers at ${url}
  key      ${apiKey}
  data     ${relative(process.cwd(), folder) || '.'}
  engines  built in: no account, no network
${question}
Ctrl-C stops it.`)
