/** How a search waits for another one. */
import { expect, it } from 'vitest'
import { LongSearches, Pace } from '../../src/search/run/pace'

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
