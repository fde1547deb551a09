/** Agents of OpenSearch's ML plugin as its documentation registers and executes them, with a provider that answers by a script. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of agents look like this
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request, unique } from './harness'
import { call, connectorOf, remoteModel } from './opensearch-api'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
const AGENTS = `${ML}/agents`
const TOWNS = {
  6: 'The metro area population of Seattle in 2023 is 3,519,000. In 2021 it was 3,461,000.',
  2: 'The metro area population of New York City in 2023 is 18,937,000.',
  5: 'The metro area population of Austin in 2023 is 2,228,000.',
}
const QUESTION = 'the population of Seattle in 2023'

let llm: ScriptedLlm
let embedder: string
/** takes `prompt` */
let prompted: string
/** takes `messages` */
let chat: string
let index: string
/** what the provider says next, and then its last again */
let lines: string[] = []

// biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
async function ok(method: string, path: string, body?: unknown, key?: string): Promise<any> {
  const reply = await call(method, path, body, key)
  if (reply.status > 201) throw new Error(JSON.stringify(reply.body))
  return reply.body
}

const register = async (agent: Record<string, unknown>): Promise<string> =>
  (await ok('POST', `${AGENTS}/_register`, { name: unique('agent'), description: 'a test', ...agent }))
    .agent_id

/** What an agent's execution has, each output by its name. */
async function execute(id: string, parameters: Record<string, unknown>, key?: string) {
  const { inference_results } = await ok('POST', `${AGENTS}/${id}/_execute`, { parameters }, key)
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const output: any[] = inference_results[0].output
  return Object.fromEntries(output.map(({ name, result, dataAsMap }) => [name, result ?? dataAsMap]))
}

const searching = (more: Record<string, unknown> = {}) => ({
  type: 'VectorDBTool',
  ...more,
  parameters: {
    model_id: embedder,
    index,
    embedding_field: 'embedding',
    source_field: ['text'],
    input: '${parameters.question}',
  },
})

beforeAll(async () => {
  llm = await startScriptedLlm()
  Object.defineProperty(llm, 'script', {
    get: () => ({
      status: 200,
      body: says((lines.length > 1 ? lines.shift() : lines[0]) ?? 'An answer.'),
      delayMs: 0,
    }),
  })
  chat = await remoteModel(llm)
  const { actions } = connectorOf(llm)
  const request_body =
    '{ "model": "${parameters.model}", "messages": [{ "role": "user", "content": "${parameters.prompt}" }] }'
  prompted = await remoteModel(llm, { actions: [{ ...actions[0], request_body }] })
  const registered = await ok('POST', `${ML}/models/_register?deploy=true`, {
    name: 'huggingface/sentence-transformers/all-MiniLM-L12-v2',
    version: '1.0.2',
    model_format: 'TORCH_SCRIPT',
  })
  embedder = (await ok('GET', `${ML}/tasks/${registered.task_id}`)).model_id
  const pipeline = unique('test-pipeline-local-model')
  await ok('PUT', `/_ingest/pipeline/${pipeline}`, {
    processors: [{ text_embedding: { model_id: embedder, field_map: { text: 'embedding' } } }],
  })
  index = unique('my_test_data')
  await ok('PUT', `/${index}`, {
    mappings: {
      properties: { text: { type: 'text' }, embedding: { type: 'knn_vector', dimension: 384 } },
    },
    settings: { index: { 'knn.space_type': 'cosinesimil', default_pipeline: pipeline, knn: 'true' } },
  })
  for (const [id, text] of Object.entries(TOWNS))
    await ok('PUT', `/${index}/_doc/${id}?refresh=true`, { text })
})
afterAll(() => llm.stop())

