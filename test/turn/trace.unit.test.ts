/** What a turn writes down of itself, how much of the past it reads, and how it is stopped. */

import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import type { Delta, GenerationRequest } from '../../src/models/language-model'
import { type Fault, ProviderError } from '../../src/models/provider-error'
import { config } from '../models/ask'
import { asking, makeWorld, message, NOW, ofType, says, take } from './world'

const follow = asking({ continues: true, question: contentOf('And who made it?') })
const before = [
  message({ content: contentOf('What is Alien?') }),
  message({ role: 'assistant', content: contentOf('A film.') }),
]

describe('a trace', () => {
  it('holds the questions, each search and the prompts as they were sent', async () => {
    const world = makeWorld({ said: before })
    await take(world, follow)
    const [finished] = world.finished
    expect(finished).toMatchObject({
      question: 'And who made it?',
      standalone: 'alone: And who made it?',
      answer: 'Answer to alone: And who made it?',
      finish_reason: 'stop',
      created_at: NOW * 1000,
    })
    const { trace } = finished!
    const params = {
      query_by: 'text',
      drop_tokens_threshold: '1000000',
      prefix: 'false',
      fusion: 'score',
      match_stems: 'true',
      context_q: 'What is Alien? And who made it?',
    }
    expect(trace.searches).toEqual([
      {
        params: { ...params, q: 'And who made it?' },
        collection: 'films',
        found: 1,
        hits: [{ id: '1' }],
        started: 0,
        took: 0,
      },
      {
        params: { ...params, q: 'alone: And who made it?' },
        collection: 'films',
        found: 1,
        hits: [{ id: '1' }],
        started: 0,
        took: 0,
      },
    ])
    expect(trace.calls.map(({ prompt }) => prompt)).toEqual(world.asked.map(({ messages }) => messages))
    expect(trace.calls).toMatchObject([
      { purpose: 'standalone', model: 'openai/gpt', text: 'alone: And who made it?', estimated: true },
      { purpose: 'answer', model: 'openai/gpt', finish_reason: 'stop', estimated: true },
    ])
    expect(trace.calls[1]).not.toHaveProperty('text')
  })

  it('holds a search that has not ended when the turn does, in its place', async () => {
    const raw = Promise.withResolvers<void>()
    const world = makeWorld({
      said: before,
      searching: (q) => (q === 'And who made it?' ? raw.promise : undefined),
    })
    const events = await take(world, follow)
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    raw.resolve()
    const [{ trace }] = world.finished as [(typeof world.finished)[0]]
    expect(trace.searches).toMatchObject([
      { params: { q: 'And who made it?' }, started: 0, took: 0 },
      { params: { q: 'alone: And who made it?' }, collection: 'films', found: 1 },
    ])
    expect(trace.searches[0]).not.toHaveProperty('found')
    expect(trace.searches).toHaveLength(2)
  })

  it('holds why a search failed, and no key', async () => {
    const world = makeWorld({
      refuse: (objectId) => (objectId === 'notes' ? new ApiError(400, 'no such field') : undefined),
    })
    await take(
      world,
      asking({
        onSearchError: 'go_on',
        searches: [
          {
            collection: 'films',
            place: { engine: 'object', objectId: 'films' },
            params: { query_by: 'text', 'x-typesense-api-key': 'secret' },
          },
          {
            collection: 'notes',
            place: { engine: 'object', objectId: 'notes' },
            params: { query_by: 'mood' },
          },
        ],
      }),
    )
    const { trace } = world.finished[0]!
    expect(trace.searches[1]).toMatchObject({
      params: { query_by: 'mood' },
      error: { status: 400, message: 'no such field' },
    })
    expect(JSON.stringify(trace)).not.toContain('secret')
  })
})

describe('the past', () => {
  it('is read as far as the prompt can hold it, and no further', async () => {
    const world = makeWorld({ said: before })
    await take(world, { ...follow, model: config({ model_name: 'openai/gpt', max_bytes: 4_000 }) })
    expect(world.reads).toEqual([4_000])
  })

  it('is read whole where the end of it has expired, and for a caller who wants to see it', async () => {
    const world = makeWorld({ said: before, complete: false })
    const events = await take(world, follow)
    expect(world.reads).toEqual([follow.model.max_bytes, undefined])
    expect(ofType(events, 'history')[0]!.messages).toHaveLength(4)
    const blind = makeWorld({ said: before, complete: false })
    await take(blind, { ...follow, read: {} })
    expect(blind.reads).toEqual([follow.model.max_bytes])
    const old = makeWorld({ said: before.map((each) => ({ ...each, timestamp: 1 })), complete: false })
    expect((await take(old, follow)).at(-1)).toMatchObject({
      type: 'error',
      code: 'unknown_conversation',
    })
    expect(old.reads).toEqual([follow.model.max_bytes, undefined])
  })
})

