/**
 * What the Free plan counts: the CPU of the Worker itself a request, without that of its objects.
 *
 * Locally both run in one process. Here the objects are in a Worker of their own, so each has its isolate, and V8's profiler
 * tells the CPU of either (profile.mjs). A profiler makes a new isolate slower, so the process of a Worker alone is measured too
 * (first.mjs). On Cloudflare the machines are others, so each figure stands beside what a bare Hono Worker takes.
 */
import { build } from 'esbuild'
import { makeDocument } from './documents.mjs'
import { prepare, protocols, read, searchOfOpenSearch } from './encoders.mjs'
import { firstAndLater } from './first.mjs'
import { CpuProfiler } from './profile.mjs'
import { median } from './report.mjs'
import { startServer } from './server.mjs'
import { startUpstream } from './stream.mjs'

/** Milliseconds of CPU that the Free plan allows the Worker for a request. */
export const ALLOWED_MS = 10

/** OpenSearch's without a memory runs its turn in an object that stores nothing. */
const MEMORY = 'opensearch-with-a-memory'
const WIRES = ['typesense', 'parley', 'ui-stream', 'openai', 'responses', 'ai-chat', 'opensearch', MEMORY]
/**
 * Answers by their chunks and the milliseconds between them. 5 is 200 tokens a second, and chunks are gathered. At 40 each
 * chunk is written by itself: an answer cannot cost more.
 */
const ANSWERS = [
  { chunks: 300, gap: 5 },
  { chunks: 2000, gap: 5 },
  { chunks: 300, gap: 40 },
  { chunks: 2000, gap: 40 },
]
/** The name of the isolate of a wire. */
const isolateOf = (wire) => `wire-${wire}`

/** Streams of a wire that run at the same time. */
const AT_ONCE = 3
const ROUNDS = 5

const BARE = `
import { Hono } from 'hono'
let x = 0
export default new Hono()
  .get('/health', (context) => context.json({ ok: true }))
  .get('/spin', (context) => {
    for (let n = 0; n < 3e7; n++) x = (x * 31 + n) | 0
    return context.text(String(x))
  })
`

/** Processes in which each wire's first request is measured, with the sockets. */
const FIRST_ROUNDS = 9
/** New isolates of each wire whose first request is sampled: all that counts is in the isolate. */
const NEW = 5
/** The name of a new isolate. */
const newOf = (wire, at) => `new-${wire}-${at}`
const range = (count) => Array.from({ length: count }, (_, at) => at)

/** A bare Hono Worker. */
async function bareWorker() {
  const { outputFiles } = await build({
    stdin: { contents: BARE, resolveDir: import.meta.dirname },
    bundle: true,
    format: 'esm',
    minify: true,
    write: false,
  })
  return { name: 'bare', script: outputFiles[0].text }
}

const times = async (count, work) => {
  for (let n = 0; n < count; n++) await work()
}

