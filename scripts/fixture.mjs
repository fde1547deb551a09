/**
 * `npm run fixture`: writes a small data folder as this version does, test/fixtures/folder-landed.tar.gz. The test
 * test/clients/landed-folder.test.ts opens it with the version at hand and goes on with its conversations.
 *
 * It is storage format 1, and every version from now on opens it. A change of what is stored comes with a migration from there, and
 * with a folder of its own.
 *
 * The folder is what a server leaves behind that is killed while it answers. It holds:
 *
 * - `films`, three documents with embeddings, and `chats`, the messages
 * - a conversation of two turns with citations and suggested questions, which a retry may ask for again
 * - one whose history holds a call of a tool and its result
 * - a memory of OpenSearch with a message that was posted and one that was answered
 * - a turn that failed
 * - a turn that was being written: half of its answer is in its log, and D1 does not know of it yet
 */
import './installed.mjs'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from './wrangler.mjs'

const TARGET = join(root, 'test/fixtures/folder-landed.tar.gz')
const PORT = 31_877
const URL = `http://localhost:${PORT}`
/** Running answers are written to disk every 5 seconds. This is longer, in milliseconds. */
const WRITTEN_MS = 8_000
/** How long D1 may take to learn of what has ended, in milliseconds. */
const SETTLED_MS = 4_000

const FILMS = [
  {
    id: 'alien',
    title: 'Alien',
    year: 1979,
    plot: 'The crew of the spaceship Nostromo is hunted by a creature from another world. Ridley Scott directed Alien.',
  },
  {
    id: 'heat',
    title: 'Heat',
    year: 1995,
    plot: 'A detective in Los Angeles chases a crew of bank robbers. Michael Mann directed Heat.',
  },
  {
    id: 'jaws',
    title: 'Jaws',
    year: 1975,
    plot: 'A shark hunts swimmers off the coast of Amity. Steven Spielberg directed Jaws.',
  },
]
const HISTORY = ['conversation_id', 'model_id', 'role', 'message'].map((name) => ({ name, type: 'string' }))

