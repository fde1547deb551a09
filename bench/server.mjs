/**
 * The bench Worker in one workerd process, without `wrangler dev`'s proxy in front: what is measured is the
 * Worker. CPU time is the process's own account of user and system time.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { unstable_readConfig } from 'wrangler'
import { directOptions, directUrl } from '../scripts/direct.mjs'
import { doorOf } from './alone.mjs'

const root = join(import.meta.dirname, '..')
const TICKS_PER_SECOND = 100

function bundle(root, outdir) {
  const wrangler = join(root, 'node_modules/wrangler/bin/wrangler.js')
  const args = [
    wrangler,
    'deploy',
    '--dry-run',
    '--minify',
    '--outdir',
    outdir,
    '--config',
    join(root, 'bench/wrangler.toml'),
  ]
  const run = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
  })
  if (run.status !== 0)
    throw new Error(`wrangler could not bundle the bench Worker:\n${run.stdout}${run.stderr}`)
}

/** The workerd children of this process. */
const workerds = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [, name, rest] = /\((.*)\) (.*)/s.exec(stat)
        const fields = rest.split(' ')
        return name === 'workerd' && Number(fields[1]) === process.pid ? [{ pid, fields }] : []
      } catch {
        return [] // the process ended while it was being read
      }
    })

/** Seconds of CPU that workerd has used so far. */
const workerdCpu = () =>
  workerds().reduce((sum, { fields }) => sum + Number(fields[11]) + Number(fields[12]), 0) / TICKS_PER_SECOND

/** Memory of workerd now, resident, in MiB. */
const workerdMemory = () =>
  workerds().reduce((sum, { pid }) => {
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return sum + Number(kilobytes ?? 0) / 1024
  }, 0)

/** Bytes that workerd has read so far: of storage, and a little of sockets. */
const workerdBytes = () =>
  workerds().reduce((sum, { pid }) => {
    const [, bytes] = /^rchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? []
    return sum + Number(bytes ?? 0)
  }, 0)

const COMPATIBILITY_DATE = '2026-08-15'
const BINDINGS = {
  AI_BACKEND: 'local',
  ALLOWED_HOSTS: 'localhost, 127.0.0.1',
  LOG_REQUESTS: 'off',
  CONSOLE: 'on',
  ADMIN_API_KEY: 'xyz',
  ENCRYPTION_KEY: 'a key for benchmarks only',
}

/**
 * Starts it on a free port with empty storage and migrated D1. `close()` removes everything again.
 * @param {{ apart?: boolean, copies?: string[], door?: boolean, from?: string, others?: object[] }} options `apart`: objects run in a Worker of their own, `objects`, and so in an
 *   isolate of their own: a profiler can tell its CPU from the Worker's (profile.mjs). `copies`: names of further isolates of
 *   the Worker, each with an address of its own. `door`: a Worker alone in a process of its own can call the objects and D1
 *   (alone.mjs). `from`: a checkout of another version, with its node_modules. `others`: more Workers
 */
export async function startServer({
  apart = false,
  copies = [],
  door = false,
  from = root,
  others = [],
} = {}) {
  const scratch = mkdtempSync(join(tmpdir(), 'parley-bench-'))
  bundle(from, join(scratch, 'bundle'))
  const {
    assets,
    compatibility_flags: compatibilityFlags = [],
    durable_objects,
  } = unstable_readConfig({ config: join(from, 'wrangler.toml') }, { hideWarnings: true })
  const objectOf = (className) => ({
    className,
    useSQLite: true,
    ...(apart && { scriptName: 'objects' }),
  })
  const bundled = join(scratch, 'bundle')
  const durableObjects = {
    CONVERSATION: objectOf('Conversation'),
    COLLECTION: objectOf('Collection'),
    RAW: objectOf('Raw'),
    // Another version may have none.
    ...(durable_objects.bindings.some(({ name }) => name === 'AGENT_SOCKET') && {
      AGENT_SOCKET: objectOf('AgentSocket'),
    }),
  }
  const d1Databases = { DB: 'parley' }
  const doors = door ? [doorOf({ d1Databases, durableObjects })] : []
  /** Reached as in a local start. */
  const workerOf = (name) => ({
    ...directOptions({ name, bundle: bundled, main: 'worker.js', assets, host: '127.0.0.1', port: 0 }),
    name,
    compatibilityDate: COMPATIBILITY_DATE,
    bindings: BINDINGS,
    assets: { directory: join(from, 'ui'), binding: 'ASSETS', routerConfig: { has_user_worker: true } },
    d1Databases,
    durableObjects,
  })
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      logRequests: false,
      resourcePersistencePath: join(scratch, 'storage'),
      ...(apart && { inspectorPort: 0 }),
      workers: [
        ...['parley', ...(apart ? ['objects'] : []), ...copies].map(workerOf),
        ...[...doors, ...others].map((other) => ({
          modules: true,
          compatibilityDate: COMPATIBILITY_DATE,
          unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
          ...other,
        })),
      ],
    }),
  )
  const url = await directUrl(miniflare, 'parley')
  const db = await miniflare.getD1Database('DB')
  const migrations = readdirSync(join(from, 'migrations'))
    .filter((file) => file.endsWith('.sql'))
    .sort()
  for (const file of migrations) {
    const statements = readFileSync(join(from, 'migrations', file), 'utf8').split('--> statement-breakpoint')
    for (const statement of statements) await db.prepare(statement.trim()).run()
  }
  return {
    url,
    cpu: workerdCpu,
    memory: workerdMemory,
    bytesRead: workerdBytes,
    db,
    /** What a Worker alone is made of. */
    options: {
      bundle: bundled,
      bindings: BINDINGS,
      compatibilityDate: COMPATIBILITY_DATE,
      compatibilityFlags,
    },
    /** The address of a Worker's inspector. */
    inspector: async (name) => {
      const { host } = await miniflare.getInspectorURL()
      const targets = await (await fetch(`http://${host}/json`)).json()
      return targets.find(({ id }) => id === `core:user:${name}`).webSocketDebuggerUrl
    },
    /** The address of a copy. */
    copy: (name) => directUrl(miniflare, name),
    /** The address of one of the others. */
    other: async (name) => (await miniflare.unsafeGetDirectURL(name)).origin,
    /** Fires the cron trigger. Settles with its end. */
    cron: async () => {
      const worker = await miniflare.getWorker()
      const { outcome } = await worker.scheduled({ cron: '* * * * *' })
      if (outcome !== 'ok') throw new Error(`the scheduled handler ended with ${outcome}`)
    },
    close: async () => {
      await miniflare.dispose()
      rmSync(scratch, { recursive: true, force: true })
    },
  }
}

/** A call with the admin key; throws with the body when it fails. */
export async function call(server, path, init = {}) {
  const response = await fetch(server.url + path, {
    ...init,
    headers: { 'x-typesense-api-key': 'xyz', ...init.headers },
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path}: ${response.status} ${text}`)
  return text
}
