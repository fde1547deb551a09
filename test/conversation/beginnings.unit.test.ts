import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { waitToBegin } from '../../src/conversation/beginnings'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Asks for so many beginnings at once. @returns the moments at which they were let in, and how many were refused */
async function ask(count: number): Promise<{ moments: number[]; refused: unknown[] }> {
  const started = Date.now()
  const moments: number[] = []
  const refused: unknown[] = []
  const asked = Array.from({ length: count }, () =>
    waitToBegin().then(
      () => moments.push(Date.now() - started),
      (error) => refused.push(error),
    ),
  )
  await vi.advanceTimersByTimeAsync(20_000)
  await Promise.all(asked)
  return { moments, refused }
}

it('lets a few turns begin at once, others one after another, and refuses those that would wait for long', async () => {
  expect(await ask(20)).toEqual({ moments: Array(20).fill(0), refused: [] })
  const { moments, refused } = await ask(1_000)
  expect(moments.slice(0, 23)).toEqual([...Array(20).fill(0), 10, 20, 30])
  expect(moments.at(-1)).toBe(5_000)
  expect(moments).toHaveLength(520)
  expect(refused).toHaveLength(480)
  expect(refused[0]).toMatchObject({ status: 503, retryAfter: 5 })
  // Those that were refused took nobody's place.
  expect((await ask(20)).moments).toEqual(Array(20).fill(0))
})
