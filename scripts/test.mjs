/**
 * `npm test`: the tests and `npm run check`. Format and lint come first, and nothing else runs if they fail. Then three parts run
 * at a time, since each waits some of its time; whoever ends first takes the next part. What the other parts print follows in the
 * end. `--all`, which is `npm run test:all`, runs the files named `*.full.*` too, all cases of the others, new random ones, and the
 * site generators of the examples.
 *
 * The last line is `N passed, N failed`, and before it stands every test that failed. If up to three files fail while the machine
 * is full, each is run once more by itself; what passes then counts as passed and is named as unsteady. Arguments go to vitest.
 */
import './installed.mjs'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleInto } from './bundle.mjs'
import { counted, mended, repeatable, total } from './testing/counts.mjs'
import { newestRuntime } from './testing/newest-runtime.mjs'
import { root } from './wrangler.mjs'

const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'))

/**
 * Runs a script of Node's.
 * @param {string} script
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, isBeside?: boolean }} [options] isBeside: keep the output, for `output`
 * @returns {Promise<{ succeeded: boolean, output: string }>}
 */
const run = (script, args, { env = {}, isBeside = false } = {}) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: isBeside ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    const end = (/** @type {NodeJS.Signals} */ name) => child.kill(name)
    process.once('SIGINT', end).once('SIGTERM', end)
    child.on('close', (code) => {
      process.off('SIGINT', end).off('SIGTERM', end)
      resolve({ succeeded: code === 0, output })
    })
  })

const isAll = process.argv.includes('--all')
const args = process.argv.slice(2).filter((argument) => argument !== '--all')
/** How many failed files may run again. With more, the code is at fault and not the load. */
const MOST_REPEATED = 1

/** Options whose value may be an argument of its own. */
const WITH_VALUE = ['-t', '--testNamePattern', '--project']

/** @param {string[]} args @returns {string[]} those that name no file */
const optionsOf = (args) =>
  args.filter(
    (argument, at) => argument.startsWith('-') || (at > 0 && WITH_VALUE.includes(String(args[at - 1]))),
  )

/**
 * Runs the tests of some projects.
 * @param {string} name of the report
 * @param {string[]} projects none: whatever the arguments name
 * @param {{ isBeside?: boolean, files?: string[], shard?: string | undefined, env?: Record<string, string> }} options isBeside: keep
 *   the output; files: no others; shard: the part of the files
 */
async function test(name, projects, { isBeside = false, files = [], shard, env = {} }) {
  const report = join(scratch, `${name}.json`)
  const stray = join(scratch, `${name}-stray.json`)
  const { succeeded, output } = await run(
    join(root, 'node_modules/vitest/vitest.mjs'),
    [
      'run',
      '--reporter=default',
      '--reporter=json',
      `--reporter=${fileURLToPath(new URL('testing/stray.mjs', import.meta.url))}`,
      `--outputFile.json=${report}`,
      // Arguments that name files of one project leave the other without any.
      '--passWithNoTests',
      ...projects.map((project) => `--project=${project}`),
      ...(shard === undefined ? [] : [`--shard=${shard}`]),
      ...(files.length === 0 ? args : optionsOf(args)),
      ...files,
    ],
    {
      env: { STRAY_ERRORS: stray, ...(isAll && { FULL: '1', RANDOM_SEED: '' }), ...env },
      isBeside,
    },
  )
  const outcome = { report: read(report), stray: read(stray), succeeded, mayBeEmpty: args.length > 0 }
  return { output, ...counted(name, outcome) }
}

/** @param {string} file @returns {any} its JSON; undefined where vitest did not write it */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/** @param {string} file @param {string} what */
const line = (file, what) => `${isAbsolute(file) ? relative(root, file) : file}: ${what}`

/**
 * Runs the file that failed once more, with the machine to itself.
 * @param {import('./testing/counts.mjs').Counts} first
 * @returns {Promise<import('./testing/counts.mjs').Counts>} with what the second run says of their tests
 */
async function repeated(first) {
  const files = repeatable(first, MOST_REPEATED)
  if (files.length === 0) return first
  const both = mended(first, await test('again', [], { files }))
  for (const [file, what] of both.unsteady) console.log(`unsteady: ${line(file, what)}`)
  return both
}

