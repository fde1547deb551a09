/**
 * `npm run mutations`: are faults in the core caught? Sixty of them, drawn from its syntax trees by a seed, are made in a copy of the
 * project, one at a time, and the tests of that room run until one of them fails. What no test notices is printed in the end: a place
 * for a test, or code that does nothing.
 *
 * `--first N` and `--room auth` take a part of them, `--until unit` or `--until worker` leaves out the tests that take longer,
 * `--seed S` draws others, and `--list` shows them without running anything.
 */
import '../scripts/installed.mjs'
import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAst } from 'vitest/node'
import { root } from '../scripts/wrangler.mjs'

/** Of each room. */
const DRAWN = 10

/**
 * The rooms, and where the promises of each are tested. Unit tests are those that import the file.
 * @type {Record<string, { worker: string[], clients: string[] }>}
 */
const ROOMS = {
  auth: {
    worker: [
      'test/auth',
      'test/gate',
      'test/api/turn-budgets',
      'test/api/parley/keys',
      'test/api/typesense/keys',
      'test/api/helpful-errors',
    ],
    clients: ['keys', 'mcp-keys', 'visitors', 'wires-visitors'],
  },
  turn: {
    worker: ['test/api/turn'],
    clients: ['parley', 'retrieval', 'named-models', 'model-text', 'stream'],
  },
  conversation: {
    worker: ['test/conversation'],
    clients: ['history', 'hang-up', 'faults', 'reload', 'opensearch-memory', 'stream'],
  },
  'search/filter': {
    worker: ['test/search/filter', 'test/search/joins'],
    clients: ['search-filters', 'joins'],
  },
  'search/documents': {
    worker: ['documents', 'import', 'batches', 'field', 'embedding.', 'int64'].map(
      (name) => `test/search/${name}`,
    ),
    clients: ['documents', 'embedding', 'many-fields', 'joins'],
  },
  'api/openai': {
    worker: ['test/api/openai', 'test/api/stored-replies'],
    clients: ['openai', 'seven-protocols'],
  },
}

/** @typedef {{ start: number, end: number, text: string, kind: string }} Change */
/** @typedef {Change & { room: string, file: string, line: number, was: string }} Fault */

/** @type {Record<string, string>} */
const FLIPPED = { '===': '!==', '!==': '===', '<': '<=', '<=': '<', '>': '>=', '>=': '>' }

/**
 * What can go wrong at a node.
 * @param {any} node of ESTree
 * @param {string} text of the file
 * @returns {Change | undefined}
 */
function changeAt(node, text) {
  const { type, operator, left, right } = node
  /** @param {string} to @param {string} kind */
  const between = (to, kind) => {
    const start = left.end + text.slice(left.end, right.start).indexOf(operator)
    return { start, end: start + operator.length, text: to, kind }
  }
  if (type === 'BinaryExpression' && FLIPPED[operator]) return between(FLIPPED[operator], 'flip a comparison')
  if (type === 'LogicalExpression' && operator !== '??')
    return between(operator === '&&' ? '||' : '&&', 'swap and/or')
  if (type === 'BinaryExpression' && '+-'.includes(operator) && typeof right.value === 'number')
    return { start: right.start, end: right.end, text: String(right.value + 1), kind: 'off by one' }
  if (type === 'AwaitExpression')
    return { start: node.start, end: node.argument.start, text: '', kind: 'drop an await' }
  const first = type === 'IfStatement' && (node.consequent.body?.[0] ?? node.consequent)
  if (first && /^(Throw|Return)Statement$/.test(first.type))
    return { start: node.test.start, end: node.test.end, text: 'false', kind: 'skip a check' }
  return undefined
}

/** @param {any} node @param {(node: any) => void} see */
function walk(node, see) {
  if (Array.isArray(node)) for (const each of node) walk(each, see)
  else if (typeof node?.type === 'string') {
    // Types are gone when a program runs.
    if (node.type.startsWith('TSType') || node.type.startsWith('TSInterface')) return
    see(node)
    for (const value of Object.values(node)) if (typeof value === 'object') walk(value, see)
  }
}

