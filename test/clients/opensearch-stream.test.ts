/** Answered searches that are streamed: broken off and read on, left by their caller, and what they cost. */
import { once } from 'node:events'
import { request as open } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, gather, type Received } from './event-source'
import { createModel, KEY, request, unique, url } from './harness'
import { call, presidents, ragPipeline, remoteModel } from './opensearch-api'
import { type Paced, startPaced, words } from './paced'
import { startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`

let paced: Paced
let index: string
beforeAll(async () => {
  paced = await startPaced()
  index = await presidents()
})
afterAll(() => paced.stop())

/** @returns a model that writes `count` words, one in `gap` milliseconds, and where a search asks it */
async function pacedSearch(count: number, gap: number): Promise<{ model: string; path: string }> {
  const model = await createModel({ model_name: `openai/paced-${count}-${gap}`, openai_url: paced.url })
  return { model, path: `/${index}/_search?search_pipeline=${await ragPipeline(model)}` }
}

const newMemory = async (): Promise<string> => (await call('POST', MEMORY, {})).body.memory_id

const asking = (more: Record<string, unknown>, parameters: Record<string, unknown> = {}) => ({
  query: { match: { text: 'president' } },
  ext: { generative_qa_parameters: { llm_question: `who is ${unique('lincoln')}`, ...parameters } },
  ...more,
})

const headers = { 'content-type': 'application/json' }

/** The answer's text in the words of the search, and of the conversation's log. */
const textIn = (events: Received[]): string =>
  events.flatMap(({ event, data }) => (event === 'answer' || event === 'delta' ? [data.text] : [])).join('')

const usageOf = async (model: string) => {
  const { body } = await request('GET', `/usage?model=${model}`)
  return body.usage as { turns: number; output_tokens: number }[]
}

const SOON = { timeout: 15_000 }

test('a stream that breaks off anywhere is read on like any other turn', async () => {
  const { path } = await pacedSearch(300, 5)
  for (const cutAfter of [800, 1_500, 2_500]) {
    const memory_id = await newMemory()
    const body = asking({ stream: true, _source: ['title'] }, { memory_id })
    const broken = await connect(path, { method: 'POST', body, headers, cutAfter })
    expect(broken.status).toBe(200)
    const seen = (await gather(broken)).filter(({ event }) => event !== 'hits')
    expect(seen.at(-1)?.event).not.toBe('done')
    const after = seen.at(-1)?.id
    const rest = await gather(await connect(`/conversations/${memory_id}/events?after=${after ?? '1.0'}`))
    expect(textIn([...seen, ...rest])).toBe(words(300).join(''))
    expect(rest.at(-1)).toMatchObject({ event: 'done', data: { answer: words(300).join('') } })
    const again = await gather(await connect(`/conversations/${memory_id}/events`))
    expect(textIn(again)).toBe(words(300).join(''))
  }
})

test('a second reader joins the answer, and somebody else stops it', async () => {
  const { path } = await pacedSearch(2_000, 5)
  const memory_id = await newMemory()
  const body = asking({ stream: true }, { memory_id })
  const reading = gather(await connect(path, { method: 'POST', body, headers }))
  const joined = gather(await connect(`/conversations/${memory_id}/events`))
  expect((await request('POST', `/conversations/${memory_id}/stop`)).body).toEqual({ stopped: true })
  expect((await reading).at(-1)).toMatchObject({
    event: 'error',
    data: { ext: { retrieval_augmented_generation: { error: expect.any(String) } } },
  })
  expect((await joined).at(-1)?.event).toBe('error')
  expect((await call('GET', `${MEMORY}/${memory_id}/messages`)).body).toEqual({ messages: [] })
})

/** Asks, and hangs up in the middle of the answer. */
async function hangUp(path: string, body: Record<string, unknown>): Promise<void> {
  const before = paced.begun
  const sent = open(url + path, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${KEY}` },
    agent: false,
  })
  sent.on('error', () => {})
  sent.on('response', (response) => response.on('error', () => {}).resume())
  sent.end(JSON.stringify(body))
  await once(sent, 'socket')
  await expect.poll(() => paced.begun, SOON).toBe(before + 1)
  await new Promise((resolve) => setTimeout(resolve, 300))
  sent.destroy()
}

test.each([true, false])(
  'a caller who hangs up leaves a turn that ends, is kept and charged (stream: %s)',
  async (stream) => {
    const { model, path } = await pacedSearch(20, 60)
    const memory_id = await newMemory()
    await hangUp(path, asking({ stream }, { memory_id }))
    const said = async () => (await call('GET', `${MEMORY}/${memory_id}/messages`)).body.messages
    await expect.poll(said, SOON).toMatchObject([{ response: words(20).join('') }])
    await expect.poll(() => usageOf(model), SOON).toMatchObject([{ turns: 1 }])
    expect((await usageOf(model))[0]!.output_tokens).toBeGreaterThan(0)
  },
)

test.each([true, false])('without a memory it is charged all the same (stream: %s)', async (stream) => {
  const { model, path } = await pacedSearch(20, 60)
  await hangUp(path, asking({ stream }))
  await expect.poll(async () => (await usageOf(model))[0]?.output_tokens ?? 0, SOON).toBeGreaterThan(0)
})

test('a prediction comes in pieces where it is asked for so', async () => {
  const llm = await startScriptedLlm()
  try {
    const path = `${ML}/models/${await remoteModel(llm)}/_predict`
    const parameters = { messages: [{ role: 'user', content: 'hi' }] }
    const predict = async () => {
      const connection = await connect(`${path}/stream`, { method: 'POST', body: { parameters }, headers })
      const events = await gather(connection)
      const pieces = events.map(({ data }) => data.inference_results?.[0].output[0] ?? data)
      return { type: connection.headers.get('content-type'), pieces }
    }
    const piece = (content: string, is_last = false) => ({
      name: 'response',
      dataAsMap: { content, is_last },
    })
    llm.script.stream = ['An ', 'answer']
    expect(await predict()).toEqual({
      type: 'text/event-stream',
      pieces: [piece('An '), piece('answer'), piece('', true)],
    })
    expect(llm.sent[0]?.body).toMatchObject({ stream: true, messages: parameters.messages })
    delete llm.script.stream
    expect((await predict()).pieces).toEqual([piece('An answer. [1]'), piece('', true)])
    llm.script = { status: 429, body: { error: { message: 'too many' } }, delayMs: 0 }
    const refused = await call('POST', `${path}/stream`, { parameters })
    expect([refused.status, refused.body.error]).toMatchObject([
      429,
      { type: 'status_exception', reason: expect.stringContaining('too many') },
    ])
    llm.sent.length = 0
    const asked = await call('POST', path, { parameters, stream: true })
    expect([asked.status, asked.body.error.reason]).toEqual([400, expect.stringContaining('[stream]')])
    expect(llm.sent).toEqual([])
  } finally {
    await llm.stop()
  }
})
