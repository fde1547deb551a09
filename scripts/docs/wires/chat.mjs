/** The routes of chat clients and agents. */
import { route } from './wire.mjs'

const QUESTION = 'How does Parley store history?'
const MESSAGES = [{ role: 'user', content: QUESTION }]
const VERSIONED = 'The same, for clients that put the version of the API into the address.'

/** @type {import('./wire.mjs').WireGroup} */
const uiStream = {
  title: 'UI message stream of the AI SDK',
  routes: [
    route('POST', '/ui/:assistant', 'Asks an assistant. The answer is a UI message stream.', {
      send: '/ui/default',
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
        send: '/ui/default?chatId=b9c1d2e8f7a64053',
      },
    ),
    route('GET', '/ui/:assistant/:chat/stream', 'The same, at the address that `useChat` resumes at.', {
      send: '/ui/default/b9c1d2e8f7a64053/stream',
    }),
    route('GET', '/ui/:assistant/:chat/messages', 'The chat so far, as messages of the client.', {
      send: '/ui/default/b9c1d2e8f7a64053/messages',
    }),
    route('POST', '/ui/:assistant/text', 'The answer as plain text, to messages or to a `prompt`.', {
      send: '/ui/default/text',
      body: { prompt: QUESTION },
      gives: 'stream',
    }),
    route('GET', '/agents/:assistant{[^_/]+}/:chat', 'The WebSocket of `useAgentChat`. Others are refused.', {
      send: '/agents/default/b9c1d2e8f7a64053',
      refused: true,
    }),
    route('GET', '/agents/:assistant{[^_/]+}/:chat/get-messages', 'The chat so far, as that hook loads it.', {
      send: '/agents/default/b9c1d2e8f7a64053/get-messages',
    }),
    route('POST', '/ui/:assistant/feedback', 'Rates a message, by its id: 1 is good, 0 is bad.', {
      send: '/ui/default/feedback',
      body: { messageId: 'CONVERSATION.1', vote: 1 },
    }),
    route('POST', '/ui/:assistant/:chat/stop', 'Stops the running answer for all its readers.', {
      send: '/ui/default/b9c1d2e8f7a64053/stop',
    }),
  ],
}

/** @type {import('./wire.mjs').WireGroup} */
const openAi = {
  title: 'OpenAI',
  about: 'Any other route below `/v1` is answered with 404, in the words of this API.',
  routes: [
    route('POST', '/v1/chat/completions', 'Asks an assistant, which is the model here.', {
      body: { model: 'default', messages: MESSAGES },
    }),
    route('POST', '/v1/responses', 'Asks an assistant; `previous_response_id` goes on from a response.', {
      body: { model: 'default', input: QUESTION },
      keep: { RESPONSE: 'id' },
    }),
    route('GET', '/v1/responses/:response', 'Reads a response; `stream=true` sends its events again.', {
      send: '/v1/responses/RESPONSE',
    }),
    route('GET', '/v1/responses/:response/input_items', 'The question that it answers.', {
      send: '/v1/responses/RESPONSE/input_items',
    }),
    route('POST', '/v1/responses/:response/cancel', 'Stops a response that is being written.', {
      send: '/v1/responses/RESPONSE/cancel',
      refused: true,
    }),
    route('DELETE', '/v1/responses/:response', 'Deletes a response with its question.', {
      send: '/v1/responses/RESPONSE',
    }),
    route('POST', '/v1/conversations', 'Makes a conversation, with items if there are any.', {
      body: {
        metadata: { topic: 'history' },
        items: [{ type: 'message', role: 'user', content: 'I run Parley on Cloudflare.' }],
      },
      keep: { CONVERSED: 'id' },
    }),
    route('GET', '/v1/conversations/:id', 'Reads a conversation, of any protocol.', {
      send: '/v1/conversations/CONVERSED',
    }),
    route('POST', '/v1/conversations/:id', 'Replaces its metadata.', {
      send: '/v1/conversations/CONVERSED',
      body: { metadata: { topic: 'storage' } },
    }),
    route('POST', '/v1/conversations/:id/items', 'Adds messages that no turn made.', {
      send: '/v1/conversations/CONVERSED/items',
      body: { items: [{ type: 'message', role: 'assistant', content: 'Noted.' }] },
    }),
    route('GET', '/v1/conversations/:id/items', 'Lists its messages, newest first.', {
      send: '/v1/conversations/CONVERSED/items?limit=10',
    }),
    route('GET', '/v1/conversations/:id/items/:item', 'Reads one of them.', {
      send: '/v1/conversations/CONVERSED/items/msg_CONVERSED.1.q',
    }),
    route('DELETE', '/v1/conversations/:id/items/:item', 'Deletes one of them.', {
      send: '/v1/conversations/CONVERSED/items/msg_CONVERSED.1.q',
    }),
    route('DELETE', '/v1/conversations/:id', 'Deletes a conversation.', {
      send: '/v1/conversations/CONVERSED',
    }),
    route('POST', '/v1/completions', 'Asks an assistant, in the words of the older API.', {
      body: { model: 'default', prompt: QUESTION },
    }),
    route('POST', '/v1/embeddings', 'Vectors of texts, by the model of a collection or of an assistant.', {
      body: { model: 'default', input: QUESTION },
    }),
    route('POST', '/v1/vector_stores/:store/search', 'What an assistant would find, without an answer.', {
      send: '/v1/vector_stores/default/search',
      body: { query: QUESTION, max_num_results: 3 },
    }),
    route('GET', '/v1/models', 'Lists the assistants that the key may ask.'),
    route('GET', '/v1/models/:model', 'Reads one of them.', { send: '/v1/models/default' }),
  ],
}

