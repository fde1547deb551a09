/**
 * A reporter for vitest that writes down the errors outside of tests, which its report as JSON leaves out: they make a run
 * fail that has no failed test. `STRAY_ERRORS` names the file.
 */
import { writeFileSync } from 'node:fs'

/** @typedef {{ file: string | undefined, message: string }} Stray `file`: of the tests that ran meanwhile, if vitest knows */

export default class StrayReporter {
  /**
   * @param {unknown} _modules
   * @param {readonly { message?: string, VITEST_TEST_PATH?: string }[]} errors
   */
  onTestRunEnd(_modules, errors) {
    const { STRAY_ERRORS: path } = process.env
    if (path === undefined) return
    /** @type {Stray[]} */
    const stray = errors.map(({ message = '', VITEST_TEST_PATH: file }) => ({ file, message }))
    writeFileSync(path, JSON.stringify(stray))
  }
}
