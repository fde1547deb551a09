/**
 * A store that nobody has used yet: what each request finds there, step by step as it fills. Then settings of the whole cluster,
 * which other tests would be met by.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { turnTo, unique } from './harness'
import { call, connect, connectorOf, presidents, ragPipeline, remoteModel, userKey } from './opensearch-api'
import { OwnParley } from './own-parley'
import { type ScriptedLlm, startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`
const GEN1 = `${MEMORY}/conversation`

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

const reply = async (method: string, path: string, body?: unknown): Promise<unknown> => {
  const { status, body: answer } = await call(method, path, body)
  return [status, answer.error === undefined ? answer : [answer.error.type, answer.error.reason]]
}

const noIndex = (index: string, message: string) => [
  404,
  ['index_not_found_exception', `no such index [${index}] and ${message}`],
]
const META = '.plugins-ml-memory-meta'
const MESSAGES = '.plugins-ml-memory-message'

test('A4, A12, A16: the first generation finds empty lists, and nothing to delete', async () => {
  expect(await reply('GET', GEN1)).toEqual([200, { conversations: [] }])
  expect(await reply('GET', `${GEN1}/coffee`)).toEqual([200, { interactions: [] }])
  expect(await reply('DELETE', `${GEN1}/happybirthday`)).toEqual([200, { success: true }])
})

test('B24: so does the second, by the typed client', async () => {
  const { ml } = connect()
  expect((await ml.getAllMemories()).body).toEqual({ memories: [] })
  expect((await ml.getAllMessages({ memory_id: 'coffee' })).body).toEqual({ messages: [] })
  expect((await ml.deleteMemory({ memory_id: 'happybirthday' })).body).toEqual({ success: true })
  expect((await ml.getMessageTraces({ message_id: 'coffee' })).body).toEqual({ traces: [] })
})

test('a memory, or a message, that is asked for by its id has no index', async () => {
  const missing = 'since the memory index does not exist'
  expect(await reply('GET', `${MEMORY}/coffee`)).toEqual(noIndex(META, `cannot get memory ${missing}`))
  expect(await reply('PUT', `${MEMORY}/coffee`, { name: 'x' })).toEqual(
    noIndex(META, `cannot update memory ${missing}`),
  )
  expect(await reply('GET', `${MEMORY}/message/coffee`)).toEqual(
    noIndex(MESSAGES, 'cannot get message since the messages index does not exist'),
  )
  expect(await reply('PUT', `${MEMORY}/message/coffee`, { response: 'x' })).toEqual(
    noIndex(MESSAGES, 'cannot update message since the message index does not exist'),
  )
})

test('searches find nothing, and a message for an unknown memory is refused', async () => {
  expect((await connect().ml.searchMemory({ body: {} })).body).toMatchObject({ hits: { hits: [] } })
  expect(await reply('POST', `${MEMORY}/coffee/messages`, { input: 'x' })).toEqual([
    404,
    ['resource_not_found_exception', 'Memory [coffee] not found'],
  ])
})

test('K11: connectors, models, groups and tasks are searched before there are any, and after', async () => {
  const found = async () => {
    const kinds = ['connectors', 'models', 'model_groups', 'tasks']
    const everything = { query: { match_all: {} }, size: 1000 }
    const replies = await Promise.all(kinds.map((kind) => call('POST', `${ML}/${kind}/_search`, everything)))
    return replies.map(({ status, body }) => [status, body.hits?.total.value])
  }
  expect(await found()).toEqual(Array(4).fill([200, 0]))
  const { body: group } = await call('POST', `${ML}/model_groups/_register`, { name: 'group' })
  const { body: model } = await call('POST', `${ML}/models/_register`, {
    name: 'chat',
    function_name: 'remote',
    model_group_id: group.model_group_id,
    connector: connectorOf({ host: '127.0.0.1:9' }),
  })
  expect(model).toMatchObject({ status: 'CREATED', task_id: expect.any(String) })
  expect(await found()).toEqual(Array(4).fill([200, 1]))
})

test('P2: a list of pipelines is a 404 without a body while there are none', async () => {
  const { searchPipeline } = connect()
  await expect(searchPipeline.get({})).rejects.toMatchObject({ statusCode: 404, meta: { body: {} } })
  expect(await reply('DELETE', '/_search/pipeline/*')).toEqual([200, { acknowledged: true }])
})

test('with a first memory, unknown ones are not found; messages are none until the first one', async () => {
  const { body: made } = await call('POST', MEMORY, { name: 'first' })
  const notFound = (what: string) => [404, ['resource_not_found_exception', `${what} not found`]]
  expect(await reply('GET', `${MEMORY}/coffee`)).toEqual(notFound('Memory [coffee]'))
  expect(await reply('DELETE', `${MEMORY}/coffee`)).toEqual(notFound('Memory [coffee]'))
  expect(await reply('DELETE', `${GEN1}/coffee`)).toEqual(notFound('Conversation [coffee]'))
  expect(await reply('GET', `${MEMORY}/coffee/messages`)).toEqual([200, { messages: [] }])
  expect(await reply('GET', `${MEMORY}/${made.memory_id}/messages`)).toEqual([200, { messages: [] }])
  await call('POST', `${MEMORY}/${made.memory_id}/messages`, { input: 'hello' })
  expect(await reply('GET', `${MEMORY}/coffee/messages`)).toEqual(notFound('Memory [coffee]'))
  expect(await reply('GET', `${GEN1}/coffee`)).toEqual(notFound('Conversation [coffee]'))
  expect(await reply('GET', `${MEMORY}/message/coffee`)).toEqual(notFound('Message [coffee]'))
  expect(await reply('GET', `${MEMORY}/message/coffee/traces`)).toEqual(notFound('Message [coffee]'))
  expect(await reply('PUT', `${MEMORY}/message/coffee`, { response: 'x' })).toEqual(
    notFound('message [coffee]'),
  )
})

test('it stays a store that was used when all of it is deleted', async () => {
  const { body } = await call('GET', MEMORY)
  for (const { memory_id } of body.memories) await call('DELETE', `${MEMORY}/${memory_id}`)
  expect(await reply('GET', MEMORY)).toEqual([200, { memories: [] }])
  expect(await reply('GET', `${GEN1}/coffee`)).toEqual([
    404,
    ['resource_not_found_exception', 'Conversation [coffee] not found'],
  ])
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
  // OpenSearch lists traces in any case.
  const traces = await call('GET', `${MEMORY}/message/${said.message_id}/traces`, undefined, key)
  await set(setting, null)
  expect([traces.status, traces.body]).toEqual([200, { traces: [] }])
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
