/** Bodies that are read in one piece, beside other connections of the isolate. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { readWholeBody } from '../../src/models/call'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const body = (kilobytes: number): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < kilobytes; at++) controller.enqueue(new Uint8Array(1_024).fill(0x61))
      controller.close()
    },
  })

/** Reads a body. @returns milliseconds that it rested: the clock stands still but for timers */
async function restedFor(kilobytes: number): Promise<number> {
  const started = Date.now()
  const reading = readWholeBody(body(kilobytes), 2 ** 30)
  await vi.runAllTimersAsync()
  const { text, complete } = await reading
  expect([text.length, complete]).toEqual([kilobytes * 1_024, true])
  return Date.now() - started
}

it('waits for no timer, however many short bodies were read before', async () => {
  for (let round = 0; round < 50; round++) {
    vi.advanceTimersByTime(1_000)
    expect(await restedFor(14)).toBe(0)
  }
})

it('lets others go first while a long one is read', async () => {
  vi.advanceTimersByTime(1_000)
  expect(await restedFor(2_048)).toBeGreaterThan(0)
})
