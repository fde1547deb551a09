/** Gaps: what the documents do not answer, grouped by meaning, as a list, a tool and a weekly webhook. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { type Gap, walkTurns } from '../../../src/conversation/gaps'
import { sendWebhooks } from '../../../src/webhooks/send'
import { gatherWeek } from '../../../src/webhooks/weekly'
import { call } from '../typesense/api'
import { ask, makeKey, QUESTION, setStage } from './stage'

const WEEK_MS = 7 * 86_400_000
const GATE = 'Who designed the Golden Gate Bridge?'
const SAME = 'Which engineer designed the Golden Gate Bridge?'
const CHESS = 'Who won the chess olympiad in Batumi?'

/** The conversations of questions, by their order. */
let asked: string[]

const begin = async (question: string, more: Parameters<typeof ask>[1] = {}): Promise<string> => {
  const [status, { conversation_id }] = await ask({ question }, more)
  expect(status).toBe(200)
  return conversation_id
}
const gaps = async (options: Parameters<typeof call>[2] = {}): Promise<Gap[]> => {
  const [status, body] = await call('GET', '/gaps', options)
  expect([status, body.message]).toEqual([200, undefined])
  expect(parse(schemas.Gaps, body)).toEqual(body)
  return body.gaps
}
const mcp = async (method: string, params: object, key?: string) => {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  const headers = { accept: 'application/json' }
  return (await call('POST', '/mcp/help', { body, headers, ...(key && { key }) }))[1].result
}

beforeAll(async () => {
  await setStage()
  await call('PUT', '/assistants/help', { body: { model: 'm', collections: ['facts'] } })
  asked = []
  for (const question of [GATE, CHESS, SAME, QUESTION]) asked.push(await begin(question))
  // Questions of sets are no visitor's.
  await begin(CHESS, { headers: { 'x-typesense-user-id': 'question-sets' } })
  const said = { rating: 'down', reasons: ['outdated', '__proto__'] }
  await call('PUT', `/conversations/${asked[3]}/turns/1/feedback`, { body: said })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

it('are questions that were not answered well, those that mean the same in one, the most asked first', async () => {
  const [gate, ...others] = await gaps()
  expect(gate).toMatchObject({
    question: GATE,
    times: 2,
    examples: [SAME],
    last_asked: { conversation_id: asked[2], turn: 1 },
  })
  expect(gate!.faults).toEqual({ [Object.keys(gate!.faults)[0]!]: 2 })
  expect(gate!.nearest[0]).toMatchObject({ collection: 'facts', document_id: expect.any(String) })
  expect(gate).not.toHaveProperty('answered_since')
  expect(others.map(({ question, times }) => [question, times])).toEqual([
    [QUESTION, 1],
    [CHESS, 1],
  ])
  expect(others[0]!.faults).toEqual({ rated_down: 1 })
  expect(others[0]!.reasons).toEqual({ outdated: 1 })
})

it('are shown to keys that list conversations, of those that they list', async () => {
  const key = await makeKey({ actions: ['documents:search', 'conversations:*'], collections: ['facts'] })
  expect(await gaps({ key })).toEqual([])
  await begin(CHESS, { key })
  expect(await gaps({ key })).toMatchObject([{ question: CHESS, times: 1 }])
  const page = await makeKey({ actions: ['documents:search'] })
  expect((await call('GET', '/gaps', { key: page }))[0]).toBe(401)
})

it('are a tool of MCP for the admin key alone', async () => {
  const named = async (key?: string) =>
    (await mcp('tools/list', {}, key)).tools.map(({ name }: { name: string }) => name)
  expect(await named()).toContain('gaps')
  const result = await mcp('tools/call', { name: 'gaps', arguments: { limit: 1 } })
  expect(result.structuredContent.gaps).toEqual((await gaps()).slice(0, 1))
  const key = await makeKey({ actions: ['*'] })
  expect(await named(key)).not.toContain('gaps')
  expect(await mcp('tools/call', { name: 'gaps' }, key)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('only the admin key') }],
  })
})

