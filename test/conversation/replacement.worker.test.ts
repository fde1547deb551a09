/** Turns that are asked again: what they replace is a version when the new answer is there, and not before. */

import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { namedConversationId } from '../../src/conversation/conversation-id'
import { traceConversation } from '../../src/conversation/conversations'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { Collection } from '../../src/search/collection/object'
import type { AskRequest } from '../../src/turn/request'
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
  rowsOf,
  setStage,
  speaking,
  stub,
  take,
  withoutTables,
} from './stage'

let id: string

const takeTurn = (question: string, parts: Partial<AskRequest> = {}) =>
  asking(question, { conversationId: id, continues: true, named: true, model: openai, ...parts }).then(take)

/** Asks, to be given this answer. */
const answered = (question: string, answer: string, parts: Partial<AskRequest> = {}) => {
  vi.stubGlobal('fetch', speaking(answer))
  return takeTurn(question, parts)
}

const said = async () => (await messagesOf(id)).map(({ content }) => textOf(content))

const recorded = () =>
  rowsOf(
    'SELECT turn, question, answer FROM turns WHERE conversation_id = ? AND replaced_by IS NULL ORDER BY turn',
    id,
  )

const inD1 = async () =>
  (await rowsOf('SELECT message FROM messages WHERE conversation_id = ? ORDER BY rowid', id)).map(
    ({ message }) => message,
  )