/** @param {string} name in this folder @param {string[]} args @param {{ isBeside?: boolean }} [options] */
const runScript = (name, args = [], options = {}) =>
  run(fileURLToPath(new URL(name, import.meta.url)), args, options)

const check = (/** @type {string[]} */ ...steps) => runScript('check.mjs', steps, { isBeside: true })

// A file that is not formatted fails the whole run. That is told now, and not in half an hour. Meanwhile the bundle is made that all
// servers start from: those that begin together would each make it. Where it cannot be made, they say why.
if (args.length === 0) {
  const bundled = bundleInto(join(scratch, 'bundle')).catch(() => {})
  const { succeeded, output } = await check('--first')
  await bundled
  if (!succeeded) {
    rmSync(scratch, { recursive: true, force: true })
    console.log(`${output.trimEnd()}\n`)
    console.log(
      'failed: npm run check. No test was run: `npm run fix` mends what it can, and then run this again.',
    )
    console.log('\n0 passed, 1 failed')
    process.exit(1)
  }
}

/** Installed before all else: without npm's registry nothing needs to begin. */
const newest = isAll && args.length === 0 ? newestRuntime() : undefined

const ownProjects = args.some((argument) => argument.startsWith('--project'))

/** @typedef {{ name: string, projects: string[], shard?: string }} Run one run of vitest */

/**
 * Halves of a project, each of which has a Parley or a workerd of its own, which no other test changes.
 * @param {string} project
 * @returns {[Run] | [Run, Run]} the project itself where arguments ask for some tests only
 */
const halves = (project) =>
  args.length > 0
    ? [{ name: project, projects: [project] }]
    : [
        { name: `${project}-1`, projects: [project], shard: '1/2' },
        { name: `${project}-2`, projects: [project], shard: '2/2' },
      ]

/** The longest parts first, and always some that wait for servers and timers beside some that work all of their time. */
function allParts() {
  const [worker, ...moreWorker] = halves('worker')
  const [clients, ...moreClients] = halves('clients')
  return [
    { name: 'browser', projects: ['browser'] },
    { name: 'commands', projects: ['commands'] },
    ...[worker, clients, ...moreWorker, ...moreClients],
    /** @type {const} */ ('check'),
    { name: 'unit', projects: ['unit', 'console'] },
  ]
}

/** @type {(Run | 'check')[]} */
const parts = ownProjects ? [{ name: 'shown', projects: [] }, 'check'] : allParts()

/** @type {{ output: string }[]} */
const besides = []
/** @type {import('./testing/counts.mjs').Counts[]} */
const counts = []
let passedCheck = false
let isShown = false

/** Does one part after the other, until none waits. */
async function lane() {
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    if (part === 'check') {
      const checked = await check(...(args.length === 0 ? ['--rest'] : []))
      besides.push(checked)
      passedCheck = checked.succeeded
      continue
    }
    // The output of one part can be read while it is written.
    const isBeside = isShown
    isShown = true
    const { name, projects, shard } = part
    const tested = await test(name, projects, { isBeside, shard })
    counts.push(tested)
    if (isBeside) besides.push(tested)
  }
}

// Each waits a third of its time or more. With four, tests that count what waits for what failed now and then on two cores.
await Promise.all(Array.from({ length: 3 }, lane))
for (const { output } of besides) console.log(`\n${output.trimEnd()}`)
const tested = [await repeated(total(counts))]
// What a later compatibility date changes shows before it is met.
if (newest) tested.push(await test('newest', ['worker'], { env: newest }))
const { passed, failed: failedTests, failures } = total(tested)
rmSync(scratch, { recursive: true, force: true })

// By itself: it and the tests want the whole machine.
const builtSites = !isAll || args.length > 0 || (await runScript('../test/frameworks.mjs')).succeeded

let failed = failedTests
if (passed + failed === 0) {
  console.error('There is no such test.')
  failed = 1
}
if (!passedCheck) failed += 1
if (!builtSites) failed += 1

for (const [file, names] of failures) for (const what of names) console.log(`failed: ${line(file, what)}`)
if (!passedCheck) console.log('failed: npm run check')
if (!builtSites) console.log('failed: the examples of the site generators')
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