/** Asks for something and reads it. @returns the text */
async function get(url, init) {
  const response = await fetch(url, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`)
  return text
}

let asked = 0
/** A question that nobody has asked: a repeated one gets a copy of its answer. */
const question = () => makeDocument(100_000 + asked++).title

const ADMIN = { 'x-typesense-api-key': 'xyz' }
const post = (body) => ({
  method: 'POST',
  headers: { ...ADMIN, 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

const BRIEF = { chunks: 50, gap: 1 }

/** Requests without streams: how often each is made in a round, and how. */
function requests(server) {
  const searched = (q) => ({ q, query_by: 'title,text' })
  const turn = (more) => ({ question: question(), model: 'docs-50-1', collections: ['docs'], ...more })
  const lines = (from) =>
    Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(from + n))).join('\n')
  let imported = 1000
  const megabyte = () => {
    imported += 1000
    return lines(imported)
  }
  let conversation
  return {
    'GET /health': [200, () => get(`${server.url}/health`)],
    'a search': [
      100,
      () =>
        get(`${server.url}/collections/docs/documents/search?${new URLSearchParams(searched(question()))}`, {
          headers: ADMIN,
        }),
    ],
    'a multi_search of five': [
      40,
      () =>
        get(
          `${server.url}/multi_search`,
          post({
            searches: Array.from({ length: 5 }, () => ({ collection: 'docs', ...searched(question()) })),
          }),
        ),
    ],
    'an import of 1 MB': [2, () => get(`${server.url}/collections/docs/documents/import`, post(megabyte()))],
    'a first question': [
      20,
      async () => {
        const { conversation_id } = JSON.parse(await get(`${server.url}/conversations`, post(turn())))
        conversation = conversation_id
      },
    ],
    'a follow-up': [
      20,
      () => get(`${server.url}/conversations`, post(turn({ conversation_id: conversation }))),
    ],
    "OpenSearch's answer without a memory, whole": [
      20,
      () =>
        get(
          `${server.url}/docs/_search?search_pipeline=docs-50-1`,
          post({
            query: { match: { text: 'a' } },
            ext: { generative_qa_parameters: { llm_question: question(), timeout: 60 } },
          }),
        ),
    ],
    'the console': [100, () => get(`${server.url}/`, { headers: { accept: 'text/html' } })],
  }
}

/** Makes a memory of OpenSearch, in an isolate that does not count. @returns its id */
const newMemory = async (server) =>
  JSON.parse(await get(`${server.url}/_plugins/_ml/memory`, post({ name: 'bench' }))).memory_id

/** Profilers of the isolates that count. */
async function profilersOf(server, names) {
  const all = {}
  for (const name of names) all[name] = await CpuProfiler.connect(await server.inspector(name))
  return all
}

/** Milliseconds of CPU that a sample stands for, by work of the bare Worker whose CPU the system counts. */
async function sampleMs(server, profiler, bare) {
  const spin = () => get(`${bare}/spin`)
  await spin()
  const before = server.cpu()
  const samples = await profiler.samples(() => times(5, spin))
  return ((server.cpu() - before) * 1000) / samples
}

export async function benchFree() {
  const server = await startServer({
    apart: true,
    door: true,
    copies: WIRES.flatMap((wire) => [isolateOf(wire), ...range(NEW).map((at) => newOf(wire, at))]),
    others: [await bareWorker()],
  })
  const upstream = await startUpstream()
  try {
    const pageKey = await prepare(server, upstream, [BRIEF, ...ANSWERS])
    const profilers = await profilersOf(server, ['parley', 'objects', 'bare', ...WIRES.map(isolateOf)])
    const measured = []
    const note = (what, worker, objects) => {
      measured.push({ what, worker, objects })
      console.log(`${what}: ${worker.toFixed(2)} ms, objects ${objects?.toFixed(2) ?? '-'} ms`)
    }
    const bare = await server.other('bare')
    const ms = []
    for (let n = 0; n < 3; n++) ms.push(await sampleMs(server, profilers.bare, bare))
    const sample = median(ms)
    console.log(`a sample: ${ms.map((one) => one.toFixed(3)).join(', ')} ms`)

    const hono = []
    await times(300, () => get(`${bare}/health`))
    for (let round = 0; round < ROUNDS; round++) {
      const samples = await profilers.bare.samples(() => times(500, () => get(`${bare}/health`)))
      hono.push((samples * sample) / 500)
    }
    note('a bare Hono Worker', median(hono))

    for (const [what, [count, ask]] of Object.entries(requests(server))) {
      await times(Math.ceil(count / 2), ask)
      const rounds = []
      for (let round = 0; round < ROUNDS; round++) {
        let worker = 0
        const objects = await profilers.objects.samples(async () => {
          worker = await profilers.parley.samples(() => times(count, ask))
        })
        rounds.push({ worker: (worker * sample) / count, objects: (objects * sample) / count })
      }
      note(what, median(rounds.map(({ worker }) => worker)), median(rounds.map(({ objects }) => objects)))
    }

    const addresses = {}
    for (const wire of WIRES) addresses[wire] = { url: await server.copy(isolateOf(wire)) }
    const requestOf = async (wire, { chunks, gap }) =>
      wire === MEMORY
        ? searchOfOpenSearch(question(), chunks, gap, { memory_id: await newMemory(server) })
        : protocols(question(), pageKey, chunks, gap)[wire]
    const stream = async (wire, { chunks, gap }) => {
      const asked = await requestOf(wire, { chunks, gap })
      return read(addresses[wire], asked, chunks).catch((cause) => {
        throw new Error(`${wire}: ${chunks} chunks ${gap} ms apart could not be read`, { cause })
      })
    }
    // The objects are warm, so that only the Worker is new.
    for (const wire of WIRES) await times(10, () => stream(wire, BRIEF))
    for (const wire of WIRES) {
      const firsts = []
      for (const at of range(NEW)) {
        const url = await server.copy(newOf(wire, at))
        const asked = await requestOf(wire, BRIEF)
        const profiler = await CpuProfiler.connect(await server.inspector(newOf(wire, at)))
        firsts.push((await profiler.samples(() => read({ url }, asked, BRIEF.chunks))) * sample)
        profiler.close()
      }
      note(`the first question of a new isolate, sampled, ${wire}`, median(firsts))
    }
    const asks = Object.fromEntries(
      WIRES.map((wire) => [
        wire,
        async () => {
          const asked = await requestOf(wire, BRIEF)
          return (url) => read({ url }, asked, BRIEF.chunks)
        },
      ]),
    )
    for (const [what, { cold, warm }] of Object.entries(
      await firstAndLater(server, upstream, asks, FIRST_ROUNDS),
    ))
      console.log(
        `a first request of a new isolate, its process, ${what}: ${cold.middle.toFixed(1)} ms (${cold.low.toFixed(1)} to ` +
          `${cold.high.toFixed(1)}), of a warm one ${warm.middle.toFixed(1)} ms`,
      )
    for (const answer of ANSWERS) {
      const spent = await Promise.all(
        WIRES.map((wire) =>
          profilers[isolateOf(wire)].samples(() =>
            Promise.all(Array.from({ length: AT_ONCE }, () => stream(wire, answer))),
          ),
        ),
      )
      for (const [at, wire] of WIRES.entries())
        note(`${answer.chunks} chunks ${answer.gap} ms apart, ${wire}`, (spent[at] * sample) / AT_ONCE)
    }
    for (const profiler of Object.values(profilers)) profiler.close()
    return measured
  } finally {
    upstream.stop()
    await server.close()
  }
}
