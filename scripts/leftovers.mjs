/**
 * Processes that a start leaves behind when it is killed: the runtime serves on, and writes to the folder, without
 * it. Each start notes what it runs, and the next one ends what is left of that before it opens the folder.
 *
 * A process id is soon given to somebody else. A process is therefore known by its whole command line, in which
 * Miniflare puts a port of its own and wrangler's calls have the folder.
 */
import { execFileSync } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'

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

/**
 * Ends processes in the way that lets them end their own, and waits for them.
 * @param {Child[]} children
 * @param {number} ms how long at most
 */
export async function endChildren(children, ms) {
  for (const { pid } of children) {
    try {
      process.kill(pid, 'SIGTERM')
    } catch {
      // It has ended meanwhile.
    }
  }
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
  for (const { pid } of ended) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended meanwhile, or may not be ended, which is seen below.
    }
  }
  const [left] = await outlast(ended, GONE_MS)
  if (left !== undefined) {
    throw new Error(
      `Process ${left.pid} of a start before still uses the folder, and could not be ended. End it: kill -9 ${left.pid}`,
    )
  }
  return ended.map(({ pid }) => pid)
}