/** https://docs.opensearch.org/latest/ml-commons-plugin/agents-tools/agents-tools-tutorial/ */
test('a flow agent hands what it found to its model', async () => {
  const prompt = 'Context:\n${parameters.VectorDBTool.output}\nHuman:${parameters.question}\nAssistant:'
  const answering = { type: 'MLModelTool', parameters: { model_id: prompted, prompt } }
  const id = await register({ type: 'flow', tools: [searching(), answering] })
  lines = ['58,000 more.']
  llm.sent.length = 0
  expect(await execute(id, { question: `${QUESTION} "\${parameters.model}"` })).toEqual({
    MLModelTool: '58,000 more.',
  })
  const sent = promptOf(llm.sent[0]!)
  expect(sent).toContain(`"_index":"${index}"`)
  expect(sent).toContain('3,519,000')
  // What a question says is no placeholder.
  expect(sent).toContain('Human:the population of Seattle in 2023 "${parameters.model}"')
  expect(await execute(id, { question: QUESTION, verbose: true })).toMatchObject({
    VectorDBTool: expect.stringContaining('3,519,000'),
  })

  const shown = await ok('GET', `${AGENTS}/${id}`)
  expect(shown).toMatchObject({ type: 'flow', tools: [{ type: 'VectorDBTool' }, answering] })
  expect(Date.now() - shown.created_time).toBeLessThan(60_000)
  await ok('PUT', `${AGENTS}/${id}`, { description: 'another', tools: [searching({ name: 'towns' })] })
  const { towns: _, ...only } = await execute(id, { question: QUESTION, 'towns.doc_size': '1' })
  expect(
    only.response
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line)),
  ).toEqual([{ _index: index, _source: { text: TOWNS[6] }, _id: '6', _score: expect.any(Number) }])
  const { hits } = await ok('POST', `${AGENTS}/_search`, { query: { match: { description: 'another' } } })
  expect(hits.hits).toEqual([expect.objectContaining({ _index: '.plugins-ml-agent', _id: id })])
  expect(await ok('DELETE', `${AGENTS}/${id}`)).toMatchObject({ result: 'deleted' })
  expect((await call('POST', `${AGENTS}/${id}/_execute`, { parameters: {} })).status).toBe(404)
})

test('other tools search by a query, list indices and show mappings', async () => {
  const search = await register({ type: 'flow', tools: [{ type: 'SearchIndexTool' }] })
  const input = { index, query: { size: 1, _source: 'text', query: { match: { text: 'Austin' } } } }
  expect((await execute(search, { input })).response).toContain(`"_source":{"text":"${TOWNS[5]}"}`)
  const none = { index, query: { query: { match: { text: 'Paris' } } } }
  expect((await execute(search, { input: none })).response).toBe('Can not get any match from search result.')
  const list = await register({ type: 'flow', tools: [{ type: 'ListIndexTool', parameters: {} }] })
  expect((await execute(list, { question: 'How many?' })).response).toMatch(
    new RegExp(`^row,health,status,index,.*\\n[^]*,green,open,${index},`),
  )
  const mapping = await register({ type: 'flow', tools: [{ type: 'IndexMappingTool' }] })
  expect(JSON.parse((await execute(mapping, { index: [index] })).response)).toMatchObject({
    [index]: { mappings: { properties: { text: { type: 'text' } } } },
  })
  const rag = { ...searching().parameters, prompt: '${parameters.output_field} ${parameters.question}' }
  const both = { ...rag, embedding_model_id: embedder, inference_model_id: prompted }
  const answering = await register({ type: 'flow', tools: [{ type: 'RAGTool', parameters: both }] })
  lines = ['3,519,000.']
  expect(await execute(answering, { question: QUESTION })).toEqual({ response: '3,519,000.' })
  expect(promptOf(llm.sent.at(-1)!)).toContain(`_id: 6\n_source: {"text":"${TOWNS[6]}"}\n`)
  expect(
    (await execute(answering, { question: QUESTION, enable_Content_Generation: 'false' })).response,
  ).toContain('"_id":"6"')
})

