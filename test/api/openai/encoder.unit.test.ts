import { describe, expect, it } from 'vitest'
import { type CompletionShape, completion, completionEncoder } from '../../../src/api/openai/encoder'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEventBody } from '../../../src/turn/events'
import { foldTurn } from '../../../src/turn/fold'
import { ANSWER, TURN, turnOf } from '../turn-events'

const SHAPE: CompletionShape = { model: 'docs', created: 1_700_000_000, fields: {} }

const HEAD =
  '"id":"chatcmpl-c-1.3","object":"chat.completion.chunk","created":1700000000,"model":"docs","choices":['

/** What each event of the turn adds to the stream. */
const GOLDEN: Record<Exclude<TurnEventBody['type'], 'results' | 'history' | 'part'>, string[]> = {
  question: [
    `data: {${HEAD}{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n`,
  ],
  resumed: [],
  retrieval: [''],
  delta: [
    `data: {${HEAD}{"index":0,"delta":{"content":"It is 330 metres high [17"},"finish_reason":null}]}\n\n`,
    `data: {${HEAD}{"index":0,"delta":{"content":"]. Füße: 日本 🎬"},"finish_reason":null}]}\n\n`,
  ],
  citation: [''],
  followups: [''],
  usage: [''],
  error: [],
  done: [
    `data: {${HEAD}{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":27,"title":"The tower","url":"https://example.org/tower"}}],"context":{"conversation_id":"c-1","citations":[{"content":"The tower\\nIt is 330 metres high.","title":"The tower","url":"https://example.org/tower","filepath":"17","chunk_id":"facts/17"},{"content":"It stands in Paris.","title":"b.md","url":null,"filepath":"b.md","chunk_id":"facts/b.md"}],"followup_questions":["And \\"how\\" wide?"]}},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
  ],
}

const encode = (bodies: TurnEventBody[], includeUsage = false): string => {
  const encoder = completionEncoder(SHAPE, includeUsage)
  return turnOf(bodies)
    .map((event) => encoder.encode(event))
    .join('')
}

const chunksOf = (stream: string) =>
  stream
    .split('\n\n')
    .filter((frame) => frame !== '' && frame !== 'data: [DONE]')
    .map((frame) => JSON.parse(frame.slice('data: '.length)))

describe('a stream of chat completion chunks', () => {
  it('has these bytes for each event', () => {
    const encoder = completionEncoder(SHAPE, false)
    const golden = structuredClone(GOLDEN)
    for (const event of turnOf(TURN)) {
      expect(encoder.encode(event), event.type).toBe(golden[event.type as keyof typeof golden].shift())
    }
    expect(Object.values(golden).flat()).toEqual([])
  })

  it('tells what it cost where that was asked for, in a chunk of its own', () => {
    const chunks = chunksOf(encode(TURN, true))
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
    })
    expect(chunks.slice(0, -1).map(({ usage }) => usage)).toEqual([null, null, null, null])
  })

  it('ends in an error and without an end marker when the turn failed', () => {
    expect(completionEncoder(SHAPE, false).fail({ status: 503, message: 'Interrupted.' })).toBe(
      'data: {"error":{"message":"Interrupted.","type":"server_error","param":null,"code":"server_error"}}\n\n',
    )
  })

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['other', 'stop'],
  ])('calls the end %s %s', (given, told) => {
    const done: TurnEventBody = { type: 'done', finish_reason: given, answer: contentOf('') }
    expect(chunksOf(encode([TURN[0]!, done])).at(-1).choices[0].finish_reason).toBe(told)
    expect(completion(foldTurn(turnOf([done])), SHAPE).choices[0]?.finish_reason).toBe(told)
  })
})

describe('a whole chat completion', () => {
  it('has what the stream has', () => {
    const whole = completion(foldTurn(turnOf(TURN)), SHAPE)
    const [last] = chunksOf(GOLDEN.done[0]!)
    expect(whole).toEqual({
      id: 'chatcmpl-c-1.3',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'docs',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: ANSWER, refusal: null, ...last.choices[0].delta },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
    })
  })
})
