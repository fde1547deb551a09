/**
 * One turn on every protocol, read by its own clients: whatever the answer is and wherever the network cuts its bytes,
 * within characters too, all of them read the same text, and none takes a failure for an answer.
 */

import { Readable } from 'node:stream'
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'
import { DefaultChatTransport, readUIMessageStream } from 'ai'
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import OpenAI from 'openai'
import { afterEach, expect, test, vi } from 'vitest'
import type { Dialect } from '../../src/api/ai-chat/dialect'
import { lineEncoder, type Writing } from '../../src/api/ai-chat/encoder'
import { WORDS } from '../../src/api/ai-chat/words'
import { completionEncoder } from '../../src/api/openai/encoder'
import { responseEncoder } from '../../src/api/openai/responses'
import { answerStreaming as parleyAnswer } from '../../src/api/parley/encoder'
import { eventReader, streamTurn } from '../../src/api/shared/stream'
import { answerStreaming as typesenseAnswer } from '../../src/api/typesense/encoder'
import { uiStreamEncoder } from '../../src/api/ui-stream/encoder'
import { ApiError } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import type { TurnEventBody } from '../../src/turn/events'
import { CONVERSATION, found, logOf, RETRIEVAL, TURN } from '../api/turn-events'
import { inPieces } from './pieces'

const CASES = Number(process.env.FUZZ_CASES) || 200
const PATIENCE = 30_000 + CASES * 60

/** Where bytes are cut. */
type Cuts = number[]

/** What a client makes of an answer. */
interface Reading {
  text: string
  /** whether it saw the answer end as it should */
  whole: boolean
}

/** @param log of a turn, in pieces @param cuts where the answer is cut on its way to the client */
type Protocol = (log: ReadableStream<Uint8Array>, cuts: Cuts) => Promise<Reading>

/** The same answer, cut elsewhere. */
async function recut(response: Response, cuts: Cuts): Promise<Response> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return new Response(inPieces(bytes, cuts), { status: response.status, headers: response.headers })
}

/** Data of server-sent events. @param decode reads one piece of bytes */
async function eventsOf(response: Response, decode: (bytes: Uint8Array) => string) {
  const events: { event: string | undefined; data: string }[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event, data }) })
  for await (const bytes of response.body!) parser.feed(decode(bytes))
  return events
}

const LONGEST_LINE = 64 * 1024

const aiChat =
  (dialect: Dialect, errorForm: 'text' | 'object'): Protocol =>
  async (log, cuts) => {
    const writing: Writing = {
      words: WORDS[dialect],
      errorForm,
      inlineSuggestions: false,
      contextSession: false,
      assistant: {},
      modes: ['hybrid'],
      ignored: [],
      unknown: [],
    }
    const answered = await streamTurn(eventReader(log), lineEncoder(writing), {
      headers: {},
      opensAt: 'found',
      heartbeat: '\n',
    })
    const bytes = new Uint8Array(await answered.arrayBuffer())
    for (let start = 0; start < bytes.length; ) {
      const end = bytes.indexOf(0x0a, start)
      expect(end, 'a line ends with a line break').toBeGreaterThanOrEqual(0)
      expect(end - start).toBeLessThanOrEqual(LONGEST_LINE)
      start = end + 1
    }
    const httpClient = {
      sendRequest: async (request: unknown) => ({
        request,
        status: 200,
        headers: Object.assign(new Headers(), { toJSON: () => ({}) }),
        readableStreamBody: Readable.fromWeb(inPieces(bytes, cuts) as never),
      }),
    }
    const client = new AIChatProtocolClient('http://localhost/chat', { httpClient } as never)
    let text = ''
    try {
      for await (const { delta } of await client.getStreamedCompletion([{ role: 'user', content: 'q' }])) {
        text += delta.content ?? ''
      }
    } catch (error) {
      // The client throws what stands on the line: a text, or an object with a message.
      const message = typeof error === 'string' ? error : (error as Error).message
      if (/^(No\.|The turn was interrupted)/.test(message)) return { text, whole: false }
      throw error
    }
    return { text, whole: true }
  }

