import { describe, expect, it } from 'vitest'
import { slowAnswer } from '../../../src/api/http/deliver'
import { ApiError } from '../../../src/errors'

const request = new Request('http://parley.test/')
const record = { requestId: 'r-1', plain: false }
const call = { request, record }

const later = <T>(value: T, milliseconds: number): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), milliseconds))

describe('an answer that may take long', () => {
  it('is told with its own status when it does not', async () => {
    const answer = await slowAnswer(call, async () => ({ a: 1 }))
    expect(await answer.text()).toBe('{"a":1}')
    expect(answer.headers.has('content-encoding')).toBe(false)
    const refused = slowAnswer(call, async () => {
      throw new ApiError(408, 'Request Timeout')
    })
    await expect(refused).rejects.toMatchObject({ status: 408 })
  })

  it('begins with blanks when it does, and is JSON all the same', async () => {
    const long = { text: 'x'.repeat(200_000) }
    const answer = await slowAnswer(call, () => later(long, 1_600))
    const text = await answer.text()
    expect(text).toMatch(/^ +\{/)
    expect(JSON.parse(text)).toEqual(long)
  })

  it('tells an error that comes later as JSON', async () => {
    const answer = await slowAnswer(call, async () => {
      await later({}, 700)
      throw new ApiError(503, 'Ask again.')
    })
    expect(answer.status).toBe(200)
    expect(JSON.parse(await answer.text())).toEqual({ code: 503, error: 'Ask again.', message: 'Ask again.' })
  })

  it('is not gone on with when its caller leaves', async () => {
    let gone: AbortSignal | undefined
    const answer = await slowAnswer(call, (signal) => {
      gone = signal
      return later({}, 3_000)
    })
    const reader = answer.body!.getReader()
    await reader.read()
    expect(gone!.aborted).toBe(false)
    await reader.cancel()
    await expect.poll(() => gone!.aborted, { timeout: 5_000 }).toBe(true)
  })

  it('is not gone on with when nobody takes it', async () => {
    let gone: AbortSignal | undefined
    const answer = await slowAnswer(call, (signal) => {
      gone = signal
      return later({}, 8_000)
    })
    await expect.poll(() => gone!.aborted, { timeout: 7_000 }).toBe(true)
    await answer.body!.cancel()
  })

  it('is not gone on with when the runtime says that its caller has left', async () => {
    const caller = new AbortController()
    let gone: AbortSignal | undefined
    const answer = slowAnswer(
      { request: new Request(request, { signal: caller.signal }), record },
      (signal) => {
        gone = signal
        return later({}, 100)
      },
    )
    caller.abort()
    expect(gone!.aborted).toBe(true)
    await answer
  })
})
