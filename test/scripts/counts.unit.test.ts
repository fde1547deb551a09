/** What `npm test` makes of vitest's reports: nothing that failed gets lost, in one run or in a second one. */
import { expect, test } from 'vitest'
import { type Counts, counted, mended, repeatable, total } from '../../scripts/testing/counts.mjs'

type Tests = Record<string, 'passed' | 'failed' | 'skipped'>

const report = (files: Record<string, Tests>, broken: string[] = []) => ({
  testResults: Object.entries(files).map(([name, tests]) => ({
    name,
    status: broken.includes(name) || Object.values(tests).includes('failed') ? 'failed' : 'passed',
    assertionResults: Object.entries(tests).map(([fullName, status]) => ({ fullName, status })),
  })),
})
const run = (files: Record<string, Tests>, more: Partial<Parameters<typeof counted>[1]> = {}): Counts => {
  const made = report(files)
  const succeeded = made.testResults.every(({ status }) => status === 'passed') && !more.stray?.length
  return counted('clients-1', { report: made, stray: [], succeeded, ...more })
}
const failuresOf = ({ failures }: Counts) => Object.fromEntries(failures)
const outcome = ({ passed, failed }: Counts) => [passed, failed]
const stray = (file?: string) => [{ file, message: 'socket hang up\n  at x' }]

test('tests are counted, and a file that could not be run is a failure', () => {
  const counts = counted('unit', {
    report: report({ '/a': { one: 'passed', two: 'failed', three: 'skipped' }, '/b': {} }, ['/b']),
    stray: [],
    succeeded: false,
  })
  expect(outcome(counts)).toEqual([1, 2])
  expect(failuresOf(counts)).toEqual({ '/a': ['two'], '/b': ['could not be run'] })
})

test('a part without a test, without a report or with a failure that nobody names has failed', () => {
  expect(failuresOf(run({}))).toEqual({ 'clients-1': ['has no test'] })
  expect(outcome(run({}, { mayBeEmpty: true }))).toEqual([0, 0])
  expect(outcome(run({ '/browser': { one: 'skipped' } }))).toEqual([0, 0])
  expect(outcome(run({}, { report: undefined, succeeded: false, mayBeEmpty: true }))).toEqual([0, 1])
  expect(outcome(run({ '/a': { one: 'passed' } }, { succeeded: false }))).toEqual([1, 1])
})

test('a run that ended before it told its errors has failed, and no second run mends it', () => {
  const ended = run({ '/a': { one: 'passed', two: 'failed' } }, { stray: undefined })
  expect(failuresOf(ended)).toEqual({ '/a': ['two'], 'clients-1': ['vitest ended early'] })
  expect(repeatable(ended, 2)).toEqual([])
})

test('an error outside of tests is a failure beside those of tests, of the file that ran', () => {
  const counts = run({ '/a': { one: 'passed', two: 'failed' } }, { stray: stray('/a') })
  expect(outcome(counts)).toEqual([1, 2])
  expect(failuresOf(counts)).toEqual({ '/a': ['two', 'an error outside of tests: socket hang up'] })
  expect(failuresOf(run({ '/a': { one: 'passed' } }, { stray: stray() }))).toEqual({
    'clients-1': ['an error outside of tests: socket hang up'],
  })
})

test('files are run again, unless a failure is of no file or there are many', () => {
  const failed = (...files: string[]) =>
    run(Object.fromEntries(files.map((file) => [file, { one: 'failed' as const }])))
  expect(repeatable(failed('/a', '/b'), 2)).toEqual(['/a', '/b'])
  expect(repeatable(failed('/a', '/b'), 1)).toEqual([])
  expect(repeatable(run({ '/a': { one: 'failed' } }, { stray: stray() }), 2)).toEqual([])
  expect(repeatable(run({ '/a': { one: 'passed' } }), 2)).toEqual([])
})

const FIRST: Tests = { one: 'passed', two: 'failed' }

test('what passes when it is run again is unsteady, and has passed', () => {
  const both = mended(
    run({ '/a': FIRST, '/b': { one: 'passed' } }),
    run({ '/a': { one: 'passed', two: 'passed' } }),
  )
  expect(outcome(both)).toEqual([3, 0])
  expect(both.unsteady).toEqual([['/a', 'two']])
})

test('what fails again, or is not run again, has failed', () => {
  expect(outcome(mended(run({ '/a': FIRST }), run({ '/a': FIRST })))).toEqual([1, 1])
  expect(outcome(mended(run({ '/a': FIRST }), run({ '/a': { one: 'passed' } })))).toEqual([1, 1])
  expect(failuresOf(mended(run({ '/a': FIRST }), run({ '/a': { one: 'passed', two: 'skipped' } })))).toEqual({
    '/a': ['two'],
  })
  const other = mended(run({ '/a': FIRST }), run({ '/a': { one: 'failed', two: 'passed' } }))
  expect(failuresOf(other)).toEqual({ '/a': ['one'] })
  const none = counted('again', { report: undefined, stray: undefined, succeeded: false })
  expect(mended(run({ '/a': FIRST }), none).failed).toBe(2)
})

test('an error outside of tests is forgiven only by a run that is free of any', () => {
  const first = run({ '/a': FIRST }, { stray: stray('/a') })
  const passing: Record<string, Tests> = { '/a': { one: 'passed', two: 'passed' } }
  const same = mended(first, run(passing, { stray: stray('/a') }))
  expect(outcome(same)).toEqual([2, 1])
  expect(same.unsteady).toEqual([['/a', 'two']])
  const other = mended(first, run(passing, { stray: [{ file: '/a', message: 'another' }] }))
  expect(other.failed).toBeGreaterThan(0)
  expect(outcome(mended(first, run(passing)))).toEqual([2, 0])
  // A second run that could not tell which file it was.
  expect(mended(first, run(passing, { stray: stray() })).failed).toBeGreaterThan(0)
})

test('parts add up', () => {
  const all = total([run({ '/a': FIRST }), run({ '/b': { one: 'passed' } }), run({})])
  expect(outcome(all)).toEqual([2, 2])
  expect(failuresOf(all)).toEqual({ '/a': ['two'], 'clients-1': ['has no test'] })
})
