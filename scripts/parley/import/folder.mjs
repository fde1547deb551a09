/** Files on this machine that can be imported. */
import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, join, resolve, sep } from 'node:path'
import { EXIT, Failure } from '../failure.mjs'
import { isReadable, READABLE } from '../read/index.mjs'
import { filesOf } from './tree.mjs'

/**
 * @typedef {object} Found
 * @property {string} path on this machine
 * @property {string} name within the import, with `/`
 */

/** @param {string} at @returns {import('./tree.mjs').Folder<string>} */
const folderAt = (at) => ({
  entries: async () => {
    const entries = await readdir(at, { withFileTypes: true })
    return entries.map((entry) => {
      const path = join(at, entry.name)
      return {
        name: entry.name,
        ...(entry.isDirectory() && { folder: folderAt(path) }),
        ...(entry.isFile() && { file: path }),
      }
    })
  },
  text: (path) => readFile(path, 'utf8').catch(() => ''),
})

/**
 * The readable files of a folder and below it, in order (tree.mjs).
 * @param {string} folder
 * @returns {Promise<{ files: Found[], unreadable: string[] }>}
 */
export async function filesIn(folder) {
  const { files, unreadable } = await filesOf(folderAt(folder))
  return { files: files.map(({ name, file }) => ({ path: file, name })), unreadable }
}

/** Hexadecimal digits of a place: enough to tell folders apart, and too few to find out a path that nobody knows. */
const PLACE_DIGITS = 8

/**
 * Where a folder or a file is, as a short hash of its path on this machine: the path itself is nobody else's business.
 * @param {string} path
 * @returns {Promise<string>}
 */
export const placeOf = async (path) =>
  createHash('sha256')
    .update(await realpath(path))
    .digest('hex')
    .slice(0, PLACE_DIGITS)

/** @param {string} path */
const slashed = (path) => path.split(sep).join('/')

/**
 * @typedef {object} Local
 * @property {string} name what the import goes by: the folder's name, or the file's
 * @property {string} [place] of the folder or the one file
 * @property {Found[]} files
 * @property {string[]} unreadable documents of kinds that are not read
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
    const { files, unreadable } = await filesIn(first)
    if (files.length === 0) {
      throw new Failure(EXIT.usage, `${first} holds no file that can be read (${READABLE.join(' ')}).`)
    }
    return { name: basename(resolve(first)), place: await placeOf(first), files, unreadable }
  }
  const unreadable = paths.find((path) => !isReadable(path))
  if (unreadable !== undefined) {
    throw new Failure(EXIT.usage, `${unreadable} cannot be read. These can: ${READABLE.join(' ')}.`)
  }
  return {
    name: paths.length === 1 ? basename(first) : 'files',
    ...(paths.length === 1 && { place: await placeOf(first) }),
    files: paths.map((path) => ({ path, name: paths.length === 1 ? basename(path) : slashed(path) })),
    unreadable: [],
  }
}
