/** Which turns may use a history that was read ahead. test/api/prefetch.worker.test.ts asks over HTTP. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { sealedId } from '../../src/conversation/conversation-id'
import { lastOf } from '../../src/conversation/prefetch'
import { unwrap } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import * as collections from '../../src/search/collection/handle'
import type { AskRequest } from '../../src/turn/request'
import { inObject } from './remains'
import { asking, collectionNamed, conversation, openai, setStage, speaking, stub, take } from './stage'

const READING = 'reading-1'
const realNow = Date.now

let rewritings: string[] = []
let readings = 0

beforeAll(() => setStage())
beforeEach(() => {
  rewritings = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
    const { stream, messages } = JSON.parse(String(init?.body))
    if (!stream) rewritings.push(messages[0].content)
    return speaking(stream ? 'Ridley Scott.' : 'Who directed it?')(url, init)
  })
})
afterEach(() => vi.restoreAllMocks())

async function begun(parts: Partial<AskRequest> = {}): Promise<AskRequest> {
  const first = await asking('Who directed Alien?', { model: openai, ...parts })
  await take(first)
  return { ...first, question: contentOf('And Heat?'), continues: true, prefetched: READING }
}

/** Counts how often a history is read from now on. */
function counting(fail = false): void {
  readings = 0
  const { collectionObject } = collections
  vi.spyOn(collections, 'collectionObject').mockImplementation((...given) => {
    const object = collectionObject(...given)
    return new Proxy(object, {
      get: (_, name) => {
        if (name !== 'recentMessages') return Reflect.get(object, name)
        readings += 1
        return fail && readings === 1 ? () => Promise.reject(new Error('lost')) : Reflect.get(object, name)
      },
    })
  })
}

const lookBack = (request: AskRequest, reading = READING) =>
  conversation(request.conversationId).lookBack(reading)

it('is for the question that names it, once', async () => {
  const request = await begun()
  counting()
  await lookBack(request)
  await take(request)
  expect(readings).toBe(1)
  await take({ ...request, question: contentOf('And Jaws?') })
  expect(readings).toBe(2)
  expect(rewritings.at(-1)).toContain('And Heat?')
})

it.each([
  ['another question', 'reading-2', 0],
  ['a question that comes seconds later', READING, 3_000],
])('is not for %s', async (_, reading, later) => {
  const request = await begun()
  counting()
  await lookBack(request, reading)
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
  await take(request)
  expect(readings).toBe(2)
  expect(rewritings).toEqual([expect.stringContaining('Ridley Scott.')])
})

it('is not used once the conversation has gone on', async () => {
  const request = await begun()
  counting()
  await lookBack(request)
  await take({ ...request, question: contentOf('And Jaws?'), prefetched: 'none' })
  await take(request)
  expect(readings).toBe(3)
  expect(rewritings.at(-1)).toContain('And Jaws?')
})

it('is not used if the model has another history by now', async () => {
  const request = await begun()
  await lookBack(request)
  const { objectId: historyId } = await collectionNamed('films')
  const events = await take({ ...request, historyId })
  expect(events.at(-1)).toMatchObject({ type: 'error', code: 'unknown_conversation' })
  expect(rewritings).toEqual([])
})

it('does not say later which turns were deleted', async () => {
  const request = await begun()
  await conversation(request.conversationId).lookBack(READING, request.asker, 1)
  const { object } = await collectionNamed('talk')
  const all = { batchSize: 100, returnDocuments: false, returnIds: false }
  unwrap(await object.removeWhere(`conversation_id:=${request.conversationId}`, all))
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + 3_000)
  await expect(take({ ...request, after: 1 })).rejects.toMatchObject({ code: 'unknown_conversation' })
})

it('is not needed for the first question in a conversation that was opened', async () => {
  const first = await asking('Who directed Alien?', { model: openai })
  const { conversationId, asker, historyId } = first
  const whose = { conversationId, asker, protocol: 'parley', historyId, modelId: 'm', ttl: 60 }
  unwrap(await conversation(conversationId).tell({ ...whose, what: 'open', title: '' }))
  await lookBack(first)
  // Another question has come meanwhile, so this reading is gone.
  await lookBack(first, 'reading-2')
  const events = await take({ ...first, continues: true, seen: true, prefetched: READING })
  expect(events.at(-1)).toMatchObject({ type: 'done' })
})

it('is read again if it could not be read', async () => {
  const request = await begun()
  counting(true)
  await lookBack(request)
  await take(request)
  expect(readings).toBe(2)
  expect(rewritings).toEqual([expect.stringContaining('Ridley Scott.')])
})

it('begins while no turn runs only, and leaves nothing in an object without a conversation', async () => {
  const request = await begun()
  counting()
  const running = take({ ...request, question: contentOf('And Jaws?'), prefetched: 'none' })
  await Promise.all([lookBack(request), running])
  expect(readings).toBe(1)
  const id = await sealedId(env)
  await conversation(id).lookBack(READING)
  expect(await inObject(stub(id))).toEqual([])
})

it('gives a model what a reading of its own would have given', async () => {
  const { object } = await collectionNamed('talk')
  const id = crypto.randomUUID()
  const texts = ['a', 'é'.repeat(20), '', 'b'.repeat(7), '💬', 'c'.repeat(100)]
  const said = texts.map((message, index) => ({
    conversation_id: id,
    role: index % 2 ? 'assistant' : 'user',
    message,
    timestamp: index,
    model_id: 'm',
  }))
  await object.appendTurn(`${id}/1`, said)
  for (const read of [30, 120, 65_536]) {
    const all = await object.recentMessages(id, read)
    for (let bytes = 0; bytes < 170; bytes++) {
      const own = await object.recentMessages(id, bytes)
      const last = lastOf(all, bytes)
      if (last || bytes <= read) expect(last).toEqual(own)
    }
  }
  expect(lastOf(await object.recentMessages(id, 30), 120)).toBeUndefined()
})
