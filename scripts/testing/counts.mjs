/** What runs of vitest come to: how many tests passed and failed, and which. Pure. */
import { isAbsolute } from 'node:path'

/**
 * @typedef {object} Report of vitest, as JSON
 * @property {{ name: string, status: string, assertionResults: { status: string, fullName: string }[] }[]} testResults
 *   by file
 *
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed failed tests, files that could not be run, and errors outside of tests
 * @property {Map<string, string[]>} failures what failed, by file. What belongs to no file stands under the name of the run
 * @property {Map<string, Set<string>>} passes the tests that passed, by file: of every file that was run
 */

const NOT_RUN = 'could not be run'
const STRAY = 'an error outside of tests: '

/**
 * @param {string} name of the run
 * @param {object} outcome
 * @param {Report | undefined} outcome.report undefined: vitest left none
 * @param {import('./stray.mjs').Stray[] | undefined} outcome.stray undefined: the run ended before its errors were written
 * @param {boolean} outcome.succeeded whether vitest says so
 * @param {boolean} [outcome.mayBeEmpty] whether having no test is no failure
 * @returns {Counts}
 */
export function counted(name, { report, stray, succeeded, mayBeEmpty = false }) {
  /** @type {Counts['failures']} */
  const failures = new Map()
  /** @type {Counts['passes']} */
  const passes = new Map()
  const fail = (/** @type {string} */ file, /** @type {string} */ what) =>
    failures.set(file, [...(failures.get(file) ?? []), what])

  for (const { name: file, status, assertionResults } of report?.testResults ?? []) {
    const named = (/** @type {string} */ wanted) =>
      assertionResults.filter((test) => test.status === wanted).map(({ fullName }) => fullName)
    const failed = named('failed')
    // Two files of one name, in two projects, are one here.
    passes.set(file, new Set([...(passes.get(file) ?? []), ...named('passed')]))
    for (const test of failed) fail(file, test)
    // A file that cannot even be loaded has no tests to count, and has failed.
    if (status === 'failed' && failed.length === 0) fail(file, NOT_RUN)
  }
  if (report !== undefined && stray === undefined) fail(name, 'vitest ended early')
  for (const { file, message } of stray ?? []) fail(file ?? name, STRAY + message.split('\n')[0])
  const tests = (report?.testResults ?? []).flatMap(({ assertionResults }) => assertionResults)
  const passed = tests.filter(({ status }) => status === 'passed').length
  if (report === undefined) fail(name, 'vitest left no report')
  else if (tests.length === 0 && failures.size === 0 && !mayBeEmpty) fail(name, 'has no test')
  else if (!succeeded && failures.size === 0) fail(name, 'vitest failed, and does not say why')
  return { passed, failed: [...failures.values()].flat().length, failures, passes }
}

/** @param {Counts[]} all @returns {Counts} */
export const total = (all) => ({
  passed: all.reduce((sum, { passed }) => sum + passed, 0),
  failed: all.reduce((sum, { failed }) => sum + failed, 0),
  failures: new Map(all.flatMap(({ failures }) => [...failures])),
  passes: new Map(all.flatMap(({ passes }) => [...passes])),
})

/**
 * The files that are worth another run by themselves.
 * @param {Counts} first
 * @param {number} most with more of them, the code is at fault and not the load
 * @returns {string[]} none where another run would not mend everything
 */
export function repeatable({ failures }, most) {
  const files = [...failures.keys()]
  return files.length <= most && files.every(isAbsolute) ? files : []
}

/**
 * What two runs come to: the whole, and one of the files that failed in it. What failed is mended where the second run shows
 * that it passes: a test that did, a file that was run, and no error outside of the tests of a file.
 * @param {Counts} first
 * @param {Counts} again
 * @returns {Counts & { unsteady: [file: string, what: string][] }} `unsteady`: what failed once and passed once
 */
export function mended(first, again) {
  /** @type {[file: string, what: string][]} */
  const unsteady = []
  /** @type {Counts['failures']} */
  const failures = new Map([...again.failures].map(([file, names]) => [file, [...names]]))
  let passed = first.passed
  for (const [file, names] of first.failures) {
    const now = again.failures.get(file) ?? []
    const passes = again.passes.get(file)
    for (const what of names) {
      const isTest = what !== NOT_RUN && !what.startsWith(STRAY)
      const passesNow = isTest ? passes?.has(what) && !now.includes(what) : passes && now.length === 0
      if (passesNow) {
        unsteady.push([file, what])
        if (isTest) passed += 1
      } else if (!now.includes(what)) failures.set(file, [...(failures.get(file) ?? []), what])
    }
  }
  return { passed, failed: [...failures.values()].flat().length, failures, passes: first.passes, unsteady }
}
