import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../../src/api/ai-chat/dialect'
import { encodeAnswer, lineEncoder, type Writing } from '../../../src/api/ai-chat/encoder'
import { documentText, WORDS } from '../../../src/api/ai-chat/words'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEvent, TurnEventBody } from '../../../src/turn/events'
import { foldTurn } from '../../../src/turn/fold'
import { found } from '../turn-events'

const writing = (dialect: Dialect, parts: Partial<Writing> = {}): Writing => ({
  words: WORDS[dialect],
  errorForm: 'text',
  inlineSuggestions: WORDS[dialect].inlineSuggestions === true,
  contextSession: false,
  assistant: {},
  modes: ['hybrid'],
  ignored: [],
  unknown: [],
  ...parts,
})

const log = (...bodies: TurnEventBody[]): TurnEvent[] =>
  bodies.map((body, seq) => ({ ...body, conversation_id: 'c-1', turn: 1, seq }))

const retrieval = (...documents: Record<string, unknown>[]): TurnEventBody =>
  found(
    [
      {
        result: {
          facet_counts: [],
          found: documents.length,
          hits: documents.map((document) => ({
            document: document as { id: string },
            highlight: {},
            highlights: [],
          })),
          request_params: { collection_name: 'docs', first_q: 'q', per_page: 3, q: 'q' },
          search_cutoff: false,
          search_time_ms: 2,
        },
      },
    ],
    documents.map(({ id }) => ({ collection: 'docs', document_id: String(id) })),
  )[1]

const DOCUMENT = {
  id: '7',
  sourcepage: 'plan.pdf#page=1',
  title: 'Plan',
  text: 'It is\nhigh.',
  price: 3,
  vector: [0.1, 0.2],
}

const TURN = log(
  { type: 'question', question: contentOf('how?') },
  retrieval(DOCUMENT),
  { type: 'delta', text: 'Grüße 😀 ' },
  { type: 'delta', text: '[plan.pdf#page=1]' },
  { type: 'citation', collection: 'docs', document_id: '7', start: 0, end: 9 },
  { type: 'followups', questions: ['Why?'] },
  { type: 'usage', usage: { model: 'openai/gpt', input_tokens: 7, output_tokens: 2 }, timings: {} },
  { type: 'done', finish_reason: 'stop', answer: contentOf('Grüße 😀 [plan.pdf#page=1]') },
)

const SHOWN = { assistant: { citation_field: 'sourcepage' } }

const stream = (events: TurnEvent[], how: Writing): string => {
  const encoder = lineEncoder(how)
  return events.map((event) => encoder.encode(event)).join('')
}

const DATA =
  '"data_points":{"text":["plan.pdf#page=1: Plan It is high. price: 3"],"images":[],"citations":["plan.pdf#page=1"]}'
const FOUND =
  '{"title":"Generated search query","description":"how?","props":{"original":"how?","rewritten":false}},' +
  '{"title":"Search using generated search query","description":"how?","props":{"retrieval_mode":"hybrid","use_text_search":true,"use_vector_search":true,"top":3,"found":1,"search_time_ms":2}},' +
  '{"title":"Search results","description":"Documents in the prompt: 1","props":null}'
const ANSWERED =
  '{"title":"Prompt to generate answer","description":"The prompt is in the trace of the conversation, for the admin key.","props":{"model":"openai/gpt","token_usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9},"timings":{}}}'
const OPENING = `"context":{${DATA},"thoughts":[${FOUND}]}`
const CLOSING = `"context":{"thoughts":[${FOUND},${ANSWERED}],"followup_questions":["Why?"]}`
const WHOLE = `"context":{${DATA},"thoughts":[${FOUND},${ANSWERED}],"followup_questions":["Why?"]}`
const ANSWER = '"Grüße 😀 [plan.pdf#page=1]"'
const THOUGHTS =
  'Generated search query: how?<br>Search using generated search query: how?<br>Search results: Documents in the prompt: 1'

const PIECES = ['"Grüße 😀 "', '"[plan.pdf#page=1]"']

