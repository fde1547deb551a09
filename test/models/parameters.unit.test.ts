import { describe, expect, it } from 'vitest'
import { providerOf } from '../../src/models/providers'
import {
  acceptedBy,
  chatSampling,
  checkParameters,
  geminiSampling,
  samplingOf,
  withSettings,
} from '../../src/models/sampling'
import { ask, config, localEnv } from './ask'
import { rawServer, sendJson } from './raw-server'

const ALL = { temperature: 0.5, top_p: 0.9, max_tokens: 100, reasoning_effort: 'low', stop: '\n' }

describe('what a model sets', () => {
  it('is what it sets, and nothing else', () => {
    expect(samplingOf({ model_name: 'x/y', temperature: 0, colour: 1 })).toEqual({ temperature: 0 })
    expect(samplingOf(ALL)).toEqual({ ...ALL, stop: ['\n'] })
    expect(chatSampling({}, 'gpt')).toEqual({})
    expect(geminiSampling({}, 'gemini-3-pro')).toEqual({})
  })

  it.each([
    ['gpt-4o-mini', false, 'max_tokens'],
    ['llama3', false, 'max_tokens'],
    ['gpt-oss-20b', false, 'max_tokens'],
    ['gpt-4o-mini', true, 'max_completion_tokens'],
    ['o3-mini', false, 'max_completion_tokens'],
    ['gpt-5-mini', false, 'max_completion_tokens'],
    ['gpt-5.2', false, 'max_completion_tokens'],
  ])('limits %s (asked of OpenAI itself: %s) by %s', (model, ofOpenAi, name) => {
    expect(chatSampling(ALL, model, ofOpenAi)).toEqual({
      temperature: 0.5,
      top_p: 0.9,
      [name]: 100,
      reasoning_effort: 'low',
      stop: ['\n'],
    })
  })

  it('can ask for the same answer again, and for less of the same words', () => {
    const more = { seed: 7, frequency_penalty: 0.5, presence_penalty: -1 }
    expect(chatSampling(more, 'gpt-4o')).toEqual(more)
    expect(geminiSampling(more, 'gemini-3-pro')).toEqual({
      seed: 7,
      frequencyPenalty: 0.5,
      presencePenalty: -1,
    })
  })

  it('may name the limit by its new name', () => {
    expect(chatSampling({ max_completion_tokens: 9 }, 'llama3')).toEqual({ max_completion_tokens: 9 })
  })

  it('is a budget of thoughts or a level of them, by the generation of Gemini', () => {
    const rest = { temperature: 0.5, topP: 0.9, maxOutputTokens: 100, stopSequences: ['\n'] }
    expect(geminiSampling(ALL, 'gemini-2.5-flash')).toEqual({
      ...rest,
      thinkingConfig: { thinkingBudget: 1024 },
    })
    expect(geminiSampling(ALL, 'gemini-3-pro')).toEqual({ ...rest, thinkingConfig: { thinkingLevel: 'low' } })
  })
})

describe('the settings of one request', () => {
  const wild = { temperature: 1.5, top_p: 0.9, presence_penalty: 1, seed: 7, max_tokens: 9 }

  it.each([
    ['openai/gpt-4o-mini', wild],
    ['openai/o3-mini', { seed: 7, max_tokens: 9 }],
    ['azure/gpt-5-mini', { seed: 7, max_tokens: 9 }],
    ['anthropic/claude-haiku-4-5', { temperature: 1, max_tokens: 9 }],
    ['bedrock/eu.anthropic.claude-haiku-4-5-v1:0', { temperature: 1, max_tokens: 9 }],
    ['bedrock/amazon.nova-lite-v1:0', { temperature: 1, top_p: 0.9, max_tokens: 9 }],
    ['local/extractive', {}],
  ])('are those that %s takes', (model, taken) => expect(acceptedBy(model, wild)).toEqual(taken))

  it.each([
    ['anthropic/claude-haiku-4-5', { temperature: 0 }, { temperature: 0, max_tokens: 5 }],
    ['anthropic/claude-haiku-4-5', { top_p: 0.3 }, { top_p: 0.3, max_tokens: 5 }],
    ['anthropic/claude-haiku-4-5', { max_tokens: 4 }, { temperature: 0.5, top_p: 0.5, max_tokens: 4 }],
    ['openai/gpt-4o-mini', { temperature: 0 }, { temperature: 0, top_p: 0.5, max_tokens: 5 }],
  ])('take the place of those of %s: %j', (model_name, settings, expected) => {
    const own = { model_name, temperature: 0.5, top_p: 0.5, max_tokens: 5 }
    expect(withSettings(own, settings)).toEqual({ model_name, ...expected })
  })

  it('stay as they are where the model takes them', () => {
    expect(acceptedBy('anthropic/claude', { temperature: 0.2 })).toEqual({ temperature: 0.2 })
    expect(acceptedBy('anthropic/claude', {})).toEqual({})
  })
})