describe('a stop', () => {
  it('ends a turn at once, whatever it waits for', async () => {
    const abort = new AbortController()
    const hanging = {
      next: (): Promise<IteratorResult<Delta>> => {
        abort.abort()
        return new Promise(() => {})
      },
    }
    const world = makeWorld({ speak: () => ({ [Symbol.asyncIterator]: () => hanging }) })
    const events = await take(world, asking(), abort.signal)
    expect(events.at(-1)).toEqual({
      type: 'error',
      code: 'stopped',
      status: 400,
      message: 'The turn was stopped.',
      retryable: false,
    })
    expect(world.stored).toEqual([])
  })

  it('comes too late when the answer is on its way into history', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      stores: async () => {
        abort.abort()
        await new Promise((wait) => setTimeout(wait))
        return { ok: true, value: undefined }
      },
    })
    const events = await take(world, asking(), abort.signal)
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    expect(world.stored).toHaveLength(1)
  })

  it('between the last piece and history leaves nothing', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      speak: async function* () {
        yield* says('All of it.')
        abort.abort()
      },
    })
    const events = await take(world, asking(), abort.signal)
    expect(events.at(-1)).toMatchObject({ type: 'error', message: 'The turn was stopped.' })
    expect(world.stored).toEqual([])
  })
})

describe('what a turn that came to no answer has spent', () => {
  const promptOf = ({ messages }: GenerationRequest): number =>
    Math.ceil(messages.reduce((sum, { content }) => sum + new TextEncoder().encode(content).length, 0) / 4)
  const tokensOf = (world: ReturnType<typeof makeWorld>) =>
    world.spent.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])
  const fails = (fault: Fault) => new ProviderError(400, `failed: ${fault}`, { fault })

  it('is its prompt where it was stopped before the first word', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      async *speak(_, signal) {
        abort.abort()
        signal.throwIfAborted()
        yield* says('never')
      },
    })
    await take(world, asking(), abort.signal)
    expect(tokensOf(world)).toEqual([[promptOf(world.asked[0]!), 0]])
  })

  it('is told of a call that does not heed the stop', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      async *speak() {
        yield { type: 'text', text: '12345678' }
        abort.abort()
        await new Promise(() => {})
      },
    })
    await take(world, asking(), abort.signal)
    expect(tokensOf(world)).toEqual([[promptOf(world.asked[0]!), 2]])
  })

  it('has the thoughts that were received, too', async () => {
    const abort = new AbortController()
    const world = makeWorld({
      async *speak(_, signal) {
        yield { type: 'reasoning', text: '12345678' }
        yield { type: 'text', text: '1234' }
        abort.abort()
        signal.throwIfAborted()
      },
    })
    await take(world, asking(), abort.signal)
    expect(tokensOf(world)).toEqual([[promptOf(world.asked[0]!), 3]])
  })

  it('is what the provider said, where it did', async () => {
    const world = makeWorld({
      async *speak() {
        yield { type: 'usage', inputTokens: 70, outputTokens: 9 }
        throw fails('empty')
      },
    })
    await take(world, asking())
    expect(tokensOf(world)).toEqual([[70, 9]])
  })

  it.each<[Fault, boolean]>([
    ['silent', true],
    ['cut', true],
    ['empty', true],
    ['busy', false],
    ['limited', false],
    ['unreached', false],
    ['denied', false],
    ['refused', false],
  ])('before the first word of a provider whose fault is %s counts: %s', async (fault, counts) => {
    const world = makeWorld({
      // biome-ignore lint/correctness/useYield: it fails before it says anything
      async *speak() {
        throw fails(fault)
      },
    })
    await take(world, asking())
    expect(tokensOf(world)).toEqual([[counts ? promptOf(world.asked[0]!) : 0, 0]])
  })

  it('has the rewriting that was done before the answer failed', async () => {
    const world = makeWorld({
      said: before,
      async *speak({ purpose }) {
        if (purpose !== 'standalone') throw fails('busy')
        yield { type: 'usage', inputTokens: 40, outputTokens: 4 }
        yield* says('Who made Alien?')
      },
    })
    await take(world, follow)
    expect(tokensOf(world)).toEqual([[40, 4]])
  })

  it('has the attempts of other models before the one that answered, each for its own', async () => {
    const world = makeWorld({
      async *speak() {
        yield { type: 'failed', model: 'openai/a', error: 'timeout', id: 'm', received: 8 }
        yield { type: 'failed', model: 'openai/b', error: 'busy' }
        yield { type: 'failed', model: 'openai/c', error: 'cut', id: 'c', received: 4 }
        yield { type: 'model', name: 'openai/d', id: 'd' }
        yield { type: 'usage', inputTokens: 5, outputTokens: 6 }
        yield* says('Yes.')
      },
    })
    const events = await take(world, asking())
    const prompt = promptOf(world.asked[0]!)
    expect(world.spent).toEqual([
      { modelId: 'm', inputTokens: prompt, outputTokens: 2 },
      { modelId: 'c', inputTokens: prompt, outputTokens: 1 },
      { modelId: 'd', inputTokens: 5, outputTokens: 6 },
    ])
    // The caller is told what is charged.
    expect(events.find(({ type }) => type === 'usage')).toMatchObject({
      usage: { model: 'openai/d', input_tokens: 2 * prompt + 5, output_tokens: 9, estimated: true },
    })
  })
})
