/**
 * Calls that survive their provider, over real sockets: retries, fallbacks, and the small model that rewrites.
 * The provider does to each model, by its name, what the test says.
 */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RawServer, sendJson, startRawServer } from '../models/raw-server'
import { connect, gather, textOf } from './event-source'
import { ask, createHistory, createModel, createShows, request } from './harness'
import { isStandalone, questionIn } from './llm'

type Reply = (response: ServerResponse, content: string) => void

let raw: RawServer
let shows: string
let history: string
/** what comes next of each model; without anything it answers by its own name */
const script = new Map<string, Reply[]>()
/** models in the order they were asked, greetings left out */
const asked: string[] = []

const answer: Reply = (response, content) => {
  const said = `${isStandalone(content) ? 'standalone' : 'Answered'}: ${questionIn(content)}`
  sendJson(response, 200, { choices: [{ message: { content: said }, finish_reason: 'stop' }] })
}
const status =
  (code: number, message: string, headers: Record<string, string> = {}): Reply =>
  (response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    sendJson(response, code, { error: { message } })
  }
const breakOff: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: {"choices":[{"delta":{"content":"Half an "}}]}\n\n', () =>
    setTimeout(() => response.destroy(), 50),
  )
}
const hangUp: Reply = (response) => void response.socket?.destroy()

beforeAll(async () => {
  raw = await startRawServer()
  raw.respond = (response, { body }) => {
    const model = String(body.model)
    const content = String((body.messages as { content: string }[]).at(-1)?.content)
    if (content === 'hello') return answer(response, content)
    asked.push(model)
    const reply = script.get(model)?.shift() ?? answer
    return reply(response, content)
  }
  shows = await createShows()
  history = await createHistory()
})
afterAll(() => raw.stop())
beforeEach(() => {
  asked.length = 0
  script.clear()
})

const model = (name: string, more: Record<string, unknown> = {}): Promise<string> =>
  createModel({
    model_name: `openai/${name}`,
    openai_url: raw.url,
    history_collection: history,
    ...more,
  })

/** A model whose budget of a turn a day has been spent by asking it. */
async function spentModel(name: string): Promise<string> {
  const id = await model(name, { turns_per_day: 1 })
  // What a turn has cost is known a moment after its end.
  await expect.poll(async () => (await ask(id, shows)).status, { timeout: 20_000 }).toBe(429)
  asked.length = 0
  return id
}

const usageOf = async (id: string) => (await request('GET', `/usage?model=${id}`)).body.usage

const stream = async (id: string, more: Record<string, unknown> = {}) =>
  gather(
    await connect('/conversations', {
      method: 'POST',
      body: { question: 'an action series', model: id, collections: [shows], ...more },
    }),
  )

const callsOf = async (conversation: string, turn = 0) =>
  (await request('GET', `/conversations/${conversation}/trace`)).body.turns[turn].trace.calls

test('what a model sets goes to its provider, and its headers are shown to nobody', async () => {
  const id = await model('set', {
    temperature: 0.5,
    max_tokens: 50,
    stop: 'END',
    headers: { 'X-Team': 'a-secret-of-the-team' },
  })
  const { body } = await ask(id, shows)
  const received = raw.received.at(-1)
  expect(received?.body).toMatchObject({ temperature: 0.5, max_tokens: 50, stop: ['END'] })
  expect(received?.headers).toMatchObject({ 'x-team': 'a-secret-of-the-team' })
  const { body: shown } = await request('GET', `/conversations/models/${id}`)
  expect(shown.headers).toEqual({ 'X-Team': 'a-sec***************' })
  const trace = await request('GET', `/conversations/${body.conversation_id}/trace`)
  expect(trace.text).not.toContain('a-secret')
})

