import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { type UiStreamShape, uiStreamEncoder } from '../../../src/api/ui-stream/encoder'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEventBody } from '../../../src/turn/events'
import { RETRIEVAL, TURN, turnOf } from '../turn-events'

const PARTS: UiStreamShape = { fields: {}, citations: 'parts' }

/** What each event of the turn adds to the stream. */
const GOLDEN: Record<Exclude<TurnEventBody['type'], 'results' | 'history' | 'part'>, string[]> = {
  question: [
    'data: {"type":"start","messageId":"c-1.3","messageMetadata":{"conversation_id":"c-1"}}\n\ndata: {"type":"start-step"}\n\n',
  ],
  resumed: [],
  retrieval: [
    'data: {"type":"source-url","sourceId":"facts/17","url":"https://example.org/tower","title":"The tower"}\n\ndata: {"type":"source-document","sourceId":"facts/b.md","mediaType":"text/plain","title":"b.md","filename":"b.md"}\n\n',
  ],
  delta: [
    'data: {"type":"text-start","id":"text-1"}\n\ndata: {"type":"text-delta","id":"text-1","delta":"It is 330 metres high [17"}\n\n',
    'data: {"type":"text-delta","id":"text-1","delta":"]. Füße: 日本 🎬"}\n\n',
  ],
  citation: [''],
  followups: [
    'data: {"type":"text-end","id":"text-1"}\n\ndata: {"type":"data-suggestions","data":{"suggestions":["And \\"how\\" wide?"]}}\n\n',
  ],
  usage: [''],
  error: [],
  done: [
    'data: {"type":"finish-step"}\n\ndata: {"type":"finish","messageMetadata":{"conversation_id":"c-1","turn":3,"finish_reason":"stop","usage":{"model":"openai/gpt","input_tokens":7,"output_tokens":2},"timings":{"retrieved":3,"first_token":40,"finished":90},"citations":[{"sourceId":"facts/17","start":0,"end":27,"quote":"It is 330 metres high."}]}}\n\ndata: [DONE]\n\n',
  ],
}

/** The parts as ai 5.0.0 knows them: it takes a part with any other key for an error. */
const PART = v.variant('type', [
  v.strictObject({ type: v.literal('start'), messageId: v.string(), messageMetadata: v.unknown() }),
  v.strictObject({ type: v.literal('start-step') }),
  v.strictObject({
    type: v.literal('source-url'),
    sourceId: v.string(),
    url: v.string(),
    title: v.optional(v.string()),
  }),
  v.strictObject({
    type: v.literal('source-document'),
    sourceId: v.string(),
    mediaType: v.string(),
    title: v.string(),
    filename: v.optional(v.string()),
  }),
  v.strictObject({ type: v.literal('text-start'), id: v.string() }),
  v.strictObject({ type: v.literal('text-delta'), id: v.string(), delta: v.string() }),
  v.strictObject({ type: v.literal('text-end'), id: v.string() }),
  v.strictObject({ type: v.literal('data-suggestions'), data: v.unknown() }),
  v.strictObject({ type: v.literal('finish-step') }),
  v.strictObject({ type: v.literal('finish'), messageMetadata: v.unknown() }),
  v.strictObject({ type: v.literal('error'), errorText: v.string() }),
  v.strictObject({ type: v.literal('abort') }),
])

const encode = (bodies: TurnEventBody[], shape = PARTS): string => {
  const encoder = uiStreamEncoder(shape)
  return turnOf(bodies)
    .map((event) => encoder.encode(event))
    .join('')
}

const partsOf = (stream: string) =>
  stream
    .split('\n\n')
    .filter((frame) => frame !== '' && frame !== 'data: [DONE]')
    .map((frame) => v.parse(PART, JSON.parse(frame.slice('data: '.length))))

const textOf = (stream: string): string =>
  partsOf(stream)
    .map((part) => (part.type === 'text-delta' ? part.delta : ''))
    .join('')