/** Mulberry32. @param {number} seed @returns {() => number} below 1, the same for a seed */
function random(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** @param {string} room @returns {Fault[]} all that can be made there */
const faultsOf = (room) =>
  readdirSync(join(root, 'src', room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .flatMap((name) => {
      const file = `src/${room}/${name}`
      const text = readFileSync(join(root, file), 'utf8')
      /** @type {Fault[]} */
      const faults = []
      walk(parseAst(text, { lang: 'ts' }), (node) => {
        const change = changeAt(node, text)
        if (change === undefined) return
        const line = text.slice(0, change.start).split('\n').length
        faults.push({ ...change, room, file, line, was: text.split('\n')[line - 1]?.trim() ?? '' })
      })
      return faults
    })

/** Each kind in turn, so that the most frequent one is not all there is. @param {string} room @param {number} seed */
function draw(room, seed) {
  const next = random(seed)
  const byKind = Object.values(Object.groupBy(faultsOf(room), ({ kind }) => kind))
  /** @type {Fault[]} */
  const drawn = []
  while (drawn.length < DRAWN && byKind.some((kind) => kind?.length)) {
    for (const kind of byKind) {
      const [fault] = kind?.splice(Math.floor(next() * kind.length), 1) ?? []
      if (fault !== undefined && drawn.length < DRAWN) drawn.push(fault)
    }
  }
  return drawn
}

/** @param {Fault} fault */
const told = ({ kind, file, line, was, text }) => `${kind}: ${file}:${line}  ${was}  (${text || 'no await'})`

/**
 * @param {string} copy of the project
 * @param {string[]} args of vitest
 * @returns {Promise<boolean>} whether all tests passed
 */
const passes = (copy, args) =>
  new Promise((resolve, reject) => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const child = spawn(process.execPath, [vitest, ...args, '--run', '--bail=1', '--passWithNoTests'], {
      cwd: copy,
      stdio: 'ignore',
    })
    const end = () => child.kill('SIGINT')
    process.once('exit', end)
    child.on('error', reject).on('close', (code) => {
      process.off('exit', end)
      resolve(code === 0)
    })
  })

/**
 * The tests of a room by how soon they tell.
 * @param {Fault} fault
 * @returns {[string, string[]][]} names and arguments
 */
const testsOf = ({ file, room }) => [
  ['unit', ['related', file, '--project=unit']],
  ['worker', ['--project=worker', ...(ROOMS[room]?.worker ?? [])]],
  ['clients', ['--project=clients', ...(ROOMS[room]?.clients ?? []).map((name) => `test/clients/${name}`)]],
]

/** Those that have passed without a fault: the unit tests of all faults at once, the others by room. @type {Set<string>} */
const sound = new Set()

/**
 * @param {string} copy
 * @param {Fault} fault
 * @param {Fault[]} all
 * @returns {Promise<string | undefined>} which tests noticed it
 * @throws Error where they fail without it, too
 */
async function caughtBy(copy, fault, all) {
  const path = join(copy, fault.file)
  const text = readFileSync(path, 'utf8')
  for (const [name, args] of testsOf(fault)) {
    const calm =
      name === 'unit' ? ['related', ...new Set(all.map(({ file }) => file)), '--project=unit'] : args
    const key = calm.join(' ')
    if (!sound.has(key) && !(await passes(copy, calm)))
      throw new Error(`They fail without a fault: vitest ${key}`)
    sound.add(key)
    writeFileSync(path, text.slice(0, fault.start) + fault.text + text.slice(fault.end))
    const isNoticed = !(await passes(copy, args))
    writeFileSync(path, text)
    if (isNoticed) return name
    if (name === values.until) break
  }
  return undefined
}

const { values } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    until: { type: 'string', default: 'clients' },
    first: { type: 'string', default: String(DRAWN) },
    room: { type: 'string', multiple: true, default: Object.keys(ROOMS) },
    seed: { type: 'string', default: '20261128' },
  },
})
const drawn = values.room.map((room) => draw(room, Number(values.seed)).slice(0, Number(values.first)))
// One of each room in turn.
const faults = Array.from({ length: DRAWN }, (_, at) => drawn.flatMap((room) => room[at] ?? [])).flat()
if (values.list) {
  for (const fault of faults) console.log(told(fault))
  process.exit(0)
}

const copy = mkdtempSync(join(tmpdir(), 'parley-mutations-'))
process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143))
cpSync(root, copy, {
  recursive: true,
  filter: (source) => !/^(node_modules|\.git|\.parley|\.wrangler)(\/|$)/.test(relative(root, source)),
})
// All but what is kept of earlier builds, which are of another program.
const packages = join(root, 'node_modules')
mkdirSync(join(copy, 'node_modules'))
for (const name of readdirSync(packages)) {
  if (!/^\.(cache|vite)/.test(name)) symlinkSync(join(packages, name), join(copy, 'node_modules', name))
}

/** @type {Fault[]} */
const escaped = []
for (const fault of faults) {
  const by = await caughtBy(copy, fault, faults)
  if (by === undefined) escaped.push(fault)
  console.log(`${by === undefined ? 'ESCAPED' : `caught by ${by}`}  ${told(fault)}`)
}
console.log(`\n${faults.length - escaped.length} of ${faults.length} caught`)
for (const fault of escaped) console.log(`escaped: ${told(fault)}`)