/** @type {import('./wire.mjs').WireGroup} */
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
      route('GET', `${prefix}/config`, 'Which options the front end of the Azure Search demo shows.', {
        send: `${prefix.replace(':assistant', 'default')}/config`,
      }),
      route('GET', `${prefix}/auth_setup`, 'That nobody has to sign in there.', {
        send: `${prefix.replace(':assistant', 'default')}/auth_setup`,
      }),
      route('POST', `${prefix}/ask`, 'The same as `/chat`, where front ends of the demo ask one question.', {
        send: `${prefix.replace(':assistant', 'default')}/ask`,
        body: { messages: MESSAGES },
      }),
    ]),
    route('GET', '/content/:label{.+}', 'The text of a document that an answer cites.', {
      send: '/content/how-does-parley-store-history.txt',
      gives: 'stream',
    }),
    route('POST', '/a/:assistant/chat', 'Asks another assistant.', {
      send: '/a/default/chat',
      body: { messages: MESSAGES },
    }),
    route('POST', '/a/:assistant/chat/stream', 'The same, as it is written.', {
      send: '/a/default/chat/stream',
      body: { messages: MESSAGES },
      gives: 'stream',
    }),
    route('GET', '/a/:assistant/content/:label{.+}', 'A document that its answer cites.', {
      send: '/a/default/content/how-does-parley-store-history.txt',
      gives: 'stream',
    }),
    ...['', '/a/:assistant'].flatMap((prefix) => {
      const at = prefix.replace(':assistant', 'default')
      return [
        route('POST', `${prefix}/v/:version/chat`, VERSIONED, {
          send: `${at}/v/2026-04/chat`,
          body: { messages: MESSAGES },
        }),
        route('POST', `${prefix}/v/:version/chat/stream`, VERSIONED, {
          send: `${at}/v/2026-04/chat/stream`,
          body: { messages: MESSAGES },
          gives: 'stream',
        }),
        route('GET', `${prefix}/v/:version/content/:label{.+}`, VERSIONED, {
          send: `${at}/v/2026-04/content/how-does-parley-store-history.txt`,
          gives: 'stream',
        }),
      ]
    }),
  ],
}

const METADATA = '/.well-known/oauth-protected-resource'
const SAME_METADATA = 'The same for the server at that address.'