beforeAll(() => setStage())
beforeEach(() => {
  id = crypto.randomUUID()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

describe('a conversation that its caller has named', () => {
  it('begins with the first question and goes on with the next', async () => {
    await answered('one', 'first')
    await answered('two', 'second')
    expect(await said()).toEqual(['one', 'first', 'two', 'second'])
  })

  it('begins with a transcript, which counts only then', async () => {
    const transcript = [{ role: 'user' as const, content: contentOf('before') }]
    await answered('one', 'first', { transcript })
    await answered('two', 'second', { transcript: [{ role: 'user', content: contentOf('a lie') }] })
    expect(await said()).toEqual(['before', 'one', 'first', 'two', 'second'])
  })

  it('has an id that depends on the key, the user and the scope', async () => {
    const ids = await Promise.all([
      namedConversationId({ owner: '1', userId: '' }, 'docs', 'chat'),
      namedConversationId({ owner: '2', userId: '' }, 'docs', 'chat'),
      namedConversationId({ owner: '1', userId: 'a' }, 'docs', 'chat'),
      namedConversationId({ owner: '1', userId: '' }, 'shop', 'chat'),
      namedConversationId({ owner: '1', userId: '' }, 'docs', 'chat2'),
    ])
    expect(new Set(ids).size).toBe(5)
    expect(await namedConversationId({ owner: '1', userId: '' }, 'docs', 'chat')).toBe(ids[0])
  })

  it('remains unknown when its id is only given', async () => {
    const events = await takeTurn('one', { named: false })
    expect(events).toMatchObject([{ type: 'error', code: 'unknown_conversation' }])
  })
})

describe('a turn that replaces others', () => {
  it('takes the place of the last one of the same question', async () => {
    await answered('one', 'first')
    await answered('two', 'second')
    await answered('two', 'better', { replaces: {} })
    expect(await said()).toEqual(['one', 'first', 'two', 'better'])
    expect(await recorded()).toEqual([
      { turn: 1, question: 'one', answer: 'first' },
      { turn: 3, question: 'two', answer: 'better' },
    ])
    expect(await inD1()).toEqual(['one', 'first', 'two', 'better'])
    const [row] = await rowsOf('SELECT turns FROM conversations WHERE id = ?', id)
    expect(row).toEqual({ turns: 2 })
  })

  it('takes the place of all after a turn, and is asked as if they had not been', async () => {
    await answered('one', 'first')
    await answered('two', 'second')
    await answered('three', 'third')
    const prompts: string[] = []
    const speak = speaking('better')
    vi.stubGlobal('fetch', (async (input, init) => {
      prompts.push(String(init?.body))
      return speak(input, init)
    }) as typeof fetch)
    const events = await takeTurn('two again', { replaces: { after: 1 }, read: { history: true } })
    expect(events.slice(-2)).toMatchObject([
      { type: 'history', messages: [{}, {}, {}, {}] },
      { type: 'done' },
    ])
    expect(prompts[0]).toContain('first')
    expect(prompts.join()).not.toContain('second')
    expect(await said()).toEqual(['one', 'first', 'two again', 'better'])
    expect(await recorded()).toMatchObject([{ turn: 1 }, { turn: 4 }])
  })

  it('leaves the trace of what stays, and its own', async () => {
    await answered('one', 'first')
    await answered('two', 'second')
    await answered('two', 'better', { replaces: {} })
    const { turns } = await traceConversation(env, ADMIN, id)
    expect(turns.map(({ trace }) => trace.question)).toEqual(['one', 'two'])
  })

  it('replaces everything, but no transcript', async () => {
    const transcript = [{ role: 'user' as const, content: contentOf('before') }]
    await answered('one', 'first', { transcript })
    await answered('one', 'better', { replaces: { after: 0 }, transcript })
    expect(await said()).toEqual(['before', 'one', 'better'])
  })

  it('replaces nothing where nothing is meant', async () => {
    await answered('one', 'first')
    await answered('two', 'second', { replaces: {} })
    await answered('three', 'third', { replaces: { after: 7 } })
    expect(await said()).toEqual(['one', 'first', 'two', 'second', 'three', 'third'])
  })

  it('loses nothing when it fails', async () => {
    await answered('one', 'first')
    vi.stubGlobal('fetch', async () => new Response('{}', { status: 500 }))
    const events = await takeTurn('one', { replaces: {} })
    expect(events.at(-1)).toMatchObject({ type: 'error' })
    expect(await said()).toEqual(['one', 'first'])
    expect(await recorded()).toMatchObject([{ turn: 1, answer: 'first' }])
    await answered('one', 'better', { replaces: {} })
    expect(await said()).toEqual(['one', 'better'])
  })

  it('loses nothing when it is stopped', async () => {
    await answered('one', 'first')
    const provider = makeProvider(id)
    vi.stubGlobal('fetch', provider.fetch)
    const reading = read(
      await begin(await asking('one', { conversationId: id, continues: true, model: openai, replaces: {} })),
    )
    await provider.say('half')
    expect(unwrap(await conversation(id).stop(ADMIN))).toBe(true)
    expect((await reading).at(-1)).toMatchObject({ type: 'error' })
    expect(await said()).toEqual(['one', 'first'])
    expect((await eventsOf(id, { turn: 1, seq: -1 }))[0]).toMatchObject({ type: 'question', turn: 1 })
  })

  it('counts while its history is out of reach, and replaces there later', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await answered('one', 'first')
    const away = vi.spyOn(Collection.prototype, 'appendTurn').mockRejectedValue(new Error('out of reach'))
    await answered('one', 'better', { replaces: {} })
    await answered('two', 'second')
    const events = await answered('two', 'best', { replaces: {}, read: { history: true } })
    const told = events.find((event) => event.type === 'history')
    const history = ['one', 'better', 'two', 'best']
    expect(told?.messages.map(({ content }) => textOf(content))).toEqual(history)
    expect(await said()).toEqual(['one', 'first'])
    away.mockRestore()
    await runDurableObjectAlarm(stub(id))
    expect(await said()).toEqual(history)
    expect(await recorded()).toMatchObject([{ answer: 'better' }, { answer: 'best' }])
    await expect.poll(inD1).toEqual(history)
  })

  it('replaces a turn that D1 has not seen yet', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await withoutTables(['turns', 'messages'], async () => {
      await answered('one', 'first')
      await answered('one', 'better', { replaces: {} })
    })
    await answered('two', 'second')
    expect(await said()).toEqual(['one', 'better', 'two', 'second'])
    await runDurableObjectAlarm(stub(id))
    await expect.poll(recorded).toMatchObject([{ answer: 'better' }, { answer: 'second' }])
  })
})

