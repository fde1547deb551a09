/** How each provider is told the form of an answer. */
import { expect, it } from 'vitest'
import type { AnswerForm } from '../../src/models/language-model'
import { ask } from './ask'
import { rawServer, sendJson } from './raw-server'

const raw = rawServer()
const schema = { type: 'object', properties: { title: { type: 'string' } } }
const held: AnswerForm = { type: 'schema', name: 'series', schema, strict: true }

const told = async (model: Record<string, unknown>, form: AnswerForm): Promise<unknown> => {
  raw.respond = (response) => sendJson(response, 400, { error: { message: 'enough' } })
  await expect(ask({ api_key: 'sk-1234567890', ...model }, { form })).rejects.toThrow(/enough/)
  return raw.received[0]?.body
}

it('is a `response_format` for servers that speak as OpenAI does', async () => {
  const model = { model_name: 'openai/gpt-4o', openai_url: raw.url }
  expect(await told(model, held)).toMatchObject({
    response_format: { type: 'json_schema', json_schema: { name: 'series', schema, strict: true } },
  })
})

it('is a part of the settings for Claude, beside its effort', async () => {
  const model = {
    model_name: 'anthropic/claude-sonnet-4-5',
    anthropic_url: raw.url,
    reasoning_effort: 'low',
  }
  expect(await told(model, held)).toMatchObject({
    output_config: { effort: 'low', format: { type: 'json_schema', schema } },
  })
})

it('is a part of the settings for Gemini', async () => {
  const model = { model_name: 'google/gemini-2.5-flash', google_url: raw.url }
  const generationConfig = { responseMimeType: 'application/json', responseJsonSchema: schema }
  expect(await told(model, held)).toMatchObject({ generationConfig })
})

it.each([
  ['bedrock/anthropic.claude-sonnet-4-5', held],
  ['cloudflare/@cf/meta/llama-3.1-8b-instruct', held],
  ['local/extractive', held],
  ['anthropic/claude-sonnet-4-5', { type: 'json' } as AnswerForm],
])('is refused for %s, which cannot be held to it', async (model_name, form) => {
  await expect(ask({ model_name }, { form })).rejects.toThrow(/cannot be/)
})
