/** Parameters of OpenAI's own client: each has an effect, is named as passed over, or is refused by its name. */
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, url } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let shows: string
let model: string
let easy: string
let strict: string
let pageKey: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
  model = await createModel({ model_name: 'openai/gpt-4o', openai_url: llm.url })
  easy = await createAssistant({ model, collections: [shows] })
  strict = await createAssistant({ model, collections: [shows], strict: true })
  const key = { description: 'd', actions: ['documents:search'], collections: [shows] }
  pageKey = (await request('POST', '/keys', key)).body.value
})
afterAll(() => llm.stop())

const openai = (apiKey = pageKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'an action series' }]
const complete = (name: string, more: object, key = pageKey) =>
  openai(key).chat.completions.create({ model: name, messages, ...more })
const respond = (name: string, more: object) =>
  openai().responses.create({ model: name, input: 'an action series', ...more })
const sent = () => llm.calls().at(-1)!.body
const passedOver = ({ choices: [choice] }: OpenAI.ChatCompletion) =>
  (choice?.message as unknown as { context: { ignored?: string[] } } | undefined)?.context.ignored

/** What an assistant makes no use of. */
const UNUSED = {
  tools: [{ type: 'function' as const, function: { name: 'f', parameters: {} } }],
  logprobs: true,
  logit_bias: { '50256': -100 },
  reasoning_effort: 'low' as const,
  max_tokens: 50,
  service_tier: 'priority' as const,
  foo: 1,
}
/** What asks for nothing. */
const IDLE = {
  tools: [],
  n: 1,
  logprobs: false,
  logit_bias: {},
  service_tier: 'auto' as const,
  modalities: ['text' as const],
  tool_choice: 'auto' as const,
}

test.each(['easy', 'strict'])('settings reach a provider that knows them (%s)', async (which) => {
  const name = which === 'easy' ? easy : strict
  const settings = { temperature: 0.2, seed: 7, frequency_penalty: 0.5, presence_penalty: -1 }
  const answer = await complete(name, { ...settings, stop: ['END'] })
  expect(sent()).toMatchObject({ ...settings, stop: ['END'] })
  expect(passedOver(answer)).toBeUndefined()
  await openai().completions.create({ model: name, prompt: 'an action series', ...settings, stop: 'END' })
  expect(sent()).toMatchObject({ ...settings, stop: ['END'] })
  await complete(name, IDLE)
  await respond(name, { temperature: 0.3, top_p: 1, truncation: 'disabled', include: [], metadata: {} })
  expect(sent()).toMatchObject({ temperature: 0.3 })
})

test('what is passed over is named, in answers and in streams', async () => {
  const names = Object.keys(UNUSED).toSorted()
  expect(passedOver(await complete(easy, UNUSED))?.toSorted()).toEqual(names)
  const body = { model: easy, messages, ...UNUSED, stream: true as const }
  let context: { ignored?: string[] } | undefined
  for await (const { choices } of await openai().chat.completions.create(body)) {
    context = (choices[0]?.delta as { context?: typeof context } | undefined)?.context ?? context
  }
  expect(context?.ignored?.toSorted()).toEqual(names)
  const labelled = { reasoning: { effort: 'low', summary: 'auto' }, text: { verbosity: 'low' }, foo: 1 }
  expect(await respond(easy, { ...labelled, instructions: 'Rhyme.', top_logprobs: 2 })).toMatchObject({
    context: {
      ignored: expect.arrayContaining([
        'foo',
        'instructions',
        'reasoning.effort',
        'text.verbosity',
        'top_logprobs',
      ]),
    },
  })
  const text = await openai().completions.create({ model: easy, prompt: 'q', user: 'ann', logprobs: 2 })
  expect(text).toMatchObject({ context: { ignored: ['logprobs'] } })
})

test.each(Object.keys(UNUSED))('a strict assistant refuses `%s` by its name', async (name) => {
  const given = { [name]: UNUSED[name as keyof typeof UNUSED] }
  const refusal = { status: 400, param: name, code: 'unsupported_parameter', type: 'invalid_request_error' }
  llm.forget()
  await expect(complete(strict, given)).rejects.toMatchObject(refusal)
  await expect(complete(strict, { ...given, stream: true })).rejects.toMatchObject(refusal)
  expect(llm.calls()).toEqual([])
})

test('a strict assistant refuses what only the admin key may do', async () => {
  const system = [{ role: 'system' as const, content: 'Rhyme.' }, ...messages]
  await expect(openai().chat.completions.create({ model: strict, messages: system })).rejects.toMatchObject({
    status: 400,
    param: 'instructions',
  })
  await expect(respond(strict, { max_output_tokens: 5 })).rejects.toMatchObject({
    param: 'max_output_tokens',
  })
  await expect(respond(strict, { metadata: { a: 'b' } })).rejects.toMatchObject({ param: 'metadata' })
  const own = { model: strict, messages: system, max_tokens: 50, reasoning_effort: 'low' as const }
  await openai(KEY).chat.completions.create(own)
  expect(sent()).toMatchObject({ max_tokens: 50, reasoning_effort: 'low' })
  const named = {
    metadata: { conversation_id: crypto.randomUUID() },
    stream_options: { include_usage: true },
  }
  await complete(strict, { ...named, stream: true, user: 'ann', store: true })
})

test('a setting that shapes the answer is refused where the model cannot keep to it', async () => {
  const own = { model: await createModel({ model_name: 'local/extractive' }), collections: [shows] }
  const local = await createAssistant(own)
  for (const given of [{ stop: 'x' }, { frequency_penalty: 1 }, { presence_penalty: 1 }]) {
    const [param] = Object.keys(given)
    await expect(complete(local, given)).rejects.toMatchObject({
      status: 400,
      param,
      code: 'unsupported_parameter',
    })
  }
  const usual = { temperature: 0.5, frequency_penalty: 0, presence_penalty: 0, stop: [] }
  expect(passedOver(await complete(local, usual))).toEqual(['temperature'])
  const { temperature: _, ...idle } = usual
  const demanding = await createAssistant({ ...own, strict: true })
  expect(passedOver(await complete(demanding, idle))).toBeUndefined()
})

test('neither a background nor a stored prompt is promised', async () => {
  for (const name of [easy, strict]) {
    await expect(respond(name, { background: true })).rejects.toMatchObject({ param: 'background' })
    await expect(respond(name, { prompt: { id: 'pmpt_1' } })).rejects.toMatchObject({ param: 'prompt' })
    await expect(complete(name, { modalities: ['text', 'audio'] })).rejects.toThrow(OpenAI.BadRequestError)
    await respond(name, { background: false, prompt: null })
  }
})
