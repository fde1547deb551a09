/** Whole answers, and how it is noticed that nobody takes them. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

const ANSWER = { answer: 'Füße 日本語' }
const HEADERS = { 'x-parley-conversation-id': 'c-1' }

type Deliver = typeof import('../../../src/api/http/deliver').deliver

let deliver: Deliver
const lost = vi.fn(async () => {})

beforeEach(async () => {
  vi.useFakeTimers()
  vi.resetModules()
  lost.mockClear()
  deliver = (await import('../../../src/api/http/deliver')).deliver
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

/** An answer to what was asked for some time ago. */
const delivered = (age: number, signal?: AbortSignal): Response =>
  deliver(ANSWER, HEADERS, { lost, asked: Date.now() - age, ...(signal && { signal }) })

async function textOf(response: Response): Promise<string> {
  const text = response.text()
  await vi.advanceTimersByTimeAsync(500)
  return text
}

it('an answer within a second is its bytes and nothing more, at once', async () => {
  const response = delivered(900)
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(response.headers.get('x-parley-conversation-id')).toBe('c-1')
  expect(await response.text()).toBe(JSON.stringify(ANSWER))
  expect(lost).not.toHaveBeenCalled()
})

it('a later one is followed by blanks, whose reader takes them', async () => {
  const text = await textOf(delivered(1_000))
  expect(text).toMatch(/^\{.*\} +$/)
  expect(JSON.parse(text)).toEqual(ANSWER)
  expect(lost).not.toHaveBeenCalled()
})

it('a later one that is not taken to its end is lost', async () => {
  const reader = delivered(5_000).body!.getReader()
  await reader.read()
  await reader.cancel()
  await vi.advanceTimersByTimeAsync(100)
  expect(lost).toHaveBeenCalledOnce()
})

it('one whose caller had left by then is lost, where the runtime says so', async () => {
  delivered(100, AbortSignal.abort())
  expect(lost).toHaveBeenCalledOnce()
})

it('where a signal has fired there are no blanks any more, and a later signal counts', async () => {
  delivered(100, AbortSignal.abort())
  lost.mockClear()
  const caller = new AbortController()
  expect(await delivered(5_000, caller.signal).text()).toBe(JSON.stringify(ANSWER))
  expect(lost).not.toHaveBeenCalled()
  caller.abort()
  expect(lost).toHaveBeenCalledOnce()
})