describe('a provider that fails in passing', () => {
  test.each<[string, Reply, string]>([
    ['with 503', status(503, 'Overloaded'), 'OpenAI API error: Overloaded'],
    ['with 429', status(429, 'Slow down', { 'retry-after': '1' }), 'OpenAI API error: Slow down'],
    ['without a word', hangUp, 'OpenAI API error: the provider could not be reached'],
  ])('%s is asked again, and the trace tells', async (_, fault, error) => {
    const id = await model('passing')
    script.set('passing', [fault])
    const { status, body } = await ask(id, shows)
    expect([status, body.answer]).toEqual([200, 'Answered: an action series'])
    expect(asked).toEqual(['passing', 'passing'])
    expect(await callsOf(body.conversation_id)).toMatchObject([
      { model: 'openai/passing', failed: [{ model: 'openai/passing', error }] },
    ])
  })

  test('by closing a connection that it had kept open, is asked again on another', async () => {
    const id = await model('pooled')
    const used = new WeakSet<object>()
    // As a provider does whose patience with an idle connection ends while the next request is on its way.
    const closing: Reply = (response, content) => {
      const { socket } = response
      if (socket && used.has(socket)) return hangUp(response, content)
      if (socket) used.add(socket)
      return answer(response, content)
    }
    script.set('pooled', Array(20).fill(closing))
    for (let turn = 0; turn < 5; turn++) {
      expect((await ask(id, shows, { question: `series ${turn}` })).body.answer).toBe(
        `Answered: series ${turn}`,
      )
    }
    expect(asked.length).toBeGreaterThan(5)
  })

  test('and wants to be left alone for long, is; the caller is told at once, in its words', async () => {
    const id = await model('busy')
    script.set('busy', [status(429, 'Rate limit reached', { 'retry-after': '60' })])
    const { status: code, body } = await ask(id, shows)
    expect([code, body.message]).toEqual([400, 'OpenAI API error: Rate limit reached'])
    expect(asked).toEqual(['busy'])
  })
})

