/** Answers in a form that the client asks for, by the helpers of OpenAI's client and of the AI SDK, and results of tools. */
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, jsonSchema, Output, streamText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, url } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let shows: string
/** an assistant whose provider writes JSON, and one that has no model */
let filler: string
let extractive: string

const SCHEMA = {
  type: 'object' as const,
  properties: { title: { type: 'string' as const }, seasons: { type: 'integer' as const } },
  required: ['title', 'seasons'],
  additionalProperties: false,
}
const FITTING = '{"title":"Starship Salvage","seasons":3}'

beforeAll(async () => {
  llm = await startLlm({
    answer: (question) => {
      if (question.includes('wrong fields')) return '{"title":"Starship Salvage"}'
      return question.includes('no JSON') ? 'Starship Salvage, in three seasons.' : FITTING
    },
  })
  shows = await createShows()
  const assistant = async (config: Record<string, unknown>) =>
    createAssistant({ model: await createModel(config), collections: [shows] })
  filler = await assistant({ model_name: 'openai/gpt-4o', openai_url: llm.url })
  extractive = await assistant({ model_name: 'local/extractive' })
})
afterAll(() => llm.stop())

const openai = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
const provider = () => createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY })
const chatFormat = (schema: Record<string, unknown> = SCHEMA) => ({
  type: 'json_schema' as const,
  json_schema: { name: 'series', schema, strict: true },
})
const textFormat = { type: 'json_schema' as const, name: 'series', schema: SCHEMA, strict: true }
const asked = (content: string) => [{ role: 'user' as const, content }]

describe('a form that a provider keeps', () => {
  test('is parsed by OpenAI’s helpers on both routes', async () => {
    const { chat, responses } = openai()
    const completion = await chat.completions.parse({
      model: filler,
      messages: asked('an action series'),
      response_format: chatFormat(),
    })
    expect(completion.choices[0]?.message.content).toBe(FITTING)
    const response = await responses.parse({
      model: filler,
      input: 'an action series',
      text: { format: textFormat },
    })
    expect(JSON.parse(response.output_text)).toEqual(JSON.parse(FITTING))
    expect(llm.calls().at(-1)?.body.response_format).toEqual(chatFormat())
  })

  test('is an object of the AI SDK, whole and streamed', async () => {
    const output = Output.object({ schema: jsonSchema<{ title: string; seasons: number }>(SCHEMA) })
    for (const model of [provider()(filler), provider().chat(filler)]) {
      const whole = await generateText({ model, prompt: 'an action series', output })
      expect(whole.output).toEqual(JSON.parse(FITTING))
      const streamed = streamText({ model, prompt: 'an action series', output })
      expect(await streamed.output).toEqual(JSON.parse(FITTING))
    }
  })

  test('may be any JSON object', async () => {
    const { choices } = await openai().chat.completions.create({
      model: filler,
      messages: asked('an action series, as JSON'),
      response_format: { type: 'json_object' },
    })
    expect(choices[0]?.message.content).toBe(FITTING)
  })
})

describe('an answer that does not fit', () => {
  test.each(['wrong fields', 'no JSON'])('is an error, and not stored: %s', async (content) => {
    const { id } = await openai().conversations.create()
    const before = llm.calls().length
    await expect(
      openai().responses.create({
        model: filler,
        input: content,
        text: { format: textFormat },
        conversation: id,
      }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/does not fit the form/) })
    expect(llm.calls().length).toBe(before + 1)
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body.turns).toEqual([])
  })

  test('ends a stream in an error', async () => {
    const stream = await openai().chat.completions.create({
      model: filler,
      messages: asked('wrong fields'),
      response_format: chatFormat(),
      stream: true,
    })
    const reading = (async () => {
      for await (const _ of stream);
    })()
    await expect(reading).rejects.toThrow(/does not fit the form/)
  })
})

test('a form that cannot be had is refused before a model is asked', async () => {
  const before = llm.calls().length
  const create = (model: string, schema: Record<string, unknown>) =>
    openai().chat.completions.create({ model, messages: asked('q'), response_format: chatFormat(schema) })
  await expect(create(extractive, SCHEMA)).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(/cannot be held to a schema/),
  })
  const node = { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] }
  await expect(create(filler, { $ref: '#/$defs/node', $defs: { node } })).rejects.toMatchObject({
    status: 400,
    param: 'response_format',
  })
  await expect(create(filler, { $ref: 'https://example.org/schema' })).rejects.toThrow(/which its `\$ref`/)
  expect(llm.calls().length).toBe(before)
})

describe('results of tools that another model called', () => {
  test('are part of what was said before, on both routes', async () => {
    const { chat, responses } = openai()
    const call = { id: 'call_1', type: 'function' as const, function: { name: 'clock', arguments: '{}' } }
    const completion = await chat.completions.create({
      model: filler,
      messages: [
        { role: 'user', content: 'what time is it?' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'It is noon in Lisbon.' },
        { role: 'user', content: 'which series then?' },
      ],
    })
    const conversation = (completion as { id: string }).id.replace(/^chatcmpl-(.*)\.\d+$/, '$1')
    const response = await responses.create({
      model: filler,
      input: [
        { role: 'user', content: 'what time is it?' },
        { type: 'function_call', call_id: 'call_1', name: 'clock', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'It is noon in Lisbon.' },
        { role: 'user', content: 'which series then?' },
      ],
    })
    for (const id of [conversation, response.conversation?.id]) {
      const { text } = await request('GET', `/conversations/${id}/trace`)
      expect(text).toContain('It is noon in Lisbon.')
      expect(text).toContain('clock')
    }
  })

  test('are no question', async () => {
    const { chat } = openai()
    const message = { role: 'tool' as const, tool_call_id: 'call_1', content: 'noon' }
    await expect(
      chat.completions.create({ model: filler, messages: [...asked('the time?'), message] }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/need the `tools`/) })
  })
})
