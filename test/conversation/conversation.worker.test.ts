import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ConversationState } from '../../src/conversation/conversation-state'
import { traceConversation } from '../../src/conversation/conversations'
import { migrate, TurnLog } from '../../src/conversation/turn-log'
import { QUEUE_LIMIT } from '../../src/conversation/turn-queue'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { Collection } from '../../src/search/collection/object'
import { INTERRUPTION_SEQ, type TurnEvent } from '../../src/turn/events'
import { config } from '../models/ask'
import {
  ADMIN,
  asking,
  begin,
  conversation,
  eventsOf,
  makeProvider,
  messagesOf,
  openai,
  read,
  setStage,
  speaking,
  stub,
  take,
} from './stage'

beforeAll(() => setStage())

afterEach(() => vi.restoreAllMocks())

const types = (events: TurnEvent[]) => events.map((event) => event.type)

describe('a turn', () => {
  it('answers from the documents, cites them, and is in the history before it is done', async () => {
    const request = await asking('Who directed Alien?')
    const events = await take(request)
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index))
    expect(new Set(events.map((event) => event.conversation_id))).toEqual(new Set([request.conversationId]))
    const done = events.at(-1)!
    expect(done).toMatchObject({
      type: 'done',
      answer: contentOf(
        'Alien is a 1979 horror film directed by Ridley Scott. The crew of a space tug meets a deadly creature.',
      ),
    })
    const text = events.map((event) => (event.type === 'delta' ? event.text : '')).join('')
    expect(done).toMatchObject({ answer: contentOf(text) })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'citation', collection: 'films', document_id: 'alien', start: 0 }),
    )
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'usage',
        usage: { model: 'local/extractive', input_tokens: 0, output_tokens: 0 },
      }),
    )
    expect(await messagesOf(request.conversationId)).toMatchObject([
      { role: 'user', content: contentOf('Who directed Alien?'), modelId: 'm' },
      { role: 'assistant', content: contentOf(text), modelId: 'm' },
    ])
  })

  it('follows up on what was said', async () => {
    const request = await asking('Which horror film was directed by Ridley Scott?')
    await take(request)
    const events = await take({
      ...request,
      continues: true,
      question: contentOf('What does the crew meet in it?'),
    })
    expect(events[0]).toMatchObject({
      type: 'question',
      question: contentOf('What does the crew meet in it?'),
    })
    expect(events[0]).toHaveProperty('standalone')
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    expect(await messagesOf(request.conversationId)).toHaveLength(4)
    expect(events[0]?.turn).toBe(2)
  })

  it('ends in one error for a conversation that nobody knows', async () => {
    const events = await take(await asking('And?', { continues: true }))
    expect(events).toMatchObject([{ type: 'error', code: 'unknown_conversation', status: 404, seq: 0 }])
  })

  it('ends in an error for a namespace that nobody serves', async () => {
    const model = config({ model_name: 'nobody/x' })
    expect((await take(await asking('Hello?', { model }))).at(-1)).toMatchObject({
      type: 'error',
      message: 'Model namespace `nobody` is not supported.',
    })
  })

  it('gives each piece out as it comes', async () => {
    const request = await asking('Who directed Alien?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reader = (await begin(request)).getReader()
    const decoder = new TextDecoder()
    let seen = ''
    const until = async (text: string) => {
      while (!seen.includes(text)) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`ended before ${text}: ${seen}`)
        seen += decoder.decode(value, { stream: true })
      }
    }
    await until('"retrieval"')
    await provider.say('Ridley')
    await until('Ridley')
    await provider.say(' Scott')
    await until(' Scott')
    await provider.finish()
    await until('"done"')
    expect(seen).toContain('"answer":[{"type":"text","text":"Ridley Scott"}]')
  })

  it('goes on when its reader leaves', async () => {
    const request = await asking('Who directed Alien?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const stream = await begin(request)
    const reader = stream.getReader()
    await reader.read()
    await reader.cancel()
    await provider.say('All of it.')
    await provider.finish()
    await expect
      .poll(async () => (await messagesOf(request.conversationId)).map(({ content }) => textOf(content)))
      .toEqual(['Who directed Alien?', 'All of it.'])
  })

  it('leaves nothing in the history when the provider breaks off', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(
      async () => new Response('data: {"choices":[{"delta":{"content":"half"}}]}\n\n'),
    )
    const request = await asking('Who directed Alien?', { model: openai })
    const events = await take(request)
    expect(types(events)).toEqual(['question', 'retrieval', 'delta', 'error'])
    expect(await messagesOf(request.conversationId)).toEqual([])
  })
})

