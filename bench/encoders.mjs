/**
 * What each protocol costs: CPU a chunk of a streamed answer, against the same answer in Typesense's words.
 *
 * Every answer also has a fixed cost: its request, its search, a socket that is opened, the chat that is stored. So each
 * protocol streams a short and a long answer. The difference between them is what the further chunks cost.
 */
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { report } from './report.mjs'
import { call } from './server.mjs'
import { startUpstream } from './stream.mjs'

/** chunks of the short answer and of the long one */
const SHORT = 1000
const LONG = 6000
/** milliseconds between chunks: a very fast model */
const GAP = 0.25
const ROUNDS = 8

const EVENTS = { accept: 'application/json, text/event-stream' }

const post = (body, headers = {}) => ({
  method: 'POST',
  headers: { authorization: 'Bearer xyz', 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

/** The assistant and the search pipeline whose answers have this many chunks, so many milliseconds apart. */
const assistantOf = (chunks, gap) => `docs-${chunks}-${String(gap).replace('.', '-')}`

/** A search of OpenSearch that is answered. @param more parameters of the answer */
export const searchOfOpenSearch = (question, chunks, gap, more = {}) => ({
  path: `/docs/_search?search_pipeline=${assistantOf(chunks, gap)}`,
  init: post({
    query: { match: { text: question } },
    ext: { generative_qa_parameters: { llm_question: question, timeout: 600, ...more } },
    stream: true,
  }),
  end: 'event: done',
})

/** How each protocol asks for an answer of `chunks` chunks, and how its streams end. OpenSearch's has no memory. */
export const protocols = (question, pageKey, chunks, gap = GAP) => {
  const assistant = assistantOf(chunks, gap)
  const messages = [{ role: 'user', content: question }]
  const search = new URLSearchParams({
    q: question,
    query_by: 'title,text',
    conversation: 'true',
    conversation_model_id: assistant,
    conversation_stream: 'true',
    'x-typesense-api-key': 'xyz',
  })
  return {
    typesense: { path: `/collections/docs/documents/search?${search}`, end: '[DONE]' },
    parley: {
      path: '/conversations',
      init: post({ question, model: assistant, collections: ['docs'], stream: true }),
      end: 'event: done',
    },
    'ui-stream': { path: `/ui/${assistant}`, init: post({ messages }), end: '[DONE]' },
    openai: {
      path: '/v1/chat/completions',
      init: post({ model: assistant, messages, stream: true }),
      end: '[DONE]',
    },
    responses: {
      path: '/v1/responses',
      init: post({ model: assistant, input: question, stream: true }),
      end: 'event: response.completed',
    },
    completions: {
      path: '/v1/completions',
      init: post({ model: assistant, prompt: question, stream: true }),
      end: '[DONE]',
    },
    opensearch: searchOfOpenSearch(question, chunks, gap),
    'ai-search': {
      path: `/ai-search/${encodeURIComponent(pageKey)}/${assistant}/chat/completions`,
      init: post({ messages, stream: true }),
      end: '[DONE]',
    },
    agents: {
      path: `/agents/${assistant}/${crypto.randomUUID()}?x-typesense-api-key=xyz`,
      message: JSON.stringify({
        type: 'cf_agent_use_chat_request',
        id: '1',
        init: { method: 'POST', body: JSON.stringify({ messages, trigger: 'submit-message' }) },
      }),
      end: '"done":true',
    },
    'ai-chat': { path: `/a/${assistant}/chat/stream`, init: post({ messages }), end: '{"delta":{},' },
    mcp: {
      path: `/mcp/${assistant}`,
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
      path: `/agui/${assistant}`,
      init: post({ threadId: crypto.randomUUID(), runId: '1', messages }),
      end: 'RUN_FINISHED',
    },
    a2a: {
      path: `/a2a/${assistant}`,
      init: post({
        jsonrpc: '2.0',
        id: 1,
        method: 'SendStreamingMessage',
        params: { message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: question }] } },
      }),
      end: 'TASK_STATE_COMPLETED',
    },
    'deep-chat': {
      path: `/deep-chat/${assistant}`,
      init: post({ messages: [{ role: 'user', text: question }] }, EVENTS),
      end: '"sources"',
    },
    n8n: {
      path: `/n8n/${assistant}`,
      init: post(
        { action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: question },
        { accept: 'text/plain' },
      ),
      end: '"end"',
    },
    'plain text': { path: `/ui/${assistant}/text`, init: post({ messages }), end: `word${chunks - 1}` },
  }
}

