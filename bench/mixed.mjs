/**
 * A mixed load on one collection: searches of all kinds by several clients, an import, and turns of conversations about the
 * collection, all at once.
 *
 *     BENCH_MIXED=300000      the number of documents before
 *     BENCH_SECONDS=60        how long it lasts
 *     BENCH_OTHER=FOLDER      measures a checkout of another version, with its node_modules, instead of this one
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { HISTORY_FIELDS } from './documents.mjs'
import { GROWTH_SCHEMA, growthCases, growthDocument } from './growth-cases.mjs'
import { percentile } from './report.mjs'
import { call } from './server.mjs'

const COUNT = Number(process.env.BENCH_MIXED ?? 300_000)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 60)
const NAME = 'mixed'
const CLIENTS = 3
/** milliseconds that a client waits between two searches, and between two turns */
const [SEARCH_PAUSE, TURN_PAUSE] = [20, 500]
const BATCH = 10_000
/** Documents of a batch that is imported meanwhile. */
const SMALL_BATCH = 1_000

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const post = (server, path, body) => call(server, path, { method: 'POST', body })

async function importRange(server, from, count) {
  const lines = Array.from({ length: count }, (_, n) => JSON.stringify(growthDocument(from + n)))
  const results = await post(server, `/collections/${NAME}/documents/import`, lines.join('\n'))
  const refused = results.split('\n').find((line) => !line.includes('"success":true'))
  if (refused) throw new Error(refused)
}

async function prepareTurns(server, port) {
  await post(server, '/collections', JSON.stringify({ name: 'mixed_history', fields: HISTORY_FIELDS }))
  const model = { id: 'mixed', model_name: 'openai/bench', history_collection: 'mixed_history' }
  const provider = {
    api_key: 'sk-benchmark',
    openai_url: `http://127.0.0.1:${port}`,
    openai_path: '/v1/chat/completions?chunks=20&gap=10',
    max_bytes: 8192,
  }
  await post(server, '/conversations/models', JSON.stringify({ ...model, ...provider }))
}

const turn = (server, n) =>
  post(
    server,
    '/conversations',
    JSON.stringify({
      question: growthDocument(n * 97).title,
      model: 'mixed',
      searches: [{ collection: NAME, query_by: 'title,text' }],
    }),
  )

export async function benchMixed() {
  const folder = process.env.BENCH_OTHER ?? join(import.meta.dirname, '..')
  const { startServer } = await import(join(resolve(folder), 'bench/server.mjs'))
  const server = await startServer()
  try {
    await measure(server)
  } finally {
    await server.close()
  }
}

async function measure(server) {
  const upstream = fork(join(import.meta.dirname, 'upstream.mjs'))
  try {
    const [port] = await once(upstream, 'message')
    await post(server, '/collections', JSON.stringify({ name: NAME, ...GROWTH_SCHEMA }))
    for (let from = 0; from < COUNT; from += BATCH)
      await importRange(server, from, Math.min(BATCH, COUNT - from))
    await prepareTurns(server, port)
    // Only their searches are needed, not their SQL.
    const cases = growthCases({})
    const seen = new Map()
    const end = performance.now() + SECONDS * 1_000
    const timed = async (name, work) => {
      const started = performance.now()
      await work()
      seen.set(name, [...(seen.get(name) ?? []), performance.now() - started])
    }
    const repeat = async (pause, work) => {
      for (let n = 0; performance.now() < end; n++) {
        await work(n)
        await sleep(pause)
      }
    }
    let imported = 0
    const searcher = (client) =>
      repeat(SEARCH_PAUSE, async (n) => {
        const { name, search } = cases[(n + client * 4) % cases.length]
        const query = new URLSearchParams(search(n * CLIENTS + client))
        await timed(name, () => call(server, `/collections/${NAME}/documents/search?${query}`))
      })
    await Promise.all([
      ...Array.from({ length: CLIENTS }, (_, client) => searcher(client)),
      repeat(TURN_PAUSE, (n) => timed('a turn', () => turn(server, n))),
      repeat(0, async () => {
        await timed('1,000 documents imported', () => importRange(server, COUNT + imported, SMALL_BATCH))
        imported += SMALL_BATCH
      }),
    ])
    console.log(
      `${COUNT.toLocaleString('en')} documents, ${imported.toLocaleString('en')} imported in ${SECONDS} s, workerd ${server.memory().toFixed(0)} MiB`,
    )
    console.log('| what | times | p50 | p95 | worst |\n| --- | --- | --- | --- | --- |')
    for (const [name, waits] of seen) {
      const told = [percentile(waits, 50), percentile(waits, 95), Math.max(...waits)]
      console.log(
        `| ${name} | ${waits.length} | ${told.map((wait) => `${wait.toFixed(0)} ms`).join(' | ')} |`,
      )
    }
  } finally {
    upstream.kill()
  }
}
