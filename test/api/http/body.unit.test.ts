import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { bodyBytes, discardBody, readJson, readText } from '../../../src/api/http/body'
import { ApiError } from '../../../src/errors'

const post = (body: BodyInit, headers: Record<string, string> = {}): Request =>
  new Request('http://localhost/', { method: 'POST', body, headers, duplex: 'half' } as RequestInit)

/** A body of so many pieces that says how many were taken, and whether it was given up. */
function watched(pieces: number, piece: Uint8Array) {
  const seen = { taken: 0, cancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (seen.taken++ < pieces) controller.enqueue(piece)
        else controller.close()
      },
      cancel() {
        seen.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, seen }
}

describe('bodies', () => {
  it('are read whatever their content-type', async () => {
    expect(await readJson(post('{"a":1}', { 'content-type': 'text/plain' }))).toEqual({ a: 1 })
    expect(await readText(new Request('http://localhost/'))).toBe('')
  })

  it('are inflated when they begin as gzip', async () => {
    const text = JSON.stringify({ text: 'Grüße '.repeat(10_000) })
    expect(await readText(post(gzipSync(text)))).toBe(text)
  })

  it('are refused when they only begin as gzip', async () => {
    await expect(readText(post(new Uint8Array([0x1f, 0x8b, 1, 2, 3, 4])))).rejects.toEqual(
      new ApiError(400, 'The request body is not valid gzip.'),
    )
    const cut = gzipSync('x'.repeat(10_000)).subarray(0, 30)
    await expect(readText(post(cut))).rejects.toBeInstanceOf(ApiError)
  })

  it('are refused when they grow too large, and read to their end, since their sender is still sending', async () => {
    const { stream, seen } = watched(100, new Uint8Array(1024))
    await expect(readText(post(stream), 10_000)).rejects.toMatchObject({ status: 413 })
    expect(seen).toEqual({ taken: 101, cancelled: false })
  })

  it('are given up when nobody wants them and they do not end', async () => {
    const piece = new Uint8Array(16 * 1024 * 1024)
    const { stream, seen } = watched(1_000, piece)
    await discardBody(post(stream))
    expect(seen).toEqual({ taken: 33, cancelled: true })
  })

  it('are refused by the length they announce', async () => {
    await expect(readText(post('xxxx', { 'content-length': '20000' }), 10_000)).rejects.toMatchObject({
      status: 413,
    })
  })

  it('are read in pieces if they come in chunks, whatever length they announce', async () => {
    const { stream } = watched(100, new Uint8Array(1024))
    const pieces = []
    for await (const piece of bodyBytes(
      post(stream, { 'content-length': '10', 'transfer-encoding': 'chunked' }),
    )) {
      pieces.push(piece.length)
    }
    expect(pieces.length).toBeGreaterThan(10)
    expect(Math.max(...pieces)).toBeLessThan(100 * 1024)
  })

  it('are measured after inflating', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    await expect(readText(post(bomb), 1_000_000)).rejects.toMatchObject({ status: 413 })
  })

  it('are read to their end behind a reader who stops', async () => {
    const { stream, seen } = watched(10, new Uint8Array(16))
    for await (const _ of bodyBytes(post(stream))) break
    expect(seen).toEqual({ taken: 11, cancelled: false })
  })

  it.each(['', '{', 'undefined'])('are bad JSON: %s', async (text) => {
    await expect(readJson(post(text))).rejects.toMatchObject({ status: 400, message: 'Bad JSON.' })
  })
})
