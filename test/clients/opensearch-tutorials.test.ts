/**
 * OpenSearch's tutorials as its documentation has them, with its own client: neural and hybrid search, conversational
 * search, and text chunking, which says what to do instead.
 */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import { afterAll, beforeAll, expect, test } from 'vitest'
import { unique } from './harness'
import { connect, connectorOf } from './opensearch-api'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

let llm: ScriptedLlm
beforeAll(async () => {
  llm = await startScriptedLlm()
})
afterAll(() => llm.stop())

const client = connect()
// biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
const call = async (method: string, path: string, body?: unknown): Promise<any> =>
  (await client.transport.request({ method, path, body: body as never })).body
const ML = '/_plugins/_ml'

/** https://docs.opensearch.org/2.19/tutorials/vector-search/neural-search-tutorial/ */
test('neural and hybrid search', async () => {
  await client.cluster.putSettings({
    body: {
      persistent: {
        plugins: {
          ml_commons: {
            only_run_on_ml_node: 'false',
            model_access_control_enabled: 'true',
            native_memory_threshold: '99',
          },
        },
      },
    },
  })
  const group = await call('POST', `${ML}/model_groups/_register`, {
    name: unique('NLP_model_group'),
    description: 'A model group for NLP models',
  })
  const registering = await call('POST', `${ML}/models/_register`, {
    name: 'huggingface/sentence-transformers/msmarco-distilbert-base-tas-b',
    version: '1.0.3',
    model_group_id: group.model_group_id,
    model_format: 'TORCH_SCRIPT',
  })
  const { model_id } = await call('GET', `${ML}/tasks/${registering.task_id}`)
  const deploying = await call('POST', `${ML}/models/${model_id}/_deploy`)
  expect(await call('GET', `${ML}/tasks/${deploying.task_id}`)).toMatchObject({ state: 'COMPLETED' })
  expect(await call('GET', `${ML}/models/${model_id}`)).toMatchObject({ model_state: 'DEPLOYED' })
  const tried = await call('POST', `${ML}/_predict/text_embedding/${model_id}`, {
    text_docs: ['today is sunny', 'it rains'],
    return_number: true,
    target_response: ['sentence_embedding'],
  })
  const [{ name, data, shape }] = tried.inference_results[1].output
  expect([name, data.length]).toEqual(['sentence_embedding', shape[0]])

  const ingest = unique('nlp-ingest-pipeline')
  const pipeline = {
    description: 'A text embedding pipeline',
    processors: [{ text_embedding: { model_id, field_map: { text: 'passage_embedding' } } }],
  }
  await client.ingest.putPipeline({ id: ingest, body: pipeline })
  expect((await client.ingest.getPipeline({ id: ingest })).body).toEqual({ [ingest]: pipeline })

  const index = unique('my-nlp-index')
  await client.indices.create({
    index,
    body: {
      settings: { 'index.knn': true, default_pipeline: ingest } as never,
      mappings: {
        properties: {
          id: { type: 'text' },
          passage_embedding: {
            type: 'knn_vector',
            dimension: 768,
            method: { engine: 'lucene', space_type: 'l2', name: 'hnsw', parameters: {} },
          },
          text: { type: 'text', analyzer: 'english', fielddata: true },
        },
      },
    },
  })
  const texts = [
    'A West Virginia university women s basketball team , officials , and a small gathering of fans are in a West Virginia arena .',
    'A wild animal races across an uncut field with a minimal amount of trees .',
    'People line the stands which advertise Freemont s orthopedics , a cowboy rides a light brown bucking bronco .',
    'A man who is riding a wild horse in the rodeo is very near to falling off .',
    'A rodeo cowboy , wearing a cowboy hat , is being thrown off of a wild white horse .',
  ]
  for (const [at, text] of texts.entries())
    await client.index({ index, id: String(at + 1), body: { text, id: `${at}.jpg` } })

  const nearest = { neural: { passage_embedding: { query_text: 'wild west', model_id, k: 5 } } }
  const neural = await client.search({
    index,
    body: { _source: { excludes: ['passage_embedding'] }, query: nearest },
  })
  expect(neural.body.hits.hits).toHaveLength(5)

  const hybrid = unique('nlp-search-pipeline')
  await client.searchPipeline.put({
    id: hybrid,
    body: {
      description: 'Post processor for hybrid search',
      request_processors: [{ neural_query_enricher: { default_model_id: model_id } }],
      phase_results_processors: [
        {
          'normalization-processor': {
            normalization: { technique: 'min_max' },
            combination: { technique: 'arithmetic_mean', parameters: { weights: [0.3, 0.7] } },
          },
        },
      ],
    } as never,
  })
  const words = { match: { text: { query: 'cowboy rodeo bronco' } } }
  const both = await client.search({
    index,
    search_pipeline: hybrid,
    body: { _source: { excludes: ['passage_embedding'] }, query: { hybrid: { queries: [words, nearest] } } },
  } as never)
  const hits = both.body.hits.hits as { _id: string; _score: number; _source: Record<string, unknown> }[]
  expect(hits.map(({ _id }) => _id).sort()).toEqual(['1', '2', '3', '4', '5'])
  expect(hits[0]!._source.text).toContain('cowboy')
  for (const { _score, _source } of hits) {
    expect(_score >= 0 && _score <= 1).toBe(true)
    expect(Object.keys(_source).sort()).toEqual(['id', 'text'])
  }
  await client.ingest.deletePipeline({ id: ingest })
  await expect(client.ingest.getPipeline({ id: ingest })).rejects.toMatchObject({ statusCode: 404 })
})