describe('a UI message stream', () => {
  it('has these bytes for each event', () => {
    const encoder = uiStreamEncoder(PARTS)
    const golden = structuredClone(GOLDEN)
    for (const event of turnOf(TURN)) {
      expect(encoder.encode(event), event.type).toBe(golden[event.type as keyof typeof golden].shift())
    }
    expect(Object.values(golden).flat()).toEqual([])
  })

  it('has only parts and keys that the first client of the protocol knows', () => {
    const types = partsOf(encode(TURN)).map(({ type }) => type)
    expect(types).toEqual([
      ...['start', 'start-step', 'source-url', 'source-document'],
      ...['text-start', 'text-delta', 'text-delta', 'text-end'],
      ...['data-suggestions', 'finish-step', 'finish'],
    ])
  })

  it('opens a second text for what comes after the suggestions', () => {
    const late: TurnEventBody[] = [...TURN.slice(0, 6), { type: 'delta', text: '!' }, TURN.at(-1)!]
    expect(
      partsOf(encode(late))
        .slice(-5)
        .map((part) => ('id' in part ? part.id : part.type)),
    ).toEqual(['text-2', 'text-2', 'text-2', 'finish-step', 'finish'])
  })

  it.each([
    ['before its first event', 0, ['error']],
    ['in the middle of a text', 3, ['text-delta', 'text-end', 'error']],
  ])('says why it failed %s, and then ends', (_, events, types) => {
    const encoder = uiStreamEncoder(PARTS)
    const before = turnOf(TURN.slice(0, events)).map((event) => encoder.encode(event))
    const stream = before.join('') + encoder.fail({ status: 500, message: 'No.' })
    expect(
      partsOf(stream)
        .slice(-types.length)
        .map(({ type }) => type),
    ).toEqual(types)
    expect(stream).toMatch(/data: \{"type":"error","errorText":"No\."\}\n\ndata: \[DONE\]\n\n$/)
  })

  it('shows no error when its reader stopped it', () => {
    const stopped = uiStreamEncoder(PARTS).fail({
      code: 'stopped',
      status: 400,
      message: 'Whatever it says.',
    })
    expect(stopped).toBe('data: {"type":"abort"}\n\ndata: [DONE]\n\n')
  })
})

describe('citations as Markdown', () => {
  const MARKDOWN: UiStreamShape = { fields: {}, citations: 'markdown' }
  const answer = (...pieces: string[]): TurnEventBody[] => [
    TURN[0]!,
    RETRIEVAL,
    ...pieces.map((text): TurnEventBody => ({ type: 'delta', text })),
    { type: 'done', finish_reason: 'stop', answer: contentOf(pieces.join('')) },
  ]

  it.each([
    ['a mark', ['High [17.txt].'], 'High [[1]](https://example.org/tower).'],
    [
      'a mark cut into pieces',
      ['High ', '[', '17', '.txt', ']', '.'],
      'High [[1]](https://example.org/tower).',
    ],
    ['a mark at the end', ['High [17.txt]'], 'High [[1]](https://example.org/tower)'],
    ['a list of marks', ['[17.txt; b.md.txt]'], '[[1]](https://example.org/tower)[2]'],
    ['a source without an address', ['Paris [b.md.txt].'], 'Paris [2].'],
    ['a list with a stranger', ['[17.txt, 99]'], '[17.txt, 99]'],
    ['what looks like an id', ['list[17]'], 'list[17]'],
    ['a link of the model, cut', ['[17.txt]', '(https://a.example)'], '[17.txt](https://a.example)'],
    ['a bracket that is never closed', ['a [17.txt'], 'a [17.txt'],
    ['a bracket far from its end', [`[${'x'.repeat(400)}`, ']'], `[${'x'.repeat(400)}]`],
  ])('makes the best of %s', (_, pieces, text) => {
    expect(textOf(encode(answer(...pieces), MARKDOWN))).toBe(text)
  })

  it('are off unless asked for', () => {
    expect(textOf(encode(answer('High [17.txt].')))).toBe('High [17.txt].')
  })
})
