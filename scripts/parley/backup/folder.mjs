/** The folder of a backup: files of JSON lines, a manifest, and what is known of a backup that is not whole yet. */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { appendFile, mkdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { COMMAND, quoted } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'

/** The version of what is in the folder. */
const FORMAT = 1

/**
 * Rows of one kind, or documents of one collection.
 * @typedef {object} Part
 * @property {string} file
 * @property {number} rows
 * @property {number} bytes
 * @property {string} [after] the position at which its next page begins, while it is not whole
 * @property {string} [sha256] of the file, once it is whole
 */

/**
 * @typedef {object} Manifest
 * @property {number} format
 * @property {string} made_at
 * @property {string} url of the deployment
 * @property {Record<string, Part>} parts kinds of rows, and `collections`
 * @property {Record<string, Part>} documents by collection
 * @property {string[]} [clusters] collections in clusters, which are left out
 */

/** The name of the manifest's file. */
export const MANIFEST = 'manifest.json'
/** @param {string} folder */
export const manifestFile = (folder) => join(folder, MANIFEST)
/** @param {string} folder */
const progressFile = (folder) => join(folder, 'progress.json')

/** @param {string} file @returns {Promise<any>} undefined where there is none */
export async function readJson(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw new Failure(EXIT.usage, `${file} cannot be read: ${/** @type {Error} */ (error).message}`)
  }
}

/** Writes a file as a whole or not at all. @param {string} file @param {unknown} value */
export async function writeJson(file, value) {
  await writeFile(`${file}.new`, `${JSON.stringify(value, null, 1)}\n`)
  await rename(`${file}.new`, file)
}

/**
 * Begins a backup, or goes on with one that broke off.
 * @param {string} folder @param {string} url of the deployment
 * @returns {Promise<Manifest>}
 * @throws Failure for a folder with a whole backup, or one of another deployment
 */
export async function beginBackup(folder, url) {
  await mkdir(folder, { recursive: true })
  if (await readJson(manifestFile(folder))) {
    throw new Failure(EXIT.usage, `${folder} holds a backup already. Name another folder.`)
  }
  const begun = /** @type {Manifest | undefined} */ (await readJson(progressFile(folder)))
  if (begun && begun.url !== url) {
    throw new Failure(EXIT.usage, `${folder} holds half of a backup of ${begun.url}. Name another folder.`)
  }
  return begun ?? { format: FORMAT, made_at: new Date().toISOString(), url, parts: {}, documents: {} }
}

/** @param {string} folder @param {Manifest} manifest */
export const keepProgress = (folder, manifest) => writeJson(progressFile(folder), manifest)

/** @param {string} folder @param {Manifest} manifest */
export async function finishBackup(folder, manifest) {
  await writeJson(manifestFile(folder), manifest)
  await rm(progressFile(folder), { force: true })
}

/** Opens the file of a part for more lines. What was written after the last known state is cut off. @param {string} folder @param {Part} part */
export async function openPart(folder, part) {
  const file = join(folder, part.file)
  if (part.bytes === 0) await writeFile(file, '')
  else await truncate(file, part.bytes)
}

/** @param {string} folder @param {Part} part @param {string[]} lines */
export async function appendLines(folder, part, lines) {
  if (lines.length === 0) return
  const text = `${lines.join('\n')}\n`
  await appendFile(join(folder, part.file), text)
  part.rows += lines.length
  part.bytes += Buffer.byteLength(text)
}

/** @param {string} folder @param {Part} part */
export async function closePart(folder, part) {
  part.sha256 = await checksum(join(folder, part.file))
  delete part.after
}

/** @param {string} file @returns {Promise<string>} SHA-256 of its bytes, in hexadecimal digits */
export async function checksum(file) {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file)) hash.update(piece)
  return hash.digest('hex')
}

/** Whether the file of a part is there and what the backup wrote. @param {string} folder @param {Part} part */
export async function isWhole(folder, { file, bytes, sha256 }) {
  const path = join(folder, file)
  const size = await stat(path).then(
    ({ size }) => size,
    () => -1,
  )
  return size === bytes && (await checksum(path)) === sha256
}

/**
 * Reads the manifest of a whole backup, and checks its files.
 * @param {string} folder
 * @returns {Promise<Manifest>}
 * @throws Failure
 */
export async function openBackup(folder) {
  const manifest = /** @type {Manifest | undefined} */ (await readJson(manifestFile(folder)))
  if (!manifest) {
    const half = (await readJson(progressFile(folder))) !== undefined
    throw new Failure(
      EXIT.usage,
      half
        ? `The backup in ${folder} is not whole. Run \`${COMMAND} backup ${quoted(folder)}\` again first.`
        : `${folder} holds no backup.`,
    )
  }
  if (manifest.format !== FORMAT) {
    throw new Failure(
      EXIT.usage,
      `The backup in ${folder} has the format ${manifest.format}. This command line reads ${FORMAT}.`,
    )
  }
  for (const part of [...Object.values(manifest.parts), ...Object.values(manifest.documents)]) {
    if (await isWhole(folder, part)) continue
    const file = join(folder, part.file)
    throw new Failure(EXIT.usage, `${file} is missing or not what the backup wrote. Nothing was restored.`)
  }
  return manifest
}

/** @param {string} folder @param {Part | undefined} part @returns {AsyncGenerator<string>} */
export async function* linesOf(folder, part) {
  if (!part) return
  const input = createReadStream(join(folder, part.file))
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
    if (line !== '') yield line
}
