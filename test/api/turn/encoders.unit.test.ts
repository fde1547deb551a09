/**
 * Every protocol says of a turn what its fold says, whatever its events are, wherever a reader joins, and however the
 * bytes are cut. One of the protocols here is made up: a protocol needs an encoder and nothing else.
 */

import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { encodeAnswer, LineEncoder, type Writing } from '../../../src/api/ai-chat/encoder'
import { WORDS } from '../../../src/api/ai-chat/words'
import { CompletionEncoder, completion } from '../../../src/api/openai/encoder'
import { ResponseEncoder, responseOf } from '../../../src/api/openai/response-encoder'
import { answerOf } from '../../../src/api/parley/answer'
import { LogEncoder } from '../../../src/api/parley/encoder'
import { eventReader } from '../../../src/api/turn/read'
import { sourcesOf } from '../../../src/api/turn/sources'
import { streamTurn, type TurnEncoder, wholeTurn } from '../../../src/api/turn/stream'
import { type AnswerShape, MessageEncoder, responseBody } from '../../../src/api/typesense/encoder'
import { UiStreamEncoder } from '../../../src/api/ui-stream/encoder'
import { Reader } from '../../../src/conversation/reader'
import { TurnStream } from '../../../src/conversation/turn-stream'
import { textOf } from '../../../src/parts'
import { audienceOf, type LogEvent, type LogEventBody, type TurnEvent } from '../../../src/turn/events'
import { emptyTurn, fold, foldTurn, type Turn } from '../../../src/turn/fold'
import { inPieces } from '../../fuzz/pieces'
import { logs } from '../../turn/logs'

/** A protocol that nobody speaks: lines of text. */
class PlainTextEncoder implements TurnEncoder {
  readonly #turn = emptyTurn()

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    if (event.type === 'delta') return JSON.stringify(event.text).slice(1, -1)
    if (event.type !== 'done') return ''
    const { passages, finishReason } = this.#turn
    return `\nsources: ${passages.length}\nend: ${finishReason}\n`
  }

  fail({ message }: { message: string }): string {
    return `\nerror: ${message}\n`
  }
}

const MODEL = { model: 'm', created: 0, fields: {} }
const SHAPE: AnswerShape = { conversationId: 'c', question: 'q', shape: 'multi', ttl: 60, withHistory: false }
const WRITING: Writing = {
  words: WORDS.unnamed,
  errorForm: 'text',
  inlineSuggestions: false,
  contextSession: false,
  modes: ['hybrid'],
  ignored: [],
  unknown: [],
}

const dataOf = (stream: string): { data: string }[] =>
  [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => ({ data: data! }))
const jsonOf = (stream: string) =>
  dataOf(stream).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))

/** What a protocol's stream says, and what its answer in one piece says: the text, and what stands beside it. */
interface Protocol {
  encoder(): { encode(event: TurnEvent): string }
  streamed(stream: string): { text: string; beside: unknown }
  whole(turn: Turn): { text: string; beside: unknown }
}

const protocols: Record<string, Protocol> = {
  typesense: {
    encoder: () => new MessageEncoder(SHAPE),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const { conversation_id, message, ...body } = all.at(-1)
      return {
        text: all
          .slice(0, -1)
          .map((each) => each.message)
          .join(''),
        beside: body,
      }
    },
    whole: (turn) => ({ text: textOf(turn.answer), beside: responseBody(turn, SHAPE) }),
  },
  parley: {
    encoder: () => new LogEncoder(),
    streamed: (stream) => {
      const types = [...stream.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
      const of = (type: string) => jsonOf(stream).filter((_, index) => types[index] === type)
      return {
        text: of('delta')
          .map(({ text }) => text)
          .join(''),
        beside: [of('citation'), of('retrieval').flatMap(({ replies }) => replies).length],
      }
    },
    whole: (turn) => {
      const { answer, citations, results } = answerOf(turn)
      return { text: answer, beside: [citations, results.length] }
    },
  },
  'chat completions': {
    encoder: () => new CompletionEncoder(MODEL, false),
    streamed: (stream) => {
      const deltas = jsonOf(stream).map(({ choices }) => choices[0].delta)
      const { annotations, context } = deltas.at(-1)
      return { text: deltas.map(({ content = '' }) => content).join(''), beside: { annotations, context } }
    },
    whole: (turn) => {
      const { content, annotations, context } = completion(turn, MODEL).choices[0]!.message
      return { text: content, beside: { annotations, context } }
    },
  },
  responses: {
    encoder: () => new ResponseEncoder({ ...MODEL, previous: null, handle: 'c' }),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const deltas = all.filter(({ type }) => type === 'response.output_text.delta')
      return { text: deltas.map(({ delta }) => delta).join(''), beside: all.at(-1).response }
    },
    whole: (turn) => {
      const response = responseOf(turn, { ...MODEL, previous: null, handle: 'c' })
      return { text: response.output[0].content[0]!.text, beside: response }
    },
  },
  'ui stream': {
    encoder: () => new UiStreamEncoder({ fields: {}, citations: 'parts' }),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const deltas = all.filter(({ type }) => type === 'text-delta')
      const sources = all.filter(({ type }) => type.startsWith('source-'))
      return {
        text: deltas.map(({ delta }) => delta).join(''),
        beside: [sources.map(({ sourceId }) => sourceId), all.at(-1).messageMetadata.usage],
      }
    },
    whole: ({ answer, passages, usage }) => ({
      text: textOf(answer),
      beside: [sourcesOf(passages).map(({ id }) => id), usage],
    }),
  },
  'ai chat': {
    encoder: () => new LineEncoder(WRITING),
    streamed: (stream) => {
      const all = stream
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      return {
        text: all.map(({ delta }) => delta?.content ?? '').join(''),
        beside: all.at(-1).context.thoughts,
      }
    },
    whole: (turn) => {
      const { message, context } = encodeAnswer(turn, WRITING) as never as {
        message: { content: string }
        context: { thoughts: unknown }
      }
      return { text: message.content, beside: context.thoughts }
    },
  },
  'plain text': {
    encoder: () => new PlainTextEncoder(),
    streamed: (stream) => {
      const [text, sources] = stream.split('\n')
      return { text: JSON.parse(`"${text}"`), beside: sources }
    },
    whole: ({ answer, passages }) => ({ text: textOf(answer), beside: `sources: ${passages.length}` }),
  },
}

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const forReaders = (log: LogEvent[]): TurnEvent[] =>
  log.filter((event): event is TurnEvent => audienceOf(event) === 'reader' && event.type !== 'history')
const answered = logs.filter((log) => log.at(-1)!.type === 'done')

describe.each(Object.entries(protocols))('%s', (_, { encoder, streamed, whole }) => {
  it('says in a stream and in one piece what the turn adds up to', () => {
    fc.assert(
      fc.property(answered, (log) => {
        const events = forReaders(log)
        const encode = encoder()
        const stream = events.map((event) => encode.encode(event)).join('')
        const turn = foldTurn(events)
        expect(json(streamed(stream))).toEqual(json(whole(turn)))
        expect(streamed(stream).text).toBe(textOf(turn.answer))
      }),
      { numRuns: 50 },
    )
  })
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
