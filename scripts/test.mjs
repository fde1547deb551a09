/**
 * `npm test`: the tests, and `npm run check` beside them, whose output follows theirs. The last line is
 * `N passed, N failed`; arguments go to vitest. `--all`, which is `npm run test:all`, runs no part in short, and builds
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
const report = join(scratch, 'report.json')

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

const checking = run(fileURLToPath(new URL('check.mjs', import.meta.url)), [], { isBeside: true })
const { succeeded: tested } = await run(
  join(root, 'node_modules/vitest/vitest.mjs'),
  [
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...short.flatMap(({ left = [] }) => left.map((file) => `--exclude=${file}`)),
    ...args,
  ],
  { env: Object.assign({}, ...short.map(({ env }) => env)) },
)
const { succeeded: checked, output } = await checking
console.log(`\n${output.trimEnd()}`)
for (const line of told) console.log(line)

// After the tests: both want the whole machine.
const { succeeded: built } = isAll
  ? await run(fileURLToPath(new URL('frameworks.mjs', import.meta.url)), [])
  : { succeeded: true }

let passed = 0
let failed = 0
try {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
  passed = numPassedTests
  // A file that cannot even be loaded has no tests to count, and has failed.
  const unloaded = testResults.filter(
    (/** @type {{ status: string, assertionResults: { status: string }[] }} */ file) =>
      file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  )
  failed = numFailedTests + unloaded.length
} catch {
  console.error('vitest left no report.')
}
rmSync(scratch, { recursive: true, force: true })

// vitest also fails on errors outside of any test
if (!tested && failed === 0) failed = 1
if (!checked) failed += 1
if (!built) failed += 1

console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
