/**
 * CPU of a first question, of a follow-up and of a chunk, of this version and of another one: `node bench/versions.mjs FOLDER`,
 * where FOLDER is a checkout of the other with its node_modules. Both answer the same questions of MTRAG, in turn.
 * BENCH_SEARCH=words leaves the vectors out, BENCH_ROUNDS says how often (5). A model in this process answers at once: it rewrites
 * a follow-up as the data set does. Each round is told when it ends, so a run that is stopped early says something too.
 */
import '../scripts/installed.mjs'
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { median } from './report.mjs'

const [folder] = process.argv.slice(2)
const here = join(import.meta.dirname, '..')
const data = join(process.env.PARLEY_DATA ?? join(here, '../shared/data'), 'mtrag-clapnq')
const withVectors = process.env.BENCH_SEARCH !== 'words'
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
/** conversations of a round */
const EACH = 15
/** for what a turn leaves to the background, in milliseconds */
const SETTLES = 3_000
/** What an import leaves to the background has ended when workerd has used less CPU than this in a second; in seconds */
const QUIET = 0.1
/** A wait for that gives up after this many seconds. */
const MOST_WAITED = 120
const WORDS = 40
/** chunks of a long answer, which tells what a chunk costs, and milliseconds between them */
const CHUNKS = 4_000
const GAP = 0.25
/** asks for a long answer */
const AT_LENGTH = 'at length'

const readLines = (path) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const turns = readLines(join(data, 'turns.jsonl'))
const rewritten = new Map(turns.map(({ query, rewrite }) => [query, rewrite ?? query]))

