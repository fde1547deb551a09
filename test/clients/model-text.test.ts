/**
 * What a model says besides its answer, over real sockets: thoughts in its text, rewritten questions that are none, and
 * which of its calls the settings of a request are for.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RawServer, sendJson, startRawServer } from '../models/raw-server'
import { askInStream, gather, textOf } from './event-source'
import { ask, createAssistant, createHistory, createModel, createShows, question, request } from './harness'
import { isStandalone, questionIn } from './llm'

interface Reply {
  content: string
  finish?: string
}

type Purpose = 'answer' | 'rewriting' | 'verdict'

let raw: RawServer
let shows: string
let history: string
let replies: Record<Purpose, (question: string) => Reply>
/** bodies of the calls, greetings left out */
const asked: { purpose: Purpose; body: Record<string, unknown>; prompt: string }[] = []

const purposeOf = (prompt: string): Purpose =>
  isStandalone(prompt) ? 'rewriting' : prompt.includes('<Classification>') ? 'verdict' : 'answer'

beforeAll(async () => {
  raw = await startRawServer()
  raw.respond = (response, { body }) => {
    const prompt = String((body.messages as { content: string }[]).at(-1)?.content)
    const purpose = purposeOf(prompt)
    if (prompt !== 'hello') asked.push({ purpose, body, prompt })
    const { content, finish = 'stop' } =
      prompt === 'hello' ? { content: 'Hi.' } : replies[purpose](questionIn(prompt))
    if (body.stream !== true) {
      return sendJson(response, 200, { choices: [{ message: { content }, finish_reason: finish }] })
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const letter of content.match(/[\s\S]{1,3}/g) ?? []) {
      response.write(`data: ${JSON.stringify({ choices: [{ delta: { content: letter } }] })}\n\n`)
    }
    response.write(`data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: finish }] })}\n\n`)
    response.end('data: [DONE]\n\n')
  }
  shows = await createShows()
  history = await createHistory()
})
afterAll(() => raw.stop())
beforeEach(() => {
  asked.length = 0
  replies = {
    answer: (question) => ({ content: `You asked: ${question}` }),
    rewriting: (question) => ({ content: `standalone: ${question}` }),
    verdict: () => ({ content: 'SAFE' }),
  }
})

const model = (more: Record<string, unknown> = {}): Promise<string> =>
  createModel({ model_name: 'openai/m', openai_url: raw.url, history_collection: history, ...more })

const QUESTION = 'an action series'

const stream = async (id: string, more: Record<string, unknown> = {}) =>
  gather(await askInStream(question(id, shows, more)))

describe('thoughts between tags', () => {
  const thinking = (text: string): Reply => ({ content: `<think>\nsecret ${QUESTION}\n</think>\n\n${text}` })

  test('are in no answer, rewritten question, verdict, history or prompt', async () => {
    replies = {
      answer: () => thinking('Starship Salvage.'),
      rewriting: () => thinking('Which action series is new?'),
      verdict: () => thinking('SAFE'),
    }
    const id = await model({ input_guardrail_prompt: 'Judge.' })
    const { status, body } = await ask(id, shows)
    expect([status, body.answer]).toEqual([200, 'Starship Salvage.'])
    const { conversation_id } = body
    const events = await stream(id, { conversation_id, question: 'And a new one?' })
    expect(textOf(events)).toBe('Starship Salvage.')
    expect(events.find(({ event }) => event === 'question')?.data.standalone).toBe(
      'Which action series is new?',
    )
    const told = await request('GET', `/conversations/${conversation_id}`)
    expect(told.body.turns.map(({ answer }: { answer: string }) => answer)).toEqual(
      Array(2).fill('Starship Salvage.'),
    )
    const kept = await request('GET', `/collections/${history}/documents/export`)
    for (const text of [JSON.stringify(events), told.text, kept.text]) expect(text).not.toContain('secret')
    for (const { prompt } of asked) expect(prompt).not.toContain('secret')
  })

  test('that say the opposite do not decide a verdict', async () => {
    replies.verdict = () => ({ content: '<think>It looks SAFE</think>UNSAFE' })
    const { status, body } = await ask(await model({ input_guardrail_prompt: 'Judge.' }), shows)
    expect([status, body.message]).toEqual([
      400,
      'The question was deemed unsafe or inappropriate to answer.',
    ])
  })

  test('that were opened in the prompt are taken out of a rewriting, and of a model that is known to open them', async () => {
    const content = 'secret\n</think>\n\nStarship Salvage.'
    replies.rewriting = () => ({ content })
    const id = await model()
    const { conversation_id } = (await ask(id, shows)).body
    expect((await ask(id, shows, { conversation_id })).body.standalone).toBe('Starship Salvage.')
    replies.answer = () => ({ content })
    expect((await ask(await model({ starts_thinking: true }), shows)).body.answer).toBe('Starship Salvage.')
    expect(textOf(await stream(await model({ starts_thinking: true })))).toBe('Starship Salvage.')
    expect(textOf(await stream(await model({ model_name: 'openai/qwq-32b' })))).toBe('Starship Salvage.')
  })

  test('`starts_thinking` is true or false', async () => {
    const { status, body } = await request('POST', '/conversations/models', {
      model_name: 'openai/m',
      openai_url: raw.url,
      api_key: 'sk-1234567890',
      history_collection: history,
      max_bytes: 9_000,
      starts_thinking: 'yes',
    })
    expect([status, body.message]).toEqual([400, 'Property `starts_thinking` is not true or false.'])
  })
})

test.each<[string, Reply]>([
  ['cut for its length', { content: 'Which action series by', finish: 'length' }],
  ['empty', { content: '' }],
  ['cut within its thoughts', { content: '<think>secret', finish: 'length' }],
])('a rewriting that is %s leaves the question as it was asked', async (_, rewriting) => {
  replies.rewriting = () => rewriting
  const id = await model()
  const { conversation_id } = (await ask(id, shows)).body
  const { status, body } = await ask(id, shows, { conversation_id, question: 'Which series is new?' })
  expect([status, body.answer]).toEqual([200, 'You asked: Which series is new?'])
  expect(body.standalone).toBeUndefined()
})

test('the settings of a request are for its answer alone', async () => {
  const id = await model({ max_tokens: 800, input_guardrail_prompt: 'Judge.' })
  const assistant = await createAssistant({
    model: id,
    collections: [shows],
    overrides: ['max_response_tokens', 'temperature'],
  })
  const messages = [{ role: 'user', content: QUESTION }]
  const first = await request('POST', '/v1/chat/completions', {
    model: assistant,
    messages,
    max_tokens: 5,
    temperature: 0.5,
  })
  expect(first.status, first.text).toBe(200)
  const said = { role: 'assistant', content: first.body.choices[0].message.content }
  const follow = [...messages, said, { role: 'user', content: 'And a new one?' }]
  asked.length = 0
  const second = await request('POST', '/v1/chat/completions', {
    model: assistant,
    messages: follow,
    max_tokens: 5,
    temperature: 0.5,
  })
  expect(second.status, second.text).toBe(200)
  const sent = Object.fromEntries(
    asked.map(({ purpose, body }) => [purpose, [body.max_tokens, body.temperature]]),
  )
  expect(sent).toEqual({
    rewriting: [800, undefined],
    verdict: [800, undefined],
    answer: [5, 0.5],
  })
})