describe('several turns', () => {
  it('run one at a time, in the order they came', async () => {
    const request = await asking('First?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const first = await begin(request)
    const second = await begin({ ...request, question: contentOf('Second?') })
    await provider.say('one')
    expect(provider.requests).toHaveLength(1)
    await provider.finish()
    expect((await read(first)).at(-1)).toMatchObject({ type: 'done', answer: contentOf('one'), turn: 1 })
    await provider.say('two')
    await provider.finish()
    expect((await read(second)).at(-1)).toMatchObject({ type: 'done', answer: contentOf('two'), turn: 2 })
    expect((await messagesOf(request.conversationId)).map(({ content }) => textOf(content))).toEqual([
      'First?',
      'one',
      'Second?',
      'two',
    ])
  })

  it('are refused when too many wait', async () => {
    const request = await asking('Who?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const object = conversation(request.conversationId)
    const outcomes = []
    for (let turn = 0; turn <= QUEUE_LIMIT + 1; turn++) outcomes.push(await object.ask(request))
    expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(QUEUE_LIMIT + 1)
    expect(outcomes.at(-1)).toMatchObject({ ok: false, error: { status: 429, retryAfter: 5 } })
    await expect.poll(() => provider.requests.length).toBe(1)
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('x'))
    await provider.say('x')
    await provider.finish()
    for (const outcome of outcomes) {
      if (outcome.ok && 'events' in outcome.value) await read(outcome.value.events)
    }
  })
})

describe('the log', () => {
  it('replays a finished turn from any place', async () => {
    const request = await asking('Who directed Alien?')
    const events = await take(request)
    const object = conversation(request.conversationId)
    for (let seq = -1; seq < events.length - 1; seq++) {
      expect(await eventsOf(request.conversationId, { turn: 1, seq })).toEqual(events.slice(seq + 1))
    }
    expect(await eventsOf(request.conversationId)).toEqual(events)
    expect(await object.events(ADMIN, { turn: 1, seq: events.length - 1 })).toEqual({ ok: true, value: null })
    expect(await object.events(ADMIN, { turn: 9, seq: 0 })).toEqual({ ok: true, value: null })
  })

  it('outlives the object', async () => {
    const request = await asking('Who directed Alien?')
    const events = await take(request)
    await evictDurableObject(stub(request.conversationId))
    expect(await eventsOf(request.conversationId)).toEqual(events)
  })

  it('is joined while the turn runs, without a gap and without a double', async () => {
    const request = await asking('Who directed Alien?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const object = conversation(request.conversationId)
    const first = read(await begin(request))
    await provider.say('Ridley')
    const joined = unwrap(await object.events(ADMIN, { turn: 1, seq: 0 }))!
    await provider.say(' Scott')
    await provider.finish()
    expect(await read(joined)).toEqual((await first).slice(1))
  })

  it('ends a turn that nobody writes any more as interrupted', async () => {
    const id = crypto.randomUUID()
    await runInDurableObject(stub(id), async (_, state) => {
      migrate(state.storage.sql)
      state.storage.sql.exec("INSERT INTO turns (status, started_at, version) VALUES ('running', 0, 3)")
      state.storage.sql.exec(
        'INSERT INTO log VALUES (1, 0, ?)',
        `${JSON.stringify({ type: 'question', conversation_id: id, turn: 1, seq: 0 })}\n`,
      )
    })
    await evictDurableObject(stub(id))
    expect(await eventsOf(id)).toMatchObject([
      { type: 'question' },
      { type: 'error', status: 503, retryable: true, turn: 1, seq: INTERRUPTION_SEQ, conversation_id: id },
    ])
  })

  it('holds lines of any length', async () => {
    const lines = ['é🙂'.repeat(400_000), '', 'short', `x${'🙂'.repeat(250_000)}`].map((text, seq) =>
      JSON.stringify({ type: 'delta', text, conversation_id: 'c', turn: 1, seq }),
    )
    await runInDurableObject(stub(crypto.randomUUID()), async (_, state) => {
      migrate(state.storage.sql)
      const log = new TurnLog(state.storage.sql, 'c')
      const turn = log.begin('', 0)
      for (const line of lines) log.append(turn, `${line}\n`)
      expect(log.events(turn)?.map((event, index) => JSON.stringify(event) === lines[index])).toEqual([
        true,
        true,
        true,
        true,
      ])
    })
  })

  it('forgets a turn when the ttl of its model has passed', async () => {
    const request = await asking('Who directed Alien?')
    await take(request)
    const object = stub(request.conversationId)
    await runInDurableObject(object, async (_, state) => {
      // An hour after its end the log of the turn is to go.
      expect(await state.storage.getAlarm()).toBeGreaterThan(Date.now() + 3_500_000)
      state.storage.sql.exec('UPDATE turns SET expires_at = 1')
    })
    expect(await runDurableObjectAlarm(object)).toBe(true)
    expect(await conversation(request.conversationId).events(ADMIN)).toMatchObject({ ok: false })
    // Numbers are never used twice, or the history would take a new turn for an old one.
    expect((await take(request))[0]?.turn).toBe(2)
  })

  it('looks for messages that outlive its turns, less often each time', async () => {
    const request = await asking('Who directed Alien?')
    await take(request)
    const object = stub(request.conversationId)
    await runInDurableObject(object, (_, { storage }) => {
      storage.sql.exec('UPDATE turns SET expires_at = 1')
    })
    await runDurableObjectAlarm(object)
    const minutes = await runInDurableObject(object, async (_, { storage }) => {
      expect(await storage.getAlarm()).not.toBeNull()
      // Another life of the object counts on.
      const memory = () => new ConversationState(storage.sql, env, request.conversationId, () => {})
      return Array.from({ length: 7 }, () => memory().linger() / 60_000)
    })
    expect(minutes).toEqual([20, 40, 80, 160, 320, 360, 360])
    // The conversation is still known, with its owner, and goes on.
    expect((await take({ ...request, continues: true }))[0]?.turn).toBe(2)
  })
})

describe('stop', () => {
  it('ends the running turn, and nothing of it becomes history', async () => {
    const request = await asking('Who directed Alien?', { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const object = conversation(request.conversationId)
    const events = read(await begin(request))
    await provider.say('Ridley')
    expect(await object.stop(ADMIN)).toEqual({ ok: true, value: true })
    expect((await events).at(-1)).toMatchObject({ type: 'error', message: 'The turn was stopped.' })
    expect(await messagesOf(request.conversationId)).toEqual([])
    expect(await object.stop(ADMIN)).toEqual({ ok: true, value: false })
  })

  it('leaves a trace of what it had come to', async () => {
    const request = await asking('Who directed Alien?', { model: openai })
    const id = request.conversationId
    const provider = makeProvider(id)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const events = read(await begin(request))
    await provider.say('Ridley')
    await conversation(id).stop(ADMIN)
    const types = (await events).map(({ type }) => type)
    expect(types).toEqual(['question', 'retrieval', 'delta', 'error'])
    const { turns } = await traceConversation(env, ADMIN, id)
    expect(turns).toMatchObject([
      {
        turn: 1,
        question: 'Who directed Alien?',
        answer: '',
        finish_reason: 'error',
        error: { code: 'stopped', status: 400, message: 'The turn was stopped.', retryable: false },
        trace: {
          question: 'Who directed Alien?',
          searches: [{ collection: 'films', params: { q: 'Who directed Alien?' } }],
          calls: [{ purpose: 'answer', text: 'Ridley', error: 'The call did not come to its end.' }],
        },
      },
    ])
    expect(turns[0]!.trace.calls[0]!.prompt.at(-1)!.content).toContain('<Data>')
    expect(JSON.stringify(turns)).not.toContain('sk-secret')
    expect(await traceConversation(env, ADMIN, id, 1)).toEqual({ id, turns })
    await expect(traceConversation(env, { owner: '7', userId: '' }, id)).rejects.toMatchObject({
      status: 404,
    })
  })
})

describe('a history out of reach', () => {
  const unreachable = async (work: () => Promise<void>) => {
    vi.spyOn(console, 'error').mockReturnValue()
    const spy = vi.spyOn(Collection.prototype, 'appendTurn').mockRejectedValue(new Error('out of reach'))
    await work()
    expect(spy).toHaveBeenCalled()
    spy.mockRestore()
  }

  it('gets the turn later, once, by an alarm', async () => {
    const request = await asking('Who directed Alien?')
    await unreachable(async () => {
      expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
      expect(await messagesOf(request.conversationId)).toEqual([])
      await runDurableObjectAlarm(stub(request.conversationId))
      expect(await messagesOf(request.conversationId)).toEqual([])
    })
    expect(await runDurableObjectAlarm(stub(request.conversationId))).toBe(true)
    expect(await messagesOf(request.conversationId)).toHaveLength(2)
    await runDurableObjectAlarm(stub(request.conversationId))
    expect(await messagesOf(request.conversationId)).toHaveLength(2)
  })

  it('is remembered by the conversation meanwhile', async () => {
    const request = await asking('Who directed Alien?')
    await unreachable(async () => {
      await take(request)
      const follow = {
        ...request,
        continues: true,
        question: contentOf('Who directed Heat?'),
        read: { history: true },
      }
      const events = await take(follow)
      expect(events.at(-1)).toMatchObject({ type: 'done' })
      const history = events.find((event) => event.type === 'history')
      expect(history?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    })
  })
})
