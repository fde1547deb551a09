/** Ids that are no conversation's: whoever asks about them leaves nothing behind. */
import { listDurableObjectIds } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { ask, mayContinue } from '../../src/conversation/ask'
import { mayBeConversation, sealedId } from '../../src/conversation/conversation-id'
import { getConversation, traceConversation } from '../../src/conversation/conversations'
import { deleteConversation } from '../../src/conversation/expiry'
import { call, send } from '../api/typesense/api'
import { ADMIN, asking, collectionNamed, read, setStage, take } from './stage'

beforeAll(() => setStage())

const objects = async (): Promise<number> => (await listDurableObjectIds(env.CONVERSATION)).length

/** A new conversation, begun on the way that requests take. @returns its id */
async function newConversation(): Promise<string> {
  const { conversationId: _, continues: __, ...question } = await asking('Who directed Alien?')
  const { conversationId, events } = await ask(env, question)
  expect((await read(events)).at(-1)).toMatchObject({ type: 'done' })
  return conversationId
}

it('make no object, whatever they are asked for', async () => {
  const { objectId } = await collectionNamed('talk')
  const { conversationId: _, continues: __, ...question } = await asking('And who is in it?')
  const unknown = [
    crypto.randomUUID(),
    'x',
    '',
    `${'f'.repeat(28)}`,
    (await sealedId(env)).replace(/.$/, 'x'),
  ]
  const before = await objects()
  for (const id of unknown) {
    const missing = { code: 'unknown_conversation', status: 404, message: 'Conversation not found' }
    await expect(getConversation(env, ADMIN, id)).rejects.toMatchObject(missing)
    await expect(traceConversation(env, ADMIN, id)).rejects.toMatchObject(missing)
    await expect(deleteConversation(env, ADMIN, id)).rejects.toMatchObject(missing)
    expect(await mayContinue(env, ADMIN, id, objectId)).toBe(false)
    await expect(ask(env, { ...question, chat: { conversationId: id } })).rejects.toMatchObject(missing)
  }
  for (const path of ['', '/events', '/trace']) {
    expect((await call('GET', `/conversations/${unknown[0]}${path}`))[0]).toBe(404)
  }
  expect((await send('POST', `/conversations/${unknown[0]}/stop`)).status).toBe(404)
  expect((await call('DELETE', `/conversations/${unknown[0]}`))[0]).toBe(404)
  expect(await objects()).toBe(before)
})

it('are told from those that the server made, and from older ones that D1 knows', async () => {
  const id = await newConversation()
  expect(await mayBeConversation(env, id)).toBe(true)
  expect(await sealedId(env, id)).toBe(id)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const older = await asking('Who directed Alien?', { conversationId: crypto.randomUUID() })
  expect(await sealedId(env, older.conversationId)).not.toBe(older.conversationId)
  await take(older)
  expect((await getConversation(env, ADMIN, older.conversationId)).turns).toHaveLength(1)
  const { conversationId: _, continues: __, ...question } = await asking('And who is in it?')
  const { events } = await ask(env, { ...question, chat: { conversationId: older.conversationId } })
  expect((await read(events)).at(-1)).toMatchObject({ type: 'done' })
})
