/**
 * The data folder of a local start: the lock on it, and the secret that belongs to it.
 *
 * A Durable Object is a single writer, so one folder serves one process: a second one would write under its feet.
 * The lock is SQLite's own on a file of the folder. The operating system holds it for the process, however busy
 * that is, and drops it with the process, however that ends. `in-use.json` beside it is a notice for people and for
 * the next start; it locks nothing.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

/*
 * Processes that a start leaves behind when it is killed: the runtime serves on, and writes to the folder, without
 * it. Each start notes what it runs, and the next one ends what is left of that before it opens the folder.
 *
 * A process id is soon given to somebody else. A process is therefore known by its whole command line, in which
 * Miniflare puts a port of its own and wrangler's calls have the folder.
 */

/** How long wrangler may take to end by itself: it notices that nobody reads its output. In milliseconds. */
const WAIT_MS = 15_000
/** How long a process that was killed may take to go, in milliseconds. */
const GONE_MS = 10_000
const POLL_MS = 50

/** @typedef {{ pid: number, line: string }} Child a process and its command line, its words joined by spaces */

/** Whether there is a process of this id. @param {number} pid */
export function runs(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // There is one, of another user.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/** Whether a process has not ended. One that ended and that nobody waited for keeps its id. @param {number} pid */
function isThere(pid) {
  if (!runs(pid)) return false
  if (process.platform !== 'linux') return true
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/**
 * The command line of a process as the system tells it; undefined when there is none.
 * @param {number} pid
 * @returns {string | undefined}
 */
function commandLine(pid) {
  try {
    if (process.platform === 'linux') {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0$/, '').replaceAll('\0', ' ')
      return line || undefined
    }
    /** @param {string} command @param {string[]} args */
    const ask = (command, args) =>
      execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() ||
      undefined
    if (process.platform !== 'win32') return ask('ps', ['-ww', '-o', 'command=', '-p', String(pid)])
    const query = `(Get-CimInstance Win32_Process -Filter "ProcessId=${pid}").CommandLine`
    return ask('powershell', ['-NoProfile', '-Command', query])?.replaceAll('"', '')
  } catch {
    return undefined
  }
}

/** The parent of a process; undefined where the system does not tell. @param {number} pid */
function parentOf(pid) {
  try {
    const told =
      process.platform === 'linux'
        ? /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
        : execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' })
    return Number(told) || undefined
  } catch {
    return undefined
  }
}

/**
 * Watches for the end of the npm that runs this script: it can be killed without passing a signal on.
 * @returns {() => boolean} whether it has ended
 */
export function watchNpm() {
  const parent = process.ppid
  // Most shells put the script in their own place. Where one stays between, npm is its parent.
  const between = process.platform !== 'win32' && /^\S*sh -c /.test(commandLine(parent) ?? '')
  const npm = between ? parentOf(parent) : undefined
  return () => process.ppid !== parent || (npm !== undefined && !runs(npm))
}

/** Whether a process that was noted is still there. One that is about to end has no command line any more. @param {Child} child */
function lives({ pid, line }) {
  if (!isThere(pid)) return false
  const now = commandLine(pid)
  return now === undefined ? process.platform === 'linux' && isThere(pid) : now === line.replaceAll('"', '')
}

/**
 * Tells of every process that this one starts, directly, from now on, and of its end.
 * @param {(children: Child[]) => void} changed called with those that run
 * @returns {() => Child[]} those that run
 */
export function watchChildren(changed) {
  /** @type {Map<number, Child>} */
  const running = new Map()
  subscribe('child_process', (message) => {
    const { process: child } = /** @type {{ process: import('node:child_process').ChildProcess }} */ (message)
    child.once('spawn', () => {
      const { pid } = child
      if (pid === undefined) return
      running.set(pid, { pid, line: child.spawnargs.join(' ') })
      changed([...running.values()])
      child.once('exit', () => {
        running.delete(pid)
        changed([...running.values()])
      })
    })
  })
  return () => [...running.values()]
}

/** @param {Child[]} children @param {NodeJS.Signals} signal */
function kill(children, signal) {
  for (const { pid } of children) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended meanwhile, or may not be ended, which its wait shows.
    }
  }
}

/**
 * Ends processes in the way that lets them end their own, and waits for them.
 * @param {Child[]} children
 * @param {number} ms how long at most
 */
export async function endChildren(children, ms) {
  kill(children, 'SIGTERM')
  await outlast(children, ms)
}