const lines: Record<Dialect, string[]> = {
  '2024-01-28': [
    `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"},${OPENING},"session_state":"c-1","finish_reason":null}]}`,
    ...PIECES.map(
      (piece) =>
        `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":${piece}},"finish_reason":null}]}`,
    ),
    `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},${CLOSING},"session_state":"c-1","finish_reason":"stop"}]}`,
  ],
  '2024-05-29': [
    `{"delta":{"role":"assistant"},${OPENING},"session_state":"c-1"}`,
    ...PIECES.map((piece) => `{"delta":{"content":${piece}}}`),
    `{"delta":{},${CLOSING},"session_state":"c-1"}`,
  ],
  '2024-08': [
    `{"delta":{"role":"assistant"},${OPENING},"sessionState":"c-1"}`,
    ...PIECES.map((piece) => `{"delta":{"content":${piece}}}`),
    `{"delta":{},${CLOSING},"sessionState":"c-1"}`,
  ],
  '2026-04': [
    `{"type":"response.context",${OPENING},"session_state":"c-1"}`,
    ...PIECES.map((piece) => `{"type":"response.output_text.delta","delta":${piece}}`),
    `{"type":"response.context",${CLOSING},"session_state":"c-1"}`,
  ],
  'azure-js': [
    `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","context":{"data_points":["plan.pdf#page=1: Plan It is high. price: 3"],"thoughts":"${THOUGHTS}"},"session_state":"c-1"},"finish_reason":null}]}`,
    ...[...PIECES, '"<<Why?>>"'].map(
      (piece) =>
        `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":${piece},"context":{}},"finish_reason":null}]}`,
    ),
    `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","context":{},"session_state":"c-1"},"finish_reason":"stop"}]}`,
  ],
  unnamed: [
    `{"delta":{"role":"assistant"},${OPENING},"session_state":"c-1","sessionState":"c-1"}`,
    ...PIECES.map((piece) => `{"delta":{"content":${piece}}}`),
    `{"delta":{},${CLOSING},"session_state":"c-1","sessionState":"c-1"}`,
  ],
}

const wholes: Partial<Record<Dialect, string>> = {
  '2024-01-28': `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":${ANSWER}},${WHOLE},"session_state":"c-1","finish_reason":"stop"}]}`,
  '2024-05-29': `{"message":{"role":"assistant","content":${ANSWER}},"output_text":${ANSWER},${WHOLE},"session_state":"c-1"}`,
  '2024-08': `{"message":{"role":"assistant","content":${ANSWER}},"output_text":${ANSWER},${WHOLE},"sessionState":"c-1"}`,
  '2026-04': `{"output_text":${ANSWER},${WHOLE},"session_state":"c-1"}`,
  unnamed: `{"message":{"role":"assistant","content":${ANSWER}},"output_text":${ANSWER},${WHOLE},"session_state":"c-1","sessionState":"c-1"}`,
}

describe('the thoughts of a turn', () => {
  it('tell what the model asked to search for, in the mode of its search', () => {
    const search = { collection: 'docs', found: 1, limit: 3, took: 2 }
    const events = log(
      { type: 'question', question: contentOf('how?') },
      { type: 'retrieval', passages: [], searches: [search, { ...search, q: 'how wide?' }] },
    )
    const [line] = stream(events, writing('2024-08')).trim().split('\n')
    const { thoughts } = JSON.parse(line!).context
    expect(
      thoughts.flatMap(
        ({ description, props }: { description: string; props: { retrieval_mode?: string } | null }) =>
          props?.retrieval_mode ? [[description, props.retrieval_mode]] : [],
      ),
    ).toEqual([
      ['how?', 'hybrid'],
      ['how wide?', 'hybrid'],
    ])
  })
})

describe('the bytes of a turn', () => {
  it.each(Object.entries(lines))('as lines in the dialect %s', (dialect, expected) => {
    expect(stream(TURN, writing(dialect as Dialect, SHOWN))).toBe(
      expected.map((each) => `${each}\n`).join(''),
    )
  })

  it.each(Object.entries(wholes))('in one piece in the dialect %s', (dialect, expected) => {
    expect(JSON.stringify(encodeAnswer(foldTurn(TURN), writing(dialect as Dialect, SHOWN)))).toBe(expected)
  })

  it('of a failure are a line in the form that the caller reads, whatever came before', () => {
    const fault = { code: 'model_failed' as const, status: 400, message: 'OpenAI API error: no' }
    const fail = (errorForm: Writing['errorForm']) =>
      lineEncoder(writing('unnamed', { errorForm })).fail(fault)
    expect(fail('text')).toBe(
      '{"error":"OpenAI API error: no","code":"model_failed","message":"OpenAI API error: no"}\n',
    )
    expect(fail('object')).toBe('{"error":{"code":"model_failed","message":"OpenAI API error: no"}}\n')
    expect(fail('fastify')).toBe(
      '{"statusCode":500,"code":"model_failed","error":"Internal Server Error","message":"OpenAI API error: no"}\n',
    )
  })

  it('of a turn without documents still begin with what was found (case 30)', () => {
    const [first] = stream(
      log({ type: 'question', question: contentOf('q') }, retrieval()),
      writing('unnamed'),
    ).split('\n')
    expect(JSON.parse(first!).context.data_points).toEqual({ text: [], images: [], citations: [] })
  })

  it('hold no markup of a question in the dialect whose client shows thoughts as HTML', () => {
    const events = log({ type: 'question', question: contentOf('<img src=x onerror=alert(1)>') }, retrieval())
    expect(stream(events, writing('azure-js'))).not.toContain('<img')
  })

  it('have no suggestions where none were asked for (case 27)', () => {
    const events = TURN.filter(({ type }) => type !== 'followups')
    expect(stream(events, writing('unnamed'))).not.toContain('followup_questions')
    expect(encodeAnswer(foldTurn(events), writing('unnamed'))).toMatchObject({
      context: { followup_questions: null },
    })
  })

  it('name the session in the context too, for clients that keep it there', () => {
    const all = stream(TURN, writing('unnamed', { contextSession: true }))
      .trim()
      .split('\n')
      .map((each) => JSON.parse(each))
    expect([all[0].context.sessionId, all.at(-1).context.sessionId]).toEqual(['c-1', 'c-1'])
  })
})

