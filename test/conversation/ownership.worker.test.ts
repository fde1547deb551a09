/** Whose a conversation is, and what others see of it: nothing. */

import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { mayContinue } from '../../src/conversation/ask'
import { getConversation, listConversations, traceConversation } from '../../src/conversation/conversations'
import { deleteConversation } from '../../src/conversation/expiry'
import { mayOpen, ownerOf } from '../../src/conversation/stored'
import { listConversationRows } from '../../src/db/conversations'
import { unwrap } from '../../src/errors'
import type { Asker } from '../../src/turn/request'
import { watched } from '../db/watched'
import {
  ADMIN,
  asking,
  begin,
  collectionNamed,
  conversation,
  read,
  rowsOf,
  setStage,
  stub,
  take,
} from './stage'

const QUESTION = 'Who directed Alien?'
const ada = { owner: '1', userId: 'ada', proofs: ['user:ada'] }
const bob = { owner: '1', userId: 'bob', proofs: ['user:bob'] }
const other = { owner: '2', userId: 'ada', proofs: ['user:ada'] }
const adminForAda = { owner: 'admin', userId: 'ada' }
const adminForBob = { owner: 'admin', userId: 'bob' }

/** A conversation of ada's. */
async function adas(): Promise<string> {
  const request = await asking(QUESTION, { asker: ada, protocol: 'parley' })
  await take(request)
  return request.conversationId
}

beforeAll(() => setStage())

it('a conversation is open to the key and the user that began it, and to the admin key', () => {
  expect(
    [ada, bob, other, ADMIN, adminForAda, adminForBob].map((asker) => mayOpen(asker, ownerOf(ada))),
  ).toEqual([true, false, false, true, true, false])
  expect(mayOpen(adminForBob, ADMIN)).toBe(true)
  expect(mayOpen({ owner: '1', userId: '' }, ownerOf(ada))).toBe(false)
})

describe('somebody else', () => {
  it('is told what an unknown id tells, on every way in', async () => {
    const id = await adas()
    const unknown = crypto.randomUUID()
    const follow = (conversationId: string) =>
      asking('And who is in it?', { conversationId, continues: true, asker: bob })
    const [event] = await take(await follow(unknown))
    const foreign = await conversation(id).ask(await follow(id))
    expect(event).toMatchObject({ type: 'error', code: 'unknown_conversation', status: 404 })
    expect(foreign).toEqual({
      ok: false,
      error: {
        code: 'unknown_conversation',
        status: 404,
        message: event?.type === 'error' ? event.message : '',
      },
    })
    for (const asker of [bob, other, adminForBob]) {
      const notFound = {
        ok: false,
        error: { code: 'unknown_conversation', status: 404, message: 'Conversation not found' },
      }
      expect(await conversation(id).events(asker)).toEqual(notFound)
      expect(await conversation(id).events(asker, { turn: 1, seq: 0 })).toEqual(notFound)
      expect(await conversation(id).stop(asker)).toEqual(notFound)
      expect(await conversation(unknown).events(asker)).toEqual(notFound)
      const missing = { status: 404, message: 'Conversation not found' }
      await expect(getConversation(env, asker, id)).rejects.toMatchObject(missing)
      await expect(deleteConversation(env, asker, id)).rejects.toMatchObject(missing)
      await expect(getConversation(env, asker, unknown)).rejects.toMatchObject(missing)
    }
    expect((await getConversation(env, ada, id)).turns).toHaveLength(1)
    expect((await getConversation(env, ADMIN, id)).turns).toHaveLength(1)
  })

  it('is told so before any other fault of the request', async () => {
    const id = await adas()
    const { objectId } = await collectionNamed('talk')
    expect(await mayContinue(env, ada, id, objectId)).toBe(true)
    expect(await mayContinue(env, ADMIN, id, objectId)).toBe(true)
    expect(await mayContinue(env, bob, id, objectId)).toBe(false)
    expect(await mayContinue(env, bob, crypto.randomUUID(), objectId)).toBe(false)
  })

  it('leaves no trace in a conversation that is not theirs', async () => {
    const id = await adas()
    await conversation(id).ask(await asking('Mine?', { conversationId: id, continues: true, asker: bob }))
    const turns = await runInDurableObject(stub(id), (_, { storage }) =>
      storage.sql.exec('SELECT turn FROM turns').toArray(),
    )
    expect(turns).toHaveLength(1)
  })

  it('cannot slip in behind the first turn while it waits', async () => {
    const request = await asking(QUESTION, { asker: ada })
    const first = await begin(request)
    const second = await begin({ ...request, continues: true, asker: bob }).catch(() => undefined)
    expect((await read(first)).at(-1)).toMatchObject({ type: 'done' })
    if (second) expect((await read(second)).at(-1)).toMatchObject({ code: 'unknown_conversation' })
    expect((await getConversation(env, ada, request.conversationId)).turns).toHaveLength(1)
  })
})

