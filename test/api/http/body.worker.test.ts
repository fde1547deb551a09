/** Gzipped bodies in workerd, whose own streams inflate all that they are given at once. */
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { bodyBytes, readText } from '../../../src/api/http/body'
import { ApiError } from '../../../src/errors'

const PIECE = 4 * 1024

/** A request whose body is there at once, in pieces. `seen.taken` counts the bytes that were read from it. */
function send(body: Uint8Array) {
  const seen = { taken: 0 }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (seen.taken >= body.length) return controller.close()
        const piece = body.slice(seen.taken, seen.taken + PIECE)
        seen.taken += piece.length
        controller.enqueue(piece)
      },
    },
    { highWaterMark: 0 },
  )
  return { request: new Request('http://localhost/', { method: 'POST', body: stream }), seen }
}

const others = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

describe('a gzipped body', () => {
  const blank = 64 * 1024 * 1024
  const bomb = gzipSync(Buffer.alloc(blank, '\n'))
  const ratio = blank / bomb.length

  it('is inflated as it is read, and not ahead of that', async () => {
    const { request, seen } = send(bomb)
    let read = 0
    let ahead = 0
    let reads = 0
    for await (const bytes of bodyBytes(request)) {
      read += bytes.length
      expect(bytes.length).toBeLessThanOrEqual(128 * 1024)
      if (reads++ % 100 === 0) await others()
      ahead = Math.max(ahead, seen.taken * ratio - read)
    }
    expect(read).toBe(blank)
    // One piece that is being inflated and one that waits for it.
    expect(ahead).toBeLessThanOrEqual(2 * PIECE * ratio)
  })

  it('is read to its end behind a reader who stops, without being inflated', async () => {
    const { request, seen } = send(bomb)
    for await (const _ of bodyBytes(request)) break
    expect(seen.taken).toBe(bomb.length)
  })

  it('may be of several members', async () => {
    const parts = ['{"id":"1"}\n', 'Grüße '.repeat(10_000)]
    const { request } = send(Buffer.concat(parts.map((part) => gzipSync(part))))
    expect(await readText(request)).toBe(parts.join(''))
  })

  it.each([
    ['ends too early', bomb.subarray(0, 30_000)],
    ['is damaged', Buffer.concat([bomb.subarray(0, 20_000), Buffer.alloc(20_000, 0xff)])],
    ['has nothing but its first bytes', new Uint8Array([0x1f, 0x8b])],
  ])('is refused when it %s', async (_, body) => {
    await expect(readText(send(body).request, blank)).rejects.toEqual(
      new ApiError(400, 'The request body is not valid gzip.'),
    )
  })

  it('is refused when its sender breaks off', async () => {
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bomb.subarray(0, PIECE))
      },
      async pull(controller) {
        await others()
        controller.error(new Error('gone'))
      },
    })
    const request = new Request('http://localhost/', { method: 'POST', body: broken })
    await expect(readText(request, blank)).rejects.toBeInstanceOf(ApiError)
  })
})
