/** Files that a build makes. Another process may be building the same ones, or serving them. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Writes a file in one step: nobody reads half of it.
 * @param {string} path
 * @param {string | Uint8Array} content
 * @throws Error where the folder cannot be written to
 */
export function writeWhole(path, content) {
  const draft = `${path}.${process.pid}`
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(draft, content)
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** @param {string} path @param {string | Uint8Array} content */
function holds(path, content) {
  try {
    return readFileSync(path).equals(Buffer.from(content))
  } catch {
    return false // not there yet
  }
}

/**
 * Writes what has changed, and removes what an earlier build made and this one does not.
 * @param {string} folder
 * @param {Map<string, string | Uint8Array>} files by their paths within the folder
 * @param {RegExp} made paths of files of the folder that come from a build
 */
export function writeBuilt(folder, files, made) {
  for (const [name, content] of files) {
    const path = join(folder, name)
    if (!holds(path, content)) writeWhole(path, content)
  }
  for (const path of readdirSync(folder, { recursive: true })) {
    const name = String(path).replaceAll('\\', '/')
    if (made.test(name) && !files.has(name)) rmSync(join(folder, name), { force: true })
  }
}
