import fc from 'fast-check'
import { expect, test, vi } from 'vitest'

// By a variable, as in session.unit.test.ts. Node has no network that goes and comes.
const EVENTS = '../../ui/widget/src/events'
const { readEvents } = await import(EVENTS)
vi.stubGlobal('addEventListener', () => {})
vi.stubGlobal('removeEventListener', () => {})

const body = (pieces: Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })

const read = async (pieces: Uint8Array[]): Promise<unknown[]> => {
  const found = []
  const { signal } = new AbortController()
  for await (const event of readEvents(new Response(body(pieces)), signal)) found.push(event)
  return found
}

const STREAM =
  'retry: 1000\n\nid: 1.0\nevent: delta\ndata: {"text":"Grüße, 日本 🎬\u2028"}\n\n:\n\nid: 1.1\nevent: done\ndata: {"answer":""}\n\n'

test('what has data is an event; heartbeats and the time to wait are not', async () => {
  expect(await read([new TextEncoder().encode(STREAM)])).toEqual([
    { turn: 1, seq: 0, type: 'delta', data: { text: 'Grüße, 日本 🎬\u2028' } },
    { turn: 1, seq: 1, type: 'done', data: { answer: '' } },
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

test('an event that was cut off is none', async () => {
  expect(await read([new TextEncoder().encode('id: 1.0\nevent: delta\ndata: {"text":"Gr')])).toEqual([])
})