describe('the running turn', () => {
  it('is told from its beginning, and only while it runs', async () => {
    const provider = makeProvider(id)
    vi.stubGlobal('fetch', provider.fetch)
    const first = read(await begin(await asking('one', { conversationId: id, model: openai })))
    await provider.say('a')
    const joined = unwrap(await conversation(id).running(ADMIN))
    expect(joined).not.toBeNull()
    const second = read(joined!)
    await provider.say('b')
    await provider.finish()
    expect(await second).toEqual(await first)
    expect(unwrap(await conversation(id).running(ADMIN))).toBeNull()
  })

  it('is unknown to others', async () => {
    await answered('one', 'first', { asker: { owner: '1', userId: '' } })
    const outcome = await conversation(id).running({ owner: '2', userId: '' })
    expect(outcome).toMatchObject({ ok: false, error: { status: 404 } })
  })
})

describe('the same regeneration twice', () => {
  /** An answer that is being written again. */
  async function regenerating() {
    await answered('one', 'first')
    const fingerprint = crypto.randomUUID()
    const request = await asking('one', {
      conversationId: id,
      continues: true,
      named: true,
      model: openai,
      replaces: {},
      fingerprint,
    })
    const provider = makeProvider(id)
    vi.stubGlobal('fetch', provider.fetch)
    const reader = (await begin(request)).getReader()
    await expect.poll(() => provider.requests).toHaveLength(1)
    return { request, provider, reader }
  }

  /** Reads as far as the first piece of the answer. */
  async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let text = ''; !text.includes('"delta"'); ) {
      text += new TextDecoder().decode((await reader.read()).value)
    }
  }

  /** Whether a turn's callers have been seen leaving. */
  const abandoned = (turn: number) =>
    runInDurableObject(
      stub(id),
      (_, { storage }) =>
        storage.sql.exec('SELECT abandoned FROM turns WHERE turn = ?', turn).one().abandoned,
    )

  it('is two answers where there was something of the first to read', async () => {
    const { request, provider, reader } = await regenerating()
    await provider.say('dull')
    await readText(reader)
    const again = await begin(request)
    await reader.cancel()
    await provider.finish()
    await provider.say('better')
    await provider.finish()
    expect((await read(again)).at(-1)).toMatchObject({ type: 'done', turn: 3, answer: contentOf('better') })
    expect(await said()).toEqual(['one', 'better'])
    // And so is a third, when the second has been read.
    const third = await begin(request)
    await provider.say('best')
    await provider.finish()
    expect((await read(third)).at(-1)).toMatchObject({ turn: 4, answer: contentOf('best') })
  })

  it('is two answers where the first has ended, which its reader had left in the middle', async () => {
    const { request, provider, reader } = await regenerating()
    await provider.say('dull')
    await readText(reader)
    await reader.cancel()
    await provider.finish()
    await expect.poll(said).toEqual(['one', 'dull'])
    const again = await begin(request)
    await provider.say('better')
    await provider.finish()
    expect((await read(again)).at(-1)).toMatchObject({ type: 'done', turn: 3, answer: contentOf('better') })
  })

  it('is one for who was cut off before there was anything to read', async () => {
    const { request, provider, reader } = await regenerating()
    await reader.cancel()
    const running = await begin(request)
    await running.cancel()
    await expect.poll(() => abandoned(2)).toBe(1)
    await provider.say('undelivered')
    await provider.finish()
    await expect.poll(said).toEqual(['one', 'undelivered'])
    expect((await read(await begin(request))).at(-1)).toMatchObject({
      turn: 2,
      answer: contentOf('undelivered'),
    })
    expect(provider.requests).toHaveLength(1)
  })

  it('is one while there is nothing of the first to read', async () => {
    const { request, provider, reader } = await regenerating()
    const again = await begin(request)
    await provider.say('better')
    await provider.finish()
    expect((await read(again)).at(-1)).toMatchObject({ turn: 2, answer: contentOf('better') })
    expect(provider.requests).toHaveLength(1)
    await reader.cancel()
  })

  it('is one, whatever was seen of it, where it goes by the same key', async () => {
    const { request, provider, reader } = await regenerating()
    await reader.cancel()
    const named = { ...request, idempotencyKey: crypto.randomUUID(), fingerprint: 'named' }
    const first = (await begin(named)).getReader()
    await provider.finish()
    await provider.say('better')
    await readText(first)
    await first.cancel()
    await provider.finish()
    expect((await read(await begin(named))).at(-1)).toMatchObject({ turn: 3, answer: contentOf('better') })
  })
})