/** Reads a stream to its end. @returns its text @throws when it is not whole */
export async function read(server, { path, init, message, end }, chunks) {
  if (message !== undefined) return converse(server, { path, message, end }, chunks)
  const response = await fetch(server.url + path, init)
  const text = await response.text()
  if (!response.ok || !text.includes(end) || !text.includes(`word${chunks - 1}`))
    throw new Error(`${path}: ${response.status}, and the stream is not whole`)
  return text
}

/** The same over a WebSocket. */
async function converse(server, { path, message, end }, chunks) {
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
  if (!text.includes(`word${chunks - 1}`)) throw new Error(`${path}: the stream is not whole`)
  return text
}

/**
 * Makes a collection `docs`, and an assistant for each kind of answer: how many chunks, and how many milliseconds between them.
 * @returns a key that a page may show
 */
export async function prepare(server, upstream, answers) {
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
  const searches = [{ collection: 'docs', query_by: 'title,text' }]
  for (const { chunks, gap } of answers) {
    const name = assistantOf(chunks, gap)
    await create('/conversations/models', {
      id: name,
      model_name: 'openai/bench',
      history_collection: 'history',
      api_key: 'sk-benchmark',
      openai_url: upstream.url,
      openai_path: `/v1/chat/completions?chunks=${chunks}&gap=${gap}&wait=50`,
      max_bytes: 8192,
    })
    await create(`/assistants/${name}`, { model: name, searches }, 'PUT')
    const rag = { model_id: name, context_field_list: ['text'] }
    await create(
      `/_search/pipeline/${name}`,
      { response_processors: [{ retrieval_augmented_generation: rag }] },
      'PUT',
    )
  }
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
    const pageKey = await prepare(
      server,
      upstream,
      [SHORT, LONG].map((chunks) => ({ chunks, gap: GAP })),
    )
    // Each request asks something else. A question that was just asked gets a copy of that answer.
    let asked = 0
    const ask = (name, chunks) =>
      read(server, protocols(makeDocument(asked++).title, pageKey, chunks)[name], chunks)
    const names = Object.keys(protocols('', '', SHORT))
    for (const name of names) await ask(name, SHORT)
    const spent = new Map(names.map((name) => [name, { [SHORT]: 0, [LONG]: 0 }]))
    // In turns, so that whatever else the machine does falls on all of them.
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of names) {
        for (const chunks of [SHORT, LONG]) {
          const before = server.cpu()
          await ask(name, chunks)
          spent.get(name)[chunks] += server.cpu() - before
        }
      }
    }
    /** microseconds of CPU that one more chunk costs */
    const chunkOf = ({ [SHORT]: short, [LONG]: long }) => ((long - short) / ROUNDS / (LONG - SHORT)) * 1e6
    /** milliseconds of CPU that an answer costs besides its chunks */
    const answerOf = (costs) => (costs[SHORT] / ROUNDS) * 1e3 - (chunkOf(costs) * SHORT) / 1e3
    const typesense = spent.get('typesense')
    for (const name of names.slice(1)) {
      const costs = spent.get(name)
      report({
        what: `CPU a chunk of an answer on ${name}, ${GAP} ms between chunks, against the Typesense stream`,
        parley: `${chunkOf(costs).toFixed(1)} µs`,
        baseline: `${chunkOf(typesense).toFixed(1)} µs`,
        ratio: chunkOf(costs) / chunkOf(typesense),
        aim: 1.2,
        better: 'lower',
      })
      console.log(
        `  besides, an answer costs ${answerOf(costs).toFixed(0)} ms on ${name}, ${answerOf(typesense).toFixed(0)} ms on the Typesense stream`,
      )
    }
  } finally {
    upstream.stop()
  }
}
