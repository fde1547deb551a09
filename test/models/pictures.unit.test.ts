/** A picture that belongs to a question, as each provider's wire has it. */
import { beforeEach, expect, it } from 'vitest'
import { ask } from './ask'
import { rawServer, sendJson } from './raw-server'

const raw = rawServer()
const PICTURE = { media_type: 'image/jpeg', data: 'AAAA' }
const MESSAGES = [
  { role: 'system' as const, content: 'Be brief.' },
  { role: 'user' as const, content: 'Before.' },
  { role: 'assistant' as const, content: 'Yes.' },
  { role: 'user' as const, content: 'What is this?', pictures: [PICTURE] },
]

beforeEach(() => {
  raw.respond = (response) => sendJson(response, 200, {})
})

const chat = {
  messages: [
    ...MESSAGES.slice(0, 3),
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,AAAA' } },
      ],
    },
  ],
}

const wires = (): [name: string, model: Record<string, unknown>, body: object][] => [
  ['OpenAI', { model_name: 'openai/x', api_key: 'k', openai_url: raw.url }, chat],
  ['vLLM', { model_name: 'vllm/x', vllm_url: raw.url }, chat],
  [
    'Anthropic',
    { model_name: 'anthropic/x', api_key: 'k', anthropic_url: raw.url },
    {
      system: 'Be brief.',
      messages: [
        ...MESSAGES.slice(1, 3),
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
            { type: 'text', text: 'What is this?' },
          ],
        },
      ],
    },
  ],
  [
    'Gemini',
    { model_name: 'google/x', api_key: 'k', google_url: raw.url },
    {
      system_instruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Before.' }] },
        { role: 'model', parts: [{ text: 'Yes.' }] },
        {
          role: 'user',
          parts: [{ inlineData: { mimeType: 'image/jpeg', data: 'AAAA' } }, { text: 'What is this?' }],
        },
      ],
    },
  ],
  [
    'Bedrock',
    { model_name: 'bedrock/x', api_key: 'k', region: 'eu-west-1', bedrock_url: raw.url },
    {
      system: [{ text: 'Be brief.' }],
      messages: [
        { role: 'user', content: [{ text: 'Before.' }] },
        { role: 'assistant', content: [{ text: 'Yes.' }] },
        {
          role: 'user',
          content: [{ image: { format: 'jpeg', source: { bytes: 'AAAA' } } }, { text: 'What is this?' }],
        },
      ],
    },
  ],
]

it.each([0, 1, 2, 3, 4])('goes along with the last message (wire %i)', async (at) => {
  const [name, model, body] = wires()[at]!
  // What it replies does not matter here.
  await ask(model, { messages: MESSAGES, stream: false }).catch(() => {})
  expect([name, raw.received.at(-1)?.body]).toMatchObject([name, body])
})
