/** How a search waits for another one, and how long its steps are. */
import { expect, it } from 'vitest'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { eachFewBlocks } from '../../src/search/run/word-sets'

it('is cut off if what it waits for takes longer than it may', async () => {
  const pace = new Pace(new LongSearches(), 0)
  expect(await pace.awaits(new Promise(() => {}))).toBe(false)
  expect(pace.cutoff).toBe(true)
})

it('goes on when what it waits for has ended', async () => {
  const pace = new Pace(new LongSearches())
  expect(await pace.awaits(Promise.resolve())).toBe(true)
  expect(pace.cutoff).toBe(false)
})

const SLICE = { ms: 1e9, rows: 1_000, width: 65_536 }

it('takes a turn before a step for which the slice does not suffice', async () => {
  const pace = new Pace(new LongSearches(SLICE))
  pace.countRows(600)
  await pace.rest(0.2)
  expect(pace.pauses).toBe(0)
  await pace.rest(0.8)
  expect(pace.pauses).toBe(1)
  // Of a step that is longer than a slice, nothing is gained by waiting.
  pace.countRows(100)
  await pace.rest(5)
  expect(pace.pauses).toBe(1)
  pace.end()
})

/** What is read between two pauses at most, where a block takes so many rows. */
async function longestStep(rowsOf: (number: number) => number): Promise<number> {
  const pace = new Pace(new LongSearches(SLICE))
  const read: number[] = []
  const steps = new Map<number, number>()
  await eachFewBlocks(
    Array.from({ length: 300 }, (_, at) => 300 - at),
    pace,
    (some) => {
      for (const number of some) {
        read.push(number)
        pace.countRows(rowsOf(number))
        steps.set(pace.pauses, (steps.get(pace.pauses) ?? 0) + rowsOf(number))
      }
      return true
    },
  )
  pace.end()
  expect(read).toHaveLength(300)
  return Math.max(...steps.values())
}

it.each([1, 20, 60, 150, 240, 700])('reads blocks of %d rows by the slice', async (rows) => {
  expect(await longestStep(() => rows)).toBeLessThanOrEqual(1_400)
})

it('reads fewer blocks at a time as soon as they take longer', async () => {
  // Newer documents cost less.
  expect(await longestStep((number) => 600 - 2 * number)).toBeLessThanOrEqual(1_600)
})
