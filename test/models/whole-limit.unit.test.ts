/** How long a provider may be silent: as long over a reply in one piece as over a stream. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, textOf } from './ask'
import { type RawServer, sendJson, startRawServer } from './raw-server'

let raw: RawServer
beforeAll(async () => {
  raw = await startRawServer()
})
afterAll(() => raw.stop())

const KEY = 'sk-1234567890'

describe.each<[string, () => Record<string, unknown>]>([
  ['openai', () => ({ model_name: 'openai/gpt', api_key: KEY, openai_url: raw.url })],
  ['vllm', () => ({ model_name: 'vllm/m', vllm_url: raw.url })],
  ['anthropic', () => ({ model_name: 'anthropic/claude', api_key: KEY, anthropic_url: raw.url })],
  ['google', () => ({ model_name: 'google/gemini', api_key: KEY, google_url: raw.url })],
  [
    'bedrock',
    () => ({
      model_name: 'bedrock/m',
      api_key: KEY,
      bedrock_url: raw.url,
    }),
  ],
])('%s', (_, model) => {
  it.each([true, false])('is given up when it says nothing for too long (stream: %s)', async (stream) => {
    raw.respond = () => {}
    await expect(ask({ ...model(), timeout: 0.1 }, { stream })).rejects.toThrow(/timeout/i)
  })
})

it('a server that cannot stream answers in one piece within the silence that its model is allowed', async () => {
  raw.respond = (response) => {
    setTimeout(
      () =>
        sendJson(response, 200, {
          choices: [{ message: { content: 'Thought over.' }, finish_reason: 'stop' }],
        }),
      600,
    )
  }
  const model = { model_name: 'openai/gpt', api_key: KEY, openai_url: raw.url, timeout: 30 }
  expect(textOf(await ask(model, { stream: true }))).toBe('Thought over.')
})
