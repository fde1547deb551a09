/**
 * Every protocol says of a turn what its fold says, whatever its events are, wherever a reader joins, and however the
 * bytes are cut. One of the protocols here is made up: a protocol needs an encoder and nothing else.
 */

import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { messageShown } from '../../../src/api/opensearch/memory'
import { sourcesOf } from '../../../src/api/shared/sources'
import { eventReader, streamTurn, wholeTurn } from '../../../src/api/shared/stream'
import { messageOf, pairs } from '../../../src/conversation/messages'
import { Reader, TurnStream } from '../../../src/conversation/turn-stream'
import { contentOf, type Part, textOf } from '../../../src/lib/parts'
import { audienceOf, type LogEvent, type LogEventBody, type TurnEvent } from '../../../src/turn/events'
import { emptyTurn, fold, foldTurn, messagesOf, recordOf, traceOf } from '../../../src/turn/fold'

import { inPieces } from '../../fuzz/pieces'
import { logs } from '../../turn/logs'

import { jsonOf, PlainTextEncoder, protocols } from './protocols'

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const forReaders = (log: LogEvent[]): TurnEvent[] =>
  log.filter((event): event is TurnEvent => audienceOf(event) === 'reader' && event.type !== 'history')

/** Lets each piece of text cite a source that is known by then, some in two pieces. */
function citing(log: LogEvent[]): LogEvent[] {
  const turn = emptyTurn()
  const answer: Part[] = []
  return log.map((event) => {
    fold(turn, event)
    if (event.type === 'part') answer.push(event.part)
    if (event.type === 'done') return { ...event, answer }
    if (event.type !== 'delta') return event
    const { label } = sourcesOf(turn.passages).at(-1) ?? {}
    const text = label === undefined ? event.text : `${label.slice(1)}] ${event.text}[${label}][${label[0]}`
    answer.push(...contentOf(text))
    return { ...event, text }
  })
}
const citingLogs = logs.map(citing)
const answered = citingLogs.filter((log) => log.at(-1)!.type === 'done')
const failed = citingLogs.filter((log) => log.at(-1)!.type === 'error')

describe.each(Object.entries(protocols))('%s', (_, { encoder, streamed, whole, says, failed: endOf }) => {
  it('says in a stream and in one piece what the turn adds up to', () => {
    fc.assert(
      fc.property(answered, (log) => {
        const events = forReaders(log)
        const turn = foldTurn(events)
        const encode = encoder(turn)
        const stream = events.map((event) => encode.encode(event)).join('')
        expect(json(streamed(stream))).toEqual(json(whole(turn)))
        expect(streamed(stream).text).toBe(says?.(turn) ?? textOf(turn.answer))
      }),
      { numRuns: 50 },
    )
  })

  it('says at the end why the turn failed', () => {
    fc.assert(
      fc.property(failed, (log) => {
        const events = forReaders(log)
        const turn = foldTurn(events)
        const encode = encoder(turn)
        const before = events.slice(0, -1).map((event) => encode.encode(event))
        const end = encode.fail?.(turn.error!) ?? encode.encode(events.at(-1)!)
        const stream = [...before, end].join('')
        const last = endOf ? endOf(stream) : jsonOf(stream).at(-1)
        expect(JSON.stringify(last)).toContain(turn.error!.message)
      }),
      { numRuns: 50 },
    )
  })
})

it("OpenSearch's memory shows of a turn what its record and its messages say", () => {
  fc.assert(
    fc.property(logs, (log) => {
      const turn = foldTurn(log)
      const { question, answer } = recordOf(turn, 5_000)
      const { message } = traceOf(turn)
      const row = {
        conversationId: 'c',
        turn: 3,
        question,
        answer,
        createdAt: 5_000,
        parts: null,
        traces: null,
      }
      const shown = messageShown(messageOf({ ...row, more: message ? JSON.stringify(message) : null }))
      expect(shown).toMatchObject({
        memory_id: 'c',
        message_id: 'c_3',
        create_time: '1970-01-01T00:00:05.000Z',
      })
      // A text that is blank is left out.
      expect(shown.input ?? '').toBe(question.trim() === '' ? '' : question)
      expect(shown.response ?? '').toBe(answer.trim() === '' ? '' : answer)
      const said = messagesOf(turn, 5).map(({ role, content, timestamp }) => ({
        role,
        message: textOf(content),
        timestamp,
      }))
      const texts = pairs('c', said).flatMap(({ input, response }) => [input ?? [], response ?? []].flat())
      expect(texts).toEqual(said.map(({ message }) => message))
    }),
  )
})

it('a protocol is an encoder and nothing else: it streams with the status, the silence and the ends of the others', async () => {
  const log = fc.sample(answered, 1)[0]!
  const bytes = new TextEncoder().encode(
    forReaders(log)
      .map((event) => `${JSON.stringify(event)}\n`)
      .join(''),
  )
  const response = await streamTurn(eventReader(inPieces(bytes, [5, 50])), new PlainTextEncoder(), {
    headers: { 'content-type': 'text/plain' },
    opensAt: 'event',
    heartbeat: '',
  })
  expect(response.status).toBe(200)
  expect(await response.text()).toContain('\nend: stop\n')
})

describe('a follower', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('who joins at any moment, after any event and for whatever it reads ends with the same turn', async () => {
    const following = fc.record({
      /** how many events had come */
      at: fc.nat(14),
      results: fc.boolean(),
      cuts: fc.array(fc.nat(2_000), { maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(answered, fc.array(following, { maxLength: 4 }), async (log, followers) => {
        const bodies: LogEventBody[] = log.map(
          ({ conversation_id: _, turn: _turn, seq: _seq, ...body }) => body,
        )
        const logged: string[] = []
        const stream = new TurnStream('c', 3, (lines) => void logged.push(lines))
        const joined = followers.map(() => new Reader())
        const join = (at: number) => {
          for (const [index, follower] of followers.entries()) {
            const last = bodies.length
            if (Math.min(follower.at, last) === at) stream.join(joined[index]!, -1, follower)
          }
        }
        for (const [at, body] of bodies.entries()) {
          join(at)
          stream.emit(body)
        }
        join(bodies.length)
        // What the log has is what readers were told, and what operators are.
        const kept = logged
          .join('')
          .trimEnd()
          .split('\n')
          .map((line): LogEvent => JSON.parse(line))
        const { results: _results, history: _history, ...fromLog } = foldTurn(kept)
        const { results, history, ...all } = foldTurn(log)
        expect(fromLog).toEqual(json(all))
        const { searches, calls, transcript, copyOf, ...shown } = all
        for (const [index, { results: wants, cuts }] of followers.entries()) {
          const bytes = new Uint8Array(await new Response(joined[index]!.stream).arrayBuffer())
          const turn = await wholeTurn(eventReader(inPieces(bytes, cuts)))
          expect(turn).toEqual(
            json({ ...shown, searches: [], calls: [], transcript: [], ...(wants && results && { results }) }),
          )
        }
      }),
      { numRuns: 100 },
    )
  })
})
