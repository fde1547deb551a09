/** What a conversation's object keeps after the end of its turns: an hour what resuming needs, and then little. */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { CONVERSATION } from '../../scripts/costs/model.mjs'
import { ask, MODEL, QUESTION, setStage } from '../api/parley/stage'
import { call, send } from '../api/typesense/api'

const HOUR = 3_600_000
/** in seconds */
const MONTH = 30 * 86_400
const OTHER = 'Who designed the Brandenburg Gate?'

beforeAll(async () => {
  await setStage()
  await call('PUT', '/conversations/models/m', { body: { ttl: MONTH } })
  const text = 'The Eiffel Tower has stairs, and every one of them was painted again that year. '.repeat(60)
  for (let n = 0; n < 10; n++)
    await call('POST', '/collections/facts/documents', { body: { text, city: 'Paris' } })
})

afterEach(() => vi.restoreAllMocks())

const object = (id: string) => env.CONVERSATION.getByName(id)

const bytesOf = (id: string) => runInDurableObject(object(id), (_, state) => state.storage.sql.databaseSize)

/** Lets time pass, and rings the alarm that is due. */
async function after(ms: number, id: string): Promise<void> {
  const later = Date.now() + ms
  vi.spyOn(Date, 'now').mockReturnValue(later)
  await runDurableObjectAlarm(object(id))
}

const events = (id: string, query = '') => send('GET', `/conversations/${id}/events${query}`)

it('folds four turns an hour later, and reads and goes on as before', async () => {
  const [, { conversation_id: id }] = await ask()
  for (const question of [OTHER, QUESTION, OTHER]) await ask({ conversation_id: id, question })
  const [, whole] = await call('GET', `/conversations/${id}`)
  const [, trace] = await call('GET', `/conversations/${id}/trace`)
  expect(await bytesOf(id)).toBeGreaterThan(200_000)

  await after(HOUR - 60_000, id)
  const replayed = await events(id, '?after=1.0')
  expect([replayed.status, (await replayed.text()).length > 1_000]).toEqual([200, true])
  vi.restoreAllMocks()

  await after(HOUR + 60_000, id)
  expect(await bytesOf(id)).toBeLessThan(CONVERSATION.kept.object)
  expect((await call('GET', `/conversations/${id}`))[1]).toEqual(whole)
  expect((await call('GET', `/conversations/${id}/trace`))[1]).toEqual(trace)
  const gone = await events(id, '?after=1.0')
  expect([gone.status, await gone.json()]).toMatchObject([404, { code: 'unknown_turn' }])
  // Whoever knows all of it follows what comes.
  for (const query of ['', '?after=4.999999999']) expect((await events(id, query)).status).toBe(204)

  // A question that is asked again replaces the turn, whose log is gone.
  const [status, again] = await ask({ conversation_id: id, question: OTHER, replaces: 4 })
  expect([status, again.turn]).toEqual([200, 5])
  const [, { turns }] = await call('GET', `/conversations/${id}`)
  expect(turns.map(({ turn }: { turn: number }) => turn)).toEqual([1, 2, 3, 5])
})

it('keeps the trace of a turn without an answer for a day', async () => {
  const model = {
    ...MODEL,
    id: 'gone',
    model_name: 'openai/gpt',
    api_key: 'sk-1234567890',
    openai_url: 'https://llm.test',
    ttl: MONTH,
  }
  vi.spyOn(console, 'error').mockReturnValue()
  const provider = vi.spyOn(globalThis, 'fetch')
  provider.mockImplementation(async () =>
    Response.json({
      choices: [{ index: 0, message: { role: 'assistant', content: 'It is.' }, finish_reason: 'stop' }],
    }),
  )
  expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
  const [, { conversation_id: id }] = await ask()
  provider.mockImplementation(async () => Response.json({ error: { message: 'no' } }, { status: 400 }))
  expect((await ask({ conversation_id: id, model: 'gone' }))[0]).toBeGreaterThanOrEqual(400)
  const statusOfTrace = async () => (await call('GET', `/conversations/${id}/trace?turn=2`))[0]
  await after(23 * HOUR, id)
  expect(await statusOfTrace()).toBe(200)
  vi.restoreAllMocks()
  await after(25 * HOUR, id)
  expect(await statusOfTrace()).toBe(404)
  expect(await bytesOf(id)).toBeLessThan(CONVERSATION.kept.object)
})