/** @type {import('./wire.mjs').WireGroup} */
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
      send: '/mcp/default',
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'search', arguments: { query: QUESTION } },
      },
    }),
    route('GET', METADATA, "OAuth's metadata of a protected resource: which keys the server takes, and how."),
    route('GET', `${METADATA}/mcp`, SAME_METADATA),
    route('GET', `${METADATA}/mcp/:assistant`, SAME_METADATA, { send: `${METADATA}/mcp/default` }),
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

/** @type {import('./wire.mjs').WireGroup} */
const agUi = {
  title: 'AG-UI and CopilotKit',
  about: "The base address of CopilotKit's runtime is `/copilotkit`.",
  routes: [
    route(
      'POST',
      '/agui/:assistant',
      'Runs an assistant as an agent. The answer is a stream of AG-UI events.',
      {
        send: '/agui/default',
        body: RUN,
        gives: 'stream',
      },
    ),
    route('GET', '/copilotkit/info', 'The assistants that the key may ask, as agents.'),
    route('POST', '/copilotkit/agent/:assistant/run', 'The same as `/agui/:assistant`.', {
      send: '/copilotkit/agent/default/run',
      body: { ...RUN, runId: '2' },
      gives: 'stream',
    }),
    route(
      'POST',
      '/copilotkit/agent/:assistant/connect',
      'What was said in a thread, or the answer that is being written.',
      {
        send: '/copilotkit/agent/default/connect',
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

/** @type {import('./wire.mjs').WireGroup} */
const a2a = {
  title: 'Agent2Agent (A2A)',
  about: 'JSON-RPC of revision 1.0.',
  routes: [
    route('GET', CARD, 'The card of the assistant `default`, or of the one that the key is bound to.'),
    route('GET', `/a2a/:assistant${CARD}`, 'The card of another assistant.', { send: `/a2a/default${CARD}` }),
    route('POST', '/a2a/:assistant', 'Sends a message, streams the answer, reads or cancels a task.', {
      send: '/a2a/default',
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { message: { messageId: 'q1', role: 'ROLE_USER', parts: [{ text: QUESTION }] } },
      },
    }),
  ],
}

/** @type {import('./wire.mjs').WireGroup} */
const widgets = {
  title: 'deep-chat, n8n and AI Search widgets',
  about: 'The key in an address must be made for pages; the snippet sends no header that could carry it.',
  routes: [
    route('POST', '/deep-chat/:assistant', 'Asks an assistant in the format of deep-chat.', {
      send: '/deep-chat/default',
      body: { messages: [{ role: 'user', text: QUESTION }], conversation_id: 'b9c1d2e8f7a64055' },
    }),
    route('GET', '/deep-chat/:assistant/:chat', 'What was said, for `loadHistory`.', {
      send: '/deep-chat/default/b9c1d2e8f7a64055',
    }),
    route('POST', '/n8n/:assistant', "Asks an assistant as n8n's chat does, or loads the previous session.", {
      send: '/n8n/default',
      body: { action: 'sendMessage', sessionId: 'b9c1d2e8f7a64056', chatInput: QUESTION },
    }),
    route(
      'POST',
      '/ai-search/:key/:assistant/chat/completions',
      "Asks an assistant as Cloudflare's AI Search snippet does.",
      {
        send: '/ai-search/KEY/default/chat/completions',
        body: { messages: MESSAGES, stream: true },
        refused: 401,
      },
    ),
    route('POST', '/ai-search/:key/:assistant/search', 'Searches the documents of an assistant.', {
      send: '/ai-search/KEY/default/search',
      body: { messages: MESSAGES },
      refused: 401,
    }),
  ],
}

/** @type {import('./wire.mjs').Wire} */
export const chat = {
  name: 'api/chat',
  title: 'Chat API',
  about:
    'An [assistant](/docs/assistants) in the words of chat clients. [Chat protocols](/docs/chat-protocols) says what each ' +
    'of them can do. The key goes in `Authorization: Bearer KEY`, `x-api-key` or `api-key`.',
  header: 'Authorization',
  groups: [uiStream, openAi, aiChat, mcp, agUi, a2a, widgets],
}
