/** The routes of chat clients and agents. */
import { route, wire } from './wire.mjs'

const QUESTION = 'How does Parley store history?'
const MESSAGES = [{ role: 'user', content: QUESTION }]
const VERSIONED = 'The same, for clients that put the version of the API into the address.'

/** @type {import('./wire.mjs').Routes} */
const uiStream = {
  title: 'UI message stream of the AI SDK',
  routes: [
    route('POST', '/ui/:assistant', 'Asks an assistant. The answer is a UI message stream.', {
      body: {
        id: 'b9c1d2e8f7a64053',
        trigger: 'submit-message',
        messages: [{ id: 'q1', role: 'user', parts: [{ type: 'text', text: QUESTION }] }],
      },
      gives: 'stream',
    }),
    route(
      'GET',
      '/ui/:assistant',
      'Follows the running answer of a chat from its beginning; 204 where there is none.',
      {
        query: 'chatId=b9c1d2e8f7a64053',
      },
    ),
    route('GET', '/ui/:assistant/:chat/stream', 'The same, at the address that `useChat` resumes at.'),
    route('GET', '/ui/:assistant/:chat/messages', 'The chat so far, as messages of the client.'),
    route('POST', '/ui/:assistant/text', 'The answer as plain text, to messages or to a `prompt`.', {
      body: { prompt: QUESTION },
      gives: 'stream',
    }),
    route('GET', '/agents/:assistant{[^_/]+}/:chat', 'The WebSocket of `useAgentChat`. Others are refused.', {
      refused: true,
    }),
    route('GET', '/agents/:assistant{[^_/]+}/:chat/get-messages', 'The chat so far, as that hook loads it.'),
    route('POST', '/ui/:assistant/feedback', 'Rates a message, by its id: 1 is good, 0 is bad.', {
      body: { messageId: 'CONVERSATION.1', vote: 1 },
    }),
    route('POST', '/ui/:assistant/:chat/stop', 'Stops the running answer for all its readers.'),
  ],
}

/** @type {import('./wire.mjs').Routes} */
const openAi = {
  title: 'OpenAI',
  about: 'Any other route below `/v1` is answered with 404, in the words of this API.',
  routes: [
    route('POST', '/v1/chat/completions', 'Asks an assistant, which is the model here.', {
      body: { model: 'default', messages: MESSAGES },
    }),
    route('POST', '/v1/responses', 'Asks an assistant; `previous_response_id` goes on from a response.', {
      body: { model: 'default', input: QUESTION },
    }),
    route('GET', '/v1/responses/:response', 'Reads a response; `stream=true` sends its events again.'),
    route('GET', '/v1/responses/:response/input_items', 'The question that it answers.'),
    route('POST', '/v1/responses/:response/cancel', 'Stops a response that is being written.', {
      refused: true,
    }),
    route('DELETE', '/v1/responses/:response', 'Deletes a response with its question.'),
    route('POST', '/v1/conversations', 'Makes a conversation, with items if there are any.', {
      body: {
        metadata: { topic: 'history' },
        items: [{ type: 'message', role: 'user', content: 'I run Parley on Cloudflare.' }],
      },
    }),
    route('GET', '/v1/conversations/:id', 'Reads a conversation, of any protocol.'),
    route('POST', '/v1/conversations/:id', 'Replaces its metadata.', {
      body: { metadata: { topic: 'storage' } },
    }),
    route('POST', '/v1/conversations/:id/items', 'Adds messages that no turn made.', {
      body: { items: [{ type: 'message', role: 'assistant', content: 'Noted.' }] },
    }),
    route('GET', '/v1/conversations/:id/items', 'Lists its messages, newest first.', {
      query: 'limit=10',
    }),
    route('GET', '/v1/conversations/:id/items/:item', 'Reads one of them.'),
    route('DELETE', '/v1/conversations/:id/items/:item', 'Deletes one of them.'),
    route('DELETE', '/v1/conversations/:id', 'Deletes a conversation.'),
    route('POST', '/v1/completions', 'Asks an assistant, in the words of the older API.', {
      body: { model: 'default', prompt: QUESTION },
    }),
    route('POST', '/v1/embeddings', 'Vectors of texts, by the model of a collection or of an assistant.', {
      body: { model: 'default', input: QUESTION },
    }),
    route('POST', '/v1/vector_stores/:store/search', 'What an assistant would find, without an answer.', {
      body: { query: QUESTION, max_num_results: 3 },
    }),
    route('GET', '/v1/models', 'Lists the assistants that the key may ask.'),
    route('GET', '/v1/models/:model', 'Reads one of them.'),
  ],
}

