/** What was deleted is nowhere any more: not in D1, not in an object, not in a trace. */

import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { getConversation, listConversations } from '../../src/conversation/conversations'
import { deleteConversation, deleteUserConversations, sweepExpired } from '../../src/conversation/expiry'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { createCollection, dropCollection } from '../../src/registry/collections'
import { Collection } from '../../src/search/collection/object'
import type { Asker } from '../../src/turn/request'
import { historySchema } from '../history-schema'
import { expectNothingLeft, history, inD1, inObject, NOT_FOUND } from './remains'
import {
  ADMIN,
  asking,
  begin,
  collectionNamed,
  conversation,
  makeProvider,
  messagesOf,
  openai,
  read,
  rowsOf,
  setStage,
  stub,
  take,
  usedSoFar,
  withoutTables,
} from './stage'

beforeAll(() => setStage())

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'
const inSeconds = () => Math.floor(Date.now() / 1000)

/** A conversation of two turns. */
async function said(parts: Parameters<typeof asking>[1] = {}): Promise<string> {
  const request = await asking(QUESTION, parts)
  await take(request)
  await take({ ...request, continues: true, question: contentOf('What does the crew meet?') })
  return request.conversationId
}

describe('a deleted conversation', () => {
  it('leaves nothing behind', async () => {
    const id = await said()
    const kept = await said()
    expect(await inD1(id)).toEqual(expect.arrayContaining(['messages', 'conversations', 'turns']))
    expect(await inObject(await history(), id)).toEqual(expect.arrayContaining(['documents', 'origins']))
    await deleteConversation(env, ADMIN, id)
    await expectNothingLeft(id)
    expect((await take(await asking('And?', { conversationId: id, continues: true }))).at(-1)).toMatchObject({
      type: 'error',
      message: 'Conversation not found',
    })
    expect((await getConversation(env, ADMIN, kept)).turns).toHaveLength(2)
    expect(await messagesOf(kept)).toHaveLength(4)
  })

  it('stops its running turn, and nothing of that comes after it', async () => {
    const request = await asking(QUESTION)
    await take(request)
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const running = read(await begin({ ...request, continues: true, model: openai }))
    await provider.say('Ridley')
    await deleteConversation(env, ADMIN, request.conversationId)
    expect((await running).at(-1)).toMatchObject({ type: 'error', message: 'The turn was stopped.' })
    await expect.poll(() => provider.aborted).toBe(1)
    await expectNothingLeft(request.conversationId)
  })

  it('takes no turn that was waiting along into a new life', async () => {
    const request = await asking(QUESTION)
    await take(request)
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const follow = { ...request, continues: true, model: openai }
    const running = read(await begin(follow))
    await provider.say('Ridley')
    const waiting = read(await begin(follow))
    await deleteConversation(env, ADMIN, request.conversationId)
    await running
    expect((await waiting).at(-1)).toMatchObject({ type: 'error', message: 'The turn was stopped.' })
    await expectNothingLeft(request.conversationId)
  })

  it('is unreadable at once and gone in the end while D1 does not answer', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const id = await said()
    await withoutTables(['turns'], async () => {
      expect(await conversation(id).erase((await collectionNamed('talk')).objectId)).toBe(false)
      expect(await conversation(id).events(ADMIN)).toEqual({ ok: false, error: NOT_FOUND })
      expect(
        await conversation(id).ask(await asking('And?', { conversationId: id, continues: true })),
      ).toMatchObject({ error: { code: 'unknown_conversation' } })
    })
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    expect(await runDurableObjectAlarm(await history())).toBe(true)
    await expectNothingLeft(id)
  })

  it('is unreadable at once and gone in the end while its history does not answer', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const id = await said({ asker: { owner: '8', userId: 'ida' } })
    const broken = vi
      .spyOn(Collection.prototype, 'removeConversation')
      .mockRejectedValue(new Error('out of reach'))
    await deleteConversation(env, ADMIN, id)
    await expect(getConversation(env, ADMIN, id)).rejects.toMatchObject(NOT_FOUND)
    expect((await listConversations(env, ADMIN, { userId: 'ida', limit: 1 })).conversations).toEqual([])
    // What is left is not counted as gone, however often it is met.
    const rest = [await said({ asker: { owner: '8', userId: 'ida' } })]
    broken.mockImplementation(async function (this: Collection, conversationId) {
      if (conversationId === id) throw new Error('out of reach')
      return { count: 0, done: true }
    })
    expect(await deleteUserConversations(env, ADMIN, 'ida')).toEqual({ deleted: rest.length, done: false })
    broken.mockRestore()
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    await expectNothingLeft(id)
  })

  it('is paid for, though it was deleted while it was being answered', async () => {
    const request = await asking(QUESTION)
    await take(request)
    const before = await usedSoFar()
    const provider = makeProvider(request.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const running = read(await begin({ ...request, continues: true, model: openai }))
    await provider.say('Ridley')
    await deleteConversation(env, ADMIN, request.conversationId)
    await running
    await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
    expect((await usedSoFar()).tokens).toBeGreaterThan(before.tokens)
    await expectNothingLeft(request.conversationId)
  })

  it('is paid for, though D1 had not heard of its last turn', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const request = await asking(QUESTION)
    await take(request)
    const before = await usedSoFar()
    await withoutTables(['usage'], async () => {
      await take({ ...request, continues: true, question: contentOf('What does the crew meet?') })
    })
    expect((await usedSoFar()).turns).toBe(before.turns)
    await deleteConversation(env, ADMIN, request.conversationId)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
    await expectNothingLeft(request.conversationId)
  })

  it('can be followed by another of its id', async () => {
    const id = await said()
    await deleteConversation(env, ADMIN, id)
    const request = await asking(QUESTION, { conversationId: id })
    expect((await take(request)).at(-1)).toMatchObject({ type: 'done', turn: 1 })
    expect(await messagesOf(id)).toHaveLength(2)
    expect((await getConversation(env, ADMIN, id)).turns).toHaveLength(1)
  })
})

