/** What each protocol costs: CPU a chunk of a streamed answer, against the same answer in Typesense's words. */
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { report } from './report.mjs'
import { call } from './server.mjs'
import { startUpstream } from './stream.mjs'

const CHUNKS = 2000
/** milliseconds between chunks: a very fast model */
const GAP = 0.25
const ROUNDS = 10

const EVENTS = { accept: 'application/json, text/event-stream' }

const post = (body, headers = {}) => ({
  method: 'POST',
  headers: { authorization: 'Bearer xyz', 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

/** How each protocol asks, and how its streams end. */
const protocols = (question, pageKey) => {
  const messages = [{ role: 'user', content: question }]
  const search = new URLSearchParams({
    q: question,
    query_by: 'title,text',
    conversation: 'true',
    conversation_model_id: 'paced',
    conversation_stream: 'true',
    'x-typesense-api-key': 'xyz',
  })
  return {
    typesense: { path: `/collections/docs/documents/search?${search}`, end: '[DONE]' },
    parley: {
      path: '/conversations',
      init: post({ question, model: 'paced', collections: ['docs'], stream: true }),
      end: 'event: done',
    },
    'ui-stream': { path: '/ui/docs', init: post({ messages }), end: '[DONE]' },
    openai: {
      path: '/v1/chat/completions',
      init: post({ model: 'docs', messages, stream: true }),
      end: '[DONE]',
    },
    responses: {
      path: '/v1/responses',
      init: post({ model: 'docs', input: question, stream: true }),
      end: 'event: response.completed',
    },
    completions: {
      path: '/v1/completions',
      init: post({ model: 'docs', prompt: question, stream: true }),
      end: '[DONE]',
    },
    opensearch: {
      path: '/docs/_search?search_pipeline=rag',
      init: post({
        query: { match: { text: question } },
        ext: { generative_qa_parameters: { llm_question: question } },
        stream: true,
      }),
      end: 'event: done',
    },
    'ai-search': {
      path: `/ai-search/${encodeURIComponent(pageKey)}/docs/chat/completions`,
      init: post({ messages, stream: true }),
      end: '[DONE]',
    },
    agents: {
      path: `/agents/docs/${crypto.randomUUID()}?x-typesense-api-key=xyz`,
      message: JSON.stringify({
        type: 'cf_agent_use_chat_request',
        id: '1',
        init: { method: 'POST', body: JSON.stringify({ messages, trigger: 'submit-message' }) },
      }),
      end: '"done":true',
    },
    'ai-chat': { path: '/a/docs/chat/stream', init: post({ messages }), end: '{"delta":{},' },
    mcp: {
      path: '/mcp/docs',
      init: post(
        {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'ask', arguments: { question }, _meta: { progressToken: 1 } },
        },
        EVENTS,
      ),
      end: '"structuredContent"',
    },
    'ag-ui': {
      path: '/agui/docs',
      init: post({ threadId: crypto.randomUUID(), runId: '1', messages }),
      end: 'RUN_FINISHED',
    },
    a2a: {
      path: '/a2a/docs',
      init: post({
        jsonrpc: '2.0',
        id: 1,
        method: 'SendStreamingMessage',
        params: { message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: question }] } },
      }),
      end: 'TASK_STATE_COMPLETED',
    },
    'deep-chat': {
      path: '/deep-chat/docs',
      init: post({ messages: [{ role: 'user', text: question }] }, EVENTS),
      end: '"sources"',
    },
    n8n: {
      path: '/n8n/docs',
      init: post(
        { action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: question },
        { accept: 'text/plain' },
      ),
      end: '"end"',
    },
    'plain text': { path: '/ui/docs/text', init: post({ messages }), end: `word${CHUNKS - 1}` },
  }
}

/** Reads a stream to its end. @throws when it is not whole */
async function read(server, { path, init, message, end }) {
  if (message !== undefined) return converse(server, path, message, end)
  const response = await fetch(server.url + path, init)
  const text = await response.text()
  if (!response.ok || !text.includes(end) || !text.includes(`word${CHUNKS - 1}`))
    throw new Error(`${path}: ${response.status}, and the stream is not whole`)
}

/** The same over a WebSocket. */
async function converse(server, path, message, end) {
  const socket = new WebSocket(server.url.replace('http', 'ws') + path)
  let text = ''
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', () => socket.send(message))
    socket.addEventListener('error', () => reject(new Error(`${path}: the socket failed`)))
    socket.addEventListener('message', ({ data }) => {
      text += data
      if (data.includes(end)) resolve()
    })
  })
  socket.close()
  if (!text.includes(`word${CHUNKS - 1}`)) throw new Error(`${path}: the stream is not whole`)
}

async function prepare(server, upstream) {
  const create = (path, body, method = 'POST') =>
    call(server, path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  await create('/collections', { name: 'docs', ...SCHEMA })
  const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
  await create('/collections/docs/documents/import', documents.join('\n'))
  await create('/collections', { name: 'history', fields: HISTORY_FIELDS })
  await create('/conversations/models', {
    id: 'paced',
    model_name: 'openai/bench',
    history_collection: 'history',
    api_key: 'sk-benchmark',
    openai_url: upstream.url,
    openai_path: `/v1/chat/completions?chunks=${CHUNKS}&gap=${GAP}&wait=50`,
    max_bytes: 8192,
  })
  const searches = [{ collection: 'docs', query_by: 'title,text' }]
  await create('/assistants/docs', { model: 'paced', searches }, 'PUT')
  const rag = { model_id: 'paced', context_field_list: ['text'] }
  await create(
    '/_search/pipeline/rag',
    { response_processors: [{ retrieval_augmented_generation: rag }] },
    'PUT',
  )
  const made = await create('/keys', {
    description: 'a page',
    actions: ['documents:search'],
    collections: ['docs'],
    limits: { turns_per_day: 100_000 },
  })
  return JSON.parse(made).value
}

export async function benchEncoders(server) {
  const upstream = await startUpstream()
  try {
    const pageKey = await prepare(server, upstream)
    // Each request asks something else. A question that was just asked gets a copy of that answer.
    let asked = 0
    const ask = (name) => read(server, protocols(makeDocument(asked++).title, pageKey)[name])
    const names = Object.keys(protocols('', ''))
    for (const name of names) await ask(name)
    const spent = new Map(names.map((name) => [name, 0]))
    // In turns, so that whatever else the machine does falls on all of them.
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of names) {
        const before = server.cpu()
        await ask(name)
        spent.set(name, spent.get(name) + server.cpu() - before)
      }
    }
    const microseconds = (name) => (spent.get(name) / ROUNDS / CHUNKS) * 1e6
    for (const name of names.slice(1)) {
      report({
        what: `CPU a chunk of an answer on ${name}, ${GAP} ms between chunks, against the Typesense stream`,
        parley: `${microseconds(name).toFixed(0)} µs`,
        baseline: `${microseconds('typesense').toFixed(0)} µs`,
        ratio: spent.get(name) / spent.get('typesense'),
        aim: 1.2,
        better: 'lower',
      })
    }
  } finally {
    upstream.stop()
  }
}