it('a conversation that was imported belongs to whoever goes on with it first', async () => {
  const id = crypto.randomUUID()
  const { object } = await collectionNamed('talk')
  const said = (role: string, message: string) =>
    JSON.stringify({
      conversation_id: id,
      model_id: 'm',
      role,
      message,
      timestamp: Math.floor(Date.now() / 1000) - 60,
    })
  unwrap(
    await object.importLines([said('user', QUESTION), said('assistant', 'Ridley Scott.')], {
      action: 'create',
      returnDocument: false,
      returnId: false,
    }),
  )
  expect(await conversation(id).events(ADMIN)).toMatchObject({ error: { status: 404 } })
  const follow = await asking('What is it about?', { conversationId: id, continues: true, asker: ada })
  expect((await take(follow)).at(-1)).toMatchObject({ type: 'done' })
  expect(await conversation(id).ask({ ...follow, asker: bob })).toMatchObject({
    error: { code: 'unknown_conversation', status: 404 },
  })
  expect((await take({ ...follow, asker: ADMIN })).at(-1)).toMatchObject({ type: 'done' })
  expect(await rowsOf('SELECT owner, user_id FROM conversations WHERE id = ?', id)).toEqual([
    { owner: '1', user_id: 'ada' },
  ])
})

describe('the list', () => {
  const cyd = { owner: '9', userId: 'cyd', proofs: ['user:cyd'] }

  it("shows an asker's own, the last used first, in pages without a gap", async () => {
    const ids: string[] = []
    for (let each = 0; each < 5; each++) {
      const request = await asking(`${QUESTION} ${each}`, { asker: cyd, protocol: 'parley' })
      await take(request)
      ids.unshift(request.conversationId)
    }
    await env.DB.prepare(
      'UPDATE conversations SET updated_at = 1 WHERE id IN (SELECT value FROM json_each(?))',
    )
      .bind(JSON.stringify(ids.slice(3)))
      .run()
    const seen: string[] = []
    for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages++) {
      const page = await listConversations(env, cyd, { limit: 2, ...(cursor !== undefined && { cursor }) })
      expect(page.conversations.length).toBeLessThanOrEqual(2)
      seen.push(...page.conversations.map(({ id }) => id))
      cursor = page.next_cursor
    }
    expect(seen.slice(0, 3)).toEqual(ids.slice(0, 3))
    expect(new Set(seen)).toEqual(new Set(ids))
    expect(seen).toHaveLength(5)
    const [first] = (await listConversations(env, cyd, { limit: 1 })).conversations
    expect(first).toEqual({
      id: ids[0],
      title: `${QUESTION} 4`,
      model_id: 'm',
      user_id: 'cyd',
      protocol: 'parley',
      turn_count: 1,
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      expires_at: expect.any(Number),
    })
  })

  it('is narrowed to a user, and never shows those of others', async () => {
    await adas()
    const users = async (asker: Asker, userId?: string) =>
      new Set(
        (
          await listConversations(env, asker, { limit: 100, ...(userId !== undefined && { userId }) })
        ).conversations.map((each) => each.user_id),
      )
    expect(await users(ada)).toEqual(new Set(['ada']))
    expect(await users(ada, 'cyd')).toEqual(new Set())
    expect(await users(ADMIN, 'cyd')).toEqual(new Set(['cyd']))
    expect(await users(adminForAda)).toEqual(new Set(['ada']))
    expect(await users(adminForAda, 'cyd')).toEqual(new Set())
    expect((await users(ADMIN)).size).toBeGreaterThan(1)
    expect((await listConversations(env, other, { limit: 10 })).conversations).toEqual([])
  })

  it('refuses a cursor that it did not give out', async () => {
    for (const cursor of ['', 'x', '12', '%', '1.']) {
      await expect(listConversations(env, ADMIN, { limit: 1, cursor })).rejects.toMatchObject({ status: 400 })
    }
  })

  it('goes by an index, however much there is', async () => {
    for (const scope of [{}, { owner: '1' }, { owner: '1', proof: 'user:ada' }, { userId: 'ada' }]) {
      const { db, seen } = watched()
      await listConversationRows(db, { ...scope, limit: 10, now: 5 })
      const [[text, ...values]] = seen.statements as [(typeof seen.statements)[0]]
      const plan = await rowsOf(`EXPLAIN QUERY PLAN ${text}`, ...values)
      expect(plan[0]!.detail).toMatch(/USING INDEX conversations_(owner|proof|user|updated)/)
    }
  })
})