/** A provider that begins an answer and never ends it, and that refuses any question about sharks. */
const provider = createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  const { stream } = JSON.parse(body)
  const content = (/** @type {string} */ text) => ({ role: 'assistant', content: text })
  if (body.includes('shark?')) return void response.writeHead(400).end('{"error": {"message": "No sharks."}}')
  if (stream !== true) {
    return void response.end(
      JSON.stringify({ choices: [{ message: content('Hello.'), finish_reason: 'stop' }] }),
    )
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let word = 1; !response.destroyed; word++) {
    response.write(`data: ${JSON.stringify({ choices: [{ delta: content(`word${word} `) }] })}\n\n`)
    await sleep(200)
  }
}).listen(0, '127.0.0.1')
await once(provider, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (provider.address())

const folder = mkdtempSync(join(tmpdir(), 'parley-fixture-'))
const start = join(root, 'scripts/start.mjs')
const server = spawn(
  process.execPath,
  [start, '--port', String(PORT), '--persist-to', folder, '--no-sample'],
  // In a group of its own, so that the runtime is killed with it.
  { detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
)

/**
 * @param {string} method @param {string} path @param {unknown} [body] a string goes as it is
 * @param {Record<string, string>} [headers]
 */
const send = (method, path, body, headers = {}) =>
  fetch(URL + path, {
    method,
    headers: { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })

/** @param {Parameters<typeof send>} call @throws Error for anything but a success */
async function json(...call) {
  const response = await send(...call)
  const text = await response.text()
  if (!response.ok) throw new Error(`${call[0]} ${call[1]}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** @param {object} question @param {Record<string, string>} [headers] */
const ask = (question, headers) =>
  json('POST', '/conversations', { model: 'films', collections: ['films'], ...question }, headers)

/** Fills the folder. @returns what the test has to know of it */
async function fill() {
  await json('POST', '/collections', {
    name: 'films',
    fields: [
      { name: 'title', type: 'string' },
      { name: 'plot', type: 'string' },
      { name: 'year', type: 'int32' },
      {
        name: 'embedding',
        type: 'float[]',
        embed: { from: ['title', 'plot'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
      },
    ],
  })
  for (const film of FILMS) await json('POST', '/collections/films/documents', film)
  await json('POST', '/collections', {
    name: 'chats',
    fields: [...HISTORY, { name: 'timestamp', type: 'int32' }],
  })
  // 100 years in seconds: what is in the fixture must not expire.
  const shared = { history_collection: 'chats', max_bytes: 16_384, ttl: 3_153_600_000 }
  const remote = { openai_url: `http://127.0.0.1:${port}`, api_key: 'sk-fixture-0123456789' }
  await json('POST', '/conversations/models', { ...shared, id: 'films', model_name: 'local/extractive' })
  await json('POST', '/conversations/models', {
    ...shared,
    ...remote,
    id: 'remote',
    model_name: 'openai/gpt',
  })
  await json('PUT', '/assistants/films', { model: 'films', collections: ['films'], title_field: 'title' })

  const retried = { question: 'Who directed Alien?', followups: true }
  const key = { 'idempotency-key': 'landed-retry' }
  const alien = await ask(retried, key)
  const conversation_id = alien.conversation_id
  const second = await ask({ question: 'And when was it made?', conversation_id })

  const call = { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{}' } }
  const tools = await json('POST', '/v1/chat/completions', {
    model: 'films',
    messages: [
      { role: 'user', content: 'What time is it?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'It is noon in Lisbon.' },
      { role: 'user', content: 'Who directed Heat?' },
    ],
  })

  await json('PUT', '/_search/pipeline/rag', {
    response_processors: [
      { retrieval_augmented_generation: { model_id: 'films', context_field_list: ['plot'] } },
    ],
  })
  const { memory_id: memory } = await json('POST', '/_plugins/_ml/memory', { name: 'Films' })
  const posted = await json('POST', `/_plugins/_ml/memory/${memory}/messages`, {
    input: 'Which film is the best?',
    response: 'Jaws is.',
    origin: 'by hand',
  })
  const rag = await json('POST', '/films/_search?search_pipeline=rag', {
    query: { match: { plot: 'shark' } },
    ext: { generative_qa_parameters: { llm_question: 'What hunts swimmers?', memory_id: memory } },
  })

  const failed = await send('POST', '/conversations', {
    model: 'remote',
    collections: ['films'],
    question: 'Who is the shark?',
  })
  if (failed.ok) throw new Error('The turn that has to fail was answered.')
  await sleep(SETTLED_MS)

  const running = await send(
    'POST',
    '/conversations',
    { model: 'remote', collections: ['films'], question: 'Who directed Heat?', stream: true },
    { 'idempotency-key': 'landed-running', accept: 'text/event-stream' },
  )
  const cut = running.headers.get('x-parley-conversation-id')
  // Read until the server is killed.
  running.text().catch(() => undefined)
  await sleep(WRITTEN_MS)
  return {
    commit: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim(),
    alien: { id: conversation_id, answer: alien.answer, followups: alien.followups, second: second.answer },
    tools: tools.id,
    memory: { id: memory, posted: posted.message_id, answered: rag.ext.retrieval_augmented_generation },
    cut,
  }
}

try {
  await new Promise((resolve, reject) => {
    server.once('exit', () => reject(new Error('The server did not start.')))
    server.stdout.on('data', (piece) => {
      process.stdout.write(piece)
      if (String(piece).includes('Ctrl-C stops it.')) resolve(undefined)
    })
  })
  const facts = await fill()
  process.kill(-Number(server.pid), 'SIGKILL')
  await once(server, 'exit')
  writeFileSync(join(folder, 'fixture.json'), JSON.stringify(facts, null, 2))
  execFileSync('tar', ['czf', TARGET, '-C', folder, 'encryption-key', 'fixture.json', 'v3'])
  console.log(`Wrote ${TARGET}:\n${JSON.stringify(facts, null, 2)}`)
} finally {
  if (server.exitCode === null && server.signalCode === null) process.kill(-Number(server.pid), 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
  provider.closeAllConnections()
  provider.close()
}
