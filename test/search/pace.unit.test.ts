/** When a search takes a turn. */
import { expect, it } from 'vitest'
import { LongSearches, Pace } from '../../src/search/run/pace'

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
