/** OpenSearch's routes for conversational search: connectors, models, pipelines and memory. */
import { route } from './wire.mjs'

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`
const ALL = { query: { match_all: {} } }
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

/** @type {import('./wire.mjs').WireGroup[]} */
export const memoryGroups = [
  {
    title: 'Connectors',
    about: 'A connector says how a language model is called. Its credential is sealed and never shown.',
    routes: [
      route('POST', `${ML}/connectors/_create`, 'Makes a connector.', {
        body: CONNECTOR,
        keep: { CONNECTOR: 'connector_id' },
      }),
      route('POST, GET', `${ML}/connectors/_search`, 'Searches connectors.', { body: ALL }),
      route('GET', `${ML}/connectors/:id`, 'Reads a connector.', { send: `${ML}/connectors/CONNECTOR` }),
      route('PUT', `${ML}/connectors/:id`, 'Changes a connector.', {
        send: `${ML}/connectors/CONNECTOR`,
        body: { description: 'The connector to a chat model' },
      }),
    ],
  },
  {
    title: 'Model groups, models and tasks',
    routes: [
      route('POST', `${ML}/model_groups/_register`, 'Makes a group of models.', {
        body: { name: 'chat models' },
        keep: { GROUP: 'model_group_id' },
      }),
      route('POST, GET', `${ML}/model_groups/_search`, 'Searches groups.', { body: ALL }),
      route('GET', `${ML}/model_groups/:id`, 'Reads a group.', { send: `${ML}/model_groups/GROUP` }),
      route('PUT', `${ML}/model_groups/:id`, 'Changes a group.', {
        send: `${ML}/model_groups/GROUP`,
        body: { description: 'Models that chat' },
      }),
      route('POST', `${ML}/models/_register`, 'Registers a model, which a task reports on.', {
        body: { name: 'chat', function_name: 'remote', model_group_id: 'GROUP', connector_id: 'CONNECTOR' },
        keep: { TASK: 'task_id', MODEL: 'model_id' },
      }),
      route('POST, GET', `${ML}/tasks/_search`, 'Searches tasks.', { body: ALL }),
      route('GET', `${ML}/tasks/:id`, 'Reads a task: its state, and the model it made.', {
        send: `${ML}/tasks/TASK`,
      }),
      route('POST, GET', `${ML}/models/_search`, 'Searches models.', { body: ALL }),
      route('GET', `${ML}/models/:id`, 'Reads a model.', { send: `${ML}/models/MODEL` }),
      route('POST', `${ML}/models/:id/_deploy`, 'Makes a model ready to be asked.', {
        send: `${ML}/models/MODEL/_deploy`,
      }),
      route('POST', `${ML}/models/:id/_predict`, 'Calls the provider, and gives its own reply.', {
        send: `${ML}/models/MODEL/_predict`,
        body: PREDICTION,
      }),
      route('POST', `${ML}/models/:id/_predict/stream`, 'The same, in pieces as the provider sends them.', {
        send: `${ML}/models/MODEL/_predict/stream`,
        body: PREDICTION,
        gives: 'stream',
      }),
      route('POST', `${ML}/_predict/:algorithm/:id`, 'The same, with the kind of model named.', {
        send: `${ML}/_predict/remote/MODEL`,
        body: PREDICTION,
      }),
    ],
  },
  {
    title: 'Search pipelines',
    routes: [
      route('PUT', '/_search/pipeline/:id', 'Makes a pipeline whose searches are answered.', {
        send: '/_search/pipeline/answers',
        body: {
          response_processors: [
            { retrieval_augmented_generation: { model_id: 'MODEL', context_field_list: ['title'] } },
          ],
        },
      }),
      route('GET', '/_search/pipeline', 'Lists pipelines.'),
      route('GET', '/_search/pipeline/:id', 'Reads a pipeline.', { send: '/_search/pipeline/answers' }),
      route('DELETE', '/_search/pipeline/:id', 'Deletes a pipeline.', { send: '/_search/pipeline/answers' }),
    ],
  },
  {
    title: 'Ingest pipelines',
    about:
      'One with `text_embedding`, as the `default_pipeline` of a new index, has its vectors made by the model in the Worker.',
    routes: [
      route('PUT', '/_ingest/pipeline/:id', 'Makes a pipeline of documents.', {
        send: '/_ingest/pipeline/vectors',
        body: { description: 'Does nothing yet', processors: [] },
      }),
      route('GET', '/_ingest/pipeline', 'Lists pipelines.'),
      route('GET', '/_ingest/pipeline/:id', 'Reads a pipeline.', { send: '/_ingest/pipeline/vectors' }),
      route('DELETE', '/_ingest/pipeline/:id', 'Deletes a pipeline.', { send: '/_ingest/pipeline/vectors' }),
    ],
  },
  {
    title: 'Memory',
    about: 'A memory is a conversation, and a message is a turn of it.',
    routes: [
      route('POST', MEMORY, 'Makes a memory.', {
        body: { name: 'About boats' },
        keep: { MEMORY: 'memory_id' },
      }),
      route('GET', MEMORY, 'Lists memories.', { send: `${MEMORY}?max_results=10` }),
      route('GET', `${MEMORY}/:id`, 'Reads a memory.', { send: `${MEMORY}/MEMORY` }),
      route('PUT', `${MEMORY}/:id`, 'Changes the name of a memory, and what is kept beside it.', {
        send: `${MEMORY}/MEMORY`,
        body: { name: 'About slow boats' },
      }),
      route('POST, GET', `${MEMORY}/_search`, 'Searches memories.', { body: ALL }),
      route('POST', `${MEMORY}/:id/messages`, 'Adds a message.', {
        send: `${MEMORY}/MEMORY/messages`,
        body: { input: 'Which boats are slow?', response: 'Barges.' },
        keep: { MESSAGE: 'message_id' },
      }),
      route('GET', `${MEMORY}/:id/messages`, 'Lists the messages of a memory.', {
        send: `${MEMORY}/MEMORY/messages`,
      }),
      route('POST, GET', `${MEMORY}/:id/_search`, 'Searches the messages of a memory.', {
        send: `${MEMORY}/MEMORY/_search`,
        body: ALL,
      }),
      route('GET', `${MEMORY}/message/:id`, 'Reads a message.', { send: `${MEMORY}/message/MESSAGE` }),
      route('PUT', `${MEMORY}/message/:id`, 'Changes what is kept beside a message.', {
        send: `${MEMORY}/message/MESSAGE`,
        body: { additional_info: { feedback: 'positive' } },
      }),
      route('GET', `${MEMORY}/message/:id/traces`, 'Lists the steps that led to a message.', {
        send: `${MEMORY}/message/MESSAGE/traces`,
      }),
      route('DELETE', `${MEMORY}/:id`, 'Deletes a memory with its messages.', { send: `${MEMORY}/MEMORY` }),
    ],
  },
  {
    title: 'Memory as OpenSearch 2.10 has it',
    routes: [
      route('POST', `${MEMORY}/conversation`, 'Makes a conversation.', {
        body: { name: 'About ferries' },
        keep: { CONVERSATION: 'conversation_id' },
      }),
      route('GET', `${MEMORY}/conversation`, 'Lists conversations.'),
      route('POST', `${MEMORY}/conversation/:id`, 'Adds an interaction.', {
        send: `${MEMORY}/conversation/CONVERSATION`,
        body: { input: 'When does it leave?', prompt_template: '', response: 'At nine.', origin: 'example' },
      }),
      route('GET', `${MEMORY}/conversation/:id`, 'Lists the interactions of a conversation.', {
        send: `${MEMORY}/conversation/CONVERSATION`,
      }),
      route('DELETE', `${MEMORY}/conversation/:id`, 'Deletes a conversation.', {
        send: `${MEMORY}/conversation/CONVERSATION`,
      }),
    ],
  },
  {
    title: 'The end of models',
    routes: [
      route('POST', `${ML}/models/:id/_undeploy`, 'Takes a model out of use.', {
        send: `${ML}/models/MODEL/_undeploy`,
      }),
      route('DELETE', `${ML}/models/:id`, 'Deletes a model.', { send: `${ML}/models/MODEL` }),
      route('DELETE', `${ML}/model_groups/:id`, 'Deletes a group.', { send: `${ML}/model_groups/GROUP` }),
      route('DELETE', `${ML}/tasks/:id`, 'Deletes a task.', { send: `${ML}/tasks/TASK` }),
      route('DELETE', `${ML}/connectors/:id`, 'Deletes a connector.', { send: `${ML}/connectors/CONNECTOR` }),
    ],
  },
]
