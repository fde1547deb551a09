/**
 * Which room of `src` may import which: the layering of the program, said once. `npm run check` runs this file, which names each
 * import that breaks the table. Biome's `noRestrictedImports` would need the whole table again for each room.
 */
import '../installed.mjs'
import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Files of no room: every room may import errors.ts, and none may import the entry. */
const LOOSE = '.'
const ENTRY = ['app.ts', 'index.ts']
/** What every room may import: helpers that know nothing of Parley, and what its Durable Objects share. */
const SHARED = ['lib', 'durable']

/** Everything below a search, each with those before it. `search` is what lies in that folder itself. */
const SEARCH = [
  'search',
  'search/text',
  'search/schema',
  'search/filter',
  'search/sets',
  'search/vectors',
  'vectorize',
  'search/documents',
  'search/embedding',
  'search/request',
  'search/run',
  'history',
  'analytics',
  'search/collection',
  'engines',
]
/** What reaches collections through the ports of registry/engines.ts, and not their objects. */
const PORTS = SEARCH.filter((room) => room !== 'search/collection')
const CORE = [
  ...SEARCH,
  'db',
  'models',
  'tools',
  'turn',
  'registry',
  'conversation',
  'auth',
  'sources',
  'question-sets',
  'webhooks',
]

/** @type {Record<string, string[]>} a room, and the rooms that it may import besides itself, SHARED and errors.ts */
const TABLE = {
  lib: [],
  durable: [],
  db: [],
  models: ['db'],
  tools: ['db', 'models'],
  ...Object.fromEntries(SEARCH.map((room, at) => [room, ['db', 'models', ...SEARCH.slice(0, at)]])),
  turn: ['models', 'tools', ...PORTS],
  auth: ['db'],
  registry: ['db', 'models', 'tools', ...SEARCH],
  conversation: ['db', 'models', 'tools', 'registry', 'turn', ...PORTS],
  'question-sets': ['db', 'models', 'registry', 'turn', ...PORTS],
  webhooks: ['db', 'models', 'registry', 'turn', 'conversation', ...PORTS],
  sources: ['db', 'models', 'registry', 'question-sets', ...PORTS],
  'api/http': CORE,
  'api/shared': ['api/http', ...CORE],
  'api/opensearch': ['api/shared', 'api/http', ...CORE.filter((room) => room !== 'db')],
}
/** Any other folder of `api`: a protocol. */
const PROTOCOL = ['api/shared', 'api/http', ...CORE]

/** Modules that are no files of `src`, and the rooms that may not import them: SQL is not for wires, and a turn is pure. */
const MODULES = [
  {
    name: /^sql-template-tag$/,
    isBarred: (/** @type {string} */ room) => room.startsWith('api/') || room === 'turn',
  },
  { name: /^cloudflare:/, isBarred: (/** @type {string} */ room) => room === 'turn' },
]

/** What a room may import the types of, from outside of `src`: the import's reader of pages. */
const OUTSIDE = { room: 'sources', name: '../../scripts/parley/import/reader.mjs' }

/** Rooms that have rooms in them. */
const HALLS = ['search', 'api']

/** @param {string} path of a file below `src`, with slashes @returns {string} */
function roomOf(path) {
  const [first = '', second = '', third] = path.split('/')
  if (second === '') return LOOSE
  return HALLS.includes(first) && third !== undefined ? `${first}/${second}` : first
}

/**
 * @param {string} src the folder
 * @returns {string[]} a sentence for each import that breaks the table
 */
export function breaches(src) {
  const found = []
  for (const each of globSync('**/*.ts', { cwd: src })) {
    const path = each.replaceAll(sep, '/')
    const file = join(src, each)
    const room = roomOf(path)
    if (room === LOOSE && ENTRY.includes(path)) continue
    const mayImport = TABLE[room] ?? (room.startsWith('api/') ? PROTOCOL : [])
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)) {
      const isBarred = MODULES.some((module) => module.name.test(name) && module.isBarred(room))
      if (isBarred) found.push(`src/${path} imports ${name}: ${room} may not.`)
      if (!name.startsWith('.') || (room === OUTSIDE.room && name === OUTSIDE.name)) continue
      const target = join(dirname(file), name)
      const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory() ?? false
      const imported = relative(src, isFolder ? join(target, 'index.ts') : `${target}.ts`).replaceAll(
        sep,
        '/',
      )
      const other = roomOf(imported)
      const isAllowed =
        [room, ...mayImport].includes(other) ||
        (SHARED.includes(other) && !(room === 'lib' && other === 'durable')) ||
        (other === LOOSE && !ENTRY.includes(imported))
      if (!isAllowed)
        found.push(`src/${path} imports ${imported}: ${room} may import ${mayImport.join(', ') || 'none'}.`)
    }
  }
  return found
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = breaches(fileURLToPath(new URL('../../src', import.meta.url)))
  for (const sentence of found) console.log(sentence)
  if (found.length > 0) console.log('The table of rooms is in scripts/lint/rooms.mjs.')
  process.exitCode = found.length === 0 ? 0 : 1
}
