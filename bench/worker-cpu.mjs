/**
 * CPU of the Worker by route, without its objects, by version: `node bench/worker-cpu.mjs FOLDER ...`, each a checkout with its
 * node_modules. Milliseconds of an isolate that has served the route before, and of a new one (first.mjs). BENCH_ROUNDS says how many
 * processes each is measured in (9). The versions take turns, so that whatever else the machine does falls on all of them.
 */
import '../scripts/installed.mjs'
import { resolve } from 'node:path'
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { protocols, read } from './encoders.mjs'
import { firstAndLater } from './first.mjs'
import { median } from './report.mjs'
import { call, startServer } from './server.mjs'
import { startUpstream } from './stream.mjs'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
const STREAMED = ['typesense', 'parley', 'ui-stream', 'openai', 'responses', 'ai-chat', 'opensearch']
const AT_LENGTH = ['typesense', 'ui-stream', 'openai']
/** Answers by their chunks and the milliseconds between them. */
const SHORT = { chunks: 50, gap: 1 }
const LONG = { chunks: 300, gap: 5 }
const KEY = { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json' }

let asked = 0
/** A question that nobody has asked: a repeated one gets a copy of its answer. */
const question = () => makeDocument(100_000 + asked++).title

async function sent(url, init) {
  const response = await fetch(url, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`)
  return text
}

/** What the questions need. A version that lacks a part of it lacks the routes too. */
async function prepareDocs(server, upstream) {
  const create = (path, body, method = 'POST') =>
    call(server, path, {
      method,
      headers: KEY,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
  await create('/collections', { name: 'docs', ...SCHEMA })
  await create('/collections/docs/documents/import', documents.join('\n'))
  await create('/collections', { name: 'history', fields: HISTORY_FIELDS })
  for (const { chunks, gap } of [SHORT, LONG]) {
    const name = `docs-${chunks}-${gap}`
    await create('/conversations/models', {
      id: name,
      model_name: 'openai/bench',
      history_collection: 'history',
      api_key: 'sk-benchmark',
      openai_url: upstream.url,
      openai_path: `/v1/chat/completions?chunks=${chunks}&gap=${gap}&wait=50`,
      max_bytes: 8192,
    })
    const searches = [{ collection: 'docs', query_by: 'title,text' }]
    await create(`/assistants/${name}`, { model: name, searches }, 'PUT')
    const rag = { model_id: name, context_field_list: ['text'] }
    const pipeline = { response_processors: [{ retrieval_augmented_generation: rag }] }
    await create(`/_search/pipeline/${name}`, pipeline, 'PUT').catch(() => {})
  }
}

/** Requests by route: prepares one, and returns what sends it. */
function requests() {
  const body = (given) => ({ method: 'POST', headers: KEY, body: JSON.stringify(given) })
  const whole = () => ({ question: question(), model: 'docs-50-1', collections: ['docs'] })
  const searched = () => ({ q: question(), query_by: 'title,text' })
  const streamed = (wire, { chunks, gap }) => {
    const one = protocols(question(), '', chunks, gap)[wire]
    return (url) => read({ url }, one, chunks)
  }
  const to = (path, init) => (url) => sent(url + path, init)
  return {
    'GET /health': async () => to('/health'),
    'a search': async () =>
      to(`/collections/docs/documents/search?${new URLSearchParams(searched())}`, { headers: KEY }),
    'a multi_search of five': async () =>
      to(
        '/multi_search',
        body({ searches: Array.from({ length: 5 }, () => ({ collection: 'docs', ...searched() })) }),
      ),
    'a question, answered whole': async () => to('/conversations', body(whole())),
    ...Object.fromEntries(STREAMED.map((wire) => [`${wire}, 50 chunks`, async () => streamed(wire, SHORT)])),
    ...Object.fromEntries(AT_LENGTH.map((wire) => [`${wire}, 300 chunks`, async () => streamed(wire, LONG)])),
  }
}

/** Starts a version. @returns how to measure a round, and its end */
async function startVersion(from, upstream) {
  const server = await startServer({ apart: true, door: true, from })
  await prepareDocs(server, upstream)
  const known = {}
  for (const [name, ask] of Object.entries(requests())) {
    const send = await ask()
    try {
      await send(server.url)
      known[name] = ask
    } catch (error) {
      console.log(`${from} does not serve ${name}: ${error.message}`)
    }
  }
  return { measure: () => firstAndLater(server, upstream, known, 1), stop: () => server.close() }
}

const folders = process.argv.slice(2).map((name) => resolve(name))
const upstream = await startUpstream()
const versions = []
try {
  for (const folder of folders)
    versions.push({ folder, rounds: [], ...(await startVersion(folder, upstream)) })
  for (let round = 0; round < ROUNDS; round++) {
    for (const version of versions) version.rounds.push(await version.measure())
    console.log(`round ${round + 1} of ${ROUNDS}`)
  }
} finally {
  for (const { stop } of versions) await stop()
  upstream.stop()
}
const names = [...new Set(versions.flatMap(({ rounds: [first] }) => Object.keys(first)))]
const columns = versions.flatMap(({ folder, rounds }) =>
  ['warm', 'cold'].map((temperature) => ({
    head: `${temperature}, ${folder}`,
    of: (name) =>
      rounds[0][name] ? median(rounds.map((round) => round[name][temperature].middle)).toFixed(1) : '-',
  })),
)
console.log(`\n| Request | ${columns.map(({ head }) => head).join(' | ')} |`)
console.log(`| --- | ${columns.map(() => '---:').join(' | ')} |`)
for (const name of names) console.log(`| ${name} | ${columns.map(({ of }) => of(name)).join(' | ')} |`)
