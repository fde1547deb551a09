import { describe, expect, it, vi } from 'vitest'
import { ApiError } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import type { Delta } from '../../src/models/language-model'
import { config } from '../models/ask'
import { asking, makeWorld, message, NOW, ofType, says, take } from './world'

const said = [
  message({ role: 'user', content: contentOf('Which horror films are set in space?') }),
  message({ role: 'assistant', content: contentOf('Alien is.') }),
]
const followUp = { continues: true, question: contentOf('What is it about?') }

describe('a first turn', () => {
  it('searches the question as it is, answers from the documents, and stores both sides', async () => {
    const world = makeWorld()
    const events = await take(world, asking())
    expect(events.map((event) => event.type)).toEqual([
      'question',
      'results',
      'retrieval',
      'delta',
      'usage',
      'history',
      'done',
    ])
    expect(world.searched).toEqual(['What is Alien about?'])
    expect(world.asked).toHaveLength(1)
    expect(world.stored).toEqual([
      [
        { role: 'user', content: contentOf('What is Alien about?'), timestamp: NOW },
        { role: 'assistant', content: contentOf('Answer to What is Alien about?'), timestamp: NOW },
      ],
    ])
    expect(ofType(events, 'done')[0]).toMatchObject({ answer: contentOf('Answer to What is Alien about?') })
    expect(ofType(events, 'history')[0]?.messages).toEqual(world.stored[0])
    expect(ofType(events, 'usage')[0]?.usage).toMatchObject({ model: 'openai/gpt', estimated: true })
  })

  it('sends the prompt of the contract: system message, data, question, no history', async () => {
    const world = makeWorld({ documents: { films: [{ id: '1', b: 1, a: 'x' }] } })
    const model = config({ model_name: 'vllm/x', vllm_url: 'u', system_prompt: 'Be brief.' })
    await take(world, asking({ model, question: contentOf('q?') }))
    expect(world.asked[0]?.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: '<Data>\n[\n{\n"a": "x",\n"b": 1,\n"id": "1"\n}\n]\n\n<Question>\nq?\n\n<Answer>',
      },
    ])
  })

  it('tells of the history only when it was asked for', async () => {
    const events = await take(makeWorld(), asking({ read: {} }))
    expect(ofType(events, 'history')).toEqual([])
  })

  it('keeps vectors out of the prompt, by schema and by looks, but not out of the reply', async () => {
    const world = makeWorld({
      vectorFields: ['vec', 'nested.vec'],
      documents: {
        films: [
          {
            id: '1',
            vec: [1, 2, 3, 4],
            nested: { vec: [1], name: 'n' },
            wide: Array(64).fill(0.5),
            prices: [1, 2],
          },
        ],
      },
    })
    const events = await take(world, asking())
    expect(world.asked[0]?.sources[0]?.document).toEqual({ id: '1', nested: { name: 'n' }, prices: [1, 2] })
    const [retrieval] = ofType(events, 'retrieval')
    expect(JSON.stringify(ofType(events, 'results'))).toContain('"vec":[1,2,3,4]')
    expect(retrieval?.passages).toEqual([
      {
        collection: 'films',
        id: '1',
        rank: 1,
        score: 0,
        text: '',
        fields: { nested: { name: 'n' }, prices: [1, 2] },
      },
    ])
  })

  it('asks the model even when nothing was found', async () => {
    const world = makeWorld({ documents: { films: [] } })
    await take(world, asking())
    expect(world.asked[0]?.messages[0]?.content).toContain('<Data>\n[]\n')
  })

  it('adds up what the provider reports', async () => {
    const world = makeWorld({
      speak: () => [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'Yes.' },
        { type: 'usage', inputTokens: 3, outputTokens: 2 },
        { type: 'finish', reason: 'length' },
      ],
    })
    const events = await take(world, asking())
    expect(ofType(events, 'usage')[0]?.usage).toEqual({
      model: 'openai/gpt',
      input_tokens: 3,
      output_tokens: 2,
    })
    expect(ofType(events, 'done')[0]).toMatchObject({ answer: contentOf('Yes.'), finish_reason: 'length' })
  })
})