describe('fallbacks', () => {
  test.each<[string, Reply]>([
    ['does not know the key', status(401, 'Incorrect API key')],
    ['does not know the model', status(404, 'No such model')],
    ['wants to be left alone', status(429, 'Later', { 'retry-after': '3600' })],
    ['has a limit that it does not say the end of', status(429, 'Rate limit reached')],
  ])('answer where the provider %s', async (_, fault) => {
    const second = await model('second')
    const first = await model('first', { fallbacks: [second] })
    script.set('first', [fault])
    const { status, body } = await ask(first, shows)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      answer: 'Answered: an action series',
      usage: { model: 'openai/second' },
    })
    expect(asked).toEqual(['first', 'second'])
    const [call] = await callsOf(body.conversation_id)
    expect(call).toMatchObject({ model: 'openai/second', failed: [{ model: 'openai/first' }] })
    expect(call).toMatchObject({ model_id: second })
    const { input_tokens, output_tokens } = body.usage
    expect(await usageOf(first)).toMatchObject([{ turns: 1, input_tokens: 0, output_tokens: 0 }])
    expect(await usageOf(second)).toMatchObject([{ turns: 0, input_tokens, output_tokens }])
  })

  test('are passed over once what they answered for others has used up their tokens', async () => {
    const [second, third] = [await model('second', { tokens_per_day: 1 }), await model('third')]
    const first = await model('first', { fallbacks: [second, third] })
    script.set('first', Array(50).fill(status(401, 'Incorrect API key')))
    expect((await ask(first, shows)).body.usage.model).toBe('openai/second')
    const next = () => ask(first, shows, { question: crypto.randomUUID() })
    await expect.poll(async () => (await next()).body.usage.model, { timeout: 20_000 }).toBe('openai/third')
    // Whose own model it is finds the same budget spent.
    expect((await ask(second, shows)).status).toBe(429)
  })

  test('are charged for an answer that breaks off', async () => {
    const second = await model('second')
    const first = await model('first', { fallbacks: [second] })
    script.set('first', [status(401, 'Incorrect API key')])
    script.set('second', [breakOff])
    expect((await stream(first)).at(-1)).toMatchObject({ event: 'error' })
    await expect.poll(() => usageOf(second)).toMatchObject([{ turns: 0, output_tokens: 2 }])
    expect(await usageOf(first)).toMatchObject([{ turns: 1, output_tokens: 0 }])
  })

  test('answer while the provider cannot be reached at all, the built-in one too', async () => {
    const local = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: history,
    })
    const gone = await model('gone', { fallbacks: [local] })
    script.set('gone', [hangUp, hangUp, hangUp])
    const { status, body } = await ask(gone, shows, { question: 'Which crew salvages warships?' })
    expect(status).toBe(200)
    expect(body.usage.model).toBe('local/extractive')
    expect(body.answer).toContain('salvages warships')
  })

  test.each<[string, Reply]>([
    [
      'breaks off before its first word',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': one moment\n\n', () => response.destroy())
      },
    ],
    ['says nothing in time', () => {}],
    [
      'reports an overload in its stream',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end('data: {"error":{"message":"Overloaded","type":"overloaded_error"}}\n\n')
      },
    ],
  ])('stream where the provider %s', async (_, fault) => {
    const second = await model('second')
    const first = await model('first', { fallbacks: [second], timeout: 0.5 })
    script.set('first', [fault, fault, fault])
    const events = await stream(first)
    expect(textOf(events)).toBe('Answered: an action series')
    expect(events.at(-2)?.data.usage.model).toBe('openai/second')
  })

  test('do not go on with what another one began', async () => {
    const second = await model('second')
    const first = await model('first', { fallbacks: [second] })
    script.set('first', [breakOff])
    const events = await stream(first)
    expect(textOf(events)).toBe('Half an ')
    expect(events.at(-1)).toMatchObject({
      event: 'error',
      data: { message: expect.stringMatching(/ended before/) },
    })
    expect(asked).toEqual(['first'])
  })

  test('do not answer what the provider refused', async () => {
    const second = await model('second')
    const first = await model('first', { fallbacks: [second] })
    script.set('first', [status(400, 'Too many tokens')])
    const { status: code, body } = await ask(first, shows)
    expect([code, body.message]).toEqual([400, 'OpenAI API error: Too many tokens'])
    expect(asked).toEqual(['first'])
  })

  test('that were deleted are passed over', async () => {
    const [deleted, third] = [await model('deleted'), await model('third')]
    const first = await model('first', { fallbacks: [deleted, third] })
    await request('DELETE', `/conversations/models/${deleted}`)
    script.set('first', [status(401, 'Incorrect API key')])
    expect((await ask(first, shows)).body.usage.model).toBe('openai/third')
    expect(asked).toEqual(['first', 'third'])
  })

  test('whose own budget is spent are passed over', async () => {
    const [spent, third] = [await spentModel('spent'), await model('third')]
    const first = await model('first', { fallbacks: [spent, third] })
    script.set('first', [status(401, 'Incorrect API key')])
    expect((await ask(first, shows)).body.usage.model).toBe('openai/third')
    expect(asked).toEqual(['first', 'third'])
    await request('PUT', `/conversations/models/${spent}`, { turns_per_day: 1_000 })
    const other = await model('other', { fallbacks: [spent, third] })
    script.set('other', [status(401, 'Incorrect API key')])
    expect((await ask(other, shows)).body.usage.model).toBe('openai/spent')
  })

  test('may name each other', async () => {
    const [a, b] = [await model('a'), await model('b')]
    await request('PUT', `/conversations/models/${a}`, { fallbacks: [b] })
    await request('PUT', `/conversations/models/${b}`, { fallbacks: [a] })
    script.set('a', [status(401, 'A has no key')])
    script.set('b', [status(401, 'B has no key')])
    const { status: code, body } = await ask(a, shows)
    expect([code, body.message]).toEqual([400, 'OpenAI API error: A has no key'])
    expect(asked).toEqual(['a', 'b'])
  })
})