/** @param {Child[]} children @param {number} ms @returns {Promise<Child[]>} those that still run after that time */
async function outlast(children, ms) {
  const deadline = Date.now() + ms
  for (;;) {
    const living = children.filter(({ pid }) => isThere(pid))
    if (living.length === 0 || Date.now() > deadline) return living
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/**
 * Ends what a start that was killed has left behind. Nothing is lost by it: the runtime has on disk what it has
 * acknowledged.
 * @param {Child[]} children as it noted them
 * @returns {Promise<number[]>} ids of the processes that were ended
 * @throws Error when one cannot be ended
 */
export async function endLeftovers(children) {
  const isRuntime = (/** @type {Child} */ { line }) => line.includes('workerd')
  const living = children.filter(lives)
  // Wrangler ends its own processes with itself, and is soon done.
  const stuck = await outlast(
    living.filter((child) => !isRuntime(child)),
    WAIT_MS,
  )
  const ended = [...living.filter(isRuntime), ...stuck]
  kill(ended, 'SIGKILL')
  const [left] = await outlast(ended, GONE_MS)
  if (left !== undefined) {
    throw new Error(
      `Process ${left.pid} of a start before still uses the folder, and could not be ended. End it: kill -9 ${left.pid}`,
    )
  }
  return ended.map(({ pid }) => pid)
}

const CONNECT_MS = 2_000

/** A folder that cannot be used. Its message says what to do. */
class FolderError extends Error {}

/**
 * What a start tells of itself.
 * @typedef {object} Notice
 * @property {number} pid
 * @property {string} url where it answers
 * @property {true} [locked] absent in notices of versions that had no lock
 * @property {Child[]} [children] processes that it started
 * @property {string} [entry] an address that nobody guesses: `/cdn-cgi/local/scheduled` below it fires the cron trigger
 */

/** @param {string} path */
const read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** @param {unknown} error @returns {string | undefined} */
const codeOf = (error) => /** @type {NodeJS.ErrnoException} */ (error).code

/**
 * The notice in a file; undefined for none, an empty one, or one that was cut off.
 * @param {string} file
 * @returns {Notice | undefined}
 */
function noticeIn(file) {
  try {
    const notice = JSON.parse(read(file) ?? '')
    return Number.isInteger(notice?.pid) && typeof notice.url === 'string' ? notice : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether somebody takes connections at an address. Unlike an answer, a connection takes no time of a busy server.
 * @param {string} url
 * @returns {Promise<boolean>}
 */
const listens = (url) =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), timeout: CONNECT_MS })
    const end = (/** @type {boolean} */ listening) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })

/** @param {string} folder @param {Notice | undefined} notice */
function taken(folder, notice) {
  // In the moment after a lock was taken the notice is still the one of the start before.
  const known = notice !== undefined && runs(notice.pid)
  const who = known ? `process ${notice.pid}, which answers at ${notice.url}` : 'another process'
  return new FolderError(`${folder} is in use by ${who}.
Stop that one first, or give this one a folder and a port of its own: npm start -- --persist-to DIR --port N`)
}

/**
 * @param {string} folder
 * @param {unknown} error of making it, or of making a file in it
 * @returns {Error}
 */
function unusable(folder, error) {
  const elsewhere = 'Name another folder: npm start -- --persist-to DIR'
  const code = codeOf(error)
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    return new FolderError(`${folder} is no folder, or a part of that path is a file. ${elsewhere}`)
  }
  if (['EACCES', 'EPERM', 'EROFS', 'ENOENT'].includes(code ?? '')) {
    return new FolderError(`${folder} cannot be written to (${code}): it holds Parley's data. ${elsewhere}`)
  }
  return /** @type {Error} */ (error)
}

/**
 * Makes sure that files can be made in a folder, which SQLite says less clearly.
 * @param {string} folder
 */
function requireWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true })
    const probe = join(folder, `.probe-${process.pid}`)
    writeFileSync(probe, '')
    rmSync(probe)
  } catch (error) {
    throw unusable(folder, error)
  }
}

/**
 * Locks a file for this process.
 * @param {string} file
 * @returns {Promise<import('node:sqlite').DatabaseSync | undefined>} what holds the lock until it is closed;
 *   undefined when another process has it
 */
async function lock(file) {
  const { DatabaseSync } = await import('node:sqlite').catch(() => {
    throw new FolderError(
      `Node ${process.versions.node} is too old for this script. Start it by npm, which has a newer one here: npm start`,
    )
  })
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database.close()
    if (/locked|busy/i.test(String(error))) return undefined
    throw new FolderError(
      `${file} cannot be locked: ${error instanceof Error ? error.message : error}. It may be read-only, no file of Parley's, or on a network drive that has no locks. Name another folder: npm start -- --persist-to DIR`,
    )
  }
}

/**
 * Takes a folder for this process, for as long as it lives.
 * @param {string} folder
 * @param {string} url where this process will answer
 * @returns {Promise<{
 *   left: Child[],
 *   note(told: Pick<Notice, 'children' | 'entry'>): void,
 *   release(): void,
 * }>} `left` are processes of a start before, which may live on after it was killed; `note` adds to the notice of this
 *   one, or replaces what it said
 * @throws FolderError when another process has the folder, or it cannot be written to
 */
export async function occupy(folder, url) {
  requireWritable(folder)
  const file = join(folder, 'in-use.json')
  const held = await lock(join(folder, 'lock.db'))
  if (held === undefined) throw taken(folder, noticeIn(file))
  const before = noticeIn(file)
  // A version without the lock may be running: its process lives and its port is open.
  if (before && !before.locked && runs(before.pid) && (await listens(before.url))) {
    held.close()
    throw taken(folder, before)
  }
  /** @type {Notice} */
  const notice = { pid: process.pid, url, locked: true }
  /** @param {Pick<Notice, 'children' | 'entry'>} told */
  const note = (told) => {
    Object.assign(notice, told)
    // Renamed into its place: whoever reads it finds all of it.
    const fresh = `${file}.new`
    writeFileSync(fresh, JSON.stringify(notice))
    renameSync(fresh, file)
  }
  const left = before?.children ?? []
  // Those that are left stay on the notice until they have gone: this process may be killed as well.
  note({ children: left })
  return {
    left,
    note,
    release: () => {
      rmSync(file, { force: true })
      held.close()
    },
  }
}

/**
 * The key that provider credentials are sealed with: made once a folder, since what it sealed is there too.
 * @param {string} folder
 * @returns {string}
 */
export function encryptionKey(folder) {
  const file = join(folder, 'encryption-key')
  const kept = read(file)?.trim()
  if (kept) return kept
  const key = randomBytes(32).toString('hex')
  writeFileSync(`${file}.new`, `${key}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return key
}