describe("a user's conversations", () => {
  it('are deleted with the key that asked for them, and no others', async () => {
    const one = async (asker: Asker): Promise<string> => {
      const request = await asking(QUESTION, { asker })
      await take(request)
      return request.conversationId
    }
    const mine: string[] = []
    const eve: Asker = { owner: '3', userId: 'eve', proofs: ['user:eve'] }
    for (let n = 0; n < 6; n++) mine.push(await one(eve))
    const others = [await one({ owner: '4', userId: 'eve' }), await one({ owner: '3', userId: 'dan' })]
    await expect(deleteUserConversations(env, eve, 'dan')).rejects.toMatchObject(NOT_FOUND)
    expect(await deleteUserConversations(env, eve, 'eve')).toEqual({ deleted: 6, done: true })
    for (const id of mine) await expectNothingLeft(id)
    expect(await rowsOf("SELECT id FROM conversations WHERE owner IN ('3', '4')")).toHaveLength(2)
    expect(await deleteUserConversations(env, ADMIN, 'eve')).toEqual({ deleted: 1, done: true })
    await expectNothingLeft(others[0]!)
    expect(await deleteUserConversations(env, ADMIN, 'eve')).toEqual({ deleted: 0, done: true })
  })
})

describe('history deleted through the documents API', () => {
  const removeWhere = async (filter: string) => {
    const { object } = await collectionNamed('talk')
    unwrap(await object.removeWhere(filter, { batchSize: 1000, returnDocuments: false, returnIds: false }))
  }

  it('is unreadable at once, and gone with the next sweep', async () => {
    const id = await said()
    await removeWhere(`conversation_id:=${id}`)
    await expect(getConversation(env, ADMIN, id)).rejects.toMatchObject(NOT_FOUND)
    expect(await rowsOf('SELECT turn FROM turns WHERE conversation_id = ?', id)).toEqual([])
    await sweepExpired(env, inSeconds())
    await expectNothingLeft(id)
  })

  it('is unreadable as events too, and its object forgets it when asked', async () => {
    const id = await said()
    await removeWhere(`conversation_id:=${id}`)
    expect(await conversation(id).events(ADMIN)).toEqual({ ok: false, error: NOT_FOUND })
    await expect.poll(() => inObject(stub(id))).toEqual([])
    await expectNothingLeft(id)
  })

  it('leaves what was imported before, though all that was asked since is gone', async () => {
    const id = crypto.randomUUID()
    const { object } = await collectionNamed('talk')
    const old = { conversation_id: id, model_id: 'm', timestamp: inSeconds() - 500 }
    const lines = [
      JSON.stringify({ ...old, role: 'user', message: QUESTION }),
      JSON.stringify({ ...old, role: 'assistant', message: 'Ridley Scott.' }),
    ]
    unwrap(await object.importLines(lines, { action: 'create', returnDocument: false, returnId: false }))
    await take(await asking('What does the crew meet?', { conversationId: id, continues: true }))
    await removeWhere(`conversation_id:=${id} && timestamp:>${old.timestamp}`)
    expect(await conversation(id).events(ADMIN)).toEqual({ ok: false, error: NOT_FOUND })
    await sweepExpired(env, inSeconds())
    expect((await messagesOf(id)).map(({ content }) => textOf(content))).toEqual([QUESTION, 'Ridley Scott.'])
  })

  it('of one turn takes its record and its events, and leaves the others', async () => {
    const id = await said()
    const { object } = await collectionNamed('talk')
    // Turns are told apart by their second.
    await runInDurableObject(stub(id), (_, { storage }) => {
      storage.sql.exec('UPDATE turns SET said_at = said_at - 100 WHERE turn = 1')
    })
    for (const { documentId, timestamp } of (await messagesOf(id)).slice(0, 2)) {
      unwrap(await object.patch(documentId, JSON.stringify({ timestamp: timestamp - 100 })))
    }
    await env.DB.prepare(
      'UPDATE turns SET created_at = created_at - 100000 WHERE conversation_id = ? AND turn = 1',
    )
      .bind(id)
      .run()
    const [first] = await messagesOf(id)
    await removeWhere(`conversation_id:=${id} && timestamp:<=${first!.timestamp}`)
    expect((await getConversation(env, ADMIN, id)).turns.map(({ turn }) => turn)).toEqual([2])
    expect(await conversation(id).events(ADMIN, { turn: 1, seq: -1 })).toMatchObject({
      error: { status: 404 },
    })
    const events = await read(unwrap(await conversation(id).events(ADMIN))!)
    expect(events.at(-1)).toMatchObject({ type: 'done', turn: 2 })
    const [row] = await rowsOf('SELECT trace FROM turns WHERE conversation_id = ?', id)
    expect(row!.trace).not.toContain(QUESTION)
  })

  it('of a model takes all that was said with it', async () => {
    const model = { ...(await asking('')).model, id: 'retired' }
    const id = await said({ model })
    await removeWhere('model_id:=retired')
    await sweepExpired(env, inSeconds())
    await expectNothingLeft(id)
    expect(await inD1('retired')).toEqual(['usage'])
  })

  it('goes with its collection', async () => {
    await createCollection(env, historySchema('brief'))
    const { objectId, object } = await collectionNamed('brief')
    await object.keepHistory()
    const id = await said({ historyId: objectId })
    await dropCollection(env, 'brief')
    await expect(getConversation(env, ADMIN, id)).rejects.toMatchObject(NOT_FOUND)
    await sweepExpired(env, inSeconds())
    expect(await inD1(id)).toEqual([])
    expect(await inObject(stub(id))).toEqual([])
  })

  it('that is put back before the sweep stays', async () => {
    const id = await said()
    const { object } = await collectionNamed('talk')
    const { lines } = unwrap(
      await object.exportPage({ filterBy: `conversation_id:=${id}`, include: '', exclude: '' }, 0),
    )
    await removeWhere(`conversation_id:=${id}`)
    unwrap(
      await object.importLines(lines.split('\n'), {
        action: 'create',
        returnDocument: false,
        returnId: false,
      }),
    )
    await sweepExpired(env, inSeconds())
    expect(await messagesOf(id)).toHaveLength(4)
    const follow = await asking('Who directed it?', { conversationId: id, continues: true })
    expect((await take(follow)).at(-1)).toMatchObject({ type: 'done' })
    expect((await getConversation(env, ADMIN, id)).turns).toHaveLength(1)
  })

  it('is left to the next sweep where it cannot be erased now', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const id = await said()
    await removeWhere(`conversation_id:=${id}`)
    const broken = vi
      .spyOn(Collection.prototype, 'removeConversation')
      .mockRejectedValue(new Error('out of reach'))
    expect((await sweepExpired(env, inSeconds())).done).toBe(false)
    broken.mockRestore()
    expect((await sweepExpired(env, inSeconds())).done).toBe(true)
    await expectNothingLeft(id)
  })
})
