/**
 * `parley backup` to a bucket and `parley restore` from one. Files are appended to while a backup is made, which objects of
 * a bucket cannot be. So both work in a folder on this machine, which goes when they are through. After a failure it stays,
 * and the next run goes on with it.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Bucket } from '../backup/bucket.mjs'
import { checksum, isWhole, MANIFEST, manifestFile, openBackup, readJson } from '../backup/folder.mjs'
import { progress } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'
import { backedUp, backup } from './backup.mjs'
import { restore } from './restore.mjs'

/** @typedef {import('../backup/folder.mjs').Manifest} Manifest */

/** @param {string} what @param {Bucket} bucket @returns {Promise<string>} that nobody else reads */
async function folderFor(what, { address }) {
  const folder = `.parley-${what}-${address.replace(/^r2:\/\//, '').replace(/[^\w.-]+/g, '-')}`
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** @param {Manifest} manifest */
const partsOf = ({ parts = {}, documents = {} }) => [...Object.values(parts), ...Object.values(documents)]

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} address such as `r2://backups/monday`
 * @param {{ json: boolean }} options
 * @returns {Promise<import('./backup.mjs').BackedUp>}
 * @throws Failure
 */
export async function backupToBucket(server, address, options) {
  const bucket = new Bucket(address, process.env)
  if (await bucket.find(MANIFEST)) {
    throw new Failure(EXIT.usage, `${bucket.address} holds a backup already. Name another place.`)
  }
  const folder = await folderFor('backup', bucket)
  // It was made before, and its upload broke off.
  const made = /** @type {Manifest | undefined} */ (await readJson(manifestFile(folder)))
  const done = made?.url === server.url ? await backedUp(folder, made) : await backup(server, folder, options)
  const parts = partsOf(await openBackup(folder))
  await progress('upload', parts.length, 'files', options.json, async (to) => {
    for (const [at, { file, bytes, sha256 }] of parts.entries()) {
      const there = await bucket.find(file)
      if (there?.bytes !== bytes || there.sha256 !== sha256) {
        await bucket.upload(file, join(folder, file), String(sha256))
      }
      to(at + 1)
    }
    // Last: a place without it holds no backup.
    await bucket.upload(MANIFEST, manifestFile(folder), await checksum(manifestFile(folder)))
  })
  await rm(folder, { recursive: true })
  return { ...done, folder: bucket.address }
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} address
 * @param {{ json: boolean, merge: boolean, secrets?: string }} options
 * @param {(keys: import('./restore.mjs').Restored['keys']) => void} showKeys
 * @returns {Promise<import('./restore.mjs').Restored>}
 * @throws Failure
 */
export async function restoreFromBucket(server, address, options, showKeys) {
  const bucket = new Bucket(address, process.env)
  const manifest = await bucket.find(MANIFEST)
  if (!manifest) throw new Failure(EXIT.usage, `${bucket.address} holds no whole backup.`)
  const folder = await folderFor('restore', bucket)
  await bucket.download(MANIFEST, manifestFile(folder))
  const files = partsOf(/** @type {Manifest} */ (await readJson(manifestFile(folder))))
  // Nothing in a bucket decides where on this machine a file is written.
  const odd = files.find(({ file }) => !/^[\w-]+\.jsonl$/.test(file))
  if (odd) throw new Failure(EXIT.usage, `${bucket.address} names a file that no backup has: ${odd.file}`)
  await progress('download', files.length, 'files', options.json, async (to) => {
    for (const [at, part] of files.entries()) {
      if (!(await isWhole(folder, part))) await bucket.download(part.file, join(folder, part.file))
      to(at + 1)
    }
  })
  const done = await restore(server, folder, options, showKeys)
  if (done.refused.length + done.differences.length === 0) await rm(folder, { recursive: true })
  return done
}
