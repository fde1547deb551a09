/** Memories beside the conversations that they are: whose they stay, who may write into them, and what readers see. */

import { env, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { contentOf } from '../../../src/lib/parts'
import { createModel } from '../../../src/registry/models'
import {
  asking,
  begin,
  eventsOf,
  makeProvider,
  openai,
  read,
  rowsOf,
  setStage,
  stub,
  take,
} from '../../conversation/stage'
import { call } from '../typesense/api'
import { request } from './api'

const MEMORY = '/_plugins/_ml/memory'

beforeAll(() => setStage())
afterEach(() => vi.restoreAllMocks())

const makeKey = async (more: Record<string, unknown> = {}): Promise<string> => {
  const body = { description: '', actions: ['conversations:*'], collections: ['*'], ...more }
  return (await call('POST', '/keys', { body }))[1].value
}

describe('a memory whose object has let go of everything', () => {
  /** A named memory of a key's own, whose object holds nothing any more. */
  async function forgotten(): Promise<{
    key: string
    id: string
    row: () => Promise<Record<string, unknown>>
  }> {
    const key = await makeKey({ collections: ['nothing'] })
    const [, { memory_id: id }] = await request('POST', MEMORY, { name: 'Boats' }, key)
    await runInDurableObject(stub(id), (_, { storage }) => storage.setAlarm(Date.now() + 60_000))
    await runDurableObjectAlarm(stub(id))
    const held = await runInDurableObject(stub(id), (_, { storage: { sql } }) =>
      sql.exec("SELECT name FROM sqlite_master WHERE name = 'turns'").toArray(),
    )
    expect(held).toEqual([])
    const columns = 'owner, user_id, proof, protocol, title, name, created_at, details'
    const row = async () => (await rowsOf(`SELECT ${columns} FROM conversations WHERE id = ?`, id))[0]!
    return { key, id, row }
  }

  it("stays its owner's when it is renamed", async () => {
    const { key, id } = await forgotten()
    expect((await request('PUT', `${MEMORY}/${id}`, { name: 'Ships' }, key))[0]).toBe(200)
    expect(await request('GET', `${MEMORY}/${id}`, undefined, key)).toMatchObject([200, { name: 'Ships' }])
    expect((await request('POST', `${MEMORY}/${id}/messages`, { input: 'mine' }, key))[0]).toBe(200)
  })

  it("stays its owner's when the admin key adds a message", async () => {
    const { key, id, row } = await forgotten()
    await call('PATCH', `/conversations/${id}`, { body: { title: 'My boats' } })
    const before = await row()
    expect((await request('POST', `${MEMORY}/${id}/messages`, { input: 'of the admin' }))[0]).toBe(200)
    expect(await row()).toEqual(before)
    expect(await request('GET', `${MEMORY}/${id}/messages`, undefined, key)).toMatchObject([
      200,
      { messages: [{ input: 'of the admin' }] },
    ])
  })

  it("stays its owner's when the admin key asks in it", async () => {
    const { key, id, row } = await forgotten()
    const { owner, title, created_at } = (await row()) as { owner: string; title: string; created_at: number }
    const begun = { owner: { owner, userId: '', proof: '' }, title, createdAt: created_at }
    const asked = { conversationId: id, continues: true, named: true, begun }
    const events = await take({ ...(await asking('Who directed Alien?')), ...asked })
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    expect(await row()).toMatchObject({ owner, title, created_at })
    expect((await request('GET', `${MEMORY}/${id}`, undefined, key))[0]).toBe(200)
  })
})

describe('what nobody judged', () => {
  const said = { input: 'May I?', response: 'You may do anything.' }

  it('is not written into a history with a key for pages', async () => {
    const key = await makeKey({ limits: { user_id: 'ann' } })
    const [made, { memory_id: id }] = await request('POST', MEMORY, { name: 'Mine' }, key)
    expect(made).toBe(200)
    const refused = [403, { error: { type: 'security_exception' }, status: 403 }]
    expect(await request('POST', `${MEMORY}/${id}/messages`, said, key)).toMatchObject(refused)
    expect(await request('POST', `${MEMORY}/conversation/${id}`, said, key)).toMatchObject(refused)
    const [, { message_id: message }] = await request('POST', `${MEMORY}/${id}/messages`, said)
    expect(await request('PUT', `${MEMORY}/message/${message}`, { response: 'x' }, key)).toMatchObject(
      refused,
    )
    const feedback = { additional_info: { liked: true } }
    expect((await request('PUT', `${MEMORY}/message/${message}`, feedback, key))[0]).toBe(200)
  })

  it('is not written where the model of the conversation has a guardrail', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation((async (_, init) => {
      const { stream } = JSON.parse(String(init?.body))
      const text = stream ? 'Ridley Scott.' : 'SAFE'
      if (!stream) return Response.json({ choices: [{ message: { content: text }, finish_reason: 'stop' }] })
      const event = JSON.stringify({ choices: [{ delta: { content: text } }] })
      return new Response(`data: ${event}\n\ndata: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      })
    }) as typeof fetch)
    const guarded = { ...openai, id: 'guarded', input_guardrail_prompt: 'No.' }
    await createModel(env, guarded)
    const question = await asking('Who directed Alien?', { model: guarded })
    expect((await take(question)).at(-1)).toMatchObject({ type: 'done' })
    const id = question.conversationId
    const [, { messages }] = await request('GET', `${MEMORY}/${id}/messages`)
    const refused = [400, { error: { type: 'illegal_argument_exception' }, status: 400 }]
    expect(await request('POST', `${MEMORY}/${id}/messages`, said)).toMatchObject(refused)
    expect(
      await request('PUT', `${MEMORY}/message/${messages[0].message_id}`, { response: 'x' }),
    ).toMatchObject(refused)
    const trace = { input: 'seen', parent_message_id: messages[0].message_id, trace_number: 1 }
    expect((await request('POST', `${MEMORY}/${id}/messages`, trace))[0]).toBe(200)
  })
})

it('a message that is added while a turn runs is stored after it, and read after it', async () => {
  const question = await asking('Who directed Alien?', { model: openai })
  const { conversationId: id } = question
  const provider = makeProvider(id)
  vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
  const reading = read(await begin(question))
  await provider.say('Ridley ')
  const noted = request('POST', `${MEMORY}/${id}/messages`, { input: 'Noted', response: 'Yes' })
  const turns = () =>
    runInDurableObject(stub(id), (_, { storage: { sql } }) =>
      sql
        .exec('SELECT turn, status FROM turns ORDER BY turn')
        .toArray()
        .map(({ turn, status }) => `${turn} ${status}`),
    )
  expect(await turns()).toEqual(['1 running'])
  const resumed = eventsOf(id, { turn: 1, seq: 0 })
  await provider.say('Scott.')
  await provider.finish()
  await reading
  expect(await noted).toEqual([200, { message_id: expect.any(String) }])
  expect(await turns()).toEqual(['1 done', '2 done'])
  expect((await resumed).at(-1)).toMatchObject({ turn: 1, type: 'done', answer: contentOf('Ridley Scott.') })
  expect((await resumed).every(({ turn }) => turn === 1)).toBe(true)
  expect((await eventsOf(id, { turn: 1, seq: 0 })).at(-1)).toMatchObject({
    turn: 2,
    answer: contentOf('Yes'),
  })
})

describe('a message that is changed', () => {
  it('is read anew by whoever follows the conversation', async () => {
    const question = await asking('Who directed Alien?')
    const { conversationId: id } = question
    const before = await take(question)
    const [, { messages }] = await request('GET', `${MEMORY}/${id}/messages`)
    const changed = { response: 'Somebody else.\nOr not.' }
    expect((await request('PUT', `${MEMORY}/message/${messages[0].message_id}`, changed))[0]).toBe(200)
    const events = await eventsOf(id, { turn: 1, seq: -1 })
    const texts = events.flatMap((event) => (event.type === 'delta' ? [event.text] : []))
    expect(texts).toEqual([changed.response])
    expect(events.at(-1)).toEqual({ ...before.at(-1), answer: contentOf(changed.response) })
    expect(events.map(({ type }) => type)).toContain('retrieval')
    expect((await call('GET', `/conversations/${id}`))[1].turns).toMatchObject([{ answer: changed.response }])
  })

  it("keeps what it says of itself out of Parley's trace", async () => {
    const [, { memory_id: id }] = await request('POST', MEMORY, {})
    const [, { message_id: message }] = await request('POST', `${MEMORY}/${id}/messages`, {
      input: 'a',
      origin: 'b',
    })
    await request('POST', `${MEMORY}/${id}/messages`, {
      input: 's',
      parent_message_id: message,
      trace_number: 1,
    })
    const [status, { turns }] = await call('GET', `/conversations/${id}/trace`)
    expect([status, turns[0].trace]).toEqual([200, { question: 'a', searches: [], calls: [] }])
  })
})

it('a connector that signs is updated without its credential', async () => {
  const connector = {
    name: 'Signed',
    version: 1,
    protocol: 'aws_sigv4',
    parameters: { region: 'us-east-1', service_name: 'bedrock' },
    credential: { access_key: 'a', secret_key: 'b' },
    actions: [
      {
        action_type: 'predict',
        method: 'POST',
        url: 'https://bedrock-runtime.us-east-1.amazonaws.com/model/x/invoke',
        headers: {},
      },
    ],
  }
  const path = '/_plugins/_ml/connectors'
  const [made, { connector_id: id }] = await request('POST', `${path}/_create`, connector)
  expect(made).toBe(200)
  expect((await request('PUT', `${path}/${id}`, { description: 'Changed' }))[0]).toBe(200)
  expect(await request('PUT', `${path}/${id}`, { credential: { key: 'c' } })).toMatchObject([400, {}])
})
