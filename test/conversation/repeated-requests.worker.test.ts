/** Retries find the turn that they began, and pay for it once; who asks again gets a turn of their own. */

import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import {
  ADMIN,
  ask,
  asking,
  begin,
  conversation,
  makeProvider,
  messagesOf,
  newQuestion,
  openai,
  read,
  rowsOf,
  setStage,
  speaking,
  stub,
  take,
} from './stage'

beforeAll(() => setStage())

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'

/** Names that no other test uses. */
const name = () => crypto.randomUUID()

const countSql = (id: string, query: string) =>
  runInDurableObject(stub(id), (_, state) => state.storage.sql.exec(query).toArray())

describe('a retry with an idempotency key', () => {
  it('joins its running turn', async () => {
    const question = await newQuestion(QUESTION, { model: openai, idempotencyKey: name() })
    const first = await ask(question)
    const provider = makeProvider(first.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const second = await ask(question)
    expect(second.conversationId).toBe(first.conversationId)
    await provider.say('Ridley Scott')
    await provider.finish()
    const events = await read(first.events)
    expect(events.at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott') })
    expect(await read(second.events)).toEqual(events)
    expect(provider.requests).toHaveLength(1)
  })

  it('replays its finished turn, however long ago and wherever its caller was', async () => {
    const question = await newQuestion(QUESTION, { idempotencyKey: name() })
    const first = await ask(question)
    const events = await read(first.events)
    await countSql(first.conversationId, 'UPDATE turns SET ended_at = 0')
    for (let again = 0; again < 2; again++) {
      const retry = await ask(question)
      expect(retry.conversationId).toBe(first.conversationId)
      expect(await read(retry.events)).toEqual(events)
    }
    expect(await messagesOf(first.conversationId)).toHaveLength(2)
    expect(
      await rowsOf('SELECT turn FROM turns WHERE conversation_id = ?', first.conversationId),
    ).toHaveLength(1)
  })

  const answers = (status: number, body = '{"error":{"message":"Not now."}}') =>
    (async () => new Response(body, { status })) as typeof fetch

  it.each([
    ['is down', answers(503, '')],
    ['has an error', answers(500)],
    ['is asked too often', answers(429)],
    ['gives up', answers(408)],
    ['cannot be reached', () => Promise.reject(new TypeError('Network connection lost.'))],
    ['breaks off', answers(200, 'data: {"choices":[{"delta":{"content":"Ridl"}}]}\n\n')],
    [
      'says nothing',
      (_, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
        }),
    ],
  ] as [string, typeof fetch][])('runs again after a provider that %s', async (_, fails) => {
    const model = { ...openai, timeout: 0.3 }
    const question = await newQuestion(QUESTION, { model, idempotencyKey: name() })
    vi.spyOn(globalThis, 'fetch').mockImplementation(fails)
    const first = await ask(question)
    expect((await read(first.events)).at(-1)).toMatchObject({ type: 'error', status: 400, retryable: true })
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const again = await ask(question)
    expect(again.conversationId).toBe(first.conversationId)
    const events = await read(again.events)
    expect(events.at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott.') })
    expect(await read((await ask(question)).events)).toEqual(events)
  })

  it.each([400, 401, 404])('is told a refusal of the provider again: %s', async (status) => {
    const question = await newQuestion(QUESTION, { model: openai, idempotencyKey: name() })
    vi.spyOn(globalThis, 'fetch').mockImplementation(answers(status))
    const events = await read((await ask(question)).events)
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 400, retryable: false })
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    expect(await read((await ask(question)).events)).toEqual(events)
  })

  it('joins within a conversation too, waiting turns included', async () => {
    const opening = await asking(QUESTION, { model: openai })
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    await take(opening)
    const provider = makeProvider(opening.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const follow = { ...opening, continues: true, stream: true }
    const running = await begin({ ...follow, idempotencyKey: 'one' })
    const waiting = await begin({ ...follow, idempotencyKey: 'two' })
    const joined = await begin({ ...follow, idempotencyKey: 'two' })
    for (let turn = 2; turn <= 3; turn++) {
      await provider.say('Yes.')
      await provider.finish()
    }
    expect((await read(running)).at(-1)).toMatchObject({ type: 'done', turn: 2 })
    const events = await read(waiting)
    expect(events.at(-1)).toMatchObject({ type: 'done', turn: 3 })
    expect(await read(joined)).toEqual(events)
    expect(await read(await begin({ ...follow, idempotencyKey: 'one' }))).toMatchObject(
      expect.arrayContaining([expect.objectContaining({ type: 'done', turn: 2 })]),
    )
    expect(await messagesOf(opening.conversationId)).toHaveLength(6)
  })

  it('fails when the key has named another request', async () => {
    const question = await newQuestion(QUESTION, { idempotencyKey: name(), fingerprint: 'a' })
    await read((await ask(question)).events)
    await expect(ask({ ...question, fingerprint: 'b' })).rejects.toMatchObject({
      status: 422,
      message: 'The idempotency key was used for another request.',
    })
  })

  it('asks anew when its turn came to no end of its own, and could not run again', async () => {
    const question = await newQuestion(QUESTION, { model: openai, idempotencyKey: name() })
    const first = await ask(question)
    const provider = makeProvider(first.conversationId)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    await provider.say('half')
    const cut = read(first.events).catch(() => 'cut off')
    await abortAllDurableObjects()
    expect(await cut).toBe('cut off')
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    expect((await read((await ask(question)).events)).at(-1)).toMatchObject({ code: 'interrupted', turn: 1 })
    const retry = await ask(question)
    expect((await read(retry.events)).at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Ridley Scott.'),
      turn: 2,
    })
    expect((await messagesOf(retry.conversationId)).map(({ content }) => textOf(content))).toEqual([
      QUESTION,
      'Ridley Scott.',
    ])
  })

  it('replays an error that asking again would not change', async () => {
    const question = await newQuestion(QUESTION, { model: openai, idempotencyKey: name() })
    const spy = vi
      .spyOn(globalThis, 'fetch')
      .mockImplementation(async () => new Response('{"error":{"message":"no"}}', { status: 401 }))
    const events = await read((await ask(question)).events)
    expect(events.at(-1)).toMatchObject({ type: 'error', message: 'OpenAI API error: no' })
    expect(await read((await ask(question)).events)).toEqual(events)
    expect(spy).toHaveBeenCalledTimes(1)
  })

  it('never meets the turn of somebody else', async () => {
    const question = await newQuestion(QUESTION, { idempotencyKey: name() })
    const ids = new Set<string>()
    for (const asker of [
      { owner: 'admin', userId: '' },
      { owner: '1', userId: '' },
      { owner: '1', userId: 'ada' },
      { owner: '1', userId: 'bob' },
    ]) {
      const { conversationId, events } = await ask({ ...question, asker })
      await read(events)
      ids.add(conversationId)
    }
    expect(ids.size).toBe(4)
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(await messagesOf(id)).toHaveLength(2)
    }
  })
})

