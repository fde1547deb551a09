/**
 * The data folder of a local start: who uses it, and the secrets that belong to it.
 *
 * A Durable Object is a single writer, so one folder serves one process: a second one would write under its
 * feet. A file in the folder says who is there.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const STARTING_MS = 60_000

/** @param {string} path */
const read = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** @param {number} pid */
const isAlive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/**
 * The address of the Parley that a notice speaks of, or undefined when it is gone.
 * @param {string} file
 */
async function occupant(file) {
  const text = read(file)
  if (text === undefined) return undefined
  const { pid, url } = JSON.parse(text)
  if (!isAlive(pid)) return undefined
  // A process id is soon given to somebody else, after a restart of the machine for one: ask.
  const healthy = await fetch(`${url}/health`, { signal: AbortSignal.timeout(2000) }).then(
    (response) => response.ok,
    () => false,
  )
  const starting = Date.now() - statSync(file).mtimeMs < STARTING_MS
  return healthy || starting ? url : undefined
}

/**
 * Takes a folder, unless somebody has it.
 * @param {string} folder
 * @param {string} url where this process will answer
 * @returns {Promise<{ release: () => void } | { takenBy: string }>}
 */
export async function occupy(folder, url) {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'in-use.json')
  const takenBy = await occupant(file)
  if (takenBy !== undefined) return { takenBy }
  rmSync(file, { force: true })
  try {
    // wx: of two that start at once, one gets it
    writeFileSync(file, JSON.stringify({ pid: process.pid, url }), { flag: 'wx' })
  } catch {
    return { takenBy: JSON.parse(read(file) ?? '{}').url ?? 'another process' }
  }
  return { release: () => rmSync(file, { force: true }) }
}

/**
 * The key that provider credentials are sealed with: made once a folder, since what it sealed is there too.
 * @param {string} folder
 * @returns {string}
 */
export function encryptionKey(folder) {
  const file = join(folder, 'encryption-key')
  const key = read(file)?.trim() || randomBytes(32).toString('hex')
  writeFileSync(file, `${key}\n`, { mode: 0o600 })
  return key
}
