/** The reader of providers' server-sent events: whatever the network does to the bytes, and whatever they are. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readEvents } from '../../src/models/call'
import { inPieces } from './pieces'

const CASES = Number(process.env.FUZZ_CASES) || 500
const PATIENCE = 30_000 + CASES * 10

const encoder = new TextEncoder()

async function gather(body: ReadableStream<Uint8Array>): Promise<string[]> {
  const events: string[] = []
  for await (const data of readEvents(body)) events.push(data)
  return events
}

/** Text of one line: letters of one to four bytes, and what looks like syntax. */
const line = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    fc.constantFrom('data: x', ': ', '[DONE]', '{"a":"é日🎬"}', '\u2028', '\u0085', 'id: 1', '\ufeffx', ' a'),
  )
  .map((text) => text.toWellFormed().replace(/[\r\n]/g, '') || 'x')
const ending = fc.constantFrom('\n', '\r\n', '\r')
const cuts = fc.array(fc.nat(100_000), { maxLength: 30 })

const block = fc.record({
  data: fc.array(line, { minLength: 1, maxLength: 3 }),
  before: fc.array(
    fc.constantFrom(': keep-alive', 'event: message', 'id: 7', 'retry: 10', 'unknown: x', ':'),
    { maxLength: 2 },
  ),
  ending,
})

test(
  'events are the same wherever their bytes are cut, with any line ends, the last blank line or not',
  {
    timeout: PATIENCE,
  },
  () =>
    fc.assert(
      fc.asyncProperty(fc.array(block, { maxLength: 8 }), cuts, fc.boolean(), async (blocks, cuts, whole) => {
        const text = blocks
          .map(({ data, before, ending }, index) => {
            const lines = [...before, ...data.map((text) => `data: ${text}`)].map((text) => text + ending)
            return lines.join('') + (whole || index < blocks.length - 1 ? ending : '')
          })
          .join('')
        const events = await gather(inPieces(encoder.encode(text), cuts))
        expect(events).toEqual(blocks.map(({ data }) => data.join('\n')))
      }),
      { numRuns: CASES },
    ),
)

test('any bytes are read to their end, the same wherever they are cut', { timeout: PATIENCE }, () =>
  fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc
          .array(fc.oneof(line, fc.constantFrom('data:', 'data: ', '\n', '\n\n', '\r', '\r\n', ':', '\0')))
          .map((parts) => encoder.encode(parts.join(''))),
      ),
      cuts,
      async (bytes, cuts) => {
        expect(await gather(inPieces(bytes, cuts))).toEqual(await gather(inPieces(bytes, [])))
      },
    ),
    { numRuns: CASES },
  ),
)

test('a body that breaks gives the events that were whole, and then its error', { timeout: PATIENCE }, () =>
  fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 8 }), cuts, fc.nat(40), async (lines, cuts, kept) => {
      const rest = encoder.encode(`data: ${'ü'.repeat(20)}`).slice(0, kept)
      const text = encoder.encode(lines.map((text) => `data: ${text}\n\n`).join(''))
      const events: string[] = []
      const reading = async () => {
        const body = inPieces(new Uint8Array([...text, ...rest]), cuts, new Error('cut'))
        for await (const data of readEvents(body)) events.push(data)
      }
      await expect(reading()).rejects.toThrow('cut')
      expect(events).toEqual(lines)
    }),
    { numRuns: CASES },
  ),
)
