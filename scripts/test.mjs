/**
 * `npm test`: all tests and `npm run check`, three parts at a time. The tests of clients wait much of their time, so all else
 * runs beside them, and whoever ends first takes the next part that waits. What the other parts print follows in the end.
 * The last line is `N passed, N failed`, and before it stands every test that failed. A file that fails while the machine
 * is full is run once more by itself; what passes then counts as passed and is named as unsteady. Arguments go to vitest.
 * `--all`, which is `npm run test:all`, runs no part in short, and draws new random cases.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { changedFiles, PARTS, shortParts } from './short-runs.mjs'
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
    for (const name of /** @type {NodeJS.Signals[]} */ (['SIGINT', 'SIGTERM'])) {
      process.once(name, () => child.kill(name))
    }
    child.on('close', (code) => resolve({ succeeded: code === 0, output }))
  })

const isAll = process.argv.includes('--all')
const args = process.argv.slice(2).filter((argument) => argument !== '--all')
const short = isAll ? [] : shortParts(changedFiles(), process.env)
const told = short.map(({ name, short }) => `short run of ${name}: ${short}`)
if (told.length > 0) {
  told.push('They run whole when what they guard has changed; npm run test:all runs all.')
  console.log(told.join('\n'))
}

/** With more failed files than this, the code is at fault and not the load. */
const MOST_REPEATED = 3

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
 * @param {{ isBeside?: boolean, files?: string[], shard?: string | undefined }} options isBeside: keep the output; files: no
 *   others; shard: the part of the files
 */
async function test(name, projects, { isBeside = false, files = [], shard }) {
  const report = join(scratch, `${name}.json`)
  const { succeeded, output } = await run(
    join(root, 'node_modules/vitest/vitest.mjs'),
    [
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      // Arguments that name files of one project leave the other without any.
      '--passWithNoTests',
      ...projects.map((project) => `--project=${project}`),
      ...(shard === undefined ? [] : [`--shard=${shard}`]),
      ...short.flatMap(({ left = [] }) => left.map((file) => `--exclude=${file}`)),
      ...(files.length === 0 ? args : optionsOf(args)),
      ...files,
    ],
    { env: Object.assign(isAll ? { RANDOM_SEED: '' } : {}, ...short.map(({ env }) => env)), isBeside },
  )
  return { output, ...counted(report, succeeded) }
}

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {Map<string, string[]>} failures the tests that failed in each file
 */

/**
 * @param {string} report that vitest wrote
 * @param {boolean} succeeded whether it thinks so
 * @returns {Counts}
 */
function counted(report, succeeded) {
  /** @type {Counts['failures']} */
  const failures = new Map()
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    let failed = numFailedTests
    for (const { name, status, assertionResults } of testResults) {
      if (status !== 'failed') continue
      const tests = assertionResults.filter(
        (/** @type {{ status: string }} */ one) => one.status === 'failed',
      )
      failures.set(
        name,
        tests.map((/** @type {{ fullName: string }} */ { fullName }) => fullName),
      )
      // A file that cannot even be loaded has no tests to count, and has failed.
      if (tests.length === 0) failed += 1
    }
    // vitest also fails on errors outside of any test
    return { passed: numPassedTests, failed: succeeded ? failed : Math.max(1, failed), failures }
  } catch {
    console.error('vitest left no report.')
    return { passed: 0, failed: 1, failures }
  }
}

/** @param {Counts[]} all @returns {Counts} */
const total = (all) => ({
  passed: all.reduce((sum, { passed }) => sum + passed, 0),
  failed: all.reduce((sum, { failed }) => sum + failed, 0),
  failures: new Map(all.flatMap(({ failures }) => [...failures])),
})

/** @param {Counts['failures']} failures @returns {string[]} a line for each */
const lines = (failures) =>
  [...failures].flatMap(([file, names]) =>
    (names.length > 0 ? names : ['could not be run']).map((name) => `${relative(root, file)}: ${name}`),
  )

/**
 * Runs the files that failed once more, with the machine to themselves.
 * @param {Counts} first
 * @returns {Promise<Counts>} with what the second run says of their tests
 */
async function repeated(first) {
  if (first.failures.size === 0 || first.failures.size > MOST_REPEATED) return first
  const again = await test('again', [], { files: [...first.failures.keys()] })
  for (const line of lines(first.failures)) {
    if (!lines(again.failures).includes(line)) console.log(`unsteady: ${line}`)
  }
  // Their tests that passed at first are in both counts, so only the failed ones move.
  const mended = Math.max(0, lines(first.failures).length - lines(again.failures).length)
  return {
    passed: first.passed + mended,
    failed: Math.max(first.failed - mended, again.failed),
    failures: again.failures,
  }
}

const check = () => run(fileURLToPath(new URL('check.mjs', import.meta.url)), [], { isBeside: true })

const ownProjects = args.some((argument) => argument.startsWith('--project'))

/** @typedef {{ name: string, projects: string[], shard?: string }} Run one run of vitest */

/** Clients wait for servers and timers much of their time. Each half has a Parley of its own, which no other test changes. */
/** @type {Run[]} */
const waiting = ownProjects
  ? []
  : [
      // The longest part.
      { name: 'commands', projects: ['commands'] },
      ...(args.length > 0
        ? [{ name: 'clients', projects: ['clients'] }]
        : ['1/2', '2/2'].map((shard) => ({ name: `clients-${shard[0]}`, projects: ['clients'], shard }))),
    ]
/** These work all of their time. @type {(Run | 'check')[]} */
const working = ownProjects
  ? [{ name: 'shown', projects: [] }, 'check']
  : [
      { name: 'worker', projects: ['worker'] },
      { name: 'unit-browser', projects: ['unit', 'browser'] },
      'check',
    ]

/** @type {{ output: string }[]} */
const besides = []
/** @type {Counts[]} */
const counts = []
let passedCheck = false
let isShown = false

/**
 * Does one part after the other, of one kind first, until none waits.
 * @param {(Run | 'check')[]} first
 * @param {(Run | 'check')[]} then
 */
async function lane(first, then) {
  for (let part = first.shift() ?? then.shift(); part !== undefined; part = first.shift() ?? then.shift()) {
    if (part === 'check') {
      const checked = await check()
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

// Two lanes of what waits leave a machine of two cores to a third.
await Promise.all([lane(waiting, working), lane(waiting, working), lane(working, waiting)])
for (const { output } of besides) console.log(`\n${output.trimEnd()}`)
for (const line of told) console.log(line)
const { passed, failed: failedTests, failures } = await repeated(total(counts))
rmSync(scratch, { recursive: true, force: true })

// By themselves: the tests and they want the whole machine. Arguments ask for some tests only, and not for these.
/** @type {string[]} */
const failedParts = []
for (const { name, script } of PARTS) {
  if (script === undefined || args.length > 0 || short.some((part) => part.name === name)) continue
  const { succeeded } = await run(fileURLToPath(new URL(script, import.meta.url)), [])
  if (!succeeded) failedParts.push(name)
}

let failed = failedTests
if (passed + failed === 0) {
  console.error('There is no such test.')
  failed = 1
}
if (!passedCheck) failed += 1
failed += failedParts.length

for (const line of lines(failures)) console.log(`failed: ${line}`)
if (!passedCheck) console.log('failed: npm run check')
for (const name of failedParts) console.log(`failed: ${name}`)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
