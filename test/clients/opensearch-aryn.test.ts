/** What the scripts and pages of Aryn and Sycamore call, in their order and with their bodies. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY, request, unique, url } from './harness'
import { call, connectorOf } from './opensearch-api'
import { type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
let llm: ScriptedLlm
beforeAll(async () => {
  llm = await startScriptedLlm()
  llm.script.body = says('A heron. [1]')
})
afterAll(() => llm.stop())

type Item = Record<string, unknown>

/** An index whose documents Parley embeds. */
async function pages(): Promise<string> {
  const name = unique('aryn')
  const { status, text } = await request('POST', '/collections', {
    name,
    enable_nested_fields: true,
    fields: [
      { name: 'text_representation', type: 'string' },
      { name: 'properties', type: 'object', optional: true },
      {
        name: 'embedding',
        type: 'float[]',
        embed: { from: ['text_representation'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
      },
    ],
  })
  if (status !== 201) throw new Error(text)
  const texts = ['A heron waits for fish.', 'A violin has four strings.', 'Bread rises with yeast.']
  for (const [at, text_representation] of texts.entries()) {
    const body = { text_representation, properties: { title: `page ${at}`, path: `/p${at}` } }
    await call('PUT', `/${name}/_doc/${at}`, body)
  }
  return name
}

/** Sets the server up as the scripts of Aryn's images do. @returns ids */
async function setUp(): Promise<{ embedding: string; pipeline: string }> {
  const { body: info } = await call('GET', '/')
  expect(info.name).toBe('parley')
  const settings = {
    memory_feature_enabled: 'true',
    rag_pipeline_feature_enabled: 'true',
    only_run_on_ml_node: 'false',
    allow_registering_model_via_url: 'true',
  }
  const { body: set } = await call('PUT', '/_cluster/settings', {
    persistent: { plugins: { ml_commons: settings } },
  })
  expect(set).toEqual({
    acknowledged: true,
    persistent: { plugins: { ml_commons: settings } },
    transient: {},
  })
  const name = unique('models')
  await call('POST', `${ML}/model_groups/_register`, { name, description: 'a group' })
  const { body: again } = await call('POST', `${ML}/model_groups/_register`, { name, description: 'a group' })
  const group = /model group with ID: ([\w-]+)/.exec(again.error.reason)?.[1]
  const { body: local } = await call('POST', `${ML}/models/_register`, {
    name: 'all-MiniLM-L6-v2',
    version: '1.0.0',
    description: 'test model',
    model_format: 'TORCH_SCRIPT',
    model_group_id: group,
    model_content_hash_value: 'c15f0d2e62d872be5b5bc6c84d2e0f4921541e29fefbef51d59cc10a8ae30e0f',
    model_config: { model_type: 'bert', embedding_dimension: 384, framework_type: 'sentence_transformers' },
    url: 'https://artifacts.opensearch.org/models/ml-models/all-MiniLM-L6-v2.zip',
  })
  const { body: task } = await call('GET', `${ML}/tasks/${local.task_id}`)
  expect(task).toMatchObject({ state: 'COMPLETED', function_name: 'TEXT_EMBEDDING' })
  await call('POST', `${ML}/models/${task.model_id}/_deploy`)
  const { body: made } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
  const { body: remote } = await call('POST', `${ML}/models/_register?deploy=true`, {
    name: 'openai',
    function_name: 'remote',
    model_group_id: group,
    connector_id: made.connector_id,
  })
  const normalization = {
    'normalization-processor': {
      normalization: { technique: 'min_max' },
      combination: { technique: 'arithmetic_mean', parameters: { weights: [0.111, 0.889] } },
    },
  }
  const rag = {
    tag: 'rag',
    description: 'Answers',
    model_id: remote.model_id,
    context_field_list: ['text_representation'],
  }
  const pipeline = unique('hybrid_rag_pipeline')
  const { status } = await call('PUT', `/_search/pipeline/${pipeline}`, {
    description: 'Hybrid RAG',
    phase_results_processors: [normalization],
    response_processors: [{ retrieval_augmented_generation: rag }],
  })
  expect(status).toBe(200)
  return { embedding: task.model_id, pipeline }
}

test('a page lists what there is, asks, notes what was asked, and reads the history', async () => {
  const { embedding, pipeline } = await setUp()
  const index = await pages()
  const { body: indices } = await call('GET', '/_aliases?pretty')
  expect(Object.keys(indices)).toContain(index)
  const { body: models } = await call('POST', `${ML}/models/_search`, {
    query: {
      bool: {
        must_not: { exists: { field: 'chunk_number' } },
        must: [
          { term: { algorithm: 'TEXT_EMBEDDING' } },
          { term: { model_state: 'DEPLOYED' } },
          { match_phrase: { description: 'test model' } },
        ],
      },
    },
    size: 100,
  })
  expect(models.hits.hits.map(({ _id }: Item) => _id)).toContain(embedding)
  const { body: made } = await call('POST', `${ML}/memory/`, { name: 'birds' })
  const { body: listed } = await call('GET', `${ML}/memory/`)
  expect(listed.memories[0]).toMatchObject({ memory_id: made.memory_id, name: 'birds' })
  const query = {
    _source: ['properties', 'text_representation', 'bbox'],
    query: {
      hybrid: {
        queries: [
          {
            bool: {
              must: [
                { exists: { field: 'text_representation' } },
                { match: { text_representation: 'Which bird eats fish?' } },
              ],
              filter: [{ exists: { field: 'properties.path' } }],
            },
          },
          { neural: { embedding: { query_text: 'Which bird eats fish?', k: 100, model_id: embedding } } },
        ],
      },
    },
    size: 20,
    ext: {
      generative_qa_parameters: {
        llm_question: 'Which bird eats fish?',
        context_size: 5,
        llm_model: 'gpt-4',
        memory_id: made.memory_id,
        timeout: 60,
      },
    },
  }
  const { status, body } = await call('POST', `/${index}/_search/?search_pipeline=${pipeline}`, query)
  expect([status, body.hits?.hits[0]?._source]).toEqual([
    200,
    { text_representation: 'A heron waits for fish.', properties: { title: 'page 0', path: '/p0' } },
  ])
  const { answer, interaction_id } = body.ext.retrieval_augmented_generation
  expect(answer).toBe('A heron. [1]')
  const noted = await call('PUT', `${ML}/memory/message/${interaction_id}`, {
    additional_info: { queryUsed: query },
  })
  expect(noted.status).toBe(200)
  const { body: history } = await call('POST', `${ML}/memory/${made.memory_id}/_search`, {
    query: { match_all: {} },
    sort: [{ create_time: { order: 'DESC' } }],
  })
  expect(history.hits.hits).toMatchObject([
    {
      _id: interaction_id,
      _source: { input: 'Which bird eats fish?', response: answer, additional_info: { queryUsed: query } },
    },
  ])
})

test('a page keeps feedback, and counts by facets', async () => {
  const feedback = unique('feedback')
  expect(
    (await call('PUT', `/${feedback}`, { mappings: { properties: { comment: { type: 'text' } } } })).status,
  ).toBe(200)
  const update = { doc: { thumb: 'up', comment: 'good' }, doc_as_upsert: true }
  expect((await call('POST', `/${feedback}/_update/m1`, update)).status).toBe(201)
  expect((await call('GET', `/${feedback}/_doc/m1`)).body).toMatchObject({ found: true, _source: update.doc })
  expect(await call('GET', `/${feedback}/_doc/m2`)).toMatchObject({ status: 404, body: { found: false } })
  const { body } = await call('POST', `/${feedback}/_search`, {
    size: 0,
    query: { match_all: {} },
    aggs: {
      thumbs: { terms: { field: 'thumb.keyword' } },
      many: { cardinality: { field: 'thumb.keyword' } },
    },
  })
  expect(body.aggregations).toMatchObject({
    thumbs: { buckets: [{ key: 'up', doc_count: 1 }] },
    many: { value: 1 },
  })
})

test('a chain keeps its messages: gzip, unknown keys, pages until there is no token', async () => {
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${url}${ML}/memory/conversation${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        authorization: `Basic ${btoa(`admin:${KEY}`)}`,
      },
      body: gzipSync(JSON.stringify(body)),
    })
    return (await response.json()) as { conversation_id: string }
  }
  const { conversation_id: id } = await post('', { name: 'chain' })
  const added = {
    input: 'hello',
    prompt: 'a prompt',
    response: '',
    origin: 'chain',
    additional_info: JSON.stringify({ type: 'human' }),
  }
  for (let at = 0; at < 3; at++) await post(`/${id}`, { ...added, input: `hello ${at}` })
  const { body } = await call('GET', `${ML}/memory/conversation/${id}?max_results=100`)
  expect(body.next_token).toBeUndefined()
  expect(body.interactions.map(({ input }: Item) => input).reverse()).toEqual([
    'hello 0',
    'hello 1',
    'hello 2',
  ])
  expect(JSON.parse(body.interactions[0].additional_info)).toEqual({ type: 'human' })
})
