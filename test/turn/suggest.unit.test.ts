import { afterEach, describe, expect, it, vi } from 'vitest'
import { ApiError } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import type { Delta, GenerationRequest, LanguageModel } from '../../src/models/language-model'
import { SUGGESTIONS_MS } from '../../src/turn/answer'
import { config } from '../models/ask'
import { asking, makeWorld, ofType, says, take } from './world'

afterEach(() => void vi.useRealTimers())

const wanting = asking({ suggests: true })

describe('suggestions in the answer', () => {
  const world = () => makeWorld({ speak: () => says('Yes, it', ' is. <', '<Wh', 'y?>', '>\n<<Who?>>') })

  it('are asked for by the system prompt, and taken out of what is shown and stored', async () => {
    const told = world()
    const events = await take(told, wanting)
    expect(events.map(({ type }) => type)).toEqual([
      'question',
      'results',
      'retrieval',
      'delta',
      'delta',
      'followups',
      'usage',
      'history',
      'done',
    ])
    expect(ofType(events, 'delta').map(({ text }) => text)).toEqual(['Yes, it', ' is.'])
    expect(ofType(events, 'followups')).toEqual([{ type: 'followups', questions: ['Why?', 'Who?'] }])
    expect(ofType(events, 'done')[0]?.answer).toEqual(contentOf('Yes, it is.'))
    expect(told.stored[0]?.[1]?.content).toEqual(contentOf('Yes, it is.'))
    expect(told.finished[0]?.answer).toBe('Yes, it is.')
    expect(told.asked).toHaveLength(1)
    expect(told.asked[0]?.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('double angle brackets'),
    })
  })

  it('stand after the system prompt of the model', async () => {
    const told = world()
    const model = config({ model_name: 'openai/gpt', api_key: 'k', system_prompt: 'Be brief.' })
    await take(told, asking({ suggests: true, model }))
    expect(told.asked[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(told.asked[0]?.messages[0]?.content).toMatch(/^Be brief\.\n\nAfter the answer/)
  })

  it('are no event where there are none', async () => {
    const events = await take(makeWorld(), wanting)
    expect(ofType(events, 'followups')).toEqual([])
    expect(ofType(events, 'done')).toHaveLength(1)
  })

  it('alone are no answer', async () => {
    const events = await take(makeWorld({ speak: () => says('<<Why?>>') }), wanting)
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 400 })
  })

  it('that nobody asked for stay in the text', async () => {
    const told = world()
    const events = await take(told, asking())
    expect(ofType(events, 'done')[0]?.answer).toEqual(contentOf('Yes, it is. <<Why?>>\n<<Who?>>'))
    expect(told.asked[0]?.messages).toHaveLength(1)
  })
})

describe('suggestions of a model of their own', () => {
  const asked: GenerationRequest[] = []
  const rewriter = (
    speak: (request: GenerationRequest, signal: AbortSignal) => AsyncIterable<Delta> | Delta[],
  ): LanguageModel => ({
    name: 'openai/small',
    async *generate(request, signal) {
      asked.length = 0
      asked.push(request)
      yield* speak(request, signal)
    },
  })

  it('come from one call after the answer, whose prompt is left as it is', async () => {
    const world = makeWorld({
      rewriter: rewriter(() => [
        ...says('<<Why?>>\n<<Who?>>'),
        { type: 'usage', inputTokens: 5, outputTokens: 2 },
      ]),
    })
    const events = await take(world, wanting)
    expect(events.map(({ type }) => type).slice(-4)).toEqual(['followups', 'usage', 'history', 'done'])
    expect(ofType(events, 'followups')[0]?.questions).toEqual(['Why?', 'Who?'])
    expect(world.asked).toHaveLength(1)
    expect(world.asked[0]?.messages).toHaveLength(1)
    expect(asked[0]).toMatchObject({ purpose: 'followups', stream: false })
    expect(asked[0]?.messages[0]?.content).toContain('Answer to What is Alien about?')
    // Both calls are paid for, and the one that answered gives its name.
    const [paid] = ofType(events, 'usage')
    expect(paid?.usage.model).toBe('openai/gpt')
    expect(paid?.usage.input_tokens).toBeGreaterThan(5)
    expect(world.finished[0]?.trace.calls.map(({ purpose, model }) => [purpose, model])).toEqual([
      ['answer', 'openai/gpt'],
      ['followups', 'openai/small'],
    ])
  })

  it('that fail are none, and no error', async () => {
    const failing = rewriter(() => {
      throw new ApiError(400, 'OpenAI API error: no')
    })
    const world = makeWorld({ rewriter: failing })
    const events = await take(world, wanting)
    expect(events.map(({ type }) => type).slice(-3)).toEqual(['usage', 'history', 'done'])
    expect(ofType(events, 'followups')).toEqual([])
    expect(world.finished[0]?.trace.calls[1]).toMatchObject({ error: 'OpenAI API error: no' })
  })

  it('that take too long are none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let stopped = false
    const silent = rewriter(async function* (_, signal): AsyncGenerator<Delta> {
      await new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => {
          stopped = true
          resolve()
        }),
      )
    })
    const taking = take(makeWorld({ rewriter: silent }), wanting)
    await vi.advanceTimersByTimeAsync(SUGGESTIONS_MS)
    const events = await taking
    expect(ofType(events, 'followups')).toEqual([])
    expect(events.at(-1)?.type).toBe('done')
    expect(stopped).toBe(true)
  })

  it('are not made when nobody asked for them', async () => {
    asked.length = 0
    await take(makeWorld({ rewriter: rewriter(() => says('<<Why?>>')) }), asking())
    expect(asked).toEqual([])
  })

  it('do not come after a turn that was stopped meanwhile', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      rewriter: rewriter(() => {
        abort.abort()
        return says('<<Why?>>')
      }),
    })
    const events = await take(world, wanting, abort.signal)
    expect(events.at(-1)).toMatchObject({ type: 'error', message: 'The turn was stopped.' })
    expect(world.stored).toEqual([])
  })
})
