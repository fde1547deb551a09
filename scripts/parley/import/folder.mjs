/** Files on this machine that can be imported. */
import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { isReadable, READABLE } from '../read/index.mjs'
import { EXIT, Failure } from '../server.mjs'
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

/** Hexadecimal digits of a place: enough to tell folders apart, and too few to find out a path that nobody knows. */
const PLACE_DIGITS = 8

/**
 * Where a folder or a file is, as a short hash of its path on this machine: the path itself is nobody else's business.
 * @param {string} path
 * @returns {Promise<string>}
 */
const placeOf = async (path) => placeOfReal(await realpath(path))

/** @param {string} path without links */
const placeOfReal = (path) => createHash('sha256').update(path).digest('hex').slice(0, PLACE_DIGITS)

/** What decides what a file becomes: the readers, and the packages that they stand on. */
const READERS = ['../../../package.json', '../../docs/anchors.mjs', './documents.mjs', './passages.mjs']

/**
 * Digests of files and of how they are read: a file with the same digest becomes the same documents.
 * @param {unknown} options of the import, as far as they change what comes of a file
 * @returns {Promise<(file: { id: string, name: string }, bytes: Uint8Array) => string>}
 */
export async function digests(options) {
  const folder = new URL('../read/', import.meta.url)
  const readers = (await readdir(folder)).sort().map((name) => new URL(name, folder))
  const hash = createHash('sha256').update(JSON.stringify(options ?? null))
  for (const file of [...READERS.map((name) => new URL(name, import.meta.url)), ...readers])
    hash.update(await readFile(file))
  const version = hash.digest('hex')
  return ({ id, name }, bytes) =>
    createHash('sha256')
      .update(JSON.stringify([version, id, name]))
      .update(bytes)
      .digest('hex')
      .slice(0, 20)
}

/**
 * The imported folder that a file or a folder is in.
 * @param {string} path
 * @param {Map<string, string>} places of sources (plan.mjs, `sourcesByPlace`)
 * @param {string} [named] the only source that it can be
 * @returns {Promise<{ source: string, place: string, within: string } | undefined>} `within`: its path in the folder
 */
async function importedAround(path, places, named) {
  const real = await realpath(path)
  // A folder that was imported by itself stays so.
  if (places.has(placeOfReal(real))) return undefined
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    const place = placeOfReal(folder)
    const source = places.get(place)
    if (source !== undefined && (named ?? source) === source)
      return { source, place, within: relative(folder, real).split(sep).join('/') }
    if (folder === dirname(folder)) return undefined
  }
}

/**
 * What paths on the command line stand for. `place` is where the folder or the file is.
 * @typedef {object} Local
 * @property {(Found & import('./documents.mjs').File)[]} files
 * @property {string[]} unreadable documents of kinds that are not read
 * @property {string[]} [around] what ids begin with whose files are looked at, of an imported folder that the paths are in
 */

/**
 * The files of a folder, or files. A folder's go by its name, and each of several files by its own, as if it were imported
 * alone: only whoever gives them one name says that they belong together. What is in a folder that was imported goes by that one's.
 * @param {string[]} paths one folder, or files
 * @param {string} [source] the name that the user gave to all of it
 * @param {Map<string, string>} [places] of what was imported before
 * @returns {Promise<Local>}
 * @throws Failure for a path that is not there or cannot be read, and for two files that go by the same name
 */
export async function localFiles(paths, source, places = new Map()) {
  const stats = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)))
  const missing = paths.find((_, at) => !stats[at])
  if (missing !== undefined) throw new Failure(EXIT.usage, `There is no file or folder ${missing}.`)
  const [first = '.'] = paths
  if (stats.some((each) => each?.isDirectory())) {
    if (paths.length > 1) throw new Failure(EXIT.usage, 'Import one folder at a time, or several files.')
    const { files: found, unreadable } = await filesOf(folderAt(first))
    const files = found.map(({ name, file }) => ({ path: file, name }))
    if (files.length === 0) {
      throw new Failure(EXIT.usage, `${first} holds no file that can be read (${READABLE.join(' ')}).`)
    }
    const around = await importedAround(first, places, source)
    const its = around
      ? { source: around.source, place: around.place }
      : { source: source ?? basename(resolve(first)), place: await placeOf(first) }
    const named = around ? files.map((file) => ({ ...file, name: `${around.within}/${file.name}` })) : files
    return {
      files: named.map((file) => ({ ...file, ...its, id: idIn(its.source, file.name) })),
      unreadable,
      ...(around && { around: [`${idIn(around.source, around.within)}/`] }),
    }
  }
  const unreadable = paths.find((path) => !isReadable(path))
  if (unreadable !== undefined) {
    throw new Failure(EXIT.usage, `${unreadable} cannot be read. These can: ${READABLE.join(' ')}.`)
  }
  const arounds = await Promise.all(paths.map((path) => importedAround(path, places, source)))
  const files = paths.map(async (path, at) => {
    const around = arounds[at]
    const name = around?.within ?? basename(path)
    const its = around ?? { source: source ?? name, place: await placeOf(path) }
    return { path, name, source: its.source, place: its.place, id: idIn(its.source, name) }
  })
  return {
    files: onceEach(await Promise.all(files)),
    unreadable: [],
    ...(arounds.some((each) => each) && { around: [] }),
  }
}

/** @param {string} source @param {string} name of a file within it, or the file's that it is */
const idIn = (source, name) => (name === source ? name : `${source}/${name}`)

/**
 * Files without those that were named twice.
 * @template {Found & import('./documents.mjs').File} File
 * @param {File[]} files
 * @throws Failure for two that would be the same document
 */
function onceEach(files) {
  /** @type {Map<string, File>} */
  const byId = new Map()
  for (const file of files) {
    const other = byId.get(file.id)
    if (other !== undefined && other.place !== file.place) {
      throw new Failure(
        EXIT.usage,
        `${other.path} and ${file.path} have the same name. Import the folder that both are in, or one after the other, each with a --source NAME.`,
      )
    }
    byId.set(file.id, file)
  }
  return [...byId.values()]
}
