/** What an answered search may spend and say: guardrails, keys that fix a model, and who pays for a rewriting. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { client, createModel, KEY, request, unique, url } from './harness'
import { call, connectorOf, presidents, ragPipeline, remoteModel } from './opensearch-api'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

const MEMORY = '/_plugins/_ml/memory'
const LINE = 'Speak like a pirate.'

let llm: ScriptedLlm
let index: string
beforeAll(async () => {
  llm = await startScriptedLlm()
  index = await presidents()
})
afterAll(() => llm.stop())
beforeEach(() => {
  llm.sent.length = 0
  llm.script = { status: 200, body: says('SAFE'), delayMs: 0 }
})

const processors = (model_id: string, more: Record<string, unknown> = {}) => ({
  response_processors: [
    { retrieval_augmented_generation: { model_id, context_field_list: ['text'], ...more } },
  ],
})

/** @param pipeline its name, or a pipeline of the request's own */
const search = (pipeline: unknown, parameters: Record<string, unknown> = {}, key = KEY) =>
  call(
    'POST',
    `/${index}/_search`,
    {
      query: { match: { text: 'president' } },
      ext: { generative_qa_parameters: { llm_question: 'who is lincoln', ...parameters } },
      search_pipeline: pipeline,
    },
    key,
  )

const openModel = (more: Record<string, unknown> = {}) =>
  createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url, ...more })

const keyFor = async (more: Record<string, unknown> = {}): Promise<string> => {
  const { body } = await request('POST', '/keys', {
    description: unique('key'),
    actions: ['documents:search'],
    collections: [index],
    ...more,
  })
  return body.value
}

const usageOf = async (model: string) => {
  const { body } = await request('GET', `/usage?model=${model}`)
  const rows = body.usage as Record<string, unknown>[]
  return rows.map(({ turns, input_tokens, output_tokens }) => ({ turns, input_tokens, output_tokens }))
}

test('a guardrail judges the prompts of a pipeline that the request brings', async () => {
  const model = await openModel({ input_guardrail_prompt: 'Judge.' })
  await search(await ragPipeline(model, { system_prompt: LINE }))
  expect(promptOf(llm.sent[0]!)).not.toContain(LINE)
  for (const own of [{ system_prompt: LINE }, { user_instructions: LINE }]) {
    llm.sent.length = 0
    await search(processors(model, own))
    expect(promptOf(llm.sent[0]!)).toContain('Judge.')
    expect(promptOf(llm.sent[0]!)).toContain(LINE)
  }
})

test('a scoped key asks the model and the conversation that it names, and no other', async () => {
  const [model, other] = [await openModel(), await openModel()]
  const parent = await keyFor()
  const scoped = (parameters: Record<string, unknown>) =>
    client()
      .keys()
      .generateScopedSearchKey(parent, parameters as never)
  const key = scoped({ conversation_model_id: model })
  expect((await search(processors(model), {}, key)).status).toBe(200)
  const { status, body } = await search(processors(other), {}, key)
  expect([status, body.error.reason]).toEqual([404, expect.stringContaining(other)])
  const elsewhere = await search(processors(model), {}, scoped({ conversation_id: 'unknown' }))
  expect([elsewhere.status, elsewhere.body.error.type]).toEqual([404, 'resource_not_found_exception'])
})

test('a key that fixes its model takes `llm_model` from a stored pipeline only', async () => {
  const model = await openModel()
  const key = await keyFor({ limits: { conversation_model_id: model } })
  const stored = await ragPipeline(model, { llm_model: 'gpt-4o' })
  expect((await search(stored, {}, key)).status).toBe(200)
  expect(llm.sent.at(-1)!.body.model).toBe('gpt-4o')
  llm.sent.length = 0
  expect((await search(stored, { llm_model: 'gpt-dear' }, key)).status).toBe(404)
  expect((await search(processors(model, { llm_model: 'gpt-dear' }), {}, key)).status).toBe(404)
  expect(llm.sent).toEqual([])
  expect((await search(stored, { llm_model: 'gpt-dear' })).status).toBe(200)
})

test('a memory whose only message says nothing can be asked', async () => {
  const pipeline = await ragPipeline(await remoteModel(llm), { llm_model: 'a' })
  const { body: made } = await call('POST', MEMORY, {})
  const { status: added } = await call('POST', `${MEMORY}/${made.memory_id}/messages`, { origin: 'me' })
  expect(added).toBe(200)
  const { status, body } = await search(pipeline, { memory_id: made.memory_id })
  expect([status, body.ext?.retrieval_augmented_generation.answer]).toEqual([200, 'SAFE'])
})

test('a rewriting is charged once to the model that wrote it, even where nothing follows', async () => {
  const writer = await openModel()
  const model = await openModel({ rewrite_model: writer })
  const pipeline = await ragPipeline(model)
  const { body: made } = await call('POST', MEMORY, {})
  const asking = { memory_id: made.memory_id, rewrite_question: true }
  expect((await search(pipeline, asking)).status).toBe(200)
  await expect.poll(() => usageOf(model)).toMatchObject([{ turns: 1 }])
  expect((await search(pipeline, { ...asking, llm_question: 'and he?' })).status).toBe(200)
  await expect.poll(() => usageOf(model)).toMatchObject([{ turns: 2 }])
  const once = [{ turns: 0, input_tokens: 7, output_tokens: 3 }]
  await expect.poll(() => usageOf(writer)).toEqual(once)
  const failing = await call('POST', `/${index}/_search`, {
    query: { nonsense: {} },
    ext: { generative_qa_parameters: { llm_question: 'and she?', ...asking } },
    search_pipeline: pipeline,
  })
  expect(failing.status).toBe(400)
  await expect.poll(() => usageOf(writer)).toEqual([{ turns: 0, input_tokens: 14, output_tokens: 6 }])
})

test('a provider that cannot rewrite leaves the question as it is', async () => {
  const pipeline = await ragPipeline(await remoteModel(llm), { llm_model: 'a' })
  const { body: made } = await call('POST', MEMORY, {})
  const asking = { memory_id: made.memory_id, rewrite_question: true }
  await search(pipeline, asking)
  llm.script = { status: 400, body: { error: { message: 'out of order' } }, delayMs: 0 }
  const { status, body } = await search(pipeline, { ...asking, llm_question: 'and he?' })
  expect([status, body.hits.hits.length]).toEqual([200, 3])
})

test('`ignore_failure` holds for a stream too', async () => {
  const model = await remoteModel(llm, connectorOf(llm))
  const pipeline = await ragPipeline(model, { llm_model: 'a', ignore_failure: true })
  llm.script = { status: 400, body: { error: { message: 'out of order' } }, delayMs: 0 }
  const response = await fetch(`${url}/${index}/_search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({
      query: { match: { text: 'president' } },
      ext: { generative_qa_parameters: { llm_question: 'who?' } },
      search_pipeline: pipeline,
      stream: true,
    }),
  })
  const text = await response.text()
  expect([...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)).toEqual(['hits', 'done'])
  const { ext, hits } = JSON.parse(/event: done\ndata: (.*)/.exec(text)![1]!)
  expect([ext, hits.hits.length]).toEqual([undefined, 3])
})
