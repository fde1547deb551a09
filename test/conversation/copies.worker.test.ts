/** A request that looks like another one: its answer is copied into a conversation of its own, and paid for once. */

import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { getConversation, traceConversation } from '../../src/conversation/conversations'
import { deleteConversation } from '../../src/conversation/expiry'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { toolsOf } from '../../src/tools/tool'
import {
  ADMIN,
  ask,
  asking,
  conversation,
  makeProvider,
  messagesOf,
  newQuestion,
  openai,
  read,
  setStage,
  speaking,
  stub,
  take,
  usedSoFar,
} from './stage'

beforeAll(() => setStage())

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'

/** Names that no other test uses. */
const name = () => crypto.randomUUID()

const countSql = (id: string, query: string) =>
  runInDurableObject(stub(id), (_, state) => state.storage.sql.exec(query).toArray())

/** Types of the events of a running turn that are there to read. */
async function eventsSoFar(id: string): Promise<string[]> {
  const stream = unwrap(await conversation(id).events(ADMIN))
  const { value } = (await stream?.getReader().read()) ?? {}
  return [...new TextDecoder().decode(value).matchAll(/"type":"(\w+)"/g)].map(([, type]) => type!)
}

/** Lets a conversation's turns have ended a while ago. */
const age = (id: string, milliseconds: number) =>
  countSql(id, `UPDATE turns SET ended_at = ended_at - ${milliseconds}`)

