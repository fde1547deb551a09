/** The AI SDK's own OpenAI provider as it comes, which speaks `/v1/responses` and refers to earlier answers by their ids. */
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, jsonSchema, type ModelMessage, Output, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Paced, startPaced, words } from './paced'

let paced: Paced
let shows: string
/** an assistant whose model says five words, and one that answers by itself, with citations */
let talker: string
let citing: string

beforeAll(async () => {
  paced = await startPaced()
  shows = await createShows()
  talker = await createAssistant({
    model: await createModel({ model_name: 'openai/paced-5-1', openai_url: paced.url }),
    collections: [shows],
  })
  const collection = unique('pages')
  await request('POST', '/collections', { name: collection, fields: [{ name: 'text', type: 'string' }] })
  await request('POST', `/collections/${collection}/documents`, {
    id: 'tower',
    title: 'The tower',
    text: 'The Eiffel Tower is 330 metres high.',
    url: 'https://example.org/tower',
  })
  citing = await createAssistant({
    model: await createModel({ model_name: 'local/extractive' }),
    collections: [collection],
  })
})
afterAll(() => paced.stop())

const clock = tool({ inputSchema: jsonSchema({ type: 'object', properties: {} }), execute: () => 'noon' })
const titled = jsonSchema<{ title: string }>({ type: 'object', properties: { title: { type: 'string' } } })

const provider = () => createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY })
const openai = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })

/** The conversation of an answer, which its id names. */
const conversationOf = (id: string): string => /^resp_(.*)\.\d+$/.exec(id)?.[1] ?? ''

describe('a chat by the AI SDK', () => {
  test('goes on with what was said: an earlier answer is named, not sent again', async () => {
    const model = provider()(talker)
    const said: ModelMessage[] = [{ role: 'user', content: 'an action series' }]
    const first = await generateText({ model, messages: said })
    expect(first.text).toBe(words(5).join(''))
    said.push(...first.response.messages, { role: 'user', content: 'another one' })
    const second = streamText({ model, messages: said })
    expect(await second.text).toBe(words(5).join(''))
    said.push(...(await second.response).messages, { role: 'user', content: 'a third' })
    await generateText({ model, messages: said })
    const { body } = await request('GET', `/conversations/${conversationOf(first.response.id)}`)
    expect(body.turns).toMatchObject([
      { question: 'an action series', answer: words(5).join('') },
      { question: 'another one', standalone: 'a question' },
      { question: 'a third', standalone: 'a question' },
    ])
  })

  test('shows the sources of an answer, whole and streamed', async () => {
    const model = provider()(citing)
    const prompt = 'How high is the Eiffel Tower?'
    const page = { sourceType: 'url', url: 'https://example.org/tower', title: 'The tower' }
    expect((await generateText({ model, prompt })).sources).toMatchObject([page])
    expect(await streamText({ model, prompt }).sources).toMatchObject([page])
  })

  test('may bring tools that the model does not call', async () => {
    const { text } = await generateText({ model: provider()(talker), prompt: 'hello', tools: { clock } })
    expect(text).toBe(words(5).join(''))
  })

  test('is told where an answer cannot have the form that it wants, before a model is asked', async () => {
    const before = paced.begun
    const output = Output.object({ schema: titled })
    for (const model of [provider()(citing), provider().chat(citing)]) {
      await expect(generateText({ model, prompt: 'a title', output })).rejects.toMatchObject({
        statusCode: 400,
        isRetryable: false,
        message: expect.stringMatching(/cannot be held to a schema/),
      })
      const required = { model, prompt: 'the time', tools: { clock }, toolChoice: 'required' as const }
      await expect(generateText(required)).rejects.toMatchObject({
        statusCode: 400,
        message: expect.stringMatching(/decides itself/),
      })
    }
    expect(paced.begun).toBe(before)
  })
})

describe('a reference to an earlier answer', () => {
  const follow = (id: string) =>
    openai().responses.create({
      model: talker,
      input: [
        { role: 'user', content: 'an action series' },
        { type: 'item_reference', id },
        { role: 'user', content: 'another one' },
      ],
    })

  test('that leads nowhere is an error, not half of a conversation', async () => {
    for (const id of [`msg_${crypto.randomUUID()}.1`, 'msg_of-somebody-else']) {
      await expect(follow(id)).rejects.toMatchObject({
        status: 400,
        code: 'item_not_found',
        param: 'input',
        message: expect.stringContaining(id),
      })
    }
  })

  test('does not lead into a conversation of another key', async () => {
    const first = await openai().responses.create({ model: talker, input: 'an action series' })
    const { body } = await request('POST', '/keys', {
      description: 'another',
      actions: ['conversations:create', 'documents:search'],
      collections: ['*'],
    })
    const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: body.value, maxRetries: 0 })
    const [message] = first.output
    await expect(
      other.responses.create({
        model: talker,
        input: [
          { type: 'item_reference', id: message?.id ?? '' },
          { role: 'user', content: 'what did they say?' },
        ],
      }),
    ).rejects.toMatchObject({ status: 400, code: 'item_not_found' })
  })
})

describe('what other clients send by default', () => {
  test('is understood: -1 tokens, and a user described by an object', async () => {
    const { status, body } = await request('POST', '/v1/chat/completions', {
      model: talker,
      messages: [{ role: 'user', content: 'an action series' }],
      max_tokens: -1,
      user: { id: 'ada', email: 'ada@example.org' },
      response_format: { type: 'text' },
    })
    expect([status, body.choices?.[0].message.content]).toEqual([200, words(5).join('')])
  })
})
