/** The list of conversations, narrowed by ratings, missing answers, failures, time and words, inside workerd. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { call } from '../typesense/api'
import { ask, makeKey, setStage } from './stage'

const ANN = { 'x-parley-visitor': 'ann'.padEnd(40, '0') }
const BOB = { 'x-parley-visitor': 'bob'.padEnd(40, '0') }
const NOTHING = 'Who won the chess olympiad in Batumi?'

let page: string
/** lists what was begun with the key of this test */
let server: string

const begin = async (question: string, options: Parameters<typeof ask>[1] = { key: server }) => {
  const [status, answer] = await ask({ question }, options)
  expect(status).toBe(200)
  return answer.conversation_id as string
}
const list = async (query: Record<string, string>, options: Parameters<typeof call>[2] = { key: server }) => {
  const [status, body] = await call('GET', `/conversations?${new URLSearchParams(query)}`, options)
  expect([status, body.message]).toEqual([200, undefined])
  expect(parse(schemas.ConversationPage, body)).toEqual(body)
  return body.conversations as { id: string; updated_at: number; failed_at?: number; ratings?: unknown }[]
}
const ids = async (...given: Parameters<typeof list>) => (await list(...given)).map(({ id }) => id)
const rate = (id: string, rating: string, options: Parameters<typeof call>[2] = {}) =>
  call('PUT', `/conversations/${id}/turns/1/feedback`, { ...options, body: { rating } })

beforeAll(async () => {
  await setStage()
  page = await makeKey({ actions: ['documents:search'] })
})
beforeAll(async () => {
  const actions = ['documents:search', 'conversations:*']
  server = await makeKey({ actions, collections: ['facts', 'more', 'broken'] })
})
afterEach(() => vi.restoreAllMocks())

describe('a list of what is mine', () => {
  it('has what was begun with the same key and secret alone, whatever else the key lists', async () => {
    for (const key of [undefined, server]) {
      const as = (headers: Record<string, string>) => ({ headers, ...(key && { key }) })
      const own = await begin('How high is the Eiffel Tower?', as(ANN))
      const other = await begin('How high is the Eiffel Tower?', as(BOB))
      const nobodys = await begin('How high is the Eiffel Tower?', as({}))
      expect(await ids({ mine: 'true' }, as(ANN))).toEqual([own])
      expect(await ids({ mine: 'true' }, as(BOB))).toEqual([other])
      expect(await ids({}, as(ANN))).toEqual(expect.arrayContaining([own, other, nobodys]))
    }
    const [status, refusal] = await call('GET', '/conversations?mine=true')
    expect([status, refusal.message]).toEqual([401, expect.stringContaining('X-Parley-Visitor')])
    expect((await call('GET', '/conversations?mine=yes'))[0]).toBe(400)
  })
})

describe('a list by ratings', () => {
  it('has conversations with an answer that is rated so, and counts ratings', async () => {
    const [liked, hated, both, none] = [
      await begin('How high is the Eiffel Tower?'),
      await begin('How high is the Eiffel Tower?'),
      await begin('How high is the Eiffel Tower?'),
      await begin('How high is the Eiffel Tower?'),
    ]
    await rate(liked, 'up')
    await rate(hated, 'down')
    await rate(both, 'up')
    await rate(both, 'down', { key: server })
    expect(await ids({ rating: 'up' })).toEqual([both, liked])
    expect(await ids({ rating: 'down' })).toEqual([both, hated])
    expect(await ids({ rating: 'down', limit: '1' })).toEqual([both])
    const all = await list({})
    expect(all.find(({ id }) => id === both)?.ratings).toEqual({ up: 1, down: 1 })
    expect(all.find(({ id }) => id === hated)?.ratings).toEqual({ up: 0, down: 1 })
    expect(all.find(({ id }) => id === none)?.ratings).toBeUndefined()
  })

  it('of a visitor goes by what the visitor said, and does not tell what others did', async () => {
    const mine = { key: page, headers: ANN }
    const id = await begin('How high is the Eiffel Tower?', mine)
    await rate(id, 'down')
    expect(await ids({ rating: 'down' }, mine)).toEqual([])
    expect((await list({}, mine))[0]?.ratings).toBeUndefined()
    await rate(id, 'up', mine)
    expect(await ids({ rating: 'up' }, mine)).toEqual([id])
    expect(await ids({ rating: 'up' }, { key: page, headers: BOB })).toEqual([])
  })
})

it('a list of what was not answered has conversations with an answer that cites nothing', async () => {
  const unanswered = await begin(NOTHING)
  const answered = await begin('How high is the Brandenburg Gate?')
  const found = await ids({ unanswered: 'true' })
  expect(found).toContain(unanswered)
  expect(found).not.toContain(answered)
})

