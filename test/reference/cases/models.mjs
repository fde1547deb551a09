/** Connectors, model groups, models and tasks. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
const P = '/_plugins/_ml'
const CHAT = {
  name: 'Chat',
  description: 'Chat completions',
  version: 2,
  protocol: 'http',
  parameters: { endpoint: '{{model}}', model: 'gpt-3.5-turbo', temperature: 0 },
  credential: { openAI_key: 'sk-very-secret' },
  actions: [
    {
      action_type: 'predict',
      method: 'POST',
      url: 'http://${parameters.endpoint}/v1/chat/completions',
      headers: { Authorization: 'Bearer ${credential.openAI_key}' },
      request_body:
        '{ "model": "${parameters.model}", "messages": ${parameters.messages}, "temperature": ${parameters.temperature} }',
    },
  ],
}
/** @param {keyof typeof CHAT} key */
const without = (key) => ({ ...CHAT, [key]: undefined })
const create = { method: 'POST', path: `${P}/connectors/_create` }
const all = { query: { match_all: {} }, size: 1000 }
const messages = [{ role: 'user', content: 'hi' }]

/** @type {import('../compare.mjs').Case[]} */
export const models = [
  {
    name: 'search connectors, none',
    method: 'POST',
    path: `${P}/connectors/_search`,
    body: all,
    why: 'noScore',
  },
  { name: 'search models, none', method: 'POST', path: `${P}/models/_search`, body: all, why: 'noScore' },
  {
    name: 'search groups, none',
    method: 'POST',
    path: `${P}/model_groups/_search`,
    body: all,
    why: 'noScore',
  },
  { name: 'search tasks, none', method: 'POST', path: `${P}/tasks/_search`, body: all, why: 'noScore' },
  { name: 'get no model', method: 'GET', path: `${P}/models/none` },
  { name: 'get no task', method: 'GET', path: `${P}/tasks/none` },
  { name: 'get no connector', method: 'GET', path: `${P}/connectors/none` },
  { name: 'create a connector', ...create, body: CHAT, save: { connector: 'connector_id' } },
  { name: 'get the connector', method: 'GET', path: `${P}/connectors/{{connector}}` },
  { name: 'connector without a name', ...create, body: without('name') },
  { name: 'connector without a version', ...create, body: without('version') },
  { name: 'connector without a protocol', ...create, body: without('protocol') },
  { name: 'connector without a credential', ...create, body: without('credential') },
  { name: 'connector without actions', ...create, body: without('actions') },
  { name: 'connector, unknown protocol', ...create, body: { ...CHAT, protocol: 'foo' } },
  {
    name: 'connector, unknown action',
    ...create,
    body: { ...CHAT, actions: [{ ...CHAT.actions[0], action_type: 'foo' }] },
  },
  {
    name: 'connector, a URL that is not trusted',
    ...create,
    body: { ...CHAT, parameters: { ...CHAT.parameters, endpoint: 'evil.example' } },
  },
  { name: 'connector, empty body', ...create, why: 'serverFaults' },
  { name: 'connector, bad JSON', ...create, body: '{', why: 'types' },
  {
    name: 'update the connector',
    method: 'PUT',
    path: `${P}/connectors/{{connector}}`,
    body: { description: 'Chats' },
    why: 'forced',
  },
  {
    name: 'search connectors',
    method: 'POST',
    path: `${P}/connectors/_search`,
    body: { query: { match: { name: 'chat' } }, _source: ['name', 'protocol', 'credential'] },
  },
  {
    name: 'register a group',
    method: 'POST',
    path: `${P}/model_groups/_register`,
    body: { name: 'group', description: 'All' },
    save: { group: 'model_group_id' },
  },
  { name: 'register it again', method: 'POST', path: `${P}/model_groups/_register`, body: { name: 'group' } },
  {
    name: 'group without a name',
    method: 'POST',
    path: `${P}/model_groups/_register`,
    body: {},
    why: 'serverFaults',
  },
  { name: 'get the group', method: 'GET', path: `${P}/model_groups/{{group}}` },
  {
    name: 'register a model',
    method: 'POST',
    path: `${P}/models/_register`,
    body: {
      name: 'chat',
      function_name: 'remote',
      model_group_id: '{{group}}',
      description: 'Chats',
      connector_id: '{{connector}}',
    },
    save: { llm: 'model_id', task: 'task_id' },
  },
  { name: 'its task', method: 'GET', path: `${P}/tasks/{{task}}`, until: { state: 'COMPLETED' } },
  {
    name: 'register without a connector',
    method: 'POST',
    path: `${P}/models/_register`,
    body: { name: 'x', function_name: 'remote' },
  },
  {
    name: 'register with no such connector',
    method: 'POST',
    path: `${P}/models/_register`,
    body: { name: 'x', function_name: 'remote', connector_id: 'none' },
  },
  {
    name: 'register without a name',
    method: 'POST',
    path: `${P}/models/_register`,
    body: { function_name: 'remote', connector_id: '{{connector}}' },
  },
  {
    name: 'register, unknown function',
    method: 'POST',
    path: `${P}/models/_register`,
    body: { name: 'x', function_name: 'foo' },
  },
  { name: 'the model before it is deployed', method: 'GET', path: `${P}/models/{{llm}}`, why: 'modelKeys' },
  { name: 'deploy', method: 'POST', path: `${P}/models/{{llm}}/_deploy` },
  { name: 'deploy no model', method: 'POST', path: `${P}/models/none/_deploy` },
  {
    name: 'the model',
    method: 'GET',
    path: `${P}/models/{{llm}}`,
    until: { model_state: 'DEPLOYED' },
    why: 'modelKeys',
  },
  {
    name: 'predict',
    method: 'POST',
    path: `${P}/models/{{llm}}/_predict`,
    body: { parameters: { messages: JSON.stringify(messages) } },
  },
  {
    name: 'predict, messages as a list',
    method: 'POST',
    path: `${P}/models/{{llm}}/_predict`,
    body: { parameters: { messages } },
  },
  {
    name: 'predict by algorithm',
    method: 'POST',
    path: `${P}/_predict/remote/{{llm}}`,
    body: { parameters: { messages } },
  },
  {
    name: 'predict, a placeholder not filled',
    method: 'POST',
    path: `${P}/models/{{llm}}/_predict`,
    body: { parameters: { foo: 'x' } },
  },
  { name: 'predict, no body', method: 'POST', path: `${P}/models/{{llm}}/_predict` },
  {
    name: 'predict, no model',
    method: 'POST',
    path: `${P}/models/none/_predict`,
    body: { parameters: { messages } },
  },
  {
    name: 'predict, the provider fails',
    method: 'POST',
    path: `${P}/models/{{llm}}/_predict`,
    body: { parameters: { messages: [{ role: 'user', content: 'please fail' }] } },
  },
  {
    name: 'search models',
    method: 'POST',
    path: `${P}/models/_search`,
    body: {
      query: {
        bool: {
          must: [{ match_phrase: { description: 'chats' } }],
          must_not: [{ exists: { field: 'chunk_number' } }],
          filter: [{ term: { algorithm: 'REMOTE' } }, { term: { model_state: 'DEPLOYED' } }],
        },
      },
      _source: ['name', 'algorithm', 'model_state'],
    },
  },
  {
    name: 'search groups',
    method: 'POST',
    path: `${P}/model_groups/_search`,
    body: { query: { term: { 'name.keyword': 'group' } }, _source: ['name'] },
  },
  {
    name: 'search tasks',
    method: 'POST',
    path: `${P}/tasks/_search`,
    body: {
      query: { term: { task_type: 'REGISTER_MODEL' } },
      sort: [{ create_time: { order: 'desc' } }],
      _source: ['task_type', 'state'],
    },
  },
  { name: 'delete a model that is deployed', method: 'DELETE', path: `${P}/models/{{llm}}` },
  { name: 'delete a connector in use', method: 'DELETE', path: `${P}/connectors/{{connector}}` },
  { name: 'delete no connector', method: 'DELETE', path: `${P}/connectors/none` },
  { name: 'delete no model', method: 'DELETE', path: `${P}/models/none` },
  { name: 'delete no group', method: 'DELETE', path: `${P}/model_groups/none` },
]