describe('the text of a document', () => {
  it.each([
    [{ id: '1', title: 'A', text: ' b\r\nc ' }, 'A b c'],
    [{ id: '1', tags: ['x', 'y'], sizes: [1, 2], in: { stock: true, note: 'n' } }, 'x y stock: true n'],
    [{ id: '1', url: 'https://a', nothing: null }, ''],
  ])('%j is %j', (document, text) => expect(documentText(document, ['id', 'url'])).toBe(text))
})

describe('whatever a turn is like', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom('\u2028', '\r\n', '"', '\u0000'.repeat(9_000), '😀'.repeat(9_000), 'x'.repeat(10_000)),
  )
  const document = fc.record({
    id: fc.oneof(
      fc.string({ minLength: 1 }),
      fc.string({ minLength: 500, maxLength: 512, unit: 'grapheme' }),
    ),
    text: fc.oneof(text, fc.constant('y'.repeat(200_000)), fc.constant('日'.repeat(100_000))),
  })
  const documents = fc.uniqueArray(document, { maxLength: 50, selector: ({ id }) => id })
  const turn = fc.record({
    question: text,
    documents,
    deltas: fc.array(text, { maxLength: 8 }),
    followups: fc.option(fc.array(text, { maxLength: 12 }), { nil: undefined }),
    unknown: fc.array(text, { maxLength: 40 }),
  })
  const dialect = fc.constantFrom(...(Object.keys(WORDS) as Dialect[]))

  it('its lines are short and end, none is an error, and their text is the answer (cases 2, 40, 41)', {
    timeout: 30_000,
  }, () => {
    fc.assert(
      fc.property(turn, dialect, ({ question, documents: found, deltas, followups, unknown }, name) => {
        const answer = deltas.join('')
        const events = log(
          { type: 'question', question: contentOf(question) },
          retrieval(...found),
          ...deltas.map((delta): TurnEventBody => ({ type: 'delta', text: delta })),
          ...(followups ? [{ type: 'followups', questions: followups } as TurnEventBody] : []),
          { type: 'done', finish_reason: 'stop', answer: contentOf(answer) },
        )
        const how = writing(name, { inlineSuggestions: false, unknown })
        const body = stream(events, how)
        expect(body.endsWith('\n')).toBe(true)
        const all = body.slice(0, -1).split('\n')
        for (const each of all) expect(Buffer.byteLength(each)).toBeLessThan(64 * 1024)
        const parsed = all.map((each) => JSON.parse(each))
        for (const each of parsed) expect(each).not.toHaveProperty('error')
        const pieces = parsed.map((each) =>
          name === '2026-04'
            ? each.type === 'response.output_text.delta'
              ? each.delta
              : ''
            : ((each.delta ?? each.choices[0].delta).content ?? ''),
        )
        // Halves of characters cannot be written as UTF-8: a model that sent some has written replacements.
        expect(pieces.join('').toWellFormed()).toBe(answer.toWellFormed())
        const whole = encodeAnswer(foldTurn(events), how)
        expect(JSON.stringify(whole)).toContain(JSON.stringify(answer))
      }),
      { numRuns: 60 },
    )
  })
})

it.each<Dialect>(['2024-01-28', 'azure-js'])(
  'says in %s why an answer in one piece ended early',
  (dialect) => {
    const cut = TURN.map((event) =>
      event.type === 'done' ? { ...event, finish_reason: 'length' as const } : event,
    )
    expect(encodeAnswer(foldTurn(cut), writing(dialect, SHOWN))).toMatchObject({
      choices: [{ finish_reason: 'length' }],
    })
  },
)
