/** Packages that only a rare test runs. They are in a folder of test/fixtures by their name and lock, and not in node_modules. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/fixtures')

/** Installs what is in a folder of test/fixtures, once for each lock. @returns where it is */
export async function installed(name: string): Promise<string> {
  const from = join(import.meta.dirname, '../fixtures', name)
  const lock = createHash('sha256')
    .update(readFileSync(join(from, 'package-lock.json')))
    .digest('hex')
  const folder = join(CACHE, `${name}-${lock.slice(0, 12)}`)
  if (existsSync(folder)) return folder
  mkdirSync(CACHE, { recursive: true })
  const begun = mkdtempSync(`${folder}-`)
  cpSync(from, begun, { recursive: true })
  await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: begun })
  // Another test may have been quicker.
  if (existsSync(folder)) rmSync(begun, { recursive: true })
  else renameSync(begun, folder)
  return folder
}

/** A package of those. */
export async function load<T>(name: string, packaged: string): Promise<T> {
  return createRequire(join(await installed(name), 'package.json'))(packaged)
}
