/**
 * `npm test`: all tests and `npm run check`, two at a time. The tests of clients spend much of their time waiting, so
 * all else runs beside them, one part after another; what the parts print follows in the end. The last line is
 * `N passed, N failed`. Arguments go to vitest. `--all`, which is `npm run test:all`, runs no part in short, and builds
 * the examples of the site generators too.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { changedFiles, shortParts } from './short-runs.mjs'
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

/**
 * Runs the tests of some projects.
 * @param {string} name of the report
 * @param {string[]} projects none: whatever the arguments name
 * @param {boolean} isBeside keep the output
 */
async function test(name, projects, isBeside) {
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
      ...args,
    ],
    { env: Object.assign({}, ...short.map(({ env }) => env)), isBeside },
  )
  return { output, ...counted(report, succeeded) }
}

/**
 * @param {string} report that vitest wrote
 * @param {boolean} succeeded whether it thinks so
 * @returns {{ passed: number, failed: number }}
 */
function counted(report, succeeded) {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    // A file that cannot even be loaded has no tests to count, and has failed.
    const unloaded = testResults.filter(
      (/** @type {{ status: string, assertionResults: { status: string }[] }} */ file) =>
        file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
    )
    const failed = numFailedTests + unloaded.length
    // vitest also fails on errors outside of any test
    return { passed: numPassedTests, failed: succeeded ? failed : Math.max(1, failed) }
  } catch {
    console.error('vitest left no report.')
    return { passed: 0, failed: 1 }
  }
}

const check = () => run(fileURLToPath(new URL('check.mjs', import.meta.url)), [], { isBeside: true })

const ownProjects = args.some((argument) => argument.startsWith('--project'))
const beside = (async () => {
  const tests = []
  for (const projects of ownProjects ? [] : [['worker'], ['unit', 'browser']]) {
    tests.push(await test(projects.join('-'), projects, true))
  }
  return { tests, check: await check() }
})()
const shown = await test('shown', ownProjects ? [] : ['clients'], false)
const { tests, check: checked } = await beside
for (const { output } of [...tests, checked]) console.log(`\n${output.trimEnd()}`)
for (const line of told) console.log(line)
rmSync(scratch, { recursive: true, force: true })

// By themselves: the tests and they want the whole machine.
const { succeeded: built } = isAll
  ? await run(fileURLToPath(new URL('frameworks.mjs', import.meta.url)), [])
  : { succeeded: true }

let passed = 0
let failed = 0
for (const counts of [shown, ...tests]) {
  passed += counts.passed
  failed += counts.failed
}
if (passed + failed === 0) {
  console.error('There is no such test.')
  failed = 1
}
if (!checked.succeeded) failed += 1
if (!built) failed += 1

console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