describe('a call of another version, which says nothing of who asks', () => {
  it('opens nothing, and begins nothing', async () => {
    const request = await asking(QUESTION, {})
    await take(request)
    const nobody = undefined as unknown as typeof ADMIN
    const { asker: _, ...without } = request
    const object = conversation(request.conversationId)
    expect(await object.ask(without as typeof request)).toMatchObject({ ok: false })
    expect(await object.ask({ ...without, continues: true } as typeof request)).toMatchObject({ ok: false })
    expect(await object.events(nobody)).toMatchObject({ error: { status: 404 } })
    expect(await object.stop(nobody)).toMatchObject({ error: { status: 404 } })
    expect(await object.remove(nobody)).toMatchObject({ error: { status: 404 } })
    expect(await object.isOpenTo(nobody)).toBe(false)
    expect(await messagesOf(request.conversationId)).toHaveLength(2)
  })
})

it('gives ids that a caller who knows everything but the secret cannot work out', async () => {
  const fingerprint = name()
  const { conversationId, events } = await ask(await newQuestion(QUESTION, { fingerprint }))
  await read(events)
  const digest = await crypto.subtle.digest(
    'SHA-256',
    new TextEncoder().encode(JSON.stringify(['admin', '', 'request', fingerprint])),
  )
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  expect(conversationId.replaceAll('-', '').slice(0, 12)).not.toBe(hex.slice(0, 12))
  expect(unwrap(await conversation(conversationId).stop({ owner: 'admin', userId: '' }))).toBe(false)
})

it('more readers of a running turn than a conversation takes are told to come back', async () => {
  const request = await asking('Who directed Alien?', { model: openai })
  const provider = makeProvider(request.conversationId)
  vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
  const reading = read(await begin(request))
  await provider.say('Ridley ')
  const object = conversation(request.conversationId)
  const readers = await Promise.all(Array.from({ length: 99 }, () => object.running(ADMIN)))
  expect(readers.filter(({ ok }) => ok)).toHaveLength(99)
  for (const refused of [await object.running(ADMIN), await object.events(ADMIN)]) {
    expect(refused).toMatchObject({ ok: false, error: { status: 429, retryAfter: 5 } })
  }
  await unwrap(readers[0]!)!.cancel()
  await expect.poll(async () => (await object.running(ADMIN)).ok).toBe(true)
  await provider.say('Scott')
  await provider.finish()
  expect((await reading).at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott') })
  const text = await new Response(unwrap(readers[1]!)!).text()
  expect(text).toContain('"type":"done"')
})
