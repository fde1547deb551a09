/**
 * LangChain's `ChatOpenAI`, by chat completions and by responses. It asks through OpenAI's client, which openai.test.ts,
 * openai-structured.test.ts and openai-stored.test.ts prove in every run.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, unique } from './harness'
import { assistant as assistantSays, chatOpenAi, user } from './langchain'
import { type Llm, startLlm } from './llm'

let llm: Llm
let assistant: string
let shaped: string
let citing: string

beforeAll(async () => {
  const shows = await createShows()
  llm = await startLlm({
    answer: (question) =>
      question.startsWith('As JSON')
        ? JSON.stringify({ title: 'Galactic Quest', points: 3 })
        : `You asked: ${question}`,
  })
  const made = async (model: Record<string, unknown>, collection = shows) =>
    createAssistant({ model: await createModel(model), collections: [collection] })
  assistant = await made({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  shaped = assistant
  const pages = unique('pages')
  await request('POST', '/collections', { name: pages, fields: [{ name: 'text', type: 'string' }] })
  await request('POST', `/collections/${pages}/documents`, {
    id: 'tower',
    title: 'The tower',
    text: 'The Eiffel Tower is 330 metres high.',
    url: 'https://example.org/tower',
  })
  citing = await made({ model_name: 'local/extractive' }, pages)
})
afterAll(() => llm.stop())

describe.each([
  ['chat completions', false],
  ['responses', true],
] as const)('ChatOpenAI by %s', (_, useResponsesApi) => {
  const textOf = ({ text }: { text: string }) => text

  test('answers whole and piece by piece, and goes on with its own messages', async () => {
    const model = await chatOpenAi(assistant, useResponsesApi)
    const asked = user('an action series')
    const first = await model.invoke([asked])
    expect(textOf(first)).toBe('You asked: an action series')
    const pieces: string[] = []
    for await (const piece of await model.stream([asked, first, user('and another?')])) {
      pieces.push(textOf(piece))
    }
    expect(pieces.filter(Boolean).length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe('You asked: standalone: and another?')
    expect(textOf(await model.invoke([asked, assistantSays('Galactic Quest.'), user('and another?')]))).toBe(
      'You asked: standalone: and another?',
    )
  })

  test('gets an answer in the form that it asks for', async () => {
    const schema = {
      title: 'Show',
      type: 'object',
      properties: { title: { type: 'string' }, points: { type: 'integer' } },
      required: ['title', 'points'],
      additionalProperties: false,
    }
    const inForm = async (name: string) =>
      (await chatOpenAi(name, useResponsesApi)).withStructuredOutput(schema, { method: 'jsonSchema' })
    expect(await (await inForm(shaped)).invoke('As JSON: an action series')).toEqual({
      title: 'Galactic Quest',
      points: 3,
    })
    await expect((await inForm(citing)).invoke('As JSON: a tower')).rejects.toThrow(/form/)
  })

  test('throws what went wrong', async () => {
    const model = await chatOpenAi('no-such-assistant', useResponsesApi)
    await expect(model.invoke('anything')).rejects.toThrow(/no-such-assistant/)
  })
})

test('the sources of a response are annotations of its text', async () => {
  const answer = await (await chatOpenAi(citing, true)).invoke('How high is the Eiffel Tower?')
  expect(JSON.stringify(answer.content)).toContain('https://example.org/tower')
})