/** @type {import('./wire.mjs').Routes} */
const aiChat = {
  title: 'AI Chat Protocol',
  about: 'Other methods are answered with 405. `/chat` asks the assistant `default`.',
  routes: [
    route('POST', '/chat', 'Asks the assistant `default`. The answer comes whole.', {
      body: { messages: MESSAGES },
    }),
    route('POST', '/chat/stream', 'The same, as it is written: a JSON object on each line.', {
      body: { messages: MESSAGES },
      gives: 'stream',
    }),
    ...['', '/a/:assistant'].flatMap((prefix) => [
      route('GET', `${prefix}/config`, 'Which options the front end of the Azure Search demo shows.'),
      route('GET', `${prefix}/auth_setup`, 'That nobody has to sign in there.'),
      route('POST', `${prefix}/ask`, 'The same as `/chat`, where front ends of the demo ask one question.', {
        body: { messages: MESSAGES },
      }),
    ]),
    route('GET', '/content/:label{.+}', 'The text of a document that an answer cites.', {
      gives: 'stream',
    }),
    route('POST', '/a/:assistant/chat', 'Asks another assistant.', {
      body: { messages: MESSAGES },
    }),
    route('POST', '/a/:assistant/chat/stream', 'The same, as it is written.', {
      body: { messages: MESSAGES },
      gives: 'stream',
    }),
    route('GET', '/a/:assistant/content/:label{.+}', 'A document that its answer cites.', {
      gives: 'stream',
    }),
    ...['', '/a/:assistant'].flatMap((prefix) => [
      route('POST', `${prefix}/v/:version/chat`, VERSIONED, { body: { messages: MESSAGES } }),
      route('POST', `${prefix}/v/:version/chat/stream`, VERSIONED, {
        body: { messages: MESSAGES },
        gives: 'stream',
      }),
      route('GET', `${prefix}/v/:version/content/:label{.+}`, VERSIONED, { gives: 'stream' }),
    ]),
  ],
}

const METADATA = '/.well-known/oauth-protected-resource'
const SAME_METADATA = 'The same for the server at that address.'

/** @type {import('./wire.mjs').Routes} */
const mcp = {
  title: 'Model Context Protocol',
  about:
    'JSON-RPC over streamable HTTP. Other methods than `POST` are answered with 405: there is no session to open or end.',
  routes: [
    route(
      'POST',
      '/mcp',
      'Tools and resources of the assistant `default`, or of the one that the key is bound to.',
      {
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      },
    ),
    route('POST', '/mcp/:assistant', 'The same of another assistant.', {
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'search', arguments: { query: QUESTION } },
      },
    }),
    route('GET', METADATA, "OAuth's metadata of a protected resource: which keys the server takes, and how."),
    route('GET', `${METADATA}/mcp`, SAME_METADATA),
    route('GET', `${METADATA}/mcp/:assistant`, SAME_METADATA),
  ],
}

