/** OpenSearch's routes: indices, documents and searches, and conversational search with connectors, models, pipelines and memory. */
import { route, wire } from './wire.mjs'

const ALL = { query: { match_all: {} } }
const BULK =
  '{ "index": { "_id": "2" } }\n{ "title": "Boats of the north", "year": 2021 }\n{ "index": { "_id": "3" } }\n{ "title": "Kitchens", "year": 1999 }\n'
const REPEATED = 'The same, with the index named in the body.'

/** @type {import('./wire.mjs').Routes[]} */
const groups = [
  {
    title: 'Cluster',
    routes: [
      route(
        'GET',
        '/',
        'Names the server and its version, for a client that brings a key. A browser gets the console.',
      ),
      route('GET', '/_cluster/health', 'Says whether the cluster is up.'),
      route('GET', '/_cluster/settings', 'Reads the settings.'),
      route('PUT', '/_cluster/settings', 'Changes the settings of the ML plugin that Parley knows.', {
        body: { persistent: { 'plugins.ml_commons.rag_pipeline_feature_enabled': true } },
      }),
    ],
  },
  {
    title: 'Indices',
    about: 'An index is a collection.',
    routes: [
      route('PUT', '/:collection', 'Makes an index.', {
        body: { mappings: { properties: { title: { type: 'text' }, year: { type: 'integer' } } } },
      }),
      route('GET', '/:collection', 'Reads an index: mapping, settings and aliases.'),
      route('GET', '/_cluster/health/:collection', 'Says whether an index is up.'),
      route('GET', '/:collection/_mapping', 'Reads the fields.'),
      route('PUT, POST', '/:collection/_mapping', 'Adds fields.', {
        body: { properties: { author: { type: 'keyword' } } },
      }),
      route('GET', '/:collection/_settings', 'Reads the settings of an index.'),
      route(
        'PUT',
        '/:collection/_settings',
        'Sets the default search pipeline of an index; `null` takes it back.',
        {
          body: { index: { 'search.default_pipeline': null } },
        },
      ),
      route('GET', '/_cat/indices', 'Lists the indices that the key may see.', {
        query: 'format=json',
      }),
      route('GET', '/_cat/indices/:index', 'Lists one index, or those that a pattern fits.', {
        query: 'format=json',
      }),
      route('POST', '/_aliases', 'Adds and removes aliases.', {
        body: { actions: [{ add: { index: 'boats', alias: 'fleet' } }] },
      }),
      route('GET', '/_aliases', 'Lists indices with their aliases.'),
      route('GET', '/:collection/_aliases', 'Lists the aliases of an index.'),
      route('GET', '/_alias', 'Lists indices with their aliases.'),
      route('GET', '/:collection/_alias', 'Lists the aliases of an index.'),
      route('PUT, POST', '/:collection/_alias/:alias', 'Adds an alias.'),
      route('GET', '/:collection/_alias/:alias', 'Reads an alias of an index.'),
      route('GET', '/_alias/:alias', 'Lists the indices of an alias.'),
      route('DELETE', '/:collection/_alias/:alias', 'Removes an alias.'),
      route('PUT, POST', '/:collection/_aliases/:alias', 'Adds an alias.'),
      route('DELETE', '/:collection/_aliases/:alias', 'Removes an alias.'),
    ],
  },
  {
    title: 'Documents',
    routes: [
      route('PUT, POST', '/:collection/_doc/:id', 'Writes a document, over one that is there.', {
        body: { title: 'Slow boats', year: 2019 },
      }),
      route('POST', '/:collection/_doc', 'Writes a document under an id that Parley makes.', {
        body: { title: 'Boats without a number', year: 2022 },
      }),
      route('PUT, POST', '/:collection/_create/:id', 'Writes a document unless its id is taken.', {
        send: '/boats/_create/4',
        body: { title: 'Ferries', year: 2015 },
      }),
      route(
        'POST, PUT',
        '/:collection/_bulk',
        'Writes and deletes many documents, with an answer for each.',
        {
          body: BULK,
        },
      ),
      route('POST, PUT', '/_bulk', REPEATED, {
        body: '{ "delete": { "_index": "boats", "_id": "4" } }\n',
      }),
      route('POST', '/:collection/_update/:id', 'Changes fields of a document.', {
        body: { doc: { year: 2020 } },
      }),
      route('GET', '/:collection/_doc/:id', 'Reads a document.'),
      route('GET', '/:collection/_source/:id', 'Reads what was written as a document, alone.'),
      route('POST, GET', '/:collection/_mget', 'Reads several documents.', {
        body: { ids: ['1', '2'] },
      }),
      route('POST, GET', '/_mget', REPEATED, { body: { docs: [{ _index: 'boats', _id: '1' }] } }),
      route('POST, GET', '/:collection/_refresh', 'Does nothing: writes are visible at once.'),
      route('POST, GET', '/_refresh', 'Does nothing either.'),
      route('POST, GET', '/_all/_refresh', 'Does nothing either.'),
    ],
  },
  {
    title: 'Searches',
    routes: [
      route(
        'POST, GET',
        '/:collection/_search',
        'Searches. With a pipeline and `ext.generative_qa_parameters` it answers a question.',
        {
          body: { query: { match: { title: 'boats' } }, size: 5 },
        },
      ),
      route('POST, GET', '/:collection/_count', 'Counts what a query finds.', {
        body: ALL,
      }),
      route('POST, GET', '/_search/scroll', 'Reads the next page of a search with `?scroll=1m`.', {
        body: { scroll_id: 'no such id' },
        refused: 404,
      }),
      route('POST, GET', '/_search/scroll/:id', 'The same, with the id in the path.', {
        send: '/_search/scroll/none',
        refused: 404,
      }),
      route('DELETE', '/_search/scroll', 'Does nothing: a scroll keeps nothing.', {
        body: { scroll_id: 'any' },
      }),
      route('DELETE', '/_search/scroll/:id', 'Does nothing either.'),
      route('POST, GET', '/:collection/_msearch', 'Makes several searches.', {
        body: '{}\n{ "query": { "match_all": {} } }\n',
      }),
      route('POST, GET', '/_msearch', REPEATED, {
        body: '{ "index": "boats" }\n{ "query": { "match_all": {} } }\n',
      }),
    ],
  },
]

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`
const CONNECTOR = {
  name: 'Chat',
  version: 1,
  protocol: 'http',
  parameters: { model: 'gpt-4o-mini' },
  credential: { key: 'sk-...' },
  actions: [
    {
      action_type: 'predict',
      method: 'POST',
      url: 'https://api.openai.com/v1/chat/completions',
      // biome-ignore-start lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
      headers: { Authorization: 'Bearer ${credential.key}' },
      request_body: '{ "model": "${parameters.model}", "messages": ${parameters.messages} }',
      // biome-ignore-end lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
    },
  ],
}
const PREDICTION = { parameters: { messages: [{ role: 'user', content: 'Hello' }] } }

/** @type {import('./wire.mjs').Routes[]} */
const memoryGroups = [
  {
    title: 'Connectors',
    about: 'A connector says how a language model is called. Its credential is sealed and never shown.',
    routes: [
      route('POST', `${ML}/connectors/_create`, 'Makes a connector.', {
        body: CONNECTOR,
      }),
      route('POST, GET', `${ML}/connectors/_search`, 'Searches connectors.', { body: ALL }),
      route('GET', `${ML}/connectors/:id`, 'Reads a connector.'),
      route('PUT', `${ML}/connectors/:id`, 'Changes a connector.', {
        body: { description: 'The connector to a chat model' },
      }),
    ],
  },
  {
    title: 'Model groups, models and tasks',
    routes: [
      route('POST', `${ML}/model_groups/_register`, 'Makes a group of models.', {
        body: { name: 'chat models' },
      }),
      route('POST, GET', `${ML}/model_groups/_search`, 'Searches groups.', { body: ALL }),
      route('GET', `${ML}/model_groups/:id`, 'Reads a group.'),
      route('PUT', `${ML}/model_groups/:id`, 'Changes a group.', {
        body: { description: 'Models that chat' },
      }),
      route('POST', `${ML}/models/_register`, 'Registers a model, which a task reports on.', {
        body: { name: 'chat', function_name: 'remote', model_group_id: 'GROUP', connector_id: 'CONNECTOR' },
      }),
      route('POST, GET', `${ML}/tasks/_search`, 'Searches tasks.', { body: ALL }),
      route('GET', `${ML}/tasks/:id`, 'Reads a task: its state, and the model it made.'),
      route('POST, GET', `${ML}/models/_search`, 'Searches models.', { body: ALL }),
      route('GET', `${ML}/models/:id`, 'Reads a model.'),
      route('POST', `${ML}/models/:id/_deploy`, 'Makes a model ready to be asked.'),
      route('POST', `${ML}/models/:id/_predict`, 'Calls the provider, and gives its own reply.', {
        body: PREDICTION,
      }),
      route('POST', `${ML}/models/:id/_predict/stream`, 'The same, in pieces as the provider sends them.', {
        body: PREDICTION,
        gives: 'stream',
      }),
      route('POST', `${ML}/_predict/:algorithm/:id`, 'The same, with the kind of model named.', {
        body: PREDICTION,
      }),
    ],
  },
  {
    title: 'Search pipelines',
    routes: [
      route('PUT', '/_search/pipeline/:id', 'Makes a pipeline whose searches are answered.', {
        body: {
          response_processors: [
            { retrieval_augmented_generation: { model_id: 'MODEL', context_field_list: ['title'] } },
          ],
        },
      }),
      route('GET', '/_search/pipeline', 'Lists pipelines.'),
      route('GET', '/_search/pipeline/:id', 'Reads a pipeline.'),
      route('DELETE', '/_search/pipeline/:id', 'Deletes a pipeline.'),
    ],
  },
  {
    title: 'Ingest pipelines',
    about:
      'One with `text_embedding`, as the `default_pipeline` of a new index, has its vectors made by the model in the Worker.',
    routes: [
      route('PUT', '/_ingest/pipeline/:id', 'Makes a pipeline of documents.', {
        body: { description: 'Does nothing yet', processors: [] },
      }),
      route('GET', '/_ingest/pipeline', 'Lists pipelines.'),
      route('GET', '/_ingest/pipeline/:id', 'Reads a pipeline.'),
      route('DELETE', '/_ingest/pipeline/:id', 'Deletes a pipeline.'),
    ],
  },
  {
    title: 'Memory',
    about: 'A memory is a conversation, and a message is a turn of it.',
    routes: [
      route('POST', MEMORY, 'Makes a memory.', {
        body: { name: 'About boats' },
      }),
      route('GET', MEMORY, 'Lists memories.', { query: 'max_results=10' }),
      route('GET', `${MEMORY}/:id`, 'Reads a memory.'),
      route('PUT', `${MEMORY}/:id`, 'Changes the name of a memory, and what is kept beside it.', {
        body: { name: 'About slow boats' },
      }),
      route('POST, GET', `${MEMORY}/_search`, 'Searches memories.', { body: ALL }),
      route('POST', `${MEMORY}/:id/messages`, 'Adds a message.', {
        body: { input: 'Which boats are slow?', response: 'Barges.' },
      }),
      route('GET', `${MEMORY}/:id/messages`, 'Lists the messages of a memory.'),
      route('POST, GET', `${MEMORY}/:id/_search`, 'Searches the messages of a memory.', {
        body: ALL,
      }),
      route('GET', `${MEMORY}/message/:id`, 'Reads a message.'),
      route('PUT', `${MEMORY}/message/:id`, 'Changes what is kept beside a message.', {
        body: { additional_info: { feedback: 'positive' } },
      }),
      route('GET', `${MEMORY}/message/:id/traces`, 'Lists the steps that led to a message.'),
      route('DELETE', `${MEMORY}/:id`, 'Deletes a memory with its messages.'),
    ],
  },
  {
    title: 'Memory as OpenSearch 2.10 has it',
    routes: [
      route('POST', `${MEMORY}/conversation`, 'Makes a conversation.', {
        body: { name: 'About ferries' },
      }),
      route('GET', `${MEMORY}/conversation`, 'Lists conversations.'),
      route('POST', `${MEMORY}/conversation/:id`, 'Adds an interaction.', {
        body: { input: 'When does it leave?', prompt_template: '', response: 'At nine.', origin: 'example' },
      }),
      route('GET', `${MEMORY}/conversation/:id`, 'Lists the interactions of a conversation.'),
      route('DELETE', `${MEMORY}/conversation/:id`, 'Deletes a conversation.'),
    ],
  },
  {
    title: 'The end of models',
    routes: [
      route('POST', `${ML}/models/:id/_undeploy`, 'Takes a model out of use.'),
      route('DELETE', `${ML}/models/:id`, 'Deletes a model.'),
      route('DELETE', `${ML}/model_groups/:id`, 'Deletes a group.'),
      route('DELETE', `${ML}/tasks/:id`, 'Deletes a task.'),
      route('DELETE', `${ML}/connectors/:id`, 'Deletes a connector.'),
    ],
  },
]

/** @type {import('./wire.mjs').Routes} */
const end = {
  title: 'The end of a document and an index',
  routes: [
    route('DELETE', '/:collection/_doc/:id', 'Deletes a document.', { send: '/boats/_doc/2' }),
    route('POST', '/:collection/_delete_by_query', 'Deletes what a query finds.', {
      body: { query: { range: { year: { lt: 2000 } } } },
    }),
    route('DELETE', '/:collection', 'Deletes an index, or several: a list, or `*`.'),
  ],
}

export const opensearch = wire({
  name: 'api/opensearch',
  title: 'OpenSearch API',
  about:
    'Indices, documents and searches, and conversational search with connectors, models, pipelines and memory. ' +
    '[OpenSearch compatibility](/docs/opensearch) says what each takes. The key is the password of Basic authentication; ' +
    '`Authorization: Bearer KEY` works too.',
  header: 'Authorization',
  names: {
    'connectors/:id': 'connectors/CONNECTOR',
    'model_groups/:id': 'model_groups/GROUP',
    'tasks/:id': 'tasks/TASK',
    'models/:id': 'models/MODEL',
    ':algorithm/:id': 'remote/MODEL',
    '_search/pipeline/:id': '_search/pipeline/answers',
    '_ingest/pipeline/:id': '_ingest/pipeline/vectors',
    'message/:id': 'message/MESSAGE',
    'conversation/:id': 'conversation/CONVERSATION',
    'memory/:id': 'memory/MEMORY',
    'scroll/:id': 'scroll/any',
    '/:id': '/1',
    ':collection': 'boats',
    ':alias': 'ships',
    ':index': 'boats',
  },
  groups: [...groups, ...memoryGroups, end],
})