describe('a property', () => {
  it.each([
    ['temperature', [-1, 2.1, '1', Number.NaN], 'a number from 0 to 2'],
    ['top_p', [-0.1, 1.1, true], 'a number from 0 to 1'],
    ['max_tokens', [0, 1.5, '10'], 'a positive integer'],
    ['max_completion_tokens', [0], 'a positive integer'],
    ['seed', [1.5, '1'], 'an integer'],
    ['frequency_penalty', [-3, '1'], 'a number from -2 to 2'],
    ['presence_penalty', [3, null], 'a number from -2 to 2'],
    ['reasoning_effort', [1, '', 'very much'], 'a word such as `low`, `medium` or `high`'],
    ['stop', ['', [], [1], [''], Array(17).fill('x')], 'a text, or a list of up to 16 texts'],
    ['timeout', [0, -1, 3601, '5'], 'a number of seconds, more than 0 and 3600 at most'],
    ['headers', ['x', ['x'], 5], 'an object of strings'],
  ])('%s has to be right', (property, wrong, what) => {
    for (const value of wrong) {
      expect(() => checkParameters({ [property]: value })).toThrow(`Property \`${property}\` is not ${what}.`)
    }
  })

  it('that is right is taken', () => {
    expect(() =>
      checkParameters({ ...ALL, timeout: 0.5, headers: { 'OpenAI-Organization': 'org', 'X-Empty': '' } }),
    ).not.toThrow()
  })

  it.each([
    'Host',
    'content-length',
    'Connection',
    'TRANSFER-ENCODING',
    'upgrade',
    'Authorization',
    'api-key',
    'X-API-Key',
    'x-goog-api-key',
    'cf-aig-authorization',
    'X-Amz-Date',
  ])('headers may not set %s', (name) => {
    expect(() => checkParameters({ headers: { [name]: 'x' } })).toThrow(
      `Property \`headers\` may not set \`${name}\`: leave it out.`,
    )
  })

  it.each([
    [{ 'a b': 'x' }, 'a name that no header can have'],
    [{ '': 'x' }, 'a name that no header can have'],
    [{ a: 'x\r\nHost: y' }, '`headers.a`'],
    [{ a: '日' }, '`headers.a`'],
    [{ a: 1 }, '`headers.a`'],
    [{ a: 'x'.repeat(4097) }, '`headers.a`'],
    [Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`h${index}`, 'x'])), 'more than 20'],
  ])('headers cannot be %j', (headers, message) => {
    expect(() => checkParameters({ headers })).toThrow(message)
  })
})

describe("a model's own headers", () => {
  const raw = rawServer()
  const model = () => ({
    model_name: 'openai/gpt',
    api_key: 'sk-1234567890',
    openai_url: raw.url,
    headers: { 'X-Team': 'search-secret', accept: 'x/y' },
  })

  it('go along with every request', async () => {
    raw.respond = (response) => sendJson(response, 200, { choices: [{ message: { content: 'ok' } }] })
    await ask(model(), { stream: false })
    expect(raw.received[0]?.headers).toMatchObject({
      'x-team': 'search-secret',
      accept: 'x/y',
      authorization: 'Bearer sk-1234567890',
      'content-type': 'application/json',
    })
  })

  it('are in no error', async () => {
    raw.respond = (response) =>
      sendJson(response, 400, { error: { message: 'Team search-secret has no sk-1234567890' } })
    await expect(ask(model())).rejects.toThrow('OpenAI API error: Team searc******** has no sk-12********')
  })
})

describe('the greeting of a new model', () => {
  const raw = rawServer()

  it.each<[string, Record<string, unknown>, object]>([
    ['openai', {}, { temperature: 0.5 }],
    ['anthropic', {}, { temperature: 0.5, max_tokens: 1 }],
    ['bedrock', { region: 'eu-west-1' }, { inferenceConfig: { temperature: 0.5, maxTokens: 1 } }],
    ['google', {}, { generationConfig: { temperature: 0.5 } }],
    ['cloudflare', { account_id: 'a' }, { temperature: 0.5 }],
  ])('of %s has its settings, so that a wrong one is told at once', async (namespace, own, body) => {
    raw.received.length = 0
    raw.respond = (response) => sendJson(response, 400, { message: 'not that temperature' })
    const made = config({
      model_name: `${namespace}/m`,
      api_key: 'a key',
      [`${namespace}_url`]: raw.url,
      temperature: 0.5,
      ...own,
    })
    await expect(providerOf(made).probe(made, localEnv)).rejects.toThrow('not that temperature')
    expect(raw.received[0]?.body).toMatchObject(body)
  })
})