const completion = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta, finish_reason }] })}\n\n`

/** An OpenAI-compatible model. */
async function startModel() {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    if (request.method === 'GET') return response.end(JSON.stringify({ data: [{ id: 'bench' }] }))
    const { messages, stream } = JSON.parse(body)
    const asked = messages.map(({ content }) => content).join('\n')
    const question = /<Question>\n([\s\S]*?)\n\n<Standalone/.exec(asked)?.[1]
    const answer = question
      ? [rewritten.get(question) ?? question]
      : Array.from({ length: asked.includes(AT_LENGTH) ? CHUNKS : WORDS }, (_, n) => `word${n} `)
    if (stream !== true) {
      const message = { role: 'assistant', content: answer.join('') }
      return response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const started = performance.now()
    for (const [at, content] of answer.entries()) {
      // Timers are too coarse for the gap, so what is due is written at once.
      if (answer.length === CHUNKS && started + at * GAP > performance.now()) await setTimeout(1)
      response.write(completion({ content }))
    }
    response.end(`${completion({}, 'stop')}data: [DONE]\n\n`)
  })
  server.keepAliveTimeout = 120_000
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }
}

/** Starts a version in a process of its own, whose only child is its workerd. */
async function startVersion(root, model) {
  const child = fork(join(import.meta.dirname, 'version.mjs'), [root], { cwd: root })
  const next = () => new Promise((resolve) => child.once('message', resolve))
  const { url } = await next()
  const cpu = () => {
    const reply = next()
    child.send('cpu')
    return reply
  }
  const post = async (path, body) => {
    const headers = { 'x-typesense-api-key': 'xyz' }
    const response = await fetch(url + path, { method: 'POST', headers, body })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    await response.text()
  }
  const strings = (names) => names.map((name) => ({ name, type: 'string' }))
  const model_config = { model_name: 'ts/all-MiniLM-L12-v2' }
  const vectors = { name: 'embedding', type: 'float[]', embed: { from: ['title', 'text'], model_config } }
  const fields = [...strings(['title', 'text']), ...(withVectors ? [vectors] : [])]
  await post('/collections', JSON.stringify({ name: 'docs', fields }))
  const documents = readLines(join(data, 'corpus.jsonl')).map(({ id, title, text }) =>
    JSON.stringify({ id, title: title ?? '', text: text ?? '' }),
  )
  for (let from = 0; from < documents.length; from += 1_000) {
    await post('/collections/docs/documents/import', documents.slice(from, from + 1_000).join('\n'))
  }
  for (let waited = 0, used = await cpu(); waited < MOST_WAITED; waited++) {
    await setTimeout(1_000)
    const now = await cpu()
    if (now - used < QUIET && waited > 1) break
    used = now
  }
  const said = strings(['conversation_id', 'model_id', 'role', 'message'])
  const history = { name: 'history', fields: [...said, { name: 'timestamp', type: 'int32' }] }
  await post('/collections', JSON.stringify(history))
  const configured = {
    id: 'm',
    model_name: 'openai/bench',
    history_collection: 'history',
    api_key: 'sk-benchmark',
    openai_url: model.url,
    openai_path: '/v1/chat/completions',
    max_bytes: 8192,
  }
  await post('/conversations/models', JSON.stringify(configured))
  return { url, cpu, stop: () => child.send('stop'), first: [], followUp: [], firstToken: [], chunk: [] }
}

async function ask({ url, firstToken }, q, conversation_id) {
  const query = new URLSearchParams({
    q,
    query_by: withVectors ? 'embedding,title,text' : 'title,text',
    exclude_fields: 'embedding',
    conversation: 'true',
    conversation_model_id: 'm',
    conversation_stream: 'true',
    ...(conversation_id && { conversation_id }),
  })
  const started = performance.now()
  const headers = { 'x-typesense-api-key': 'xyz' }
  const response = await fetch(`${url}/collections/docs/documents/search?${query}`, { headers })
  let text = ''
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    if (!text.includes('word0') && !q.endsWith(AT_LENGTH) && piece.includes('word0'))
      firstToken.push(performance.now() - started)
    text += piece
  }
  if (!text.includes(`word${WORDS - 1}`)) throw new Error(`${response.status} ${text.slice(0, 300)}`)
  return /"conversation_id":\s*"([^"]+)"/.exec(text)[1]
}

async function round(version, pairs, counts) {
  const before = await version.cpu()
  const ids = []
  for (const [said] of pairs) ids.push(await ask(version, said))
  await setTimeout(SETTLES)
  const between = await version.cpu()
  for (const [at, [, question]] of pairs.entries()) await ask(version, question, ids[at])
  await setTimeout(SETTLES)
  const after = await version.cpu()
  await ask(version, `${pairs[0][0]} ${AT_LENGTH}`)
  await setTimeout(SETTLES)
  const last = await version.cpu()
  if (!counts) return
  const first = (between - before) / pairs.length
  version.chunk.push(((last - after - first) / CHUNKS) * 1_000)
  version.first.push(((between - before) / pairs.length) * 1_000)
  version.followUp.push(((after - between) / pairs.length) * 1_000)
}

if (folder === undefined)
  throw new Error('Name the folder of the other version: node bench/versions.mjs FOLDER')
const model = await startModel()
const versions = [await startVersion(here, model), await startVersion(folder, model)]
const pairs = turns
  .filter(({ turn }) => turn > 1)
  .map(({ history, query }) => [history.findLast(({ role }) => role === 'user').content, query])
for (let at = 0; at <= ROUNDS; at++) {
  // The first round warms both up.
  const some = pairs.slice(at * EACH, (at + 1) * EACH)
  for (const version of at % 2 === 0 ? versions : versions.toReversed()) await round(version, some, at > 0)
  if (at > 0) tell(`after ${at} of ${ROUNDS} rounds`)
}

function tell(when) {
  const [now, other] = versions
  console.log(when)
  for (const what of ['first', 'followUp', 'firstToken', 'chunk']) {
    const [a, b] = [median(now[what]), median(other[what])]
    console.log(
      `  ${what}: ${a.toPrecision(3)} ms, the other ${b.toPrecision(3)} ms, ratio ${(a / b).toFixed(2)}`,
    )
  }
}
for (const version of versions) version.stop()
model.stop()