const RUN = {
  threadId: 'b9c1d2e8f7a64054',
  runId: '1',
  messages: [{ id: 'q1', role: 'user', content: QUESTION }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
}

/** @type {import('./wire.mjs').Routes} */
const agUi = {
  title: 'AG-UI and CopilotKit',
  about: "The base address of CopilotKit's runtime is `/copilotkit`.",
  routes: [
    route(
      'POST',
      '/agui/:assistant',
      'Runs an assistant as an agent. The answer is a stream of AG-UI events.',
      {
        body: RUN,
        gives: 'stream',
      },
    ),
    route('GET', '/copilotkit/info', 'The assistants that the key may ask, as agents.'),
    route('POST', '/copilotkit/agent/:assistant/run', 'The same as `/agui/:assistant`.', {
      body: { ...RUN, runId: '2' },
      gives: 'stream',
    }),
    route(
      'POST',
      '/copilotkit/agent/:assistant/connect',
      'What was said in a thread, or the answer that is being written.',
      {
        body: { ...RUN, runId: '3', messages: [] },
        gives: 'stream',
      },
    ),
    route('POST', '/copilotkit/agent/:assistant/stop/:chat', 'Stops the running answer of a thread.', {
      send: '/copilotkit/agent/default/stop/b9c1d2e8f7a64054',
    }),
  ],
}

const CARD = '/.well-known/agent-card.json'

/** @type {import('./wire.mjs').Routes} */
const a2a = {
  title: 'Agent2Agent (A2A)',
  about: 'JSON-RPC of revision 1.0.',
  routes: [
    route('GET', CARD, 'The card of the assistant `default`, or of the one that the key is bound to.'),
    route('GET', `/a2a/:assistant${CARD}`, 'The card of another assistant.'),
    route('POST', '/a2a/:assistant', 'Sends a message, streams the answer, reads or cancels a task.', {
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { message: { messageId: 'q1', role: 'ROLE_USER', parts: [{ text: QUESTION }] } },
      },
    }),
  ],
}

/** @type {import('./wire.mjs').Routes} */
const widgets = {
  title: 'deep-chat, n8n and AI Search widgets',
  about: 'The key in an address must be made for pages; the snippet sends no header that could carry it.',
  routes: [
    route('POST', '/deep-chat/:assistant', 'Asks an assistant in the format of deep-chat.', {
      body: { messages: [{ role: 'user', text: QUESTION }], conversation_id: 'b9c1d2e8f7a64055' },
    }),
    route('GET', '/deep-chat/:assistant/:chat', 'What was said, for `loadHistory`.', {
      send: '/deep-chat/default/b9c1d2e8f7a64055',
    }),
    route('POST', '/n8n/:assistant', "Asks an assistant as n8n's chat does, or loads the previous session.", {
      body: { action: 'sendMessage', sessionId: 'b9c1d2e8f7a64056', chatInput: QUESTION },
    }),
    route(
      'POST',
      '/ai-search/:key/:assistant/chat/completions',
      "Asks an assistant as Cloudflare's AI Search snippet does.",
      {
        body: { messages: MESSAGES, stream: true },
        refused: 401,
      },
    ),
    route('POST', '/ai-search/:key/:assistant/search', 'Searches the documents of an assistant.', {
      body: { messages: MESSAGES },
      refused: 401,
    }),
  ],
}

export const chat = wire({
  name: 'api/chat',
  title: 'Chat API',
  about:
    'An [assistant](/docs/assistants) in the words of chat clients. [Chat protocols](/docs/chat-protocols) says what each ' +
    'of them can do. The key goes in `Authorization: Bearer KEY`, `x-api-key` or `api-key`.',
  header: 'Authorization',
  names: {
    ':assistant': 'default',
    ':response': 'RESPONSE',
    ':item': 'msg_CONVERSED.1.q',
    ':id': 'CONVERSED',
    ':chat': 'b9c1d2e8f7a64053',
    ':store': 'default',
    ':model': 'default',
    ':label': 'how-does-parley-store-history.txt',
    ':version': '2026-04',
    ':key': 'KEY',
  },
  groups: [uiStream, openAi, aiChat, mcp, agUi, a2a, widgets],
})
