/** What becomes of a turn when its caller, its provider, its object or D1 goes away. */

import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Outbox } from '../../src/conversation/outbox'
import { TurnLog } from '../../src/conversation/turn-log'
import * as turns from '../../src/db/turns'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import type { TurnEvent } from '../../src/turn/events'
import {
  ADMIN,
  asking,
  begin,
  collectionNamed,
  conversation,
  eventsOf,
  makeProvider,
  messagesOf,
  openai,
  read,
  rowsOf,
  setStage,
  speaking,
  stub,
  take,
  usedSoFar,
} from './stage'

beforeAll(() => setStage())

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue()
})

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'

const inObject = <T>(id: string, work: (state: DurableObjectState) => T | Promise<T>) =>
  runInDurableObject(stub(id), (_, state) => work(state))

const statuses = (id: string) =>
  inObject(id, ({ storage }) =>
    storage.sql
      .exec<{ status: string }>('SELECT status FROM turns ORDER BY turn')
      .toArray()
      .map(({ status }) => status),
  )

const recorded = (id: string) =>
  rowsOf('SELECT turn, question, answer FROM turns WHERE conversation_id = ? ORDER BY turn', id)

describe('an object that does not live to see the end of its turn', () => {
  /** A turn that has said something when its object dies, and the alarm rings that it had set. */
  async function crashed(die: (id: string) => Promise<unknown>): Promise<string> {
    const request = await asking(QUESTION, { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reading = read(await begin(request)).catch(() => [])
    await provider.say('half')
    await expect
      .poll(() => inObject(request.conversationId, ({ storage }) => storage.getAlarm()))
      .not.toBeNull()
    const alarm = await inObject(request.conversationId, ({ storage }) => storage.getAlarm())
    expect(alarm! - Date.now()).toBeLessThanOrEqual(30_000)
    await die(request.conversationId)
    await reading
    return request.conversationId
  }

  it('leaves no turn running: its alarm wakes it, and readers get an error', async () => {
    const id = await crashed(() => abortAllDurableObjects())
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    expect(await statuses(id)).toEqual(['interrupted'])
    expect((await eventsOf(id)).at(-1)).toMatchObject({ type: 'error', status: 503, retryable: true })
    expect(await messagesOf(id)).toEqual([])
    expect(await recorded(id)).toEqual([])
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    expect((await eventsOf(id)).at(-1)).toMatchObject({ type: 'error', status: 503 })
  })

  it('counts among the conversations with a failed turn', async () => {
    const failedAt = async (id: string) =>
      (await rowsOf('SELECT failed_at FROM conversations WHERE id = ?', id))[0]?.failed_at ?? null
    const first = await crashed(() => abortAllDurableObjects())
    await runDurableObjectAlarm(stub(first))
    await expect.poll(() => failedAt(first)).toBeGreaterThan(Date.now() - 600_000)

    // The same after an answered turn, whose beginning D1 has taken already.
    const answered = await asking(QUESTION)
    await take(answered)
    const { conversationId: id } = answered
    expect(await failedAt(id)).toBeNull()
    const provider = makeProvider(id)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reading = read(await begin(await asking(QUESTION, { model: openai, conversationId: id })))
    await provider.say('half')
    await abortAllDurableObjects()
    await reading.catch(() => [])
    await runDurableObjectAlarm(stub(id))
    await expect.poll(() => failedAt(id)).toBeGreaterThan(Date.now() - 600_000)
    expect((await recorded(id)).map(({ turn }) => turn)).toEqual([1])
  })

  it('has what it spent charged, once', async () => {
    const before = await usedSoFar()
    const spent = (id: string) =>
      inObject(id, ({ storage }) => storage.sql.exec('SELECT spent FROM turns').one().spent)
    const id = await crashed(async (id) => {
      await expect.poll(() => spent(id)).toContain('"outputTokens":1')
      await abortAllDurableObjects()
    })
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
    const after = await usedSoFar()
    expect(after.tokens).toBeGreaterThan(before.tokens + 50)
    expect(await spent(id)).toBeNull()
    await abortAllDurableObjects()
    await runDurableObjectAlarm(stub(id))
    expect(await usedSoFar()).toEqual(after)
  })

  it('goes on with the next question', async () => {
    const id = await crashed(() => abortAllDurableObjects())
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const events = await take(await asking(QUESTION, { model: openai, conversationId: id }))
    expect(events.at(-1)).toMatchObject({ type: 'done', turn: 2 })
    expect(await statuses(id)).toEqual(['interrupted', 'done'])
  })

  it('keeps a turn that was history already, exactly once, and tells its readers so', async () => {
    const cut = { delta: { content: 'Alien is a' }, finish_reason: 'length' }
    vi.spyOn(globalThis, 'fetch').mockImplementation(
      async () => new Response(`data: ${JSON.stringify({ choices: [cut] })}\n\ndata: [DONE]\n\n`),
    )
    const request = await asking(QUESTION, { model: openai })
    const { conversationId: id } = request
    const deliver = vi.spyOn(turns, 'recordTurn').mockImplementation(() => new Promise(() => {}))
    const reading = read(await begin(request)).catch(() => [])
    await expect.poll(() => messagesOf(id)).toHaveLength(2)
    expect(await statuses(id)).toEqual(['running'])
    deliver.mockRestore()
    await abortAllDurableObjects()
    await reading
    const events = await eventsOf(id)
    expect(events.at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Alien is a'),
      finish_reason: 'length',
      seq: events.length - 1,
    })
    await runDurableObjectAlarm(stub(id))
    expect(await messagesOf(id)).toHaveLength(2)
    expect(await recorded(id)).toHaveLength(1)
    expect(await statuses(id)).toEqual(['done'])
  })

  it('tells nobody the end of a turn before its history has it', async () => {
    const request = await asking(QUESTION)
    const { conversationId: id } = request
    const deliver = vi.spyOn(Outbox.prototype, 'deliver').mockReturnValue(new Promise(() => {}))
    const reading = read(await begin(request)).catch(() => [])
    const waiting = () => inObject(id, ({ storage }) => storage.sql.exec('SELECT 1 FROM outbox').toArray())
    await expect.poll(waiting).toHaveLength(1)
    await abortAllDurableObjects()
    await reading
    deliver.mockRestore()
    expect((await eventsOf(id)).at(-1)).toMatchObject({ type: 'done' })
    expect(await messagesOf(id)).toHaveLength(2)
  })

  it('holds nothing when it was only asked about', async () => {
    const id = crypto.randomUUID()
    expect(await conversation(id).events(ADMIN)).toMatchObject({ error: { status: 404 } })
    expect(await conversation(id).stop(ADMIN)).toMatchObject({ error: { status: 404 } })
    await take(await asking('And?', { conversationId: id, continues: true }))
    expect(
      await inObject(id, ({ storage }) => storage.sql.exec('SELECT * FROM sqlite_master').toArray()),
    ).toEqual([])
  })
})

describe('a reader who has events that the log never got', () => {
  /** A turn whose object is ended between two flushes of its log. @returns its events as they were read */
  async function cutBetweenFlushes(): Promise<{ id: string; had: TurnEvent[] }> {
    const request = await asking(QUESTION, { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const unwritten = vi.spyOn(TurnLog.prototype, 'append').mockReturnValue()
    const reader = (await begin(request)).getReader()
    let text = ''
    const readTo = async (word: string) => {
      while (!text.includes(word)) text += new TextDecoder().decode((await reader.read()).value)
    }
    await provider.say('half')
    await readTo('half')
    await provider.say(' an answer')
    await readTo('an answer')
    await abortAllDurableObjects()
    unwritten.mockRestore()
    const had = text
      .split('\n')
      .slice(0, -1)
      .map((line): TurnEvent => JSON.parse(line))
    return { id: request.conversationId, had }
  }

  it('is told by the id of the last one that the turn was interrupted', async () => {
    const { id, had } = await cutBetweenFlushes()
    const { turn, seq } = had.at(-1)!
    expect(seq).toBeGreaterThanOrEqual(3)
    const [end, ...more] = await eventsOf(id, { turn, seq })
    expect(more).toEqual([])
    expect(end).toMatchObject({ type: 'error', status: 503, retryable: true, turn })
    expect(end!.seq).toBeGreaterThan(seq)
    // Who has the error has everything.
    expect(unwrap(await conversation(id).events(ADMIN, { turn, seq: end!.seq }))).toBeNull()
  })

  it('goes on with the turns after it', async () => {
    const { id, had } = await cutBetweenFlushes()
    const { turn, seq } = had.at(-1)!
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const next = await take(await asking(QUESTION, { model: openai, conversationId: id }))
    const events = await eventsOf(id, { turn, seq })
    expect(events[0]).toMatchObject({ type: 'error', turn })
    expect(events.slice(1)).toEqual(next)
    expect(await eventsOf(id, { turn, seq: events[0]!.seq })).toEqual(next)
  })

  it('is told so too where it asks for the running turn from its beginning', async () => {
    const { id } = await cutBetweenFlushes()
    const events = await read(unwrap(await conversation(id).running(ADMIN))!)
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 503, retryable: true })
    await inObject(id, ({ storage }) =>
      storage.sql.exec('UPDATE turns SET ended_at = ?', Date.now() - 61_000).toArray(),
    )
    expect(unwrap(await conversation(id).running(ADMIN))).toBeNull()
  })
})

describe('a provider', () => {
  it('that falls silent past the timeout of the model ends the turn with an error', async () => {
    const request = await asking(QUESTION, { model: { ...openai, timeout: 0.2 } })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const events = read(await begin(request))
    await provider.say('Ridley')
    expect((await events).at(-1)).toMatchObject({ type: 'error', message: 'OpenAI API timeout.' })
    expect(provider.aborted).toBe(1)
    expect(await messagesOf(request.conversationId)).toEqual([])
    expect(await recorded(request.conversationId)).toEqual([])
  })

  it('is told when the turn is stopped, and not when its readers leave', async () => {
    const request = await asking(QUESTION, { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reader = (await begin(request)).getReader()
    await provider.say('Ridley')
    await reader.read()
    await reader.cancel()
    await provider.say(' Scott')
    expect(provider.aborted).toBe(0)
    expect(unwrap(await conversation(request.conversationId).stop(ADMIN))).toBe(true)
    await expect.poll(() => provider.aborted).toBe(1)
    await expect.poll(() => statuses(request.conversationId)).toEqual(['failed'])
    expect((await eventsOf(request.conversationId)).at(-1)).toMatchObject({
      message: 'The turn was stopped.',
    })
    expect(await messagesOf(request.conversationId)).toEqual([])
  })

  it('has what it said before it was stopped counted', async () => {
    const before = await usedSoFar()
    const request = await asking(QUESTION, { model: openai })
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const events = read(await begin(request))
    await provider.say('Ridley')
    await expect
      .poll(async () =>
        (
          await inObject(request.conversationId, ({ storage }) =>
            storage.sql.exec('SELECT lines FROM log').toArray(),
          )
        ).join(),
      )
      .not.toBe('')
    await expect
      .poll(async () => {
        const stream = unwrap(await conversation(request.conversationId).events(ADMIN))!
        const { value } = await stream.getReader().read()
        return new TextDecoder().decode(value)
      })
      .toContain('Ridley')
    await conversation(request.conversationId).stop(ADMIN)
    await events
    await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
    expect((await usedSoFar()).tokens).toBeGreaterThan(before.tokens)
  })
})

describe('a long conversation', () => {
  it('costs a follow-up no more than its prompt can hold', async () => {
    const { object } = await collectionNamed('talk')
    const id = crypto.randomUUID()
    const now = Math.floor(Date.now() / 1000)
    const lines = Array.from({ length: 1_000 }, (_, n) =>
      JSON.stringify({
        conversation_id: id,
        model_id: 'm',
        role: n % 2 ? 'assistant' : 'user',
        message: `message ${n} ${'x'.repeat(100)}`,
        timestamp: now - 2_000 + n,
      }),
    )
    for (let from = 0; from < lines.length; from += 500) {
      unwrap(
        await object.importLines(lines.slice(from, from + 500), {
          action: 'create',
          returnDocument: false,
          returnId: false,
        }),
      )
    }
    const recent = await object.recentMessages(id, 1_000)
    expect(recent.complete).toBe(false)
    expect(recent.messages.map(({ content }) => textOf(content).split(' ')[1])).toEqual(
      Array.from({ length: 9 }, (_, n) => String(991 + n)),
    )
    expect(await object.recentMessages(id, 1e9)).toEqual({
      messages: await object.messages(id),
      complete: true,
    })
    const events = await take(
      await asking(QUESTION, { conversationId: id, continues: true, read: { history: true } }),
    )
    const history = events.find((event) => event.type === 'history')
    expect(history?.messages).toHaveLength(1_002)
  })
})

it('a turn that is stored is not said to be stopped', async () => {
  const { deliver } = Outbox.prototype
  let goOn = (): void => {}
  const stored = new Promise<void>((resolve) => {
    goOn = resolve
  })
  vi.spyOn(Outbox.prototype, 'deliver').mockImplementation(async function (this: Outbox) {
    await stored
    return deliver.call(this)
  })
  const request = await asking(QUESTION)
  const { conversationId: id } = request
  const events = read(await begin(request))
  await expect
    .poll(() => inObject(id, ({ storage }) => storage.sql.exec('SELECT 1 FROM outbox').toArray()))
    .toHaveLength(1)
  expect(unwrap(await conversation(id).stop(ADMIN))).toBe(false)
  await inObject(id, () => goOn())
  expect((await events).at(-1)).toMatchObject({ type: 'done' })
  expect(await messagesOf(id)).toHaveLength(2)
})

it('an alarm that rings while a turn runs sets the next, and forgets nothing of it', async () => {
  const request = await asking(QUESTION, { model: { ...openai, ttl: 0 } })
  const provider = makeProvider(request.conversationId)
  vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
  const events = read(await begin(request))
  await provider.say('Ridley')
  expect(await runDurableObjectAlarm(stub(request.conversationId))).toBe(true)
  expect(await inObject(request.conversationId, ({ storage }) => storage.getAlarm())).not.toBeNull()
  await provider.say(' Scott')
  await provider.finish()
  expect((await events).at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott') })
})