describe('the same request without a key', () => {
  /** Two who ask the same, the second while the answer is written. */
  async function together() {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const first = await ask(question)
    const provider = makeProvider(first.conversationId)
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    await provider.say('Ridley')
    const second = await ask(question)
    return { question, first, second, provider, fetch }
  }

  it('has the answer copied that is being written, in a conversation of its own', async () => {
    const before = await usedSoFar()
    const { first, second, provider } = await together()
    await provider.say(' Scott')
    await provider.finish()
    const [original, copy] = [await read(first.events), await read(second.events)]
    expect(second.conversationId).not.toBe(first.conversationId)
    expect(copy.at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott') })
    expect(copy.every((event) => event.conversation_id === second.conversationId)).toBe(true)
    expect(copy.map(({ type, seq }) => [type, seq])).toEqual(original.map(({ type, seq }) => [type, seq]))
    expect(provider.requests).toHaveLength(1)
    for (const { conversationId } of [first, second]) {
      const said = (await messagesOf(conversationId)).map(({ content }) => textOf(content))
      expect(said).toEqual([QUESTION, 'Ridley Scott'])
      const { turns } = await getConversation(env, ADMIN, conversationId)
      expect(turns).toMatchObject([{ question: QUESTION, answer: 'Ridley Scott' }])
    }
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
    const { turns } = await traceConversation(env, ADMIN, second.conversationId)
    expect(turns[0]!.trace).toMatchObject({ copy_of: first.conversationId, calls: [] })
  })

  it('shares nothing of what is said after the copied answer', async () => {
    const { question, first, second, provider } = await together()
    await provider.finish()
    await Promise.all([read(first.events), read(second.events)])
    const prompts: string[] = []
    vi.spyOn(globalThis, 'fetch').mockImplementation((async (_, init) => {
      prompts.push(String(init?.body))
      return speaking('Yes.')('', init)
    }) as typeof fetch)
    const follow = { ...question, fingerprint: name() }
    await read(
      (
        await ask({
          ...follow,
          chat: { conversationId: first.conversationId },
          question: contentOf('My secret?'),
        })
      ).events,
    )
    prompts.length = 0
    await read(
      (await ask({ ...follow, chat: { conversationId: second.conversationId }, question: contentOf('And?') }))
        .events,
    )
    expect(prompts.join()).toContain(QUESTION)
    expect(prompts.join()).not.toContain('secret')
  })

  it('is asked once, however many come at the same moment', async () => {
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const all = await Promise.all(Array.from({ length: 5 }, () => ask(question)))
    for (const { events } of all)
      expect((await read(events)).at(-1)).toMatchObject({ answer: contentOf('Ridley Scott.') })
    expect(new Set(all.map(({ conversationId }) => conversationId)).size).toBe(5)
    expect(fetch).toHaveBeenCalledTimes(1)
  })

  it('is answered anew two seconds after the first answer, however often that was copied', async () => {
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const first = await ask(question)
    await read(first.events)
    await read((await ask(question)).events)
    expect(fetch).toHaveBeenCalledTimes(1)
    await age(first.conversationId, 3_000)
    const third = await ask(question)
    expect((await read(third.events)).at(-1)).toMatchObject({ type: 'done' })
    expect(fetch).toHaveBeenCalledTimes(2)
    // What was answered anew is copied in its turn.
    await read((await ask(question)).events)
    expect(fetch).toHaveBeenCalledTimes(2)
  })

  it('runs by itself where whoever asked first stops before there was an answer', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const first = await ask(question)
    const provider = makeProvider(first.conversationId)
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    await expect.poll(() => provider.requests).toHaveLength(1)
    const second = await ask(question)
    const copied = read(second.events)
    fetch.mockImplementation(speaking('Ridley Scott.'))
    unwrap(await conversation(first.conversationId).stop(ADMIN))
    const events = await copied
    expect(events.at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott.') })
    expect(events.filter(({ type }) => type === 'question' || type === 'retrieval')).toHaveLength(2)
    await read(first.events)
  })

  it('is told to ask again where the copied answer breaks off in the middle', async () => {
    const { first, second } = await together()
    const copied = read(second.events)
    await expect.poll(() => eventsSoFar(second.conversationId)).toContain('delta')
    unwrap(await conversation(first.conversationId).stop(ADMIN))
    expect((await copied).at(-1)).toMatchObject({ type: 'error', status: 503, retryable: true })
    expect(await messagesOf(second.conversationId)).toEqual([])
    await read(first.events)
  })

  it('ends in the error that the copied turn ends in', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      // Until the second one is there, too.
      await new Promise((resolve) => setTimeout(resolve, 500))
      return new Response('{"error":{"message":"no"}}', { status: 401 })
    })
    const [one, two] = await Promise.all([ask(question), ask(question)])
    const error = { type: 'error', message: 'OpenAI API error: no' }
    expect((await read(one.events)).at(-1)).toMatchObject(error)
    expect((await read(two.events)).at(-1)).toMatchObject(error)
    expect(fetch).toHaveBeenCalledTimes(1)
  })

  /** A turn whose caller leaves before it has ended. */
  async function abandoned(fingerprint: string) {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint })
    const first = await ask(question)
    const provider = makeProvider(first.conversationId)
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reader = first.events.getReader()
    await reader.read()
    await reader.cancel()
    await provider.say('Ridley Scott')
    await provider.finish()
    await expect.poll(() => messagesOf(first.conversationId)).toHaveLength(2)
    fetch.mockImplementation(speaking('Again.'))
    return { question, first, fetch }
  }

  it('has the answer of a turn copied that ended after its caller had gone, once', async () => {
    const { question, first, fetch } = await abandoned(name())
    await age(first.conversationId, 10_000)
    const retry = await ask(question)
    expect(retry.conversationId).not.toBe(first.conversationId)
    expect((await read(retry.events)).at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Ridley Scott'),
    })
    expect(fetch).toHaveBeenCalledTimes(1)
    await age(retry.conversationId, 10_000)
    const again = await ask(question)
    expect((await read(again.events)).at(-1)).toMatchObject({ type: 'done', answer: contentOf('Again.') })
  })

  it('has a whole answer copied that was not delivered, once', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const first = await ask(question)
    const done = (await read(first.events)).at(-1)
    await first.delivery(done!.turn).lost()
    await age(first.conversationId, 10_000)
    const retry = await ask(question)
    expect((await read(retry.events)).at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Ridley Scott.'),
    })
    expect(fetch).toHaveBeenCalledTimes(1)
    await age(retry.conversationId, 10_000)
    // To its end, so that nothing of it runs during the next test.
    expect((await read((await ask(question)).events)).at(-1)).toMatchObject({ type: 'done' })
    expect(fetch).toHaveBeenCalledTimes(2)
  })

  it('is copied with the searches of its tools', async () => {
    const tools = await toolsOf(env, ['search'])
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name(), tools })
    const call = { name: 'search', arguments: '{"query":"Alien"}' }
    const message = { content: '', tool_calls: [{ id: 'c1', type: 'function', function: call }] }
    const fetch = vi
      .spyOn(globalThis, 'fetch')
      .mockImplementationOnce(async () =>
        Response.json({ choices: [{ message, finish_reason: 'tool_calls' }] }),
      )
      .mockImplementation(speaking('Ridley Scott.'))
    const first = await ask(question)
    const said = await read(first.events)
    const copied = await read((await ask(question)).events)
    const types = (events: { type: string }[]) => events.map(({ type }) => type)
    expect(types(said).filter((type) => type === 'retrieval')).toHaveLength(2)
    expect(types(copied)).toEqual(types(said))
    expect(fetch).toHaveBeenCalledTimes(2)
  })

  it('is not paid twice at the very end of an answer, when nobody knows yet who has gone', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const first = await ask(question)
    await read(first.events)
    const retry = await ask(question)
    expect((await read(retry.events)).at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Ridley Scott.'),
    })
    expect(fetch).toHaveBeenCalledTimes(1)
  })

  it('is a new question more than a minute later', async () => {
    const { question, first } = await abandoned(name())
    await age(first.conversationId, 61_000)
    const later = await ask(question)
    expect(later.conversationId).not.toBe(first.conversationId)
    expect((await read(later.events)).at(-1)).toMatchObject({ answer: contentOf('Again.') })
  })

  it('is a new question for who has read the answer, each time, and its retries get copies', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const ids = []
    for (let time = 0; time < 3; time++) {
      const { conversationId, events } = await ask(question)
      expect((await read(events)).at(-1)).toMatchObject({ type: 'done', turn: 1 })
      await age(conversationId, 10_000)
      ids.push(conversationId)
    }
    expect(new Set(ids).size).toBe(3)
    expect(fetch).toHaveBeenCalledTimes(3)
    const fourth = await ask(question)
    const provider = makeProvider(fourth.conversationId)
    fetch.mockImplementation(provider.fetch)
    const retry = await ask(question)
    await provider.say('Scott.')
    await provider.finish()
    expect((await read(retry.events)).at(-1)).toMatchObject({ type: 'done', answer: contentOf('Scott.') })
    await read(fourth.events)
    expect(provider.requests).toHaveLength(1)
  })

  it('never begins in a conversation that was another’s, deleted or failed', async () => {
    const question = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
    const deleted = await ask(question)
    await read(deleted.events)
    await deleteConversation(env, ADMIN, deleted.conversationId)
    const second = await ask(question)
    await read(second.events)
    expect(second.conversationId).not.toBe(deleted.conversationId)
    expect(await conversation(deleted.conversationId).events(ADMIN)).toMatchObject({ error: { status: 404 } })

    fetch.mockImplementation(async () => new Response('', { status: 401 }))
    const other = await newQuestion(QUESTION, { model: openai, fingerprint: name() })
    const failed = await ask(other)
    expect((await read(failed.events)).at(-1)).toMatchObject({ type: 'error' })
    fetch.mockImplementation(speaking('Ridley Scott.'))
    const again = await ask(other)
    expect((await read(again.events)).at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf('Ridley Scott.'),
    })
    expect(again.conversationId).not.toBe(failed.conversationId)
  })

  it('forgets by itself that an id was used, when nobody is led to it any more', async () => {
    const question = await newQuestion(QUESTION, { fingerprint: name() })
    const { conversationId, events } = await ask(question)
    await read(events)
    await deleteConversation(env, ADMIN, conversationId)
    const kept = () => runInDurableObject(stub(conversationId), (_, { storage }) => [...storage.kv.list()])
    expect(await kept()).toHaveLength(1)
    await runInDurableObject(stub(conversationId), (_, { storage }) => storage.kv.put('used_until', 1))
    expect(await runDurableObjectAlarm(stub(conversationId))).toBe(true)
    expect(await kept()).toEqual([])
  })

  it('makes two turns of a conversation where it is asked twice', async () => {
    const request = await asking(QUESTION, { fingerprint: name() })
    await take({ ...request, fingerprint: name() })
    const follow = { ...request, continues: true }
    expect((await take(follow))[0]).toMatchObject({ turn: 2 })
    expect((await take(follow))[0]).toMatchObject({ turn: 3 })
    expect(await messagesOf(request.conversationId)).toHaveLength(6)
  })
})
