/** Question sets: kept by the server, and asked on request, on a schedule and after imports. */
import { createScheduledController } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import * as responses from '../../../src/api/parley/response-schemas'
import worker from '../../../src/index'
import { call } from '../typesense/api'
import { makeKey, QUESTION, setStage } from './stage'

const QUESTIONS = [
  { question: QUESTION, answer: '330 metres', relevant: ['0'] },
  { question: 'What do penguins eat?', unanswerable: true },
]
const ASKS = { model: 'm', collections: ['facts'] }

const put = (body: Record<string, unknown> = {}, name = 'basics', options = {}) =>
  call('PUT', `/question_sets/${name}`, { body: { questions: QUESTIONS, asks: ASKS, ...body }, ...options })
const read = async (name = 'basics') => (await call('GET', `/question_sets/${name}`))[1]
const readRun = async (id: string, name = 'basics') =>
  (await call('GET', `/question_sets/${name}/runs/${id}`))[1]
const begin = (body = {}, name = 'basics') => call('POST', `/question_sets/${name}/runs`, { body })
const ended = async (id: string, name = 'basics') => {
  await expect.poll(async () => (await readRun(id, name)).ended_at, { timeout: 20_000 }).toBeDefined()
  return readRun(id, name)
}
const minute = () => worker.scheduled(createScheduledController({ scheduledTime: new Date() }) as never, env)