describe('a list of what failed', () => {
  it('has conversations with a turn that failed, also after one that was answered', async () => {
    const model = { id: 'broken', model_name: 'openai/any', api_key: 'sk-1', openai_url: 'https://llm.test' }
    const body = { ...model, history_collection: 'history', max_bytes: 16_384 }
    const provider = vi.spyOn(globalThis, 'fetch')
    // It is asked once when the model is made.
    const message = { content: 'yes' }
    provider.mockImplementation(async () => Response.json({ choices: [{ message, finish_reason: 'stop' }] }))
    expect((await call('POST', '/conversations/models', { body }))[0]).toBe(201)
    provider.mockImplementation(async () => new Response('no', { status: 400 }))
    const good = await begin('How high is the Eiffel Tower?')
    const question = 'How high is it?'
    const [status] = await ask({ question, model: 'broken', conversation_id: good }, { key: server })
    expect(status).toBeGreaterThanOrEqual(400)
    const [first, began] = await ask({ question, model: 'broken' }, { key: server })
    expect([first, began.conversation_id]).toEqual([400, undefined])
    await expect.poll(() => list({ failed: 'true' }), { timeout: 10_000 }).toHaveLength(2)
    const failed = await list({ failed: 'true' })
    expect(failed.map(({ id }) => id)).toContain(good)
    for (const { failed_at } of failed) expect(failed_at).toBeGreaterThan(Date.now() - 600_000)
    await ask({ question: 'Who was its architect?', conversation_id: good }, { key: server })
    expect(await ids({ failed: 'true' })).toContain(good)
  })
})

describe('a list by words', () => {
  it('searches questions and answers, for words and their beginnings', async () => {
    const tower = await begin('What is the height of the Éiffel Tower?')
    const gate = await begin('Who designed the Brandenburg Gate?')
    expect(await ids({ q: 'height eiffel' })).toEqual([tower])
    expect(await ids({ q: 'who langh' })).toEqual([gate])
    expect(await ids({ q: 'TOWER, metres!' })).toContain(tower)
    expect(await ids({ q: 'who height langhans' })).toEqual([])
    expect(await ids({ q: 'langhans', rating: 'up' })).toEqual([])
  })

  it.each(['"', '* OR question:x', 'NEAR(a b)', 'a AND', '-tower', "tower' --", '^a {b}: c'])(
    'takes %j for words',
    async (q) => {
      const [status] = await call('GET', `/conversations?${new URLSearchParams({ q })}`)
      expect(status).toBe(/\w/.test(q) ? 200 : 400)
    },
  )

  it('searches scripts without spaces for any part', async () => {
    const id = await begin('塔の高さは何メートルですか')
    expect(await ids({ q: '高さ' })).toEqual([id])
    expect(await ids({ q: '低さ' })).toEqual([])
  })

  it('forgets what is deleted, and finds what takes its place', async () => {
    const id = await begin('Is the word zanzibar known?')
    expect(await ids({ q: 'zanzibar' })).toEqual([id])
    await ask({ question: 'Is the word timbuktu known?', conversation_id: id, replaces: 1 }, { key: server })
    expect(await ids({ q: 'zanzibar' })).toEqual([])
    expect(await ids({ q: 'timbuktu' })).toEqual([id])
    await call('DELETE', `/conversations/${id}`)
    expect(await ids({ q: 'timbuktu' })).toEqual([])
    const { results } = await env.DB.prepare(
      "SELECT rowid FROM turns_text WHERE turns_text MATCH 'timbuktu'",
    ).all()
    expect(results).toEqual([])
  })

  it('keeps to the conversations that may be listed', async () => {
    const mine = { key: page, headers: ANN }
    const id = await begin('Does anybody read of quetzals?', mine)
    expect(await ids({ q: 'quetzals' }, mine)).toEqual([id])
    expect(await ids({ q: 'quetzals' }, { key: page, headers: BOB })).toEqual([])
    expect(await ids({ q: 'quetzals' })).toEqual([])
    expect(await ids({ q: 'quetzals' }, {})).toEqual([id])
  })

  it('goes on from page to page', async () => {
    const made = [await begin('Pangolin one?'), await begin('Pangolin two?'), await begin('Pangolin three?')]
    const read: string[] = []
    for (let cursor = '', pages = 0; pages < 5; pages += 1) {
      const query = new URLSearchParams({ q: 'pangolin', limit: '1', ...(cursor && { cursor }) })
      const [, body] = await call('GET', `/conversations?${query}`, { key: server })
      read.push(...body.conversations.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor ?? ''
      if (!cursor) break
    }
    expect(read).toEqual(made.reverse())
  })
})

it('a list by time has conversations that were last used then', async () => {
  const id = await begin('How high is the Eiffel Tower?')
  const [{ updated_at: at } = { updated_at: 0 }] = await list({ limit: '1' })
  expect(await ids({ from: String(at), to: String(at + 1) })).toContain(id)
  expect(await ids({ to: String(at) })).not.toContain(id)
  expect(await ids({ from: String(at + 60_000) })).toEqual([])
})

it.each([
  ['rating', 'good'],
  ['unanswered', 'false'],
  ['failed', '1'],
  ['from', 'yesterday'],
  ['to', '-1'],
  ['q', ''],
  ['q', '?!'],
  ['q', 'x'.repeat(201)],
])('a list by %s=%j is refused', async (name, value) => {
  const [status, { message }] = await call('GET', `/conversations?${new URLSearchParams({ [name]: value })}`)
  expect(status).toBe(400)
  expect(message).toContain(name)
})
