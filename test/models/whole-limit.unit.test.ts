/** How long a provider may be silent: of a stream, and of an answer in one piece, which it writes in silence. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { DEFAULT_SILENCE, LONGEST_SILENCE, waitFor } from '../../src/models/call'
import { ask, textOf } from './ask'
import { type RawServer, sendJson, startRawServer } from './raw-server'

let raw: RawServer
beforeAll(async () => {
  raw = await startRawServer()
})
afterAll(() => raw.stop())

test('an answer in one piece has five minutes, or five times the timeout, and never more than an hour', () => {
  const whole = { purpose: 'answer', stream: false } as const
  expect(waitFor(DEFAULT_SILENCE, whole)).toBe(300)
  fc.assert(
    fc.property(fc.double({ min: 0.001, max: LONGEST_SILENCE, noNaN: true }), (silence) => {
      expect(waitFor(silence, whole)).toBeGreaterThanOrEqual(silence)
      expect(waitFor(silence, whole)).toBeLessThanOrEqual(LONGEST_SILENCE)
      expect(waitFor(silence, { purpose: 'answer', stream: true })).toBe(silence)
      for (const purpose of ['standalone', 'guardrail', 'followups'] as const)
        expect(waitFor(silence, { purpose, stream: false })).toBe(silence)
    }),
  )
})

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
  it('may take longer over an answer in one piece than a stream may be silent', async () => {
    raw.respond = () => {}
    const ends: string[] = []
    const timed = (name: string, stream: boolean) =>
      ask({ ...model(), timeout: 0.1 }, { stream }).catch(({ message }) => {
        expect(message).toMatch(/timeout/i)
        ends.push(name)
      })
    await Promise.all([timed('whole', false), timed('stream', true)])
    expect(ends).toEqual(['stream', 'whole'])
  })
})

it('an answer that comes after the silence that a stream is allowed is taken', async () => {
  raw.respond = (response) => {
    setTimeout(
      () =>
        sendJson(response, 200, {
          choices: [{ message: { content: 'Thought over.' }, finish_reason: 'stop' }],
        }),
      600,
    )
  }
  const model = { model_name: 'openai/gpt', api_key: KEY, openai_url: raw.url, timeout: 0.3 }
  expect(textOf(await ask(model, { stream: false }))).toBe('Thought over.')
})
