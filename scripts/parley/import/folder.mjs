/** Files on this machine that can be imported. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import ignore from 'ignore'
import { EXIT, Failure } from '../failure.mjs'
import { isReadable, READABLE } from '../read/index.mjs'

/** Folders that hold no content of their own, wherever they are. */
const SKIPPED = new Set(['node_modules', '__pycache__', 'venv'])

/**
 * @typedef {object} Found
 * @property {string} path on this machine
 * @property {string} name within the import, with `/`
 */

/**
 * The readable files of a folder and below it, in order. Left out are hidden files, node_modules, and what a
 * .gitignore names.
 * @param {string} folder
 * @returns {Promise<Found[]>}
 */
export async function filesIn(folder) {
  /** @type {Found[]} */
  const found = []
  /** @param {string} at @param {((path: string) => boolean)[]} ignored */
  const walk = async (at, ignored) => {
    const own = await readFile(join(at, '.gitignore'), 'utf8').catch(() => '')
    const rules = own === '' ? undefined : ignore().add(own)
    const checks = rules
      ? [...ignored, (/** @type {string} */ path) => rules.ignores(slashed(relative(at, path)))]
      : ignored
    const entries = await readdir(at, { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(at, entry.name)
      if (entry.name.startsWith('.') || checks.some((isIgnored) => isIgnored(path))) continue
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) await walk(path, checks)
      else if (entry.isFile() && isReadable(entry.name)) {
        found.push({ path, name: slashed(relative(folder, path)) })
      }
    }
  }
  await walk(folder, [])
  return found
}

/** @param {string} path */
const slashed = (path) => path.split(sep).join('/')

/**
 * @typedef {object} Local
 * @property {string} name what the import goes by: the folder's name, or the file's
 * @property {Found[]} files
 */

/**
 * What paths on the command line stand for.
 * @param {string[]} paths one folder, or files
 * @returns {Promise<Local>}
 * @throws Failure for a path that is not there or cannot be read
 */
export async function localFiles(paths) {
  const stats = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)))
  const missing = paths.find((_, at) => !stats[at])
  if (missing !== undefined) throw new Failure(EXIT.usage, `There is no file or folder ${missing}.`)
  const [first = '.'] = paths
  if (stats.some((each) => each?.isDirectory())) {
    if (paths.length > 1) throw new Failure(EXIT.usage, 'Import one folder at a time, or several files.')
    const files = await filesIn(first)
    if (files.length === 0) {
      throw new Failure(EXIT.usage, `${first} holds no file that can be read (${READABLE.join(' ')}).`)
    }
    return { name: basename(resolve(first)), files }
  }
  const unreadable = paths.find((path) => !isReadable(path))
  if (unreadable !== undefined) {
    throw new Failure(EXIT.usage, `${unreadable} cannot be read. These can: ${READABLE.join(' ')}.`)
  }
  return {
    name: paths.length === 1 ? basename(first) : 'files',
    files: paths.map((path) => ({ path, name: paths.length === 1 ? basename(path) : slashed(path) })),
  }
}