test('a conversational flow agent remembers', async () => {
  const prompt = '${parameters.chat_history:-}\nHuman:${parameters.question}'
  const id = await register({
    type: 'conversational_flow',
    app_type: 'rag',
    memory: { type: 'conversation_index' },
    tools: [
      searching({ name: 'towns' }),
      { type: 'MLModelTool', name: 'model', parameters: { model_id: prompted, prompt } },
    ],
  })
  lines = ['3,519,000.', 'Austin is smaller.']
  const first = await execute(id, { question: QUESTION })
  expect(first).toMatchObject({ model: '3,519,000.', memory_id: expect.any(String) })
  const second = await execute(id, { question: 'And Austin?', memory_id: first.memory_id })
  expect(second).toMatchObject({ model: 'Austin is smaller.', memory_id: first.memory_id })
  expect(promptOf(llm.sent.at(-1)!)).toContain(`Human: ${QUESTION}\nAssistant: 3,519,000.\n`)
  const { messages } = await ok('GET', `${ML}/memory/${first.memory_id}/messages`)
  expect(messages.map(({ input, response }: Record<string, string>) => [input, response])).toEqual([
    [QUESTION, '3,519,000.'],
    ['And Austin?', 'Austin is smaller.'],
  ])
  const { traces } = await ok('GET', `${ML}/memory/message/${first.parent_interaction_id}/traces`)
  expect(traces.map(({ origin }: { origin: string }) => origin)).toEqual(['towns', 'model'])
})

test("a conversational agent's model searches when it needs to", async () => {
  const id = await register({
    type: 'conversational',
    llm: {
      model_id: chat,
      parameters: { max_iteration: 5, response_filter: '$.choices[0].message.content' },
    },
    memory: { type: 'conversation_index' },
    app_type: 'my chatbot',
    tools: [searching({ name: 'towns', description: 'Finds what is known of towns.' })],
  })
  lines = [
    '<call>{"name": "towns", "arguments": {"query": "population of Austin"}}</call>',
    'Seattle is larger.',
  ]
  llm.sent.length = 0
  const first = await execute(id, { question: 'Is Seattle larger than Austin?', verbose: 'true' })
  expect(first.response).toEqual({ response: 'Seattle is larger.', additional_info: {} })
  const [asked, told] = llm.sent.map(promptOf)
  expect(asked).toContain('Finds what is known of towns.')
  expect(told).toContain('<result>')
  const { messages } = await ok('GET', `${ML}/memory/${first.memory_id}/messages`)
  expect(messages).toMatchObject([
    { message_id: first.parent_interaction_id, response: 'Seattle is larger.' },
  ])
  expect(await ok('GET', `${ML}/memory/${first.memory_id}`)).toMatchObject({
    name: 'Is Seattle larger than Austin?',
  })
  lines = ['Which of them?', 'Seattle.']
  const second = await execute(id, { question: 'Which one?', memory_id: first.memory_id })
  expect(second.memory_id).toBe(first.memory_id)
  expect(llm.sent.map(promptOf).join()).toContain('Seattle is larger.')

  const forgetful = await register({ type: 'conversational', llm: { model_id: chat }, tools: [searching()] })
  lines = ['3,519,000.']
  expect(await execute(forgetful, { question: QUESTION })).toEqual({
    response: { response: '3,519,000.', additional_info: {} },
  })
  llm.sent.length = 0
  await execute(forgetful, { question: QUESTION, index: `${index.slice(0, -1)}*` })
  expect(promptOf(llm.sent[0]!)).toContain('3,519,000')
  const nowhere = { parameters: { question: QUESTION, index: `${index},nowhere` } }
  const { status, body } = await call('POST', `${AGENTS}/${forgetful}/_execute`, nowhere)
  expect([status, body.error.reason]).toEqual([404, 'no such index [nowhere]'])
  const without = await register({ type: 'conversational', llm: { model_id: chat } })
  expect(await execute(without, { question: QUESTION })).toMatchObject({
    response: { response: '3,519,000.' },
  })
})

