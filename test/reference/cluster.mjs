/**
 * Conversations over a million documents in a real OpenSearch cluster of three nodes, while one node is killed and one is cut
 * off. Each answer is held against the document that its question is about, and each count against the number of documents.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { client, startOwnServer } from '../../scripts/own-server.mjs'
import { askNode, fill, INDEX, whole } from './fill.mjs'
import { keeperOf, lighthouse, nameOf, REGIONS } from './lighthouses.mjs'
import { restartNode, runningNodes, startReference } from './nodes.mjs'

const NODES = 3
const CONVERSATIONS = 50
const TURNS = 4
/** A node that gives nothing is given up after this long, in milliseconds. */
const TIMEOUT_MS = 10_000
const HEADERS = { 'x-typesense-api-key': 'xyz' }
const HISTORY = ['conversation_id', 'model_id', 'timestamp', 'role', 'message'].map((name) => ({
  name,
  type: name === 'timestamp' ? 'int32' : 'string',
}))

/**
 * What was asked and how it ended.
 * @typedef {{ ms: number, fault?: string, code?: number, message?: string }} Asked `fault`: the answer or count is wrong
 */

/** @param {string} url @param {URLSearchParams} query */
async function search(url, query) {
  const started = performance.now()
  const response = await fetch(`${url}/collections/${INDEX}/documents/search?${query}`, { headers: HEADERS })
  const text = await response.text()
  return { response, text, ms: performance.now() - started }
}

/**
 * One question about one lighthouse, its answer streamed.
 * @param {string} url @param {number} number @param {string | undefined} conversation
 * @returns {Promise<Asked & { conversation?: string | undefined }>}
 */
async function ask(url, number, conversation) {
  const query = new URLSearchParams({
    q: `Which keeper has ${nameOf(number)}?`,
    query_by: 'title,text',
    conversation: 'true',
    conversation_stream: 'true',
    conversation_model_id: 'reads',
    ...(conversation !== undefined && { conversation_id: conversation }),
  })
  const { response, text, ms } = await search(url, query)
  if (!response.ok) return { ms, conversation, code: response.status, message: text }
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)))
  const failed = events.findLast(({ error }) => error !== undefined)
  if (failed) return { ms, conversation, code: failed.code ?? 0, message: failed.error }
  const last = events.findLast((event) => event.conversation?.answer !== undefined)
  if (last === undefined) return { ms, conversation, fault: `a stream without an end: ${text.slice(-300)}` }
  const id = last.conversation.conversation_id
  if (!last.conversation.answer.includes(keeperOf(number)))
    return { ms, conversation: id, fault: `${number}: ${last.conversation.answer}` }
  const hits = last.hits ?? last.results?.[0]?.hits ?? []
  const strange = hits.find(
    (/** @type {{ document: { id: string, title: string, text: string } }} */ { document }) =>
      document.text !== lighthouse(Number(document.id)).text,
  )
  const fault =
    hits[0]?.document.id !== String(number)
      ? `${number}: its first passage is ${hits[0]?.document.id}`
      : strange && `${number}: a passage is not what its document says`
  return { ms, conversation: id, ...(fault && { fault }) }
}

/** @param {string} url @param {number} region @param {number} documents @returns {Promise<Asked>} */
async function count(url, region, documents) {
  const query = new URLSearchParams({ q: '*', filter_by: `region:=${region}`, per_page: '1' })
  const { response, text, ms } = await search(url, query)
  if (!response.ok) return { ms, code: response.status, message: text }
  const { found } = JSON.parse(text)
  const right = Math.ceil((documents - region) / REGIONS)
  return { ms, ...(found !== right && { fault: `region ${region} has ${found} documents, not ${right}` }) }
}

/**
 * All conversations at once, and counts beside them.
 * @param {string} url @param {number} documents @param {number} seed @param {() => Promise<unknown> | unknown} trouble done while answers stream
 */
