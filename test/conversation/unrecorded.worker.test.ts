/** Conversations that D1 has not heard of yet, or not all of: they can be read and deleted like any other. */
import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { getConversation, listConversations } from '../../src/conversation/conversations'
import { deleteConversation, deleteUserConversations, sweepExpired } from '../../src/conversation/expiry'
import * as turns from '../../src/db/turns'
import type { Asker, AskRequest } from '../../src/turn/request'
import { expectNothingLeft, NOT_FOUND } from './remains'
import {
  ADMIN,
  asking,
  begin,
  conversation,
  eventsOf,
  makeProvider,
  messagesOf,
  openai,
  type Provider,
  read,
  rowsOf,
  setStage,
  stub,
  take,
  usedSoFar,
  withoutTables,
} from './stage'

beforeAll(() => setStage())

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue()
})

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'
const TABLES = ['conversations', 'turns', 'usage', 'messages']
const stopped = { type: 'error', message: 'The turn was stopped.' }

interface Running {
  id: string
  events: Promise<Awaited<ReturnType<typeof read>>>
  provider: Provider
}

/** A first turn that has said one word. */
async function running(parts: Partial<AskRequest> = {}): Promise<Running> {
  const request = await asking(QUESTION, { model: openai, ...parts })
  const provider = makeProvider(request.conversationId)
  vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
  const events = read(await begin(request)).catch(() => [])
  await provider.say('Ridley')
  return { id: request.conversationId, events, provider }
}

const of = (userId: string, owner = '11'): Asker => ({ owner, userId, proofs: [`user:${userId}`] })

describe('a conversation whose first turn runs', () => {
  it('is read, without turns, by whoever may', async () => {
    const { id, events, provider } = await running({ asker: of('zoe'), protocol: 'parley' })
    for (const asker of [of('zoe'), ADMIN]) {
      expect(await getConversation(env, asker, id)).toMatchObject({
        id,
        title: QUESTION,
        model_id: 'm',
        user_id: 'zoe',
        protocol: 'parley',
        turn_count: 0,
        turns: [],
      })
    }
    await expect(getConversation(env, of('yan'), id)).rejects.toMatchObject(NOT_FOUND)
    await provider.finish()
    expect((await events).at(-1)).toMatchObject({ type: 'done' })
    expect((await getConversation(env, of('zoe'), id)).turns).toHaveLength(1)
  })

  it('is deleted: its turn ends, is no history, and is paid for', async () => {
    const before = await usedSoFar()
    const { id, events, provider } = await running({ asker: of('xia') })
    await expect(deleteConversation(env, of('yan'), id)).rejects.toMatchObject(NOT_FOUND)
    expect(provider.aborted).toBe(0)
    await deleteConversation(env, of('xia'), id)
    expect((await events).at(-1)).toMatchObject(stopped)
    await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
    expect((await usedSoFar()).tokens).toBeGreaterThan(before.tokens)
    await expectNothingLeft(id)
    await expect(deleteConversation(env, of('xia'), id)).rejects.toMatchObject(NOT_FOUND)
  })

  it('is listed, and found when its user is deleted, once D1 has heard of it', async () => {
    const { id, events } = await running({ asker: of('wim') })
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    const { conversations } = await listConversations(env, of('wim'), { limit: 1 })
    expect(conversations).toMatchObject([{ id, turn_count: 0 }])
    expect(await deleteUserConversations(env, of('wim'), 'wim')).toEqual({ deleted: 1, done: true })
    expect((await events).at(-1)).toMatchObject(stopped)
    await expectNothingLeft(id)
  })

  it.each([
    ['the key that began it', of('uma')],
    ['the admin key', ADMIN],
  ])('goes with its user though D1 has not heard of it, deleted by %s', async (_, asker) => {
    const others = [await running({ asker: of('uma', '12') }), await running({ asker: of('una') })]
    const { id, events } = await running({ asker: of('uma') })
    expect(await deleteUserConversations(env, asker, 'uma')).toEqual({ deleted: 0, done: true })
    await runDurableObjectAlarm(stub(id))
    expect((await events).at(-1)).toMatchObject(stopped)
    await expectNothingLeft(id)
    for (const other of others) await runDurableObjectAlarm(stub(other.id))
    const left = asker === ADMIN ? ['una'] : ['uma', 'una']
    const rows = await rowsOf(
      'SELECT user_id FROM conversations WHERE id IN (?, ?)',
      others[0]!.id,
      others[1]!.id,
    )
    expect(rows.map(({ user_id }) => user_id).sort()).toEqual(left)
    await deleteUserConversations(env, ADMIN, 'uma')
    await deleteUserConversations(env, ADMIN, 'una')
  })

  it('goes with its user though its object dies meanwhile', async () => {
    const { id, events } = await running({ asker: of('tea') })
    await deleteUserConversations(env, of('tea'), 'tea')
    await abortAllDurableObjects()
    await events
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    await expectNothingLeft(id)
  })

  it('goes with its user though it comes to its end first', async () => {
    const before = await usedSoFar()
    const { id, events, provider } = await running({ asker: of('sam') })
    await deleteUserConversations(env, of('sam'), 'sam')
    await provider.finish()
    await events
    await expect.poll(() => messagesOf(id)).toEqual([])
    await expect(getConversation(env, of('sam'), id)).rejects.toMatchObject(NOT_FOUND)
    await runDurableObjectAlarm(stub(id))
    await expectNothingLeft(id)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
  })
})