test('a key executes no more than it may do itself', async () => {
  const id = await register({ type: 'flow', tools: [searching()] })
  const keyFor = async (collections: string[], actions: string[]): Promise<string> =>
    (await request('POST', '/keys', { description: unique('agents'), actions, collections })).body.value
  const other = await keyFor(['other'], ['conversations/models:create', 'documents:search'])
  const own = await keyFor([index], ['conversations/models:create', 'documents:search'])
  const searcher = await keyFor([index], ['documents:search'])
  const asked = { parameters: { question: QUESTION } }
  expect((await execute(id, asked.parameters, own)).response).toContain('3,519,000')
  const refused = await call('POST', `${AGENTS}/${id}/_execute`, asked, other)
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([
    401,
    expect.not.stringContaining('3,519,000'),
  ])
  expect((await call('POST', `${AGENTS}/${id}/_execute`, asked, searcher)).status).toBe(401)
  // A pattern finds what the key may search.
  const talker = await register({ type: 'conversational', llm: { model_id: chat }, tools: [searching()] })
  for (const [key, told] of [
    [own, true],
    [other, false],
  ] as const) {
    llm.sent.length = 0
    lines = ['Yes.']
    await execute(talker, { question: QUESTION, index: `${index.slice(0, -1)}*` }, key)
    expect(promptOf(llm.sent[0]!).includes('3,519,000')).toBe(told)
  }
})

test.each([
  ['no name', { name: ' ' }, 'Agent name cannot be empty'],
  ['no type', { type: undefined }, "Agent type can't be null"],
  ['an unknown type', { type: 'wise' }, 'wise is not a valid Agent Type'],
  ['a planner', { type: 'plan_execute_and_reflect' }, 'take [conversational]'],
  ['no model', { type: 'conversational' }, 'We need model information for the conversational agent type'],
  ['another memory', { memory: { type: 'agentic_memory' } }, 'Invalid memory type: agentic_memory'],
  ['no tools', { tools: [] }, 'no tool configured'],
  [
    'two of a name',
    { tools: [{ type: 'ListIndexTool' }, { type: 'ListIndexTool' }] },
    'Duplicate tool defined',
  ],
  [
    'two that a model would call by one name',
    {
      type: 'conversational',
      llm: { model_id: 'x' },
      tools: ['old towns', 'old_towns'].map((name) => ({ type: 'VectorDBTool', name })),
    },
    'Duplicate tool defined: old_towns',
  ],
  ['an unknown tool', { tools: [{ type: 'PPLTool' }] }, '[PPLTool] of a flow agent'],
  [
    'a tool that is no search',
    { type: 'conversational', llm: { model_id: 'x' }, tools: [{ type: 'MLModelTool' }] },
    '[MLModelTool]',
  ],
  ['an unknown key', { wit: 1 }, '[wit] of an agent'],
])('an agent with %s is refused', async (_, changes, reason) => {
  const agent = { name: 'agent', type: 'flow', tools: [{ type: 'ListIndexTool' }], ...changes }
  const { status, body } = await call('POST', `${AGENTS}/_register`, agent)
  expect([status, body.error.reason]).toEqual([400, expect.stringContaining(reason)])
})

test('what cannot run says what is missing', async () => {
  const id = await register({ type: 'flow', tools: [searching()] })
  const reasonOf = async (agent: string, parameters: Record<string, unknown>) =>
    (await call('POST', `${AGENTS}/${agent}/_execute`, { parameters })).body.error.reason
  expect(await reasonOf(id, {})).toContain('placeholder not filled in payload: question')
  expect(await reasonOf(id, { question: ' ' })).toBe('[input] is null or empty')
  expect(await reasonOf(id, { question: 'x', index: 'nowhere' })).toContain('nowhere')
  expect(await reasonOf(id, { question: 'x', k: 'many' })).toContain('many')
  const lost = await register({
    type: 'flow',
    tools: [{ type: 'MLModelTool', parameters: { model_id: 'nobody', prompt: 'x' } }],
  })
  expect(await reasonOf(lost, {})).toContain('nobody')
  const large = unique('large')
  await ok('PUT', `/${large}/_doc/1`, { text: 'x'.repeat(1_500_000) })
  const often = Array.from({ length: 6 }, (_, at) => ({ type: 'SearchIndexTool', name: `search${at}` }))
  const long = await register({ type: 'flow', tools: often })
  const input = JSON.stringify({ index: large, query: { query: { match_all: {} } } })
  expect(await reasonOf(long, { input })).toContain('The tools reply more than 8000000 characters')
  const strange = await register({ type: 'conversational', llm: { model_id: 'nobody' } })
  expect(await reasonOf(strange, { question: 'x' })).toContain('nobody')
})