describe('rewrite_model', () => {
  const converse = async (id: string) => {
    const { body: first } = await ask(id, shows)
    const conversation_id = first.conversation_id
    asked.length = 0
    const { status, body } = await ask(id, shows, { conversation_id, question: 'And another?' })
    return { status, body, conversation_id }
  }

  test.each(['by id', 'by name'])('given %s rewrites, and the model itself answers', async (by) => {
    const rewrite_model = by === 'by id' ? await model('small') : 'openai/small'
    const big = await model('big', { rewrite_model, temperature: 1 })
    const { body, conversation_id } = await converse(big)
    expect(body).toMatchObject({
      standalone: 'standalone: And another?',
      answer: 'Answered: standalone: And another?',
      usage: { model: 'openai/big' },
    })
    expect(asked).toEqual(['small', 'big'])
    expect(await callsOf(conversation_id, 1)).toMatchObject([
      { purpose: 'standalone', model: 'openai/small' },
      { purpose: 'answer', model: 'openai/big' },
    ])
    if (by === 'by id') expect(await usageOf(rewrite_model)).toMatchObject([{ turns: 0 }])
    expect(await usageOf(big)).toMatchObject([{ turns: 2 }])
    // What is set for the one model does not go to the other.
    const sent = raw.received.slice(-2).map(({ body }) => body.temperature)
    expect(sent).toEqual([undefined, 1])
  })

  test.each<[string, Reply]>([
    ['is refused', status(400, 'No such parameter')],
    ['is not known', status(404, 'No such model')],
    ['answers nonsense', (response) => sendJson(response, 200, '[]')],
  ])('that %s leaves it to the model itself', async (_, fault) => {
    const big = await model('big', { rewrite_model: 'openai/small' })
    script.set('small', [fault])
    const { status, body, conversation_id } = await converse(big)
    expect([status, body.standalone]).toEqual([200, 'standalone: And another?'])
    expect(asked).toEqual(['small', 'big', 'big'])
    expect((await callsOf(conversation_id, 1))[0]).toMatchObject({
      purpose: 'standalone',
      model: 'openai/big',
      failed: [{ model: 'openai/small' }],
    })
  })

  test('whose own budget is spent leaves it to the model itself', async () => {
    const big = await model('big', { rewrite_model: await spentModel('small') })
    expect((await converse(big)).body.standalone).toBe('standalone: And another?')
    expect(asked).toEqual(['big', 'big'])
  })

  test('that was deleted leaves it to the model itself', async () => {
    const small = await model('small')
    const big = await model('big', { rewrite_model: small })
    await request('DELETE', `/conversations/models/${small}`)
    expect((await converse(big)).body.standalone).toBe('standalone: And another?')
    expect(asked).toEqual(['big', 'big'])
  })
})

describe('suggestions', () => {
  const saying =
    (content: string): Reply =>
    (response) =>
      sendJson(response, 200, { choices: [{ message: { content }, finish_reason: 'stop' }] })

  test('in the answer come apart from it, and are in no history', async () => {
    const id = await model('polite')
    script.set('polite', Array(2).fill(saying('Series there are. <<Which is new?>> <<Which is old?>>')))
    const { body } = await ask(id, shows, { followups: true })
    const apart = { answer: 'Series there are.', followups: ['Which is new?', 'Which is old?'] }
    expect(body).toMatchObject(apart)
    const turnsOf = async (conversation: string) =>
      (await request('GET', `/conversations/${conversation}`)).body.turns
    expect(await turnsOf(body.conversation_id)).toMatchObject([apart])
    const unasked = await ask(id, shows)
    expect(unasked.body.answer).toBe('Series there are. <<Which is new?>> <<Which is old?>>')
    expect(unasked.body).not.toHaveProperty('followups')
    expect((await turnsOf(unasked.body.conversation_id))[0]).not.toHaveProperty('followups')
  })

  test('of the rewriting model come as an event before the usage', async () => {
    const id = await model('big', { rewrite_model: 'openai/small' })
    script.set('small', [saying('<<Which is new?>>')])
    const events = await stream(id, { followups: true })
    expect(events.slice(-3).map(({ event }) => event)).toEqual(['followups', 'usage', 'done'])
    expect(events.at(-3)?.data).toEqual({ questions: ['Which is new?'] })
    expect(asked).toEqual(['big', 'small'])
  })

  test('of the built-in model are about what else was found', async () => {
    const id = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: history,
    })
    const { body } = await ask(id, shows, { question: 'Which crew salvages warships?', followups: true })
    expect(body.answer).toContain('salvages warships')
    expect(body.followups.length).toBeGreaterThan(0)
    for (const question of body.followups) expect(question).toMatch(/^What is “.+” about\?$/)
    expect(body.followups).not.toContain('What is “Starship Salvage” about?')
  })
})