describe('a conversation', () => {
  it('is read with its turns, in pages from the latest back', async () => {
    const id = await adas()
    for (const question of ['What does the crew meet?', 'Who directed it?']) {
      await take(await asking(question, { conversationId: id, continues: true, asker: ada }))
    }
    const all = await getConversation(env, ada, id)
    expect(all).toMatchObject({ id, title: QUESTION, turn_count: 3 })
    expect(all).not.toHaveProperty('earlier')
    expect(all.turns.map(({ turn }) => turn)).toEqual([1, 2, 3])
    expect(all.turns[0]).toEqual({
      turn: 1,
      question: QUESTION,
      answer:
        'Alien is a 1979 horror film directed by Ridley Scott. The crew of a space tug meets a deadly creature.',
      citations: [0, 54].map((start) => expect.objectContaining({ document_id: 'alien', start })),
      usage: { model: 'local/extractive', input_tokens: 0, output_tokens: 0 },
      timings: expect.objectContaining({ finished: expect.any(Number) }),
      finish_reason: 'stop',
      created_at: expect.any(Number),
    })
    expect(all.turns[2]).toHaveProperty('standalone')
    const last = await getConversation(env, ada, id, { limit: 2 })
    expect(last.turns.map(({ turn }) => turn)).toEqual([2, 3])
    expect(last.earlier).toBe(2)
    const before = await getConversation(env, ada, id, { before: last.earlier! })
    expect(before.turns.map(({ turn }) => turn)).toEqual([1])
  })

  it('is traced, all of it or one turn', async () => {
    const id = await adas()
    const { turns } = await traceConversation(env, ADMIN, id)
    expect(turns).toMatchObject([{ turn: 1, trace: { question: QUESTION, calls: [{ purpose: 'answer' }] } }])
    expect(await traceConversation(env, ADMIN, id, 1)).toEqual({ id, turns })
    await expect(traceConversation(env, ADMIN, id, 2)).rejects.toMatchObject({
      status: 404,
      message: 'Turn not found',
    })
    await expect(traceConversation(env, ADMIN, 'nobody')).rejects.toMatchObject({
      status: 404,
      message: 'Conversation not found',
    })
  })
})
