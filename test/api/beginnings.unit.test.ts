import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { giveBack, waitToBegin } from '../../src/api/http/admit-turn'

/** The line is one for all tests, so that time must not go back from one to the next. */
let now = Date.now()
beforeEach(() => {
  now += 3_600_000
  vi.useFakeTimers({ now })
})
afterEach(() => void vi.useRealTimers())

/** Asks for so many beginnings at once. @returns the moments at which they were let in, and how many were refused */
async function begin(count: number): Promise<{ moments: number[]; refused: unknown[] }> {
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
  expect(await begin(4)).toEqual({ moments: Array(4).fill(0), refused: [] })
  const { moments, refused } = await begin(1_000)
  expect(moments.slice(0, 7)).toEqual([...Array(4).fill(0), 10, 20, 30])
  expect(moments.at(-1)).toBe(5_000)
  expect(moments).toHaveLength(504)
  expect(refused).toHaveLength(496)
  expect(refused[0]).toMatchObject({ status: 503, retryAfter: 5 })
  // Those that were refused took nobody's place.
  expect((await begin(4)).moments).toEqual(Array(4).fill(0))
})

it('lets turns begin in the order in which they came', async () => {
  const begun: number[] = []
  const asked = Array.from({ length: 200 }, (_, index) => waitToBegin().then(() => begun.push(index)))
  await vi.advanceTimersByTimeAsync(5_000)
  await Promise.all(asked)
  expect(begun).toEqual(Array.from({ length: 200 }, (_, index) => index))
})

it('lets fewer begin while the isolate is busy, and nobody wait for longer than five seconds', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  // Each beginning keeps the isolate busy for 100 ms, in which no timer calls.
  const moments: number[] = []
  const refused: unknown[] = []
  const started = Date.now()
  const asked = Array.from({ length: 200 }, () =>
    waitToBegin().then(
      () => {
        moments.push(Date.now() - started)
        vi.setSystemTime(Date.now() + 100)
      },
      (error) => refused.push(error),
    ),
  )
  await vi.advanceTimersByTimeAsync(10_000)
  await Promise.all(asked)
  expect(moments.length + refused.length).toBe(200)
  expect(moments.length).toBeGreaterThan(20)
  expect(moments.length).toBeLessThan(80)
  expect(moments.at(-1)).toBeLessThanOrEqual(5_000)
  expect(refused[0]).toMatchObject({ status: 503, retryAfter: 5 })
})

it('gives the place of a request that begins no turn to the next one', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  const { moments } = await begin(100)
  await vi.advanceTimersByTimeAsync(10_000)
  const started = Date.now()
  const sooner: number[] = []
  const asked = Array.from({ length: 100 }, () =>
    waitToBegin().then(() => {
      sooner.push(Date.now() - started)
      giveBack()
    }),
  )
  await vi.advanceTimersByTimeAsync(10_000)
  await Promise.all(asked)
  expect(sooner.at(-1)).toBeLessThan(moments.at(-1)!)
})

it('lets turns begin again after all who waited have left', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  for (let n = 0; n < 1_000; n++) waitToBegin().catch(() => {})
  await vi.advanceTimersByTimeAsync(100)
  // The platform ends a request whose caller leaves, and its timers with it.
  const left = Date.now()
  vi.clearAllTimers()
  vi.setSystemTime(left)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await begin(4)).toEqual({ moments: Array(4).fill(0), refused: [] })
})

it('lets hardly any turn begin while a crowd of requests keeps the isolate busy', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  const started = Date.now()
  const moments: number[] = []
  const asked = Array.from({ length: 100 }, () =>
    waitToBegin().then(() => moments.push(Date.now() - started)),
  )
  // Every look at the timers comes some 20 ms late, as where workerd reads from many sockets in between.
  for (let n = 0; n < 50; n++) {
    vi.setSystemTime(Date.now() + 18)
    await vi.advanceTimersByTimeAsync(2)
  }
  const meanwhile = moments.length
  expect(meanwhile).toBeGreaterThan(4)
  expect(meanwhile).toBeLessThan(30)
  await vi.advanceTimersByTimeAsync(10_000)
  await Promise.all(asked)
  expect(moments).toHaveLength(100)
})

it('lets one turn begin after a standstill, however long it was', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  const moments: number[] = []
  const asked = Array.from({ length: 100 }, () => waitToBegin().then(() => moments.push(Date.now())))
  await vi.advanceTimersByTimeAsync(1)
  vi.setSystemTime(Date.now() + 3_000)
  const after = Date.now()
  await vi.advanceTimersByTimeAsync(5_000)
  await Promise.all(asked)
  expect(moments.filter((moment) => moment < after)).toHaveLength(4)
  expect(moments.filter((moment) => moment >= after && moment <= after + 5).length).toBeLessThan(3)
})