async function round(url, documents, seed, trouble) {
  /** @type {Asked[]} */
  const asked = []
  /** @type {Asked[]} */
  const counted = []
  let talking = true
  const conversations = Promise.all(
    Array.from({ length: CONVERSATIONS }, async (_, at) => {
      /** @type {string | undefined} */
      let id
      for (let turn = 0; turn < TURNS; turn++) {
        const number = (((seed * CONVERSATIONS + at) * TURNS + turn) * 4_931) % documents
        const outcome = await ask(url, number, id)
        id = outcome.conversation
        asked.push(outcome)
      }
    }),
  ).finally(() => {
    talking = false
  })
  const counts = (async () => {
    for (let region = 0; talking; region = (region + 7) % REGIONS) {
      counted.push(await count(url, region, documents))
      await pause(50)
    }
  })()
  while (asked.length < CONVERSATIONS / 2) await pause(10)
  await trouble()
  await Promise.all([conversations, counts])
  return { asked, counted }
}

/** @param {string} what @param {Asked[]} all @returns {number} wrong ones, and errors that no promise allows */
function tell(what, all) {
  const right = all.filter(({ fault, code }) => fault === undefined && code === undefined)
  const times = right.map(({ ms }) => ms).sort((a, b) => a - b)
  const at = (/** @type {number} */ share) => Math.round(times[Math.floor((times.length - 1) * share)] ?? 0)
  const errors = all.filter(({ code }) => code !== undefined)
  const wrong = all.filter(({ fault }) => fault !== undefined)
  const forbidden = errors.filter(({ code }) => code !== 503)
  console.log(
    `  ${what}: ${all.length} asked, ${right.length} right, ${wrong.length} wrong, ${errors.length} with 503; p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`,
  )
  for (const { fault } of wrong.slice(0, 3)) console.log(`    wrong: ${fault}`)
  for (const message of new Set(errors.map((error) => `${error.code} ${error.message}`)))
    console.log(`    ${message.slice(0, 200)}`)
  return wrong.length + forbidden.length
}

/**
 * @param {number} documents
 * @returns {Promise<number>} 1 where an answer was wrong, or an error was none that docs/engines.md allows; else 0
 */
export async function disturb(documents) {
  let nodes = runningNodes()
  if (nodes.length !== NODES) ({ nodes } = await startReference(NODES))
  const [first, second, third] = /** @type {[typeof nodes[0], typeof nodes[0], typeof nodes[0]]} */ (nodes)
  const known = await askNode(third.url, 'GET', `/${INDEX}/_count`).catch(() => ({ count: 0 }))
  if (known.count !== documents) {
    await askNode(third.url, 'DELETE', `/${INDEX}?ignore_unavailable=true`)
    await fill(third.url, documents)
  }
  await whole(third.url)
  const parley = await startOwnServer(['--no-sample'])
  const call = client(parley.url, 'xyz')
  let faults = 0
  try {
    await call('POST', '/collections', {
      name: INDEX,
      engine: { type: 'opensearch', nodes: nodes.map(({ url }) => url), timeout_ms: TIMEOUT_MS },
    })
    await call('POST', '/collections', { name: 'said', fields: HISTORY })
    const model = {
      id: 'reads',
      model_name: 'local/extractive',
      history_collection: 'said',
      max_bytes: 16_384,
    }
    await call('POST', '/conversations/models', model)
    /** @param {string} what @param {number} seed @param {() => Promise<unknown> | unknown} trouble */
    const run = async (what, seed, trouble) => {
      console.log(what)
      const { asked, counted } = await round(parley.url, documents, seed, trouble)
      faults += tell('questions', asked) + tell('counts', counted)
    }
    await run('All nodes are there', 0, () => {})
    await run('One node is killed', 1, () => process.kill(first.pid, 'SIGKILL'))
    await run('It is still missing', 2, () => {})
    const again = await restartNode(first)
    await whole(third.url)
    await run('One node is cut off: its process is stopped, its connections stay open', 3, () =>
      process.kill(second.pid, 'SIGSTOP'),
    )
    await run('It is still cut off', 4, () => {})
    process.kill(second.pid, 'SIGCONT')
    await whole(third.url)
    await run('All nodes are back', 5, () => {})
    console.log(`The killed node came back as process ${again.pid}.`)
  } finally {
    await parley.stop()
  }
  return faults > 0 ? 1 : 0
}
