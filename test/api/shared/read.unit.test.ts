/** Readers of a turn whose stream breaks off, and is asked for its rest. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventReader, type Resume } from '../../../src/api/shared/stream'
import type { TurnEvent } from '../../../src/turn/events'
import { place, TURN } from '../turn-events'

const EVENTS = TURN.map(place)
const bytesOf = (events: TurnEvent[]): Uint8Array =>
  new TextEncoder().encode(events.map((event) => `${JSON.stringify(event)}\n`).join(''))

/** A stream of some bytes that then breaks, or ends as if nothing came after. */
const broken = (bytes: Uint8Array, how: 'error' | 'end'): ReadableStream<Uint8Array> => {
  let sent = false
  return new ReadableStream({
    pull(controller) {
      if (!sent && bytes.length > 0) controller.enqueue(bytes)
      else if (how === 'end') controller.close()
      else controller.error(new Error('ReadableStream received over RPC disconnected prematurely.'))
      sent = true
    },
  })
}

async function gather(events: ReadableStream<Uint8Array>, resume?: Resume): Promise<TurnEvent[]> {
  const read = eventReader(events, resume)
  const all: TurnEvent[] = []
  for (let batch = await read(); batch; batch = await read()) all.push(...batch)
  return all
}

const LENGTH = bytesOf(EVENTS).length
const FIRST = bytesOf(EVENTS.slice(0, 1)).length
const how = fc.constantFrom('error' as const, 'end' as const)

test('wherever it breaks off, the turn is whole', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(LENGTH), how), { minLength: 1, maxLength: 3 }),
      async ([first, ...others]) => {
        const next = bytesOf(turn4())
        const resume: Resume = async (after) => {
          const { turn, seq } = after!
          expect(turn).toBe(3)
          const rest = bytesOf(EVENTS.filter((event) => event.seq > seq))
          const [cut, way] = others.shift() ?? [LENGTH, 'end' as const]
          // The log goes on with what comes after the turn: that is not this reader's.
          return broken(cut < rest.length ? rest.subarray(0, cut) : join(rest, next), way)
        }
        const [cut, way] = first!
        const head = bytesOf(EVENTS).subarray(0, Math.max(cut, FIRST))
        expect(await gather(broken(head, way), resume)).toEqual(EVENTS)
      },
    ),
  )
})

const turn4 = (): TurnEvent[] => EVENTS.map((event) => ({ ...event, turn: 4 }))

const join = (a: Uint8Array, b: Uint8Array): Uint8Array => new Uint8Array([...a, ...b])

test.each(['error', 'end'] as const)('one of which nothing was seen is asked for anew (%s)', async (way) => {
  const asked: unknown[] = []
  const resume: Resume = async (after) => {
    asked.push(after)
    return broken(bytesOf(EVENTS), 'end')
  }
  expect(await gather(broken(new Uint8Array(), way), resume)).toEqual(EVENTS)
  expect(asked).toEqual([undefined])
})

test('one that breaks off again and again is given up', async () => {
  let asked = 0
  const head = bytesOf(EVENTS.slice(0, 2))
  const resume: Resume = async () => {
    asked += 1
    return broken(new Uint8Array(), 'error')
  }
  await expect(gather(broken(head, 'error'), resume)).rejects.toMatchObject({ status: 503 })
  expect(asked).toBeLessThan(10)
})

test.each([async () => null, async () => Promise.reject(new Error('gone'))])(
  'one whose rest cannot be had ends in an error',
  async (resume) => {
    await expect(gather(broken(bytesOf(EVENTS.slice(0, 2)), 'error'), resume)).rejects.toMatchObject({
      status: 503,
    })
  },
)