beforeAll(async () => {
  await setStage()
  const body = { model: 'm', collections: ['facts'] }
  expect((await call('PUT', '/assistants/help', { body }))[0]).toBe(200)
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a question set', () => {
  it('is asked as a visitor asks, and keeps what was answered', async () => {
    const [status, stored] = await put()
    expect(status).toBe(200)
    expect(parse(responses.QuestionSet, stored)).toEqual(stored)
    expect(await call('GET', '/question_sets')).toEqual([200, { sets: [stored] }])
    const [, run] = await begin()
    expect(run.answers).toEqual([])
    const whole = await ended(run.id)
    expect(parse(responses.QuestionRun, whole)).toEqual(whole)
    const [tower, penguins] = whole.answers
    expect(tower).toMatchObject({ answer: expect.stringContaining('330 metres'), cited: ['0'] })
    expect(tower.found[0]).toContain('0')
    expect(penguins.declined ?? penguins.warned).toBe(true)
    const [, conversation] = await call('GET', `/conversations/${tower.conversation_id}`)
    expect(conversation).toMatchObject({ user_id: 'question-sets', turns: [{ question: QUESTION }] })
    expect((await read()).runs).toEqual([{ id: run.id, started_at: run.started_at }])
    expect((await read()).running).toBeUndefined()
    // The figures come of the questions that it asked, whatever becomes of the set.
    await put({ questions: [{ question: 'Something else?' }] })
    expect((await readRun(run.id)).questions).toEqual(QUESTIONS)
  })

  it('runs one at a time, for whom it is told, and keeps twenty runs', async () => {
    await put({}, 'often')
    const both = await Promise.all([1, 2].map(() => begin({ asks: { assistant: 'help' } }, 'often')))
    const [[, first], [code, refusal]] = both.sort(([a], [b]) => a - b) as [
      (typeof both)[0],
      (typeof both)[0],
    ]
    expect([code, refusal.message]).toEqual([409, expect.stringMatching(/goes on/)])
    expect(first.asks).toEqual({ assistant: 'help' })
    expect((await read('often')).runs).toEqual([{ id: first.id, started_at: first.started_at }])
    await ended(first.id, 'often')
    for (let at = 0; at < 20; at++) {
      await expect.poll(async () => (await read('often')).running).toBeUndefined()
      await ended((await begin({}, 'often'))[1].id, 'often')
    }
    expect((await read('often')).runs).toHaveLength(20)
    expect(await call('GET', `/question_sets/often/runs/${first.id}`)).toMatchObject([404, {}])
  }, 60_000)

  it('is asked every so many hours, by the cron, and after an import into its collection', async () => {
    await put({ every_hours: 2 }, 'nightly')
    await put({ after_import: true, asks: { assistant: 'help' } }, 'imports')
    await minute()
    expect((await read('nightly')).runs).toEqual([])
    vi.useFakeTimers({ now: Date.now() + 2 * 3_600_000 + 1_000, toFake: ['Date'] })
    await minute()
    const { runs, next_run_at } = await read('nightly')
    expect(runs).toHaveLength(1)
    expect(next_run_at).toBe(Date.now() + 2 * 3_600_000)
    await ended(runs[0].id, 'nightly')
    expect((await read('imports')).runs).toEqual([])
    expect(await call('POST', '/question_sets', { body: { collection: 'more' } })).toEqual([200, { sets: 0 }])
    expect(await call('POST', '/question_sets', { body: { collection: 'facts' } })).toEqual([
      200,
      { sets: 1 },
    ])
    await minute()
    const [imported] = (await read('imports')).runs
    await ended(imported.id, 'imports')
    await minute()
    expect((await read('imports')).runs).toHaveLength(1)
  })

  it('asks as many questions in one go as an invocation may, and goes on while somebody waits, or with the cron', async () => {
    const questions = Array.from({ length: 60 }, (_, at) => ({ question: `How high is tower ${at}?` }))
    await put({ questions }, 'long')
    const [, run] = await begin({}, 'long')
    const asked = async () => (await readRun(run.id, 'long')).answers.length
    await expect.poll(asked, { timeout: 20_000 }).toBe(28)
    const step = () => call('POST', `/question_sets/long/runs/${run.id}/step`)
    await Promise.all([step(), step()])
    await expect.poll(asked, { timeout: 20_000 }).toBe(56)
    await expect.poll(() => minute().then(asked), { timeout: 20_000 }).toBe(60)
    const { answers } = await ended(run.id, 'long')
    expect(
      new Set(answers.map(({ conversation_id }: { conversation_id: string }) => conversation_id)).size,
    ).toBe(60)
  })

  it('has a model judge its answers, where one is named; one that fails says nothing', async () => {
    const judge = {
      id: 'judge',
      model_name: 'openai/gpt-4o',
      api_key: 'sk-x',
      max_bytes: 16_384,
      history_collection: 'history',
    }
    let says = 'Right: it says 330 metres.'
    const asked: string[] = []
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
      asked.push(String(init?.body))
      if (says === '') return new Response('{}', { status: 401 })
      const message = { role: 'assistant', content: says }
      return Response.json({ choices: [{ message, finish_reason: 'stop' }], usage: {} })
    })
    expect((await call('POST', '/conversations/models', { body: { ...judge, system_prompt: '' } }))[0]).toBe(
      201,
    )
    asked.length = 0
    await put({ judge: 'judge', questions: [QUESTIONS[0], { question: 'What else?' }] }, 'judged')
    const first = await ended((await begin({}, 'judged'))[1].id, 'judged')
    expect(first.answers[0].judged).toEqual({ verdict: 'right', reason: 'it says 330 metres.' })
    // Nothing is expected of the other one.
    expect(first.answers[1].judged).toBeUndefined()
    expect(asked).toHaveLength(1)
    expect(asked[0]).toContain('330 metres')
    says = ''
    vi.spyOn(console, 'error').mockReturnValue()
    await expect.poll(async () => (await read('judged')).running).toBeUndefined()
    const second = await ended((await begin({}, 'judged'))[1].id, 'judged')
    expect(second.answers[0]).toMatchObject({ answer: expect.stringContaining('330') })
    expect(second.answers[0].judged).toBeUndefined()
  })

  it('reaches no further than the key that stores it, and says what it lacks', async () => {
    const key = await makeKey({ actions: ['question_sets:*'], collections: ['more', 'facts'] })
    const mine = { asks: { model: 'm', collections: ['more'] } }
    // Its searches could join a collection that the key does not name.
    expect(await put(mine, 'theirs', { key })).toMatchObject([401, {}])
    for (const path of ['', '/basics', '/basics/runs/x']) {
      expect(await call('GET', `/question_sets${path}`, { key })).toMatchObject([401, {}])
    }
    expect(await call('POST', '/question_sets/basics/runs', { key, body: {} })).toMatchObject([401, {}])
    expect(await call('POST', '/question_sets', { key, body: { collection: 'facts' } })).toMatchObject([
      200,
      {},
    ])
    const all = await makeKey({ actions: ['question_sets:*'], collections: ['*'] })
    expect(await put(mine, 'theirs', { key: all })).toMatchObject([200, {}])
    for (const [body, message] of [
      [{ asks: { assistant: 'nobody' } }, /There is no assistant `nobody`/],
      [{ asks: { model: 'nobody', collections: ['facts'] } }, /There is no conversation model `nobody`/],
      [{ asks: {} }, /Give either `assistant`, or `model`/],
      [{ asks: { model: 'm' } }, /Give either `assistant`, or `model`/],
      [{ asks: { ...ASKS, conversation_id: 'x' } }, /leave out what belongs to one question/],
      [{ judge: 'nobody' }, /`judge`: There is no conversation model/],
      [{ questions: [] }, /`questions`/],
      [{ every_hours: 0 }, /`every_hours`/],
    ] as const) {
      expect(await put(body, 'wrong')).toMatchObject([400, { message: expect.stringMatching(message) }])
    }
    expect(await call('DELETE', '/question_sets/theirs', { key: all })).toMatchObject([
      200,
      { name: 'theirs' },
    ])
    expect(await call('GET', '/question_sets/theirs')).toMatchObject([404, {}])
  })
})