describe('a conversation without an answer', () => {
  it('is known to D1 as well, so that it goes with its user', async () => {
    const { id, events } = await running({ asker: of('rob') })
    await conversation(id).stop(of('rob'))
    expect((await events).at(-1)).toMatchObject(stopped)
    await runDurableObjectAlarm(stub(id))
    expect(await eventsOf(id)).not.toEqual([])
    expect((await getConversation(env, of('rob'), id)).turns).toEqual([])
    expect(await deleteUserConversations(env, of('rob'), 'rob')).toEqual({ deleted: 1, done: true })
    await expectNothingLeft(id)
  })
})

describe('a turn that ended while D1 did not answer', () => {
  async function answered(asker: Asker): Promise<string> {
    const request = await asking(QUESTION, { asker })
    await withoutTables(TABLES, async () => {
      expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
    })
    return request.conversationId
  }

  it('is read as soon as D1 does', async () => {
    const id = await answered(of('pia'))
    expect((await getConversation(env, of('pia'), id)).turns).toMatchObject([{ turn: 1, question: QUESTION }])
  })

  it('is deleted, and counted once', async () => {
    const before = await usedSoFar()
    const id = await answered(of('ole'))
    await deleteConversation(env, of('ole'), id)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
    await expectNothingLeft(id)
  })

  it('goes with its user, and is counted once', async () => {
    const before = await usedSoFar()
    const id = await answered(of('ned'))
    expect(await deleteUserConversations(env, of('ned'), 'ned')).toEqual({ deleted: 0, done: true })
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    await expect.poll(() => messagesOf(id)).toEqual([])
    await runDurableObjectAlarm(stub(id))
    await expectNothingLeft(id)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
  })

  it('goes with its user and is counted once, though the acknowledgement was lost', async () => {
    const before = await usedSoFar()
    const id = await answered(of('moe'))
    await deleteUserConversations(env, of('moe'), 'moe')
    const write = turns.recordTurn
    vi.spyOn(turns, 'recordTurn').mockImplementationOnce(async (db, record) => {
      await write(db, record)
      throw new Error('the line went dead')
    })
    await runDurableObjectAlarm(stub(id))
    expect(await messagesOf(id)).toHaveLength(2)
    await runDurableObjectAlarm(stub(id))
    await expect.poll(() => messagesOf(id)).toEqual([])
    await runDurableObjectAlarm(stub(id))
    await expectNothingLeft(id)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
  })
})

it('what a user asks after the deletion stays, and the mark of it does not', async () => {
  await deleteUserConversations(env, of('lea'), 'lea')
  const request = await asking(QUESTION, { asker: of('lea') })
  await take(request)
  expect((await getConversation(env, of('lea'), request.conversationId)).turns).toHaveLength(1)
  expect(
    (await listConversations(env, ADMIN, { limit: 100 })).conversations.map(({ title }) => title),
  ).not.toContain('')
  const marks = 'SELECT id FROM erasures'
  expect(await rowsOf(marks)).not.toEqual([])
  await sweepExpired(env, Math.floor(Date.now() / 1000))
  expect(await rowsOf(marks)).not.toEqual([])
  await sweepExpired(env, Math.floor(Date.now() / 1000) + 32 * 86_400)
  expect(await rowsOf(marks)).toEqual([])
})
