import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { safeParse } from 'valibot'
import { describe, expect, it } from 'vitest'
import { logEncoder, RETRY } from '../../../src/api/parley/encoder'
import { eventData } from '../../../src/api/parley/response-schemas'
import { COMMENT } from '../../../src/api/shared/stream'
import { contentOf } from '../../../src/lib/parts'
import type { SearchResult } from '../../../src/search/types'
import type { SearchReply, TurnEvent, TurnEventBody } from '../../../src/turn/events'
import { found, HITS, RETRIEVAL } from '../turn-events'

const REPLY = {
  result: {
    facet_counts: [],
    found: 0,
    hits: [],
    request_params: { collection_name: 'c', first_q: 'q', per_page: 10, q: 'q' },
    search_cutoff: false,
  },
}

/** An event of each type, and its bytes. */
const GOLDEN: [TurnEventBody, string][] = [
  [
    { type: 'question', question: contentOf('And "how" high?'), standalone: 'How high is the tower?' },
    'id: 3.0\nevent: question\ndata: {"conversation_id":"c-1","question":"And \\"how\\" high?","standalone":"How high is the tower?"}\n\n',
  ],
  [
    found(
      [REPLY, { error: 'Collection not found', code: 404 }],
      [{ collection: 'facts', document_id: '1' }],
    )[1],
    'id: 3.1\nevent: retrieval\ndata: {"replies":[{"result":{"facet_counts":[],"found":0,"hits":[],"request_params":{"collection_name":"c","first_q":"q","per_page":10,"q":"q"},"search_cutoff":false}},{"error":"Collection not found","code":404}],"sources":[{"collection":"facts","document_id":"1"}]}\n\n',
  ],
  [
    { type: 'delta', text: 'Füße:\n\r\n\u2028日本 🎬' },
    'id: 3.2\nevent: delta\ndata: {"text":"Füße:\\n\\r\\n\u2028日本 🎬"}\n\n',
  ],
  [
    { type: 'citation', collection: 'facts', document_id: '1', start: 0, end: 9, quote: 'It is high.' },
    'id: 3.3\nevent: citation\ndata: {"collection":"facts","document_id":"1","start":0,"end":9,"quote":"It is high."}\n\n',
  ],
  [
    {
      type: 'part',
      part: {
        type: 'tool_call',
        id: 'c1',
        name: 'book',
        arguments: '{"at":7}',
        title: 'Book',
        awaits: 'leave',
      },
    },
    'id: 3.4\nevent: tool_call\ndata: {"id":"c1","name":"book","arguments":"{\\"at\\":7}","title":"Book","awaits":"leave"}\n\n',
  ],
  [
    { type: 'part', part: { type: 'tool_result', id: 'c1', text: 'full', failed: true } },
    'id: 3.5\nevent: tool_result\ndata: {"id":"c1","text":"full","failed":true}\n\n',
  ],
  [
    {
      type: 'resumed',
      content: [...contentOf('So.'), { type: 'tool_call', id: 'c1', name: 'book', arguments: '{}' }],
    },
    'id: 3.6\nevent: resumed\ndata: {"answer":"So.","calls":[{"id":"c1","name":"book","arguments":"{}"}]}\n\n',
  ],
  [{ type: 'followups', questions: ['Why?'] }, 'id: 3.7\nevent: followups\ndata: {"questions":["Why?"]}\n\n'],
  [
    {
      type: 'usage',
      usage: { model: 'openai/gpt', input_tokens: 7, output_tokens: 2, estimated: true },
      timings: { retrieved: 3, first_token: 40, finished: 90 },
    },
    'id: 3.8\nevent: usage\ndata: {"usage":{"model":"openai/gpt","input_tokens":7,"output_tokens":2,"estimated":true},"timings":{"retrieved":3,"first_token":40,"finished":90}}\n\n',
  ],
  [
    { type: 'error', status: 503, message: 'Interrupted.', retryable: true, code: 'interrupted' },
    'id: 3.9\nevent: error\ndata: {"status":503,"message":"Interrupted.","retryable":true,"code":"interrupted"}\n\n',
  ],
  [
    { type: 'done', finish_reason: 'stop', answer: contentOf('Füße') },
    'id: 3.10\nevent: done\ndata: {"finish_reason":"stop","answer":"Füße"}\n\n',
  ],
]

