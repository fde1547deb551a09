/** Text files with a question on Parley's own routes: what reaches the language model over a socket, and its guardrail. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, url } from './harness'
import { documentsIn, type Llm, startLlm } from './llm'

const NOTE = {
  name: 'Notiz – ü.md',
  type: 'text/markdown',
  text: '# Kane\n\nThe guest is called <b>Kane</b> 😀.',
}
const AS_DOCUMENT = { file: NOTE.name, text: NOTE.text }

let llm: Llm
let shows: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
})
afterAll(() => llm.stop())
beforeEach(() => llm.forget())

/** An assistant that takes files, and a page that asks it. */
async function page(model: Record<string, unknown> = {}) {
  const id = await createModel({ model_name: 'openai/writer', openai_url: llm.url, ...model })
  const assistant = await createAssistant({ model: id, collections: [shows], attachments: true })
  const key = { description: 'd', actions: ['documents:search'], collections: ['*'], limits: { assistant } }
  const { value } = (await request('POST', '/keys', key)).body
  return async (body: Record<string, unknown>) => {
    const response = await fetch(`${url}/a/${assistant}/conversations`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${value}`,
        'x-parley-visitor': 'a-visitor-with-a-long-enough-secret',
      },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: await response.json() }
  }
}

const lastPrompt = () => String(llm.calls().at(-1)?.messages.at(-1)?.content)

test('the prompt of the question holds the file, and that of the next question does not', async () => {
  const askOnPage = await page()
  const first = await askOnPage({ question: 'an action series with Kane', files: [NOTE] })
  expect(first.status).toBe(200)
  expect(documentsIn(lastPrompt())[0]).toEqual(AS_DOCUMENT)
  const { conversation_id } = first.body as { conversation_id: string }
  expect((await askOnPage({ question: 'and a comedy?', conversation_id })).status).toBe(200)
  expect(lastPrompt()).not.toContain('The guest is called')
  const stored = JSON.stringify((await request('GET', `/conversations/${conversation_id}`)).body)
  expect(stored).not.toContain('The guest is called')
})

test('the guardrail judges the files with the question', async () => {
  const askOnPage = await page({ input_guardrail_prompt: 'Judge.' })
  await askOnPage({ question: 'Who is it?', files: [NOTE] })
  const judged = llm.calls().map(({ messages }) => messages.map(({ content }) => content).join('\n'))
  expect(judged[0]).toContain('Judge.')
  expect(judged[0]).toContain(JSON.stringify(NOTE.text).slice(1, -1))
})
