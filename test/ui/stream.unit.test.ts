import fc from 'fast-check'
import { expect, test } from 'vitest'
import { events } from '../../ui/stream.js'

const body = (pieces: Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })

const read = async (pieces: Uint8Array[]): Promise<unknown[]> => {
  const found = []
  for await (const event of events(body(pieces) as never)) found.push(event)
  return found
}

const STREAM =
  '\n\ndata: {"message":"Grüße, 日本 🎬"}\n\n\ndata: {"message":""}\n\ndata: [DONE]\n\ndata: {"found":1}\n\n'

test('data lines are events; heartbeats and [DONE] are not', async () => {
  expect(await read([new TextEncoder().encode(STREAM)])).toEqual([
    { message: 'Grüße, 日本 🎬' },
    { message: '' },
    { found: 1 },
  ])
})

test('wherever the bytes are split, the events are the same', async () => {
  const bytes = new TextEncoder().encode(STREAM)
  const whole = await read([bytes])
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const pieces = edges.slice(1).map((edge, index) => bytes.slice(edges[index], edge))
      expect(await read(pieces)).toEqual(whole)
    }),
  )
})

test('a last line without its newline counts', async () => {
  expect(await read([new TextEncoder().encode('data: {"found":0}')])).toEqual([{ found: 0 }])
})