const place = (body: TurnEventBody, seq: number): TurnEvent => ({
  ...body,
  conversation_id: 'c-1',
  turn: 3,
  seq,
})

/** What a parser of server-sent events makes of a stream. */
function parse(text: string) {
  const events: { id: string | undefined; event: string | undefined; data: string }[] = []
  const comments: string[] = []
  const retries: number[] = []
  createParser({
    onEvent: ({ id, event, data }) => events.push({ id, event, data }),
    onComment: (comment) => comments.push(comment),
    onRetry: (retry) => retries.push(retry),
  }).feed(text)
  return { events, comments, retries }
}

/** What the engine replied comes before the event that it is told with. */
const REPLIES: TurnEventBody = {
  type: 'results',
  replies: [REPLY, { error: 'Collection not found', code: 404 }],
}

function encodeEvent(event: TurnEvent): string {
  const log = logEncoder()
  if (event.type === 'retrieval') expect(log.encode(place(REPLIES, event.seq))).toBe('')
  return log.encode(event)
}

describe('an event as bytes', () => {
  it.each(GOLDEN.map(([body, bytes], seq) => [body.type, place(body, seq), bytes] as const))(
    '%s',
    (_, event, bytes) => {
      expect(encodeEvent(event)).toBe(bytes)
    },
  )

  it('covers every type of the log, each as its schema says', () => {
    const nameOf = (body: TurnEventBody) => (body.type === 'part' ? body.part.type : body.type)
    expect(GOLDEN.map(([body]) => nameOf(body)).sort()).toEqual(Object.keys(eventData).sort())
    for (const [seq, [body]] of GOLDEN.entries()) {
      const data = parse(encodeEvent(place(body, seq))).events[0]?.data ?? ''
      expect(
        safeParse(eventData[nameOf(body) as keyof typeof eventData], JSON.parse(data)).issues,
      ).toBeUndefined()
    }
  })

  it("tells of what went into the prompt where the engine's replies were not kept", () => {
    const bytes = logEncoder().encode(place(RETRIEVAL, 1))
    const { replies, sources } = JSON.parse(parse(bytes).events[0]!.data)
    expect(replies[0].result.hits.map(({ document }: { document: unknown }) => document)).toEqual(
      HITS.map((document) => expect.objectContaining(document)),
    )
    expect(sources.map(({ document_id }: { document_id: string }) => document_id)).toEqual(['17', 'b.md'])
    expect(logEncoder().encode(place({ type: 'history', messages: [] }, 2))).toBe('')
  })

  it('names what a model asked to search for, and shows its reply with that', () => {
    const further = { collection: 'docs', q: 'And how wide?', found: 1 }
    const searches = [{ collection: 'docs', found: 2 }, further]
    const reply = (q: string): SearchReply => ({
      result: { ...REPLY.result, request_params: { collection_name: 'docs', first_q: q, per_page: 10, q } },
    })
    const log = logEncoder()
    log.encode(place({ type: 'question', question: contentOf('How high is it?') }, 0))
    log.encode(place({ type: 'results', replies: [reply('as rewritten'), reply('And how wide?')] }, 1))
    const { data } = parse(log.encode(place({ type: 'retrieval', passages: [], searches }, 1))).events[0]!
    const told = JSON.parse(data)
    expect(safeParse(eventData.retrieval, told).issues).toBeUndefined()
    expect(told.further).toEqual([further])
    expect(told.replies.map(({ result }: { result: SearchResult }) => result.request_params?.q)).toEqual([
      'How high is it?',
      'And how wide?',
    ])
  })

  it('is read back by a parser whatever its text is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(), fc.nat(), (text, turn, seq) => {
        const bytes = encodeEvent({ type: 'delta', text, conversation_id: 'c', turn, seq })
        const data = JSON.stringify({ text })
        expect(parse(bytes).events).toEqual([{ id: `${turn}.${seq}`, event: 'delta', data }])
      }),
    )
  })

  it('stands between a time to wait and comments', () => {
    const stream = RETRY + encodeEvent(place({ type: 'delta', text: 'a' }, 0)) + COMMENT
    const { events, comments, retries } = parse(stream)
    expect([retries, events.length, comments]).toEqual([[1000], 1, ['ping']])
  })
})
