/** Search pipelines, and searches that a model answers. Goes on with the model that `models` deployed. */
const S = '/_search/pipeline'
const rag = (/** @type {Record<string, unknown>} */ more) => ({
  response_processors: [
    { retrieval_augmented_generation: { model_id: '{{llm}}', context_field_list: ['text'], ...more } },
  ],
})
const QA = { llm_model: 'gpt-3.5-turbo', llm_question: 'Who was the sixteenth president?', timeout: 20 }
/**
 * @param {string} name @param {Record<string, unknown>} parameters @param {Partial<import('../compare.mjs').Case>} [more]
 * @returns {import('../compare.mjs').Case}
 */
const asked = (name, parameters, more = {}) => ({
  name,
  method: 'POST',
  path: '/qa/_search?search_pipeline=rag',
  body: {
    query: { match: { text: 'lincoln' } },
    ext: { generative_qa_parameters: { ...QA, ...parameters } },
  },
  ...more,
})
const plain = { query: { match: { text: 'lincoln' } } }

/** @type {import('../compare.mjs').Case[]} */
export const answers = [
  { name: 'pipelines, none', method: 'GET', path: `${S}/nope` },
  { name: 'delete no pipeline', method: 'DELETE', path: `${S}/nope` },
  { name: 'empty pipeline', method: 'PUT', path: `${S}/empty`, body: {} },
  { name: 'get it', method: 'GET', path: `${S}/empty` },
  {
    name: 'version and description',
    method: 'PUT',
    path: `${S}/empty`,
    body: { version: 7, description: 'x' },
  },
  { name: 'get that', method: 'GET', path: `${S}/e*` },
  { name: 'pipeline, unknown key', method: 'PUT', path: `${S}/bad`, body: { foo: {} } },
  { name: 'pipeline, no body', method: 'PUT', path: `${S}/bad` },
  { name: 'pipeline, bad JSON', method: 'PUT', path: `${S}/bad`, body: '{', why: 'types' },
  {
    name: 'pipeline, unknown processor',
    method: 'PUT',
    path: `${S}/bad`,
    body: { response_processors: [{ foo: {} }] },
  },
  {
    name: 'rag',
    method: 'PUT',
    path: `${S}/rag`,
    body: rag({ tag: 't', description: 'd', system_prompt: 'Be short.', user_instructions: 'Cite.' }),
  },
  { name: 'get rag', method: 'GET', path: `${S}/rag` },
  {
    name: 'rag without fields',
    method: 'PUT',
    path: `${S}/bad`,
    body: rag({ context_field_list: undefined }),
  },
  { name: 'rag, empty fields', method: 'PUT', path: `${S}/bad`, body: rag({ context_field_list: [] }) },
  { name: 'rag, fields no list', method: 'PUT', path: `${S}/bad`, body: rag({ context_field_list: 'text' }) },
  { name: 'rag, a number for a text', method: 'PUT', path: `${S}/bad`, body: rag({ system_prompt: 5 }) },
  { name: 'rag, unknown key', method: 'PUT', path: `${S}/bad`, body: rag({ foo: 1 }) },
  {
    name: 'rag without a model',
    method: 'PUT',
    path: `${S}/bad`,
    body: rag({ model_id: undefined }),
    why: 'ragModel',
  },
  {
    name: 'fill',
    method: 'POST',
    path: '/qa/_bulk?refresh=true',
    body: [
      { index: { _id: '1' } },
      { text: 'Abraham Lincoln was the sixteenth president.' },
      { index: { _id: '2' } },
      { text: 'The White House is in Washington.' },
      { index: { _id: '3' } },
      { title: 'lincoln without a text' },
    ],
  },
  asked('answer', {}, { why: 'extras' }),
  asked('answer by GET', {}, { method: 'GET', why: 'extras' }),
  asked('context_size', { context_size: 1 }, { why: 'extras' }),
  asked('context_size 0', { context_size: 0 }, { why: 'extras' }),
  asked('context_size as a text', { context_size: '1' }, { why: 'extras' }),
  asked('context_size a word', { context_size: 'abc' }),
  asked('unknown parameter', { foo: 1 }, { why: 'extras' }),
  asked('no question', { llm_question: undefined }),
  asked('empty question', { llm_question: '' }),
  asked('no model', { llm_model: undefined }),
  asked(
    'llm_messages',
    { llm_question: undefined, llm_messages: [{ role: 'user', content: [{ type: 'text', text: 'who?' }] }] },
    { why: 'extras' },
  ),
  asked('llm_messages without a role', { llm_messages: [{ content: [] }] }, { why: 'serverFaults' }),
  asked('memory_id unknown', { memory_id: 'coffee' }),
  asked('memory_id blank', { memory_id: '' }),
  asked('message_size 0', { memory_id: '{{second}}', message_size: 0 }),
  asked(
    'no hits',
    {},
    { body: { query: { match: { text: 'zebra' } }, ext: { generative_qa_parameters: QA } }, why: 'extras' },
  ),
  asked(
    'a hit without the field',
    {},
    {
      body: { query: { match: { title: 'lincoln' } }, ext: { generative_qa_parameters: QA } },
      why: 'fieldMissing',
    },
  ),
  asked('the provider fails', { llm_question: 'please fail' }, { why: 'providerFails' }),
  asked('no ext', {}, { body: plain }),
  asked('no such pipeline', {}, { path: '/qa/_search?search_pipeline=nope' }),
  asked('_none', {}, { path: '/qa/_search?search_pipeline=_none' }),
  asked('parameters without a pipeline', {}, { path: '/qa/_search' }),
  {
    name: 'inline pipeline',
    method: 'POST',
    path: '/qa/_search',
    body: { ...plain, search_pipeline: rag({}), ext: { generative_qa_parameters: QA } },
    why: 'extras',
  },
  {
    name: 'both pipelines',
    method: 'POST',
    path: '/qa/_search?search_pipeline=rag',
    body: { ...plain, search_pipeline: rag({}), ext: { generative_qa_parameters: QA } },
  },
  {
    name: 'pipeline named in the body',
    method: 'POST',
    path: '/qa/_search',
    body: { ...plain, search_pipeline: 'rag', ext: { generative_qa_parameters: QA } },
    why: 'extras',
  },
  {
    name: 'default pipeline',
    method: 'PUT',
    path: '/qa/_settings',
    body: { 'index.search.default_pipeline': 'rag' },
  },
  {
    name: 'search by the default',
    method: 'POST',
    path: '/qa/_search',
    body: { ...plain, ext: { generative_qa_parameters: QA } },
    why: 'extras',
  },
  { name: 'search by the default, no ext', method: 'POST', path: '/qa/_search', body: plain },
  {
    name: 'memory',
    method: 'POST',
    path: '/_plugins/_ml/memory',
    body: { name: 'Chat' },
    save: { chat: 'memory_id' },
  },
  asked('answer with a memory', { memory_id: '{{chat}}' }, { why: 'extras' }),
  { name: 'what it remembers', method: 'GET', path: '/_plugins/_ml/memory/{{chat}}/messages', why: 'later' },
  asked(
    'follow-up',
    { memory_id: '{{chat}}', message_size: 3, llm_question: 'And where?' },
    { why: 'extras' },
  ),
  { name: 'two messages', method: 'GET', path: '/_plugins/_ml/memory/{{chat}}/messages', why: 'later' },
  {
    name: 'rag off',
    method: 'PUT',
    path: '/_cluster/settings',
    body: { persistent: { 'plugins.ml_commons.rag_pipeline_feature_enabled': false } },
  },
  { name: 'rag pipeline when off', method: 'PUT', path: `${S}/bad`, body: rag({}) },
  asked('answer when off', {}),
  {
    name: 'rag on',
    method: 'PUT',
    path: '/_cluster/settings',
    body: { persistent: { 'plugins.ml_commons.rag_pipeline_feature_enabled': true } },
  },
  { name: 'undeploy', method: 'POST', path: '/_plugins/_ml/models/{{llm}}/_undeploy', why: 'node' },
  { name: 'delete the pipelines', method: 'DELETE', path: `${S}/rag` },
  { name: 'pipelines afterwards', method: 'GET', path: `${S}/rag` },
  { name: 'delete the model', method: 'DELETE', path: '/_plugins/_ml/models/{{llm}}' },
  { name: 'delete the connector', method: 'DELETE', path: '/_plugins/_ml/connectors/{{connector}}' },
]
