/**
 * `npm test`: check, and every test. The last line is `N passed, N failed`; arguments go to vitest.
 *
 * The clients' tests wait for most of their time, so everything else runs beside them. Among themselves they run one
 * file at a time: they share a Parley, and the server of `wrangler dev` does not survive a machine that is too busy.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './wrangler.mjs'

const given = process.argv.slice(2)
/** Whether the arguments say which projects are meant. */
const choosy = given.some((argument) => argument.startsWith('--project'))
const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'))

/**
 * Runs a script of Node's. Its output comes as it is written, between that of others.
 * @param {string} script
 * @param {string[]} args
 * @returns {Promise<boolean>} whether it succeeded
 */
const succeeds = (script, args = []) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.pipe(process.stdout, { end: false })
    child.stderr.pipe(process.stderr, { end: false })
    for (const name of /** @type {NodeJS.Signals[]} */ (['SIGINT', 'SIGTERM'])) {
      process.once(name, () => child.kill(name))
    }
    child.on('close', (code) => resolve(code === 0))
  })

/** @typedef {{ passed: number, failed: number }} Count */

/** @returns {Promise<Count>} */
async function check() {
  const checked = await succeeds(fileURLToPath(new URL('check.mjs', import.meta.url)))
  return { passed: 0, failed: checked ? 0 : 1 }
}

/**
 * Runs the tests of some projects of vitest.config.ts.
 * @param {string[]} projects none: those that the arguments name
 * @returns {Promise<Count>}
 */
async function test(...projects) {
  const report = join(scratch, `${projects.join('-')}.json`)
  const tested = await succeeds(join(root, 'node_modules/vitest/vitest.mjs'), [
    'run',
    ...projects.map((project) => `--project=${project}`),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    // What is asked for by name may all be in other projects.
    ...(given.length > 0 && !choosy ? ['--passWithNoTests'] : []),
    ...given,
  ])
  const { passed, failed } = countIn(report)
  // vitest also fails on errors outside of any test
  return { passed, failed: tested ? failed : Math.max(1, failed) }
}

/**
 * @param {string} report
 * @returns {Count}
 */
function countIn(report) {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    // A file that cannot even be loaded has no tests to count, and has failed.
    const unloaded = testResults.filter(
      (/** @type {{ status: string, assertionResults: { status: string }[] }} */ file) =>
        file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
    )
    return { passed: numPassedTests, failed: numFailedTests + unloaded.length }
  } catch {
    console.error('vitest left no report.')
    return { passed: 0, failed: 1 }
  }
}

const counts = await Promise.all(
  choosy
    ? [check(), test()]
    : [check().then(async (checked) => [checked, await test('unit', 'worker')]), test('clients')],
)
rmSync(scratch, { recursive: true, force: true })
const passed = counts.flat().reduce((sum, count) => sum + count.passed, 0)
const failed = counts.flat().reduce((sum, count) => sum + count.failed, 0)

console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
