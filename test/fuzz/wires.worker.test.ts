/** Requests of every shape to the wires of agents and widgets: each is answered, and no fault is the server's. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { setStage } from '../api/parley/stage'
import { call } from '../api/typesense/api'
import { check, encoded, hostile, PATIENCE, survives } from './fuzz'

let pageKey = ''

beforeAll(async () => {
  await setStage()
  const assistant = { model: 'm', collections: ['facts'] }
  expect((await call('PUT', '/assistants/guide', { body: assistant }))[0]).toBe(200)
  const key = {
    description: 'a page',
    actions: ['documents:search'],
    collections: ['facts'],
    limits: { allowed_origins: ['https://shop.example'], turns_per_day: null, tokens_per_day: null },
  }
  const [, { value }] = await call('POST', '/keys', { body: key })
  pageKey = value
})

/** A share of the cases is answered, which takes time. */
const SHARE = 0.3

const json = fc.jsonValue({ maxDepth: 2 })
/** What a request should have, and now and then something else. */
const usually = <T>(good: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown> = json): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: good, weight: 20 }, { arbitrary: odd, weight: 1 })

const text = fc.oneof(hostile, fc.constantFrom('How high is the Eiffel Tower?', 'Who was its architect?'))
const name = fc.oneof(
  hostile,
  fc.uuid({ version: 4 }),
  fc.uuid({ version: 4 }).map((id) => `${id}-0123abcd`),
)
const place = fc.oneof(
  name,
  name.map((id) => `${id}.1`),
)
const number = fc.oneof(fc.integer({ min: -1, max: 60 }), fc.double())
const optional = <T extends Record<string, fc.Arbitrary<unknown>>>(given: T, ...required: (keyof T)[]) =>
  usually(fc.record(given, { requiredKeys: required as never[] }))

const messages = (said: Record<string, fc.Arbitrary<unknown>>) =>
  usually(fc.array(optional(said, ...Object.keys(said)), { maxLength: 4 }))
const role = usually(fc.constantFrom('user', 'assistant', 'system', 'ai', 'tool'))

const rpc = (method: fc.Arbitrary<string>, params: fc.Arbitrary<unknown>) =>
  optional(
    {
      jsonrpc: usually(fc.constant('2.0')),
      id: usually(fc.oneof(fc.integer(), hostile)),
      method: usually(method, fc.oneof(hostile, json)),
      params,
    },
    'jsonrpc',
    'method',
  )

const a2aMessage = optional(
  {
    messageId: usually(name),
    contextId: usually(name),
    taskId: usually(place),
    role: usually(fc.constant('ROLE_USER')),
    parts: usually(fc.array(optional({ text: usually(text) }, 'text'), { maxLength: 3 })),
  },
  'messageId',
  'role',
  'parts',
)
const tool = fc.oneof(
  optional(
    { name: fc.constant('search'), arguments: optional({ query: usually(text), limit: usually(number) }) },
    'name',
  ),
  optional({ name: fc.constant('fetch'), arguments: optional({ id: usually(name) }) }, 'name'),
  optional(
    {
      name: fc.constant('ask'),
      arguments: optional({ question: usually(text), conversation_id: usually(name) }),
    },
    'name',
  ),
  optional(
    {
      name: fc.constant('list_conversations'),
      arguments: optional({ q: usually(text), limit: usually(number), cursor: usually(name) }),
    },
    'name',
  ),
)

