/**
 * `npm test`: all tests and `npm run check`, two parts at a time. The tests of clients wait much of their time, so all else
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

/**
 * Runs the tests of some projects.
 * @param {string} name of the report
 * @param {string[]} projects none: whatever the arguments name
 * @param {{ isBeside?: boolean, files?: string[] }} options isBeside: keep the output; files: no others
 */
async function test(name, projects, { isBeside = false, files = [] }) {
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
      ...short.flatMap(({ left = [] }) => left.map((file) => `--exclude=${file}`)),
      ...args.filter((argument) => files.length === 0 || argument.startsWith('-')),
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

/** What the tests were made of, in the order of their beginning: the longest first. */
const waiting = ownProjects ? [[]] : [['commands'], ['worker'], ['unit', 'browser']]
/** @type {{ output: string }[]} */
const besides = []
/** @type {Counts[]} */
const counts = []

/** Runs what waits, one after the other, until nothing does. */
async function work() {
  for (let projects = waiting.shift(); projects !== undefined; projects = waiting.shift()) {
    const tested = await test(projects.join('-') || 'shown', projects, { isBeside: !ownProjects })
    counts.push(tested)
    if (!ownProjects) besides.push(tested)
  }
}

/** @returns {Promise<boolean>} whether `npm run check` has passed */
async function workAndCheck() {
  await work()
  const checked = await check()
  besides.push(checked)
  return checked.succeeded
}

/** Clients wait much of their time, so all else runs beside them. Who ends first goes on with what still waits. */
async function workAndShow() {
  if (!ownProjects) counts.push(await test('shown', ['clients'], {}))
  await work()
}

const [passedCheck] = await Promise.all([workAndCheck(), workAndShow()])
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