describe('a follow-up', () => {
  it('searches and answers the standalone question, and shows the one that was asked', async () => {
    const world = makeWorld({ said })
    const events = await take(world, asking(followUp))
    expect(world.searched.toSorted()).toEqual(['What is it about?', 'alone: What is it about?'])
    expect(world.asked.map(({ purpose, stream }) => [purpose, stream])).toEqual([
      ['standalone', false],
      ['answer', true],
    ])
    expect(events[0]).toEqual({
      type: 'question',
      question: contentOf('What is it about?'),
      standalone: 'alone: What is it about?',
    })
    const reply = ofType(events, 'results')[0]?.replies[0]
    expect(reply).toMatchObject({ result: { request_params: { q: 'alone: What is it about?' } } })
    expect(ofType(events, 'history')[0]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
  })

  it('has its history in the standalone call, and only there', async () => {
    const world = makeWorld({ said })
    const model = config({ model_name: 'openai/gpt', api_key: 'k', system_prompt: 'SYSTEM' })
    await take(world, asking({ ...followUp, model }))
    const [standalone, answer] = world.asked
    expect(standalone?.messages).toEqual([
      {
        role: 'user',
        content:
          '\n            Rewrite the follow-up question on top of a human-assistant conversation history as a ' +
          'standalone question that encompasses all pertinent context.\n        ' +
          '\n\n<Conversation history>\n' +
          '{\n"user": "Which horror films are set in space?"\n}\n{\n"assistant": "Alien is."\n}\n' +
          '\n\n<Question>\nWhat is it about?\n\n<Standalone question>\n',
      },
    ])
    expect(JSON.stringify(answer?.messages)).not.toContain('horror')
  })

  it('uses the results of the raw question when the model gives it back', async () => {
    const world = makeWorld({ said, speak: ({ question }) => says(question) })
    const events = await take(world, asking(followUp))
    expect(world.searched).toEqual(['What is it about?'])
    expect(events[0]).not.toHaveProperty('standalone')
  })

  it('fails with the search, without waiting for the model, and stops it', async () => {
    let aborted = false
    const world = makeWorld({
      said,
      refuse: () => new ApiError(404, 'Could not find a field named `x` in the schema.'),
      speak: async function* (_, signal): AsyncGenerator<Delta> {
        await new Promise<void>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            reject(signal.reason)
          })
        })
      },
    })
    expect(await take(world, asking(followUp))).toEqual([
      {
        type: 'error',
        code: 'search_failed',
        status: 404,
        message: 'Could not find a field named `x` in the schema.',
        retryable: false,
      },
    ])
    expect(aborted).toBe(true)
  })

  it('fails with the model when the standalone question cannot be written', async () => {
    const world = makeWorld({
      said,
      speak: () => {
        throw new ApiError(400, 'OpenAI API error: no')
      },
    })
    expect(await take(world, asking(followUp))).toEqual([
      { type: 'error', code: 'bad_request', status: 400, message: 'OpenAI API error: no', retryable: false },
    ])
  })

  it('of an unknown conversation is refused, whatever the protocol', async () => {
    const world = makeWorld()
    expect(await take(world, asking(followUp))).toEqual([
      {
        type: 'error',
        code: 'unknown_conversation',
        status: 404,
        message: 'Conversation not found',
        retryable: false,
      },
    ])
    expect(world.asked).toEqual([])
  })

  it('does not know what has expired, by the ttl of the model that said it', async () => {
    const world = makeWorld({
      ttls: new Map([['other', 5]]),
      said: [
        message({ content: contentOf('mine, old'), timestamp: NOW - 101 }),
        message({ content: contentOf('mine, young'), timestamp: NOW - 100 }),
        message({ content: contentOf("other's, old"), timestamp: NOW - 6, modelId: 'other' }),
        message({ content: contentOf("other's, young"), timestamp: NOW - 5, modelId: 'other' }),
        message({ content: contentOf("nobody's"), timestamp: 1, modelId: 'nobody' }),
      ],
    })
    const model = config({ model_name: 'openai/gpt', api_key: 'k', ttl: 100 })
    const [history] = ofType(await take(world, asking({ ...followUp, model })), 'history')
    expect(history?.messages.map(({ content }) => textOf(content)).slice(0, -2)).toEqual([
      'mine, young',
      "other's, young",
      "nobody's",
    ])
    world.now += 200
    world.said = world.said.filter(({ modelId }) => modelId !== 'nobody')
    expect(ofType(await take(world, asking({ ...followUp, model })), 'error')[0]?.message).toBe(
      'Conversation not found',
    )
  })
})