const protocols: Record<string, Protocol> = {
  typesense: async (log, cuts) => {
    const shape = {
      conversationId: CONVERSATION,
      question: 'q',
      shape: 'multi',
      ttl: 60,
      withHistory: false,
    } as const
    const response = await recut(await typesenseAnswer(log, shape), cuts)
    // As the official client does, which decodes every read on its own.
    const events = await eventsOf(response, (bytes) => new TextDecoder().decode(bytes))
    const done = events.findIndex(({ data }) => data === '[DONE]')
    const messages = events.slice(0, done < 0 ? -1 : done).map(({ data }) => JSON.parse(data).message)
    return { text: messages.join(''), whole: done >= 0 }
  },

  parley: async (log, cuts) => {
    const decoder = new TextDecoder()
    const response = await recut(await parleyAnswer(eventReader(log), {}), cuts)
    const events = await eventsOf(response, (bytes) => decoder.decode(bytes, { stream: true }))
    const deltas = events.filter(({ event }) => event === 'delta').map(({ data }) => JSON.parse(data).text)
    return { text: deltas.join(''), whole: events.at(-1)?.event === 'done' }
  },

  'ui-stream': async (log, cuts) => {
    const encoder = uiStreamEncoder({ fields: {}, citations: 'parts' })
    const transport = new DefaultChatTransport({
      fetch: async () =>
        recut(await streamTurn(eventReader(log), encoder, { headers: {}, opensAt: 'event' }), cuts),
    })
    let text = ''
    let whole = true
    const stream = await transport.sendMessages({
      chatId: 'c',
      messages: [],
      messageId: undefined,
      abortSignal: undefined,
      trigger: 'submit-message',
    })
    const messages = readUIMessageStream({ stream, onError: () => (whole = false) })
    for await (const { parts } of messages) {
      text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    }
    return { text, whole }
  },

  openai: async (log, cuts) => {
    const encoder = completionEncoder({ model: 'm', created: 0, fields: {} }, false)
    const client = new OpenAI({
      apiKey: 'k',
      maxRetries: 0,
      fetch: async () =>
        recut(await streamTurn(eventReader(log), encoder, { headers: {}, opensAt: 'event' }), cuts),
    })
    let text = ''
    try {
      const stream = await client.chat.completions.create({ model: 'm', messages: [], stream: true })
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    } catch (error) {
      if (error instanceof OpenAI.APIError) return { text, whole: false }
      throw error
    }
    return { text, whole: true }
  },

  'openai responses': async (log, cuts) => {
    const encoder = responseEncoder({
      model: 'm',
      created: 0,
      fields: {},
      previous: null,
      handle: CONVERSATION,
    })
    const client = new OpenAI({
      apiKey: 'k',
      maxRetries: 0,
      fetch: async () =>
        recut(await streamTurn(eventReader(log), encoder, { headers: {}, opensAt: 'event' }), cuts),
    })
    let text = ''
    let whole = false
    try {
      for await (const event of await client.responses.create({ model: 'm', input: 'q', stream: true })) {
        if (event.type === 'response.output_text.delta') text += event.delta
        whole = event.type === 'response.completed'
      }
    } catch (error) {
      if (!(error instanceof OpenAI.APIError)) throw error
    }
    return { text, whole }
  },

  'ai-chat 2024-05-29': aiChat('2024-05-29', 'text'),
  'ai-chat 2024-08': aiChat('2024-08', 'object'),
}

const cuts = fc.array(fc.nat(1_000_000), { maxLength: 30 })

/** Letters of one to four bytes, and what looks like the syntax of a protocol. */
const piece = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    fc.constantFrom(
      'data: x\n\n',
      '[DONE]',
      '{"a":"é日🎬"}',
      '\u2028',
      '\r\n',
      '\ufeffx',
      '[17]',
      '<<',
      'error',
    ),
  )
  .map((text) => text.toWellFormed())

const pieces = fc.array(piece, { minLength: 1, maxLength: 20 })

const begun: TurnEventBody[] = [TURN[0]!, RETRIEVAL]
const deltasOf = (texts: string[]): TurnEventBody[] => texts.map((text) => ({ type: 'delta', text }))
const doneWith = (answer: string): TurnEventBody[] => [
  ...TURN.slice(4, -1),
  { type: 'done', finish_reason: 'stop', answer: contentOf(answer) },
]

afterEach(() => vi.restoreAllMocks())

test.each(Object.entries(protocols))(
  'on %s an answer is the same wherever it is cut',
  { timeout: PATIENCE },
  (_, read) =>
    fc.assert(
      fc.asyncProperty(pieces, cuts, cuts, async (texts, within, onTheWay) => {
        const log = logOf([...begun, ...deltasOf(texts), ...doneWith(texts.join(''))])
        expect(await read(inPieces(log, within), onTheWay)).toEqual({ text: texts.join(''), whole: true })
      }),
      { numRuns: CASES },
    ),
)

test.each(Object.entries(protocols))(
  'on %s a turn that fails is no answer, whatever came before',
  { timeout: PATIENCE },
  async (_, read) => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const failed: TurnEventBody = {
      type: 'error',
      code: 'internal',
      status: 500,
      message: 'No.',
      retryable: true,
    }
    await fc.assert(
      fc.asyncProperty(pieces, cuts, cuts, fc.boolean(), async (texts, within, onTheWay, cutOff) => {
        // A log without its last event is one whose object is gone.
        const log = logOf([...begun, ...deltasOf(texts), ...(cutOff ? [] : [failed])])
        // An error that comes at once is an answer of another status, and no stream.
        const { text, whole } = await read(inPieces(log, within), onTheWay).catch((error) => {
          if (error instanceof ApiError) return { text: '', whole: false }
          throw error
        })
        expect(whole).toBe(false)
        expect(texts.join('').startsWith(text)).toBe(true)
      }),
      { numRuns: CASES },
    )
  },
)

/** Five documents of 200,000 characters each. */
const [LONG_RESULTS, LONG_RETRIEVAL] = found(
  [
    {
      result: {
        facet_counts: [],
        found: 5,
        hits: Array.from({ length: 5 }, (_, index) => ({
          document: { id: String(index), text: 'wörd '.repeat(40_000) },
          highlight: {},
          highlights: [],
        })),
        request_params: { collection_name: 'facts', first_q: 'q', per_page: 10, q: 'q' },
        search_cutoff: false,
      },
    },
  ],
  Array.from({ length: 5 }, (_, index) => ({ collection: 'facts', document_id: String(index) })),
)

test.each(Object.entries(protocols))(
  'on %s an answer may have 10,000 pieces, and long sources',
  { timeout: PATIENCE },
  async (_, read) => {
    const texts = Array.from({ length: 10_000 }, (_, index) => `wörd${index} `)
    const log = logOf([
      TURN[0]!,
      LONG_RESULTS,
      LONG_RETRIEVAL,
      ...deltasOf(texts),
      ...doneWith(texts.join('')),
    ])
    const everyKilobyte = Array.from({ length: Math.ceil(log.length / 1_000) }, (_, index) => index * 1_000)
    expect(await read(inPieces(log, everyKilobyte), everyKilobyte)).toEqual({
      text: texts.join(''),
      whole: true,
    })
  },
)
