/**
 * Calls between versions. During a deployment a Worker of one version calls objects of the other. So a method is never taken
 * away, what a newer Worker adds to a call may be left out by an older one, and an object leaves out what it does not know.
 */
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { Conversation } from '../../src/conversation/conversation'
import { Collection } from '../../src/search/collection/object'
import { ADMIN, asking, collectionNamed, read, setStage, stub, take } from './stage'

beforeAll(() => setStage())

/** What Workers of earlier versions call. Append only. */
const CALLED = {
  Conversation: [
    ...['ask', 'events', 'running', 'stop', 'lost', 'isOpenTo', 'holds', 'copy', 'tell', 'recorded'],
    ...['unanswered', 'remove', 'erase', 'once'],
  ],
  Collection: [
    ...['create', 'summary', 'schema', 'alter', 'reconcileVectors', 'reseal', 'destroy', 'reindex'],
    ...['schemaProgress', 'write', 'patch', 'get', 'join', 'refer', 'cascade', 'remove', 'updateWhere'],
    ...[
      'removeWhere',
      'truncate',
      'importLines',
      'exportPage',
      'search',
      'abandon',
      'keepHistory',
      'messages',
    ],
    ...['recentMessages', 'wholeTurns', 'removeConversation', 'appendTurn', 'expireMessages', 'recordEvents'],
    ...['loggedEvents', 'forgetEvents', 'flushEvents', 'eventStatus', 'embedAhead'],
  ],
}

it.each([
  [Conversation, CALLED.Conversation],
  [Collection, CALLED.Collection],
])('%o has all methods that an earlier Worker calls', ({ prototype }, methods) => {
  const missing = methods.filter((name) => typeof Reflect.get(prototype, name) !== 'function')
  expect(missing).toEqual([])
})

/** A stub without the types of this version. */
type Untyped = Record<string, (...args: unknown[]) => Promise<unknown>>

it('a question of an earlier Worker, without what was added since, is answered', async () => {
  const request = await asking('Who directed Alien?')
  const added = ['requestId', 'attempt', 'fingerprint', 'foundUntil', 'read', 'plain', 'again', 'begun']
  expect(Object.keys(request).filter((name) => added.includes(name))).toEqual([])
  expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
})

it('a question of a later Worker, with what this object does not know, is answered', async () => {
  const request = { ...(await asking('Who directed Heat?')), later: { unknown: true }, again: true }
  const asked = (await (stub(request.conversationId) as unknown as Untyped).ask!(request, 'more', 1)) as {
    value: { events: ReadableStream<Uint8Array> }
  }
  expect((await read(asked.value.events)).at(-1)).toMatchObject({ type: 'done' })
})

it('a collection answers calls with fewer and with more arguments', async () => {
  const { objectId } = await collectionNamed('films')
  const object = env.COLLECTION.get(env.COLLECTION.idFromName(objectId)) as unknown as Untyped
  const params = { q: 'alien', query_by: 'title' }
  for (const more of [[], [{ history: false, later: 'x' }, 'ticket', false, 'more']]) {
    expect(await object.search!(params, ...more)).toMatchObject({ ok: true, value: { found: 1 } })
  }
  const { objectId: talk } = await collectionNamed('talk')
  const history = env.COLLECTION.get(env.COLLECTION.idFromName(talk)) as unknown as Untyped
  expect(await history.recentMessages!('none', 10)).toEqual({ messages: [], complete: true })
  expect(await history.messages!('none', [], 'more')).toEqual([])
})

it('a collection takes calls without the id of the request, as an earlier Worker makes them', async () => {
  const { objectId } = await collectionNamed('films')
  const object = env.COLLECTION.get(env.COLLECTION.idFromName(objectId)) as unknown as Untyped
  const heat = { id: 'heat' }
  expect(await object.get!('heat', '', '')).toMatchObject({ ok: true, value: heat })
  expect(
    await object.write!(JSON.stringify({ ...heat, title: 'Heat', text: 'A film.' }), { action: 'upsert' }),
  ).toMatchObject({ ok: true, value: heat })
  expect(await object.patch!('heat', '{"text":"A crime film."}')).toMatchObject({ ok: true, value: heat })
  expect(await object.updateWhere!('id:heat', '{"text":"A film of 1995."}', 0)).toMatchObject({ ok: true })
  expect(await object.exportPage!({ filterBy: 'id:heat', include: 'id', exclude: '' }, 0)).toMatchObject({
    ok: true,
    value: { lines: JSON.stringify(heat) },
  })
  expect(await object.remove!('none', true)).toMatchObject({ ok: true })
  expect(await object.removeWhere!('id:none', { batchSize: 10 })).toMatchObject({ ok: true })
})

it('a conversation tells its events with fewer and with more arguments', async () => {
  const request = await asking('Who directed Alien?')
  await take(request)
  const object = stub(request.conversationId) as unknown as Untyped
  for (const more of [[], [undefined, { later: true }, 'more']]) {
    const told = (await object.events!(ADMIN, ...more)) as { value: ReadableStream<Uint8Array> }
    expect((await read(told.value)).at(-1)).toMatchObject({ type: 'done' })
  }
})
