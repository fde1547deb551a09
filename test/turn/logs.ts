/** Logs of turns at random. */
import fc from 'fast-check'
import { contentOf, type Part, type TextPart } from '../../src/lib/parts'
import {
  type CallTrace,
  isNumbered,
  type LogEvent,
  type LogEventBody,
  type SearchReply,
  type SearchTrace,
} from '../../src/turn/events'

const text = fc.string({ unit: 'binary', maxLength: 20 })
const name = fc.constantFrom('films', 'notes')
const count = fc.nat(1_000)

const passage = fc.record(
  {
    collection: name,
    // Some documents are found again by a later retrieval.
    id: fc.oneof(fc.constantFrom('alien', 'heat'), text),
    rank: fc.integer({ min: 1, max: 50 }),
    score: fc.double({ min: 0, max: 1, noNaN: true }),
    text,
    title: text,
    url: fc.webUrl(),
    fields: fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(text, count)),
  },
  { requiredKeys: ['collection', 'id', 'rank', 'score', 'text', 'fields'] },
)
const summary = fc.oneof(
  fc.record({ collection: name, found: count, limit: count, took: count }),
  fc.record({ collection: name, error: fc.record({ status: fc.constant(404), message: text }) }),
)

/** A part that is not text. */
export const otherParts: fc.Arbitrary<Exclude<Part, TextPart>> = fc.oneof(
  fc.record(
    { type: fc.constant('image' as const), media_type: fc.constant('image/png'), data: text, name: text },
    { requiredKeys: ['type', 'media_type', 'data'] },
  ),
  fc.record({ type: fc.constant('file' as const), name: text, text }, { requiredKeys: ['type', 'name'] }),
  fc.record({ type: fc.constant('tool_call' as const), id: text, name: text, arguments: fc.json() }),
  fc.record({ type: fc.constant('tool_result' as const), id: text, text }),
)
const textPart = fc.record({
  type: fc.constant('text' as const),
  text: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
})
/** Content of any kinds. */
export const contents: fc.Arbitrary<Part[]> = fc.array(fc.oneof(textPart, otherParts), { maxLength: 4 })

const said = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const),
  content: contents,
  timestamp: count,
})
const search = fc.record({
  params: fc.constant({}),
  started: count,
  took: count,
}) as fc.Arbitrary<SearchTrace>
const call = fc.record({
  purpose: fc.constantFrom('standalone', 'answer'),
  model: text,
  prompt: fc.constant([]),
  input_tokens: count,
  output_tokens: count,
  started: count,
  took: count,
}) as fc.Arbitrary<CallTrace>

/** A retrieval, with what the engine replied before it: a reply for each search. */
const found: fc.Arbitrary<LogEventBody[]> = fc
  .record({ passages: fc.array(passage, { maxLength: 3 }), searches: fc.array(summary, { maxLength: 3 }) })
  .map(({ passages, searches }) => [
    { type: 'results', replies: searches.map((): SearchReply => ({ error: 'no', code: 404 })) },
    { type: 'retrieval', passages, searches },
  ])

/** Anything that can come between the first event of a turn and its last. */
const between: fc.Arbitrary<LogEventBody> = fc.oneof(
  fc.record({ type: fc.constant('delta' as const), text }),
  fc.record({ type: fc.constant('part' as const), part: otherParts }),
  fc.record({
    type: fc.constant('citation' as const),
    collection: name,
    document_id: text,
    start: count,
    end: count,
  }),
  fc.record({ type: fc.constant('followups' as const), questions: fc.array(text, { maxLength: 3 }) }),
  fc.record({ type: fc.constant('search' as const), index: count, search }),
  fc.record({ type: fc.constant('call' as const), index: count, call }),
  fc.record({ type: fc.constant('transcript' as const), messages: fc.array(said, { maxLength: 3 }) }),
  fc.record({ type: fc.constant('history' as const), messages: fc.array(said, { maxLength: 3 }) }),
  fc.record({
    type: fc.constant('usage' as const),
    usage: fc.record({ model: text, input_tokens: count }),
    timings: fc.record({ finished: count }),
  }),
)

/** The log of a turn: it may still be running. */
export const logs: fc.Arbitrary<LogEvent[]> = fc
  .record({
    question: contents,
    standalone: fc.option(text, { nil: undefined }),
    middle: fc
      .array(
        fc.oneof({ weight: 4, arbitrary: between.map((body) => [body]) }, { weight: 1, arbitrary: found }),
        {
          maxLength: 12,
        },
      )
      .map((bodies) => bodies.flat()),
    end: fc.constantFrom('done', 'error', 'none'),
    retryable: fc.boolean(),
  })
  .map(({ question, standalone, middle, end, retryable }) => {
    const answer = middle.flatMap((event): Part[] => {
      if (event.type === 'delta') return contentOf(event.text)
      return event.type === 'part' ? [event.part] : []
    })
    const bodies: LogEventBody[] = [
      { type: 'begin', question },
      { type: 'question', question, ...(standalone !== undefined && { standalone }) },
      ...middle,
    ]
    if (end === 'done') bodies.push({ type: 'done', finish_reason: 'stop', answer })
    if (end === 'error')
      bodies.push({ type: 'error', status: 500, message: 'No.', retryable, code: 'internal' })
    let seq = 0
    return bodies.map((body) => ({
      ...body,
      conversation_id: 'c',
      turn: 3,
      seq: isNumbered(body) ? seq++ : seq,
    }))
  })
