/**
 * The bundle that `npm start` serves. Wrangler takes seconds to build the pages and to bundle the Worker, so what it made is
 * kept in node_modules, under a hash of all that it was made of: a start after which nothing has changed takes it from there.
 */
import { createHash, randomUUID } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { root, runWrangler } from './wrangler.mjs'

/** What the Worker and its pages are made of. The pages are built into `ui`. */
const SOURCES = [
  ...['src', 'ui', 'docs', 'examples', 'scripts'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'wrangler.toml'],
]
/** What npm has installed, which the project's lock tells only after `npm install`. */
const INSTALLED = 'node_modules/.package-lock.json'
/** Variables that what builds the pages and the bundle reads. */
const VARIABLES = ['DOCS_KEY', 'NODE_ENV']
/** A copy takes a second or less to make. */
const ABANDONED_MS = 3_600_000
const BUILT = /^ui\/(?:(?:console|widget)\/(?!tsconfig\.json$)[^/]+$|docs\/(?!src\/))/

/**
 * @param {string} root of the project
 * @returns {{ sources: string, all: string }} hashes of names and contents; `all` has the built pages too
 */
export function stateOf(root) {
  const [sources, all] = [createHash('sha256'), createHash('sha256')]
  const files = SOURCES.flatMap((source) =>
    source.includes('.')
      ? [source]
      : readdirSync(join(root, source), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ parentPath, name }) => relative(root, join(parentPath, name))),
  )
  const variables = VARIABLES.map((name) => `${name}=${process.env[name] ?? ''}\0`).join('')
  for (const hash of [sources, all]) hash.update(variables)
  if (existsSync(join(root, INSTALLED))) files.push(INSTALLED)
  for (const file of files.sort()) {
    const content = readFileSync(join(root, file))
    for (const hash of BUILT.test(file) ? [all] : [sources, all]) {
      hash.update(`${file}\0${content.length}\0`).update(content)
    }
  }
  return { sources: sources.digest('hex'), all: all.digest('hex') }
}

/** @param {() => void} work that only saves time, and may fail: the folder may be read-only, or another start may tidy it up */
function attempt(work) {
  try {
    work()
    return true
  } catch {
    return false
  }
}

const withWrangler = (/** @type {string} */ folder) =>
  runWrangler(['deploy', '--dry-run', '--outdir', folder])

/**
 * Puts the bundle of the sources, as they are now, into a folder, and builds the pages.
 * @param {string} folder
 * @param {object} [project] another one, in tests
 * @param {string} [project.from] its root
 * @param {(folder: string) => Promise<unknown>} [project.bundle] what bundles it
 * @throws Error with what wrangler says, when it cannot bundle them
 */
export async function bundleInto(folder, { from = root, bundle = withWrangler } = {}) {
  const keeping = join(from, 'node_modules/.cache/parley-bundle')
  rmSync(folder, { recursive: true, force: true })
  /** @type {string | undefined} */
  let sources
  const isKept = attempt(() => {
    const before = stateOf(from)
    sources = before.sources
    cpSync(join(keeping, before.all), folder, { recursive: true })
  })
  if (isKept) return
  await bundle(folder)
  attempt(() => {
    const made = stateOf(from)
    // Nobody knows what was bundled of sources that were edited meanwhile.
    if (made.sources !== sources) return
    mkdirSync(keeping, { recursive: true })
    const copy = join(keeping, randomUUID())
    // Another start may have put the same bundle there, or take it away this moment: no half of one is ever under its name.
    const isPlaced = attempt(() => {
      cpSync(folder, copy, { recursive: true })
      renameSync(copy, join(keeping, made.all))
    })
    if (!isPlaced) rmSync(copy, { recursive: true, force: true })
    for (const other of readdirSync(keeping)) {
      // Another start is making that one, unless it was killed while it did.
      const isDraft =
        other.includes('-') && Date.now() - statSync(join(keeping, other)).mtimeMs < ABANDONED_MS
      if (other === made.all || isDraft) continue
      // Renamed first: another start must not copy a part of it.
      const gone = join(keeping, randomUUID())
      renameSync(join(keeping, other), gone)
      rmSync(gone, { recursive: true, force: true })
    }
  })
}