/** https://docs.opensearch.org/2.19/search-plugins/conversational-search/ */
test('conversational search with a blueprint of a connector', async () => {
  llm.script = { status: 200, body: says('He was. [1]'), delayMs: 0 }
  const [action] = connectorOf(llm).actions
  const { connector_id } = await call('POST', `${ML}/connectors/_create`, {
    ...connectorOf(llm),
    client_config: {
      max_connection: 100,
      connection_timeout: 5000,
      read_timeout: 60_000,
      max_retry_times: 3,
    },
    actions: [
      { ...action, pre_process_function: 'connector.pre_process.default', post_process_function: '' },
    ],
  })
  const { task_id } = await call('POST', `${ML}/models/_register`, {
    name: 'openAI-gpt-3.5-turbo',
    function_name: 'remote',
    description: 'test model',
    connector_id,
  })
  const { model_id } = await call('GET', `${ML}/tasks/${task_id}`)
  await call('POST', `${ML}/models/${model_id}/_deploy`)
  const id = unique('rag_pipeline')
  await client.searchPipeline.put({
    id,
    body: {
      response_processors: [
        {
          retrieval_augmented_generation: {
            tag: 'openai_pipeline_demo',
            description: 'Demo pipeline Using OpenAI Connector',
            model_id,
            context_field_list: ['text'],
            system_prompt: 'You are a helpful assistant',
            user_instructions: 'Generate a concise and informative answer in less than 100 words',
          },
        },
      ],
    } as never,
  })
  const index = unique('my_rag_test_data')
  await client.indices.create({
    index,
    body: {
      settings: { 'index.search.default_pipeline': id } as never,
      mappings: { properties: { text: { type: 'text' } } },
    },
  })
  await client.bulk({
    index,
    refresh: true,
    body: [{ index: { _id: '1' } }, { text: 'Abraham Lincoln was a president.' }],
  })
  const { memory_id } = (await client.ml.createMemory({ body: { name: 'Conversation about presidents' } }))
    .body
  const asking = (parameters: Record<string, unknown>) =>
    client.search({
      index,
      body: {
        query: { match: { text: 'was Lincoln a president' } },
        ext: {
          generative_qa_parameters: {
            llm_model: 'gpt-3.5-turbo',
            memory_id,
            context_size: 5,
            message_size: 5,
            timeout: 15,
            ...parameters,
          },
        },
      } as never,
    })
  const { body } = await asking({ llm_question: 'Was Abraham Lincoln a good politician' })
  expect((body as unknown as { ext: unknown }).ext).toMatchObject({
    retrieval_augmented_generation: { answer: 'He was. [1]', memory_id },
  })
  expect(promptOf(llm.sent.at(-1)!)).toContain('Abraham Lincoln was a president.')
  const withBlock = (block: unknown) =>
    asking({ llm_messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, block] }] })
  const seen = llm.sent.length
  for (const [block, reason] of [
    [{ image: { format: 'png', url: 'https://example.com/a.png' } }, /\[url\].*send its \[data\]/],
    [{ image: { format: 'tiff', data: 'iVBORw0KGgo=' } }, /image\/png/],
    [{ document: { format: 'pdf', name: 'a', data: 'iVBORw0KGgo=' } }, /\[pdf\].*txt/],
    [{ document: { format: 'txt', name: 'a', data: '%' } }, /no text in base64/],
  ] as const)
    await expect(withBlock(block)).rejects.toThrow(reason)
  expect(llm.sent).toHaveLength(seen)
  const { messages } = await call('GET', `${ML}/memory/${memory_id}/messages`)
  expect(messages).toMatchObject([
    { input: 'Was Abraham Lincoln a good politician', response: 'He was. [1]' },
  ])
  await withBlock({ type: 'image', image: { format: 'png', data: 'iVBORw0KGgo=' } })
  expect(llm.sent.at(-1)!.body.messages.at(-1).content).toEqual([
    { type: 'text', text: expect.stringContaining('What is it?') },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
  ])
  await withBlock({ document: { format: 'txt', name: 'hat.txt', data: btoa('He wore a hat.') } })
  expect(promptOf(llm.sent.at(-1)!)).toContain('He wore a hat.')
})

test('what a pipeline of documents cannot do is told by its name, with what to do', async () => {
  const put = (processor: unknown) =>
    client.ingest.putPipeline({ id: unique('ingest'), body: { processors: [processor] } as never })
  const algorithm = { fixed_token_length: { token_limit: 10, overlap_rate: 0.2, tokenizer: 'standard' } }
  await expect(
    put({ text_chunking: { algorithm, field_map: { passage_text: 'passage_chunk' } } }),
  ).rejects.toThrow(/\[text_chunking\].*passages/)
  await expect(put({ set: { field: 'a', value: 1 } })).rejects.toThrow(/\[set\].*before they are sent/)
  const { connector_id } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
  const { model_id } = await call('POST', `${ML}/models/_register`, {
    name: 'remote',
    function_name: 'remote',
    connector_id,
  })
  await expect(put({ text_embedding: { model_id, field_map: { text: 'vector' } } })).rejects.toThrow(
    /TEXT_EMBEDDING.*\[embed\]/,
  )
})
