/** Settings of the whole cluster, each tried on a Parley of its own, since other tests would be met by them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { turnTo, unique } from './harness'
import { call, connectorOf, presidents, ragPipeline, remoteModel, userKey } from './opensearch-api'
import { OwnParley } from './own-parley'
import { type ScriptedLlm, startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`

const parley = new OwnParley()
let llm: ScriptedLlm
beforeAll(async () => {
  llm = await startScriptedLlm()
  await parley.boot()
  turnTo(parley.url)
})
afterAll(async () => {
  await parley.remove()
  await llm.stop()
})
beforeEach(() => {
  llm.sent.length = 0
})

const set = (name: string, value: unknown) =>
  call('PUT', '/_cluster/settings', { persistent: { [name]: value } })

test('A23: without its memory, each call says how to switch it on', async () => {
  const setting = 'plugins.ml_commons.memory_feature_enabled'
  const key = await userKey()
  const { body: made } = await call('POST', MEMORY, { name: 'off' }, key)
  const { body: said } = await call('POST', `${MEMORY}/${made.memory_id}/messages`, { input: 'x' }, key)
  await set(setting, 'false')
  const replies = await Promise.all([
    call('GET', `${MEMORY}/conversation`, undefined, key),
    call('POST', `${MEMORY}/conversation`, undefined, key),
    call('DELETE', `${MEMORY}/conversation/${made.memory_id}`, undefined, key),
    call('POST', MEMORY, {}, key),
    call('GET', `${MEMORY}/${made.memory_id}/messages`, undefined, key),
    call('GET', `${MEMORY}/message/${said.message_id}`, undefined, key),
    call('POST', `${MEMORY}/_search`, {}, key),
  ])
  await set(setting, null)
  for (const { status, body } of replies)
    expect([status, body.error.type, body.error.reason]).toEqual([
      500,
      'exception',
      expect.stringContaining(setting),
    ])
  expect((await call('GET', `${MEMORY}/${made.memory_id}`, undefined, key)).status).toBe(200)
})

test('P8: without answers, no pipeline with one is stored or run', async () => {
  const setting = 'plugins.ml_commons.rag_pipeline_feature_enabled'
  const id = await ragPipeline(await remoteModel(llm))
  const index = await presidents()
  const search = () =>
    call('POST', `/${index}/_search?search_pipeline=${id}`, {
      query: { match: { text: 'president' } },
      ext: { generative_qa_parameters: { llm_model: 'gpt-4o', llm_question: 'who is lincoln' } },
    })
  const put = (processors: unknown[]) =>
    call('PUT', `/_search/pipeline/${unique('off')}`, { response_processors: processors })
  const rag = { retrieval_augmented_generation: { model_id: 'm', context_field_list: ['text'] } }
  await call('PUT', '/_cluster/settings', {
    persistent: { plugins: { ml_commons: { rag_pipeline_feature_enabled: 'false' } } },
  })
  const refused = [await search(), await put([rag])]
  expect((await put([])).status).toBe(200)
  const { body } = await set(setting, true)
  expect(body.persistent).toEqual({ plugins: { ml_commons: { rag_pipeline_feature_enabled: 'true' } } })
  for (const { status, body: reply } of refused)
    expect([status, reply.error]).toMatchObject([
      500,
      { type: 'm_l_exception', reason: `${setting} is not enabled.` },
    ])
  expect([(await search()).status, (await put([rag])).status]).toEqual([200, 200])
})

test('K3: trusted endpoints are narrowed, for what is stored already too', async () => {
  const name = 'plugins.ml_commons.trusted_connector_endpoints_regex'
  const model = await remoteModel(llm)
  const predict = () => call('POST', `${ML}/models/${model}/_predict`, { parameters: { messages: [] } })
  expect((await predict()).status).toBe(200)
  expect((await set(name, ['^https://api\\.openai\\.com/.*$'])).status).toBe(200)
  llm.sent.length = 0
  const made = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
  const asked = await predict()
  await set(name, null)
  expect([made.status, asked.status, llm.sent]).toEqual([400, 400, []])
})

test('settings that are changed at once are all kept', async () => {
  const names = ['only_run_on_ml_node', 'allow_registering_model_via_url', 'memory_feature_enabled']
  const full = names.map((name) => `plugins.ml_commons.${name}`)
  for (let round = 0; round < 5; round++) {
    await Promise.all(full.map((name) => set(name, null)))
    await Promise.all(full.map((name) => set(name, 'true')))
    const { body } = await call('GET', '/_cluster/settings?flat_settings=true')
    expect(body.persistent).toMatchObject(Object.fromEntries(full.map((name) => [name, 'true'])))
  }
})
