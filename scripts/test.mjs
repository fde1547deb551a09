/**
 * `npm test`: check, then every test. The last line is `N passed, N failed`; arguments go to vitest.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './wrangler.mjs'

/**
 * Runs a script of Node's, its output being ours.
 * @param {string} script
 * @param {string[]} args
 * @returns {Promise<boolean>} whether it succeeded
 */
const succeeds = (script, args = []) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit' })
    for (const name of /** @type {NodeJS.Signals[]} */ (['SIGINT', 'SIGTERM'])) {
      process.once(name, () => child.kill(name))
    }
    child.on('close', (code) => resolve(code === 0))
  })

const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'))
const report = join(scratch, 'report.json')

const checked = await succeeds(fileURLToPath(new URL('check.mjs', import.meta.url)))
const tested = await succeeds(join(root, 'node_modules/vitest/vitest.mjs'), [
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
  ...process.argv.slice(2),
])

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

console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
