/**
 * What wrangler runs before each bundle (wrangler.toml): the widget, the console and the documentation, into ui, and the reader of
 * sources, into dist. They take fifteen seconds of CPU, so they are built once, at the end of `npm ci` (`prepare` in package.json):
 * a note in node_modules tells what they were built from and how large they are, and where all of that is as it was, and the built
 * files too, nothing is built again. `--anew` builds in any case, as `npm run build` does.
 */
import './installed.mjs'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeWhole } from './built.mjs'
import { stateOf } from './bundle.mjs'
import { root } from './wrangler.mjs'

/**
 * The hash of the sources, those of what was built, and its sizes, which are within the budget: there is no note of others.
 * @typedef {{ sources: string, files: Record<string, string>, told: string[] }} Note
 */

/** @param {string | Uint8Array} content */
const hashOf = (content) => createHash('sha256').update(content).digest('hex')

/** @param {string} from the project's root */
const noteOf = (from) => join(from, 'node_modules/.cache/parley-pages.json')

/** Where each part of the pages is, and what builds it. @type {[folder: string, build: () => Promise<Built>][]} */
const PARTS = [
  ['ui/widget', async () => (await import('./widget.mjs')).makeWidget()],
  ['ui/console', async () => (await import('./console.mjs')).makeConsole()],
  ['ui/docs', async () => (await import('./docs.mjs')).makeDocs()],
  ['dist', async () => (await import('./reader.mjs')).makeReader()],
]

/** @typedef {{ files: Iterable<[name: string, content: string | Uint8Array]>, told: string[], isWithin: boolean }} Built */

/** @param {string} from @param {string} sources @returns {Note | undefined} the note, where the pages are those of the sources */
function keptNote(from, sources) {
  try {
    /** @type {Note} */
    const note = JSON.parse(readFileSync(noteOf(from), 'utf8'))
    const isSame =
      note.sources === sources &&
      note.told !== undefined &&
      Object.entries(note.files).every(([file, hash]) => hashOf(readFileSync(join(from, file))) === hash)
    return isSame ? note : undefined
  } catch {
    return undefined // no note yet, or a file is gone
  }
}

/**
 * Builds the pages where they are not those of the sources.
 * @param {object} [options]
 * @param {string} [options.from] the project's root; another one in tests
 * @param {typeof PARTS} [options.parts]
 * @param {boolean} [options.anew] in any case
 * @returns {Promise<{ told: string[], isWithin: boolean }>} the sizes of what was built, and whether each is within its budget
 * @throws Error with what is wrong with a source
 */
export async function buildPages({ from = root, parts = PARTS, anew = false } = {}) {
  const { sources } = stateOf(from)
  const kept = anew ? undefined : keptNote(from, sources)
  if (kept) return { told: kept.told, isWithin: true }
  const made = await Promise.all(parts.map(([, build]) => build()))
  const told = made.flatMap((part) => part.told)
  const isWithin = made.every((part) => part.isWithin)
  // Nobody knows what was built of sources that were edited meanwhile.
  if (isWithin && stateOf(from).sources === sources) {
    const files = made.flatMap(({ files }, at) =>
      Array.from(files, ([name, content]) => [`${parts[at]?.[0]}/${name}`, hashOf(content)]),
    )
    keep(noteOf(from), { sources, files: Object.fromEntries(files), told })
  }
  return { told, isWithin }
}

/** Keeps a note, which only saves time, and may fail where the folder is read-only. @param {string} path @param {Note} note */
function keep(path, note) {
  try {
    writeWhole(path, JSON.stringify(note))
  } catch {
    // The next build starts anew.
  }
}

async function main() {
  try {
    const { told, isWithin } = await buildPages({ anew: process.argv.includes('--anew') })
    console.log(told.join('\n'))
    if (!isWithin) process.exitCode = 1
  } catch (error) {
    // An installation is whole without the pages: a start or a deployment builds them, or says what is wrong.
    if (process.env.npm_lifecycle_event !== 'prepare') throw error
    console.log('The pages are built by the first start.')
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