it('say where a later turn answered the same question, until it is not answered again', async () => {
  const answered = () => gaps().then((all) => all.find(({ question }) => question === GATE)!.answered_since)
  expect(await answered()).toBe(undefined)
  const body = { id: 'gate', text: 'Joseph Strauss designed the Golden Gate Bridge.', city: 'San Francisco' }
  expect((await call('POST', '/collections/facts/documents', { body }))[0]).toBe(201)
  // The very same question would get the same answer again.
  const id = await begin(`So ${GATE}`)
  expect(await answered()).toMatchObject({ conversation_id: id, turn: 1 })
  await call('PUT', `/conversations/${id}/turns/1/feedback`, { body: { rating: 'down' } })
  expect(await answered()).toBe(undefined)
  await call('DELETE', `/conversations/${id}/turns/1/feedback`)
  expect(await answered()).toMatchObject({ conversation_id: id })
})

it('count a question that was asked again', async () => {
  const [, { conversation_id }] = await ask({ question: CHESS })
  await ask({ question: CHESS, conversation_id, replaces: 1 })
  const chess = (await gaps()).find(({ question }) => question === CHESS)
  expect(chess?.faults).toMatchObject({ asked_again: 1 })
})

it('forget what was deleted', async () => {
  const before = (await gaps()).find(({ question }) => question === CHESS)!.times
  await call('DELETE', `/conversations/${asked[1]}`)
  expect((await gaps()).find(({ question }) => question === CHESS)!.times).toBe(before - 1)
})

it('are walked in steps, which come to the same as one', async () => {
  const { gaps: whole, ...walked } = await walkTurns(env, { after: 0, turns: 0, gaps: [] }, {})
  expect(walked).toMatchObject({ done: true, turns: expect.any(Number) })
  const rows = (await env.DB.prepare('SELECT rowid AS number FROM turns ORDER BY rowid').all()).results
  const half = rows[Math.floor(rows.length / 2)]!.number as number
  await env.DB.prepare('UPDATE turns SET expires_at = expires_at - 1e14 WHERE rowid > ?').bind(half).run()
  const first = await walkTurns(env, { after: 0, turns: 0, gaps: [] }, {})
  await env.DB.prepare('UPDATE turns SET expires_at = expires_at + 1e14 WHERE rowid > ?').bind(half).run()
  expect(first.turns).toBeLessThan(walked.turns)
  const { done: _, ...left } = first
  const second = await walkTurns(env, { ...left, after: half }, {})
  expect([second.turns, second.gaps]).toEqual([walked.turns, whole])
})

it('are told to webhooks at once and then each week: those of the week', async () => {
  const received: { type: string; data: { gaps: Gap[]; turns: number } }[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (...sent) => {
    received.push(JSON.parse(String(sent[1]?.body)))
    return new Response(null, { status: 204 })
  })
  await gatherWeek(env)
  const body = { url: 'https://hooks.example/', events: ['gaps.weekly'] }
  expect((await call('PUT', '/webhooks/crm', { body }))[0]).toBe(200)
  const minute = () => gatherWeek(env).then(() => sendWebhooks(env))
  await minute()
  const now = await gaps()
  expect(received).toMatchObject([{ type: 'gaps.weekly', data: { gaps: now } }])
  await minute()
  expect(received).toHaveLength(1)
  const fresh = await begin('What is the boiling point of tungsten?')
  vi.useFakeTimers({ now: Date.now() + WEEK_MS, toFake: ['Date'] })
  await env.DB.prepare('UPDATE turns SET expires_at = 9e15').run()
  await minute()
  expect(received).toHaveLength(2)
  expect(received[1]!.data).toMatchObject({ turns: 1, gaps: [{ last_asked: { conversation_id: fresh } }] })
})