/** Each wire's address, what it is sent, and headers besides. */
const WIRES: [string, string | (() => string), fc.Arbitrary<unknown>, Record<string, string>?][] = [
  [
    'AG-UI',
    '/agui/guide',
    optional(
      {
        threadId: usually(name),
        runId: usually(name),
        messages: messages({ id: usually(name), role, content: usually(text) }),
        tools: usually(fc.array(json, { maxLength: 2 })),
        state: json,
        forwardedProps: json,
      },
      'threadId',
      'runId',
      'messages',
    ),
  ],
  [
    "CopilotKit's connect",
    '/copilotkit/agent/guide/connect',
    optional({ threadId: usually(name), runId: usually(name), messages: usually(fc.constant([])) }),
  ],
  [
    'A2A',
    '/a2a/guide',
    rpc(
      fc.constantFrom('SendMessage', 'SendStreamingMessage', 'GetTask', 'CancelTask', 'SubscribeToTask'),
      fc.oneof(optional({ message: a2aMessage }, 'message'), optional({ id: usually(place) }, 'id')),
    ),
  ],
  [
    'MCP',
    '/mcp/guide',
    rpc(
      fc.constantFrom('tools/call', 'tools/list', 'resources/read', 'resources/list', 'initialize', 'ping'),
      fc.oneof(
        tool,
        optional({ uri: usually(name.map((id) => `parley://documents/facts/${id}`)), cursor: name }),
      ),
    ),
    { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
  ],
  [
    'deep-chat',
    '/deep-chat/guide',
    optional(
      { messages: messages({ role, text: usually(text) }), conversation_id: usually(name) },
      'messages',
    ),
  ],
  [
    'n8n',
    '/n8n/guide',
    optional(
      {
        action: usually(fc.constantFrom('sendMessage', 'loadPreviousSession')),
        sessionId: usually(name),
        chatInput: usually(text),
      },
      'action',
      'sessionId',
    ),
  ],
  [
    'the AI Search chat',
    () => `/ai-search/${pageKey}/guide/chat/completions`,
    optional(
      { messages: messages({ role, content: usually(text) }), stream: usually(fc.boolean()) },
      'messages',
    ),
  ],
  [
    'the AI Search search',
    () => `/ai-search/${pageKey}/guide/search`,
    optional(
      {
        messages: messages({ role: fc.constant('user'), content: usually(text) }),
        ai_search_options: usually(fc.record({ retrieval: optional({ max_num_results: usually(number) }) })),
      },
      'messages',
    ),
  ],
  [
    'a vector store',
    '/v1/vector_stores/guide/search',
    optional(
      { query: usually(text), max_num_results: usually(number), rewrite_query: usually(fc.boolean()) },
      'query',
    ),
  ],
  [
    'completions',
    '/v1/completions',
    optional(
      {
        model: usually(fc.constant('guide')),
        prompt: usually(text),
        stream: usually(fc.boolean()),
        n: usually(number),
      },
      'model',
      'prompt',
    ),
  ],
  [
    'embeddings',
    '/v1/embeddings',
    optional(
      { model: usually(fc.constantFrom('guide', 'facts'), hostile), input: usually(text) },
      'model',
      'input',
    ),
  ],
  [
    'plain text',
    '/ui/guide/text',
    fc.oneof(
      optional({ prompt: usually(text) }, 'prompt'),
      optional({ messages: messages({ role, content: text }) }),
    ),
  ],
  [
    'conversations of OpenAI',
    '/v1/conversations',
    optional({
      metadata: usually(fc.dictionary(hostile, hostile, { maxKeys: 3 })),
      items: messages({ type: usually(fc.constant('message')), role, content: usually(text) }),
    }),
  ],
]

it.each(WIRES)('%s', { timeout: PATIENCE }, (_, path, body, headers = {}) =>
  check(
    fc.asyncProperty(body, async (given) => {
      const address = typeof path === 'string' ? path : path()
      const { text } = await survives('POST', address, { body: given, headers })
      // JSON-RPC has the status of a failure in its body.
      expect(text).not.toMatch(/"status":5\d\d/)
    }) as never,
    SHARE,
  ),
)

it('what was said under any name', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(place, async (given) => {
      const id = encoded(given)
      for (const [method, path] of [
        ['GET', `/v1/responses/${id}`],
        ['GET', `/v1/responses/resp_${id}?stream=true`],
        ['GET', `/v1/responses/resp_${id}/input_items?limit=${id}`],
        ['POST', `/v1/responses/resp_${id}/cancel`],
        ['DELETE', `/v1/responses/resp_${id}`],
        ['GET', `/v1/conversations/${id}/items?after=${id}`],
        ['GET', `/v1/conversations/${id}/items/msg_${id}`],
        ['DELETE', `/v1/conversations/${id}`],
        ['GET', `/deep-chat/guide/${id}`],
        ['GET', `/agents/guide/${id}`],
        ['GET', `/agents/guide/${id}/get-messages`],
        ['POST', `/copilotkit/agent/guide/stop/${id}`],
      ] as const) {
        await survives(method, path)
      }
    }) as never,
    SHARE / 3,
  ),
)
