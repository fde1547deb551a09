/** The isolate's memory of what D1 holds: what it answers while a row changes, and while D1 is away. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HELD_MS, RowCache } from '../../src/db/client'

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const away = () => Promise.reject(new Error('D1 is away'))
const gives = (row: string | undefined) => vi.fn(async () => row)

it('asks once while an entry lasts, and anew afterwards', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  const read = gives('first')
  await cache.find('a', read)
  expect(await cache.find('a', read)).toBe('first')
  expect(read).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1_000)
  expect(await cache.find('a', gives('second'))).toBe('second')
})

it('does not remember that there was nothing', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  expect(await cache.find('a', gives(undefined))).toBeUndefined()
  expect(await cache.find('a', gives('made since'))).toBe('made since')
})

it('forgets a row that is gone', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  await cache.find('a', gives('there'))
  vi.advanceTimersByTime(1_000)
  expect(await cache.find('a', gives(undefined))).toBeUndefined()
  await expect(cache.find('a', away)).rejects.toThrow('D1 is away')
})

it('goes on with an old entry while D1 is away, and has nothing else to say', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  await cache.find('a', gives('old'))
  vi.advanceTimersByTime(60_000)
  expect(await cache.find('a', away)).toBe('old')
  await expect(cache.find('b', away)).rejects.toThrow('D1 is away')
})

it('does not, where an entry must not outlive its time', async () => {
  const sums = new RowCache<number>('a sum', 1_000, { outlives: false })
  await sums.find('a', async () => 7)
  expect(await sums.find('a', async () => 8)).toBe(7)
  vi.advanceTimersByTime(1_000)
  await expect(sums.find('a', away)).rejects.toThrow('D1 is away')
})

it('says once a minute for each entry that it cannot be read anew', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  for (const key of ['a', 'b']) await cache.find(key, gives('old'))
  vi.advanceTimersByTime(1_000)
  const logged = async (times: number) => {
    for (let time = 0; time < times; time++) await cache.find('a', away)
    return vi.mocked(console.error).mock.calls.length
  }
  expect(await logged(5)).toBe(1)
  expect(console.error).toHaveBeenCalledWith(
    'a row could not be read anew',
    expect.stringContaining('D1 is away'),
  )
  await cache.find('b', away)
  vi.advanceTimersByTime(59_999)
  expect(await logged(5)).toBe(2)
  vi.advanceTimersByTime(1)
  expect(await logged(5)).toBe(3)
  // It could be read in between: the next failure is news.
  await cache.find('a', gives('new'))
  vi.advanceTimersByTime(1_000)
  expect(await logged(5)).toBe(4)
})

it('reads anew what was changed here', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  await cache.find('a', gives('old'))
  cache.forget('a')
  expect(await cache.find('a', gives('new'))).toBe('new')
  cache.clear()
  expect(await cache.find('a', gives('newest'))).toBe('newest')
})

it('holds a bounded number of rows', async () => {
  const cache = new RowCache<string>('a row', 60_000)
  for (let n = 0; n < 1_001; n++) await cache.find(`row ${n}`, gives('x'))
  const again = gives('x')
  await cache.find('row 0', again)
  expect(again).toHaveBeenCalledTimes(1)
})

describe('held', () => {
  /** Renewals that are under way. */
  let behind: Promise<unknown>[]
  const keep = (renewal: Promise<unknown>) => void behind.push(renewal)
  beforeEach(() => {
    behind = []
  })

  it('uses an old entry at once, and has the new one for whoever asks next', async () => {
    const cache = new RowCache<string>('a row', 1_000)
    await cache.find('a', gives('old'))
    vi.advanceTimersByTime(1_000)
    const read = gives('new')
    const asked = [cache.held('a', read, keep), cache.held('a', read, keep)]
    expect(await Promise.all(asked)).toEqual(['old', 'old'])
    await Promise.all(behind)
    expect(await cache.held('a', away, keep)).toBe('new')
    expect(read).toHaveBeenCalledTimes(1)
  })

  it('waits for the row when the entry is a minute old', async () => {
    const cache = new RowCache<string>('a row', 1_000)
    await cache.find('a', gives('old'))
    vi.advanceTimersByTime(HELD_MS - 1)
    expect(await cache.held('a', away, keep)).toBe('old')
    vi.advanceTimersByTime(1)
    expect(await cache.held('a', gives('new'), keep)).toBe('new')
  })

  it('renews again if a renewal never ends', async () => {
    const cache = new RowCache<string>('a row', 1_000)
    await cache.find('a', gives('old'))
    vi.advanceTimersByTime(1_000)
    await cache.held('a', () => new Promise(() => {}), keep)
    vi.advanceTimersByTime(5_000)
    expect(await cache.held('a', gives('new'), keep)).toBe('old')
    await behind.at(-1)
    expect(await cache.held('a', away, keep)).toBe('new')
  })

  it('goes on with the old entry if D1 is away, and renews it later', async () => {
    const cache = new RowCache<string>('a row', 1_000)
    await cache.find('a', gives('old'))
    vi.advanceTimersByTime(1_000)
    expect(await cache.held('a', away, keep)).toBe('old')
    await Promise.all(behind)
    expect(await cache.held('a', away, keep)).toBe('old')
  })

  it('forgets a row that is gone', async () => {
    const cache = new RowCache<string>('a row', 1_000)
    await cache.find('a', gives('there'))
    vi.advanceTimersByTime(1_000)
    await cache.held('a', gives(undefined), keep)
    await Promise.all(behind)
    expect(await cache.held('a', gives(undefined), keep)).toBeUndefined()
  })
})

it('does not cache what was read before a key was forgotten', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  let answer = (_: string): void => {}
  const slow = cache.find('a', () => new Promise<string>((resolve) => (answer = resolve)))
  cache.forget('a')
  answer('old')
  expect(await slow).toBe('old')
  expect(await cache.find('a', gives('new'))).toBe('new')
})

it('keeps rows that were read ahead', async () => {
  const cache = new RowCache<string>('a row', 1_000)
  const keep = cache.reading()
  keep('a', 'ahead')
  expect(await cache.find('a', away)).toBe('ahead')
  expect([cache.isFresh('a'), cache.isFresh('b')]).toEqual([true, false])
  vi.advanceTimersByTime(1_000)
  expect([cache.isFresh('a'), cache.isHeld('a')]).toEqual([false, true])
})