describe('several searches', () => {
  const searches = [
    { collection: 'nowhere', params: {} },
    { collection: 'films', place: { engine: 'object', objectId: 'films' }, params: {} },
    {
      collection: 'locked',
      place: { engine: 'object', objectId: 'locked' },
      params: {},
      error: { status: 401, message: 'Forbidden' },
    },
  ]
  const multi = { onSearchError: 'go_on' as const, searches }

  it('go on while one of them succeeds', async () => {
    const events = await take(makeWorld(), asking(multi))
    expect(ofType(events, 'results')[0]?.replies).toMatchObject([
      { error: 'Collection not found', code: 404 },
      { result: { found: 1 } },
      { error: 'Forbidden', code: 401 },
    ])
    expect(ofType(events, 'done')).toHaveLength(1)
  })

  it('ask no model when all fail, and store nothing', async () => {
    const world = makeWorld({ refuse: () => new ApiError(400, 'bad') })
    const events = await take(world, asking(multi))
    expect(ofType(events, 'results')[0]?.replies).toHaveLength(3)
    // The first search's error is the turn's.
    expect(events.at(-1)).toEqual({
      type: 'error',
      code: 'search_failed',
      status: 404,
      message: 'Collection not found',
      retryable: false,
    })
    expect(world.asked).toEqual([])
    expect(world.stored).toEqual([])
  })

  it('end with a time-out of one of them', async () => {
    const world = makeWorld({ refuse: () => new ApiError(408, 'Request Timeout') })
    expect((await take(world, asking(multi))).at(-1)).toMatchObject({
      type: 'error',
      code: 'search_timed_out',
      status: 408,
    })
  })
})

describe('what goes wrong', () => {
  it.each([
    [31, '`max_bytes` of the conversation model is less than the minimum required bytes(30).', []],
    [35, undefined, []],
  ])('max_bytes %i for "hello"', async (max_bytes, text, sources) => {
    const model = config({ model_name: 'openai/gpt', api_key: 'k', max_bytes })
    const world = makeWorld()
    const events = await take(world, asking({ model, question: contentOf('hello') }))
    expect(ofType(events, 'error')[0]?.message).toBe(text)
    expect(world.asked.flatMap((request) => request.sources)).toEqual(sources)
  })

  it('in the middle of an answer leaves nothing in history', async () => {
    const world = makeWorld({
      speak: async function* (): AsyncGenerator<Delta> {
        yield { type: 'text', text: 'Half an' }
        throw new ApiError(400, 'OpenAI API error: cut')
      },
    })
    const events = await take(world, asking())
    expect(events.map((event) => event.type)).toEqual(['question', 'results', 'retrieval', 'delta', 'error'])
    expect(world.stored).toEqual([])
  })

  it('is malformed when the model says nothing', async () => {
    const events = await take(makeWorld({ speak: () => says('  ') }), asking())
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 400 })
  })

  it('is told without detail when the fault is ours', async () => {
    const logged = vi.spyOn(console, 'error').mockReturnValue()
    // As D1's client words it: the values of the query are in the message, what D1 said is the cause.
    const fault = new Error('Failed query: insert params: secret', { cause: new Error('D1_ERROR') })
    const world = makeWorld({ stores: () => Promise.reject(fault) })
    const last = (await take(world, asking())).at(-1)
    expect(last).toMatchObject({ type: 'error', status: 500 })
    expect(JSON.stringify(last)).not.toMatch(/secret|D1/)
    expect(logged.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
      expect.objectContaining({ event: 'turn failed', reason: expect.stringContaining('D1_ERROR') }),
    ])
    expect(logged.mock.calls.join()).not.toContain('secret')
    logged.mockRestore()
  })

  it('is an error when the history refuses the turn', async () => {
    const world = makeWorld({
      stores: async () => ({ ok: false, error: { status: 400, message: 'Collection not found' } }),
    })
    expect((await take(world, asking())).at(-1)).toMatchObject({
      type: 'error',
      message: 'Collection not found',
    })
  })

  it('is called stopped when it was', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      speak: async function* (_, signal): AsyncGenerator<Delta> {
        yield { type: 'text', text: 'Half' }
        abort.abort()
        signal.throwIfAborted()
      },
    })
    expect((await take(world, asking(), abort.signal)).at(-1)).toMatchObject({
      type: 'error',
      code: 'stopped',
    })
    expect(world.stored).toEqual([])
  })
})

it('leaves no timer behind, whatever its end', async () => {
  vi.useFakeTimers()
  try {
    expect(ofType(await take(makeWorld(), asking()), 'done')).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
    const failing = makeWorld({ refuse: () => new ApiError(404, 'Collection not found') })
    expect(ofType(await take(failing, asking()), 'error')).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
