/**
 * What everybody else waits for while one client sends requests that take as much as a request can. The client hangs
 * up after a while; what goes on then is counted too, until the server is at rest again.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { importCases, prepareSearches, searchCases } from './hostile-cases.mjs'
import { clientCases, prepareClients } from './hostile-clients.mjs'
import { filterCases, prepareFilters } from './hostile-filters.mjs'
import { percentile, report } from './report.mjs'
import { call } from './server.mjs'

/** Requests of each part of the project; another part adds its own list. */
const CASES = [...searchCases, ...importCases, ...filterCases, ...clientCases]

/** How long the client waits for an answer before it hangs up, in milliseconds. */
const PATIENCE_MS = Number(process.env.BENCH_PATIENCE ?? 15_000)
const IDLE_WINDOWS = 8
/** The worst that anybody may wait. */
const AIM_MS = 500
/** milliseconds between the pieces of the stream that runs beside */
const GAP = 25

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function startProber(server, upstream) {
  const [port] = await once(upstream, 'message')
  await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name: 'other', ...SCHEMA }) })
  const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
  await call(server, '/collections/other/documents/import', { method: 'POST', body: documents.join('\n') })
  await call(server, '/collections', {
    method: 'POST',
    body: JSON.stringify({ name: 'hostile_history', fields: HISTORY_FIELDS }),
  })
  const model = { id: 'slow', model_name: 'openai/bench', history_collection: 'hostile_history' }
  const provider = {
    api_key: 'sk-benchmark',
    openai_url: `http://127.0.0.1:${port}`,
    openai_path: `/v1/chat/completions?chunks=40000&gap=${GAP}`,
    max_bytes: 8192,
  }
  await call(server, '/conversations/models', {
    method: 'POST',
    body: JSON.stringify({ ...model, ...provider }),
  })
  const prober = fork(join(import.meta.dirname, 'prober.mjs'))
  prober.on('message', ({ failed }) => failed && console.log(`  another client: ${failed}`))
  prober.send({
    health: `${server.url}/health`,
    search:
      `${server.url}/collections/other/documents/search?q=${makeDocument(5).title}&query_by=title`.replaceAll(
        ' ',
        '+',
      ),
    stream: {
      url: `${server.url}/conversations`,
      body: JSON.stringify({
        question: makeDocument(5).title,
        model: 'slow',
        searches: [{ collection: 'other', query_by: 'title,text' }],
      }),
      marker: 'event: delta',
      gap: GAP,
    },
    headers: { 'x-typesense-api-key': 'xyz' },
  })
  return prober
}

async function seenBy(prober) {
  prober.send('report')
  for (;;) {
    const [{ seen }] = await once(prober, 'message')
    if (seen) return seen
  }
}

const told = (seen) =>
  Object.entries(seen)
    .map(
      ([name, waits]) =>
        `${name} p95 ${percentile(waits, 95).toFixed(0)} worst ${Math.max(...waits).toFixed(0)}`,
    )
    .join(', ')

/** Sends a case's request and hangs up when it takes too long. */
async function send(server, { send, patience = PATIENCE_MS }) {
  const hangUp = new AbortController()
  const timer = setTimeout(() => hangUp.abort(), patience)
  const started = performance.now()
  try {
    const { status, text } = await send(server, hangUp.signal)
    return `${status} after ${((performance.now() - started) / 1000).toFixed(1)} s, ${text.length} characters: ${text.slice(0, 60)}`
  } catch (error) {
    if (!hangUp.signal.aborted) return `failed: ${error.message} ${error.cause ?? ''}`
    return `hung up after ${patience / 1000} s`
  } finally {
    clearTimeout(timer)
  }
}

/** How long workerd's CPU is counted at a time, in milliseconds. */
const WINDOW_MS = 500

/** A window may take so many seconds of CPU more than the busiest idle one. */
const NOISE_S = 0.05

/** Seconds of CPU that workerd takes in one window. */
async function cpuOf(server) {
  const before = server.cpu()
  await sleep(WINDOW_MS)
  return server.cpu() - before
}

/**
 * Waits until workerd has no more to do than when nobody but the other client is there.
 * @param most seconds of CPU that a window of that time took at most
 */
async function rest(server, most) {
  const started = performance.now()
  for (let quiet = 0; quiet < 3; ) quiet = (await cpuOf(server)) <= most + NOISE_S ? quiet + 1 : 0
  return (performance.now() - started - 3 * WINDOW_MS) / 1000
}

export async function benchHostile(server) {
  const upstream = fork(join(import.meta.dirname, 'upstream.mjs'))
  let prober
  try {
    const cases = CASES.filter(({ name }) => name.includes(process.env.BENCH_CASE ?? ''))
    const hasAny = (some) => some.some((one) => cases.includes(one))
    if (hasAny([...searchCases, ...importCases])) await prepareSearches(server)
    if (hasAny([...filterCases, ...clientCases])) await prepareFilters(server)
    // Collections tidy up once nobody writes to them. That is nobody's request.
    await rest(server, 0)
    prober = await startProber(server, upstream)
    if (hasAny(clientCases)) await prepareClients(server)
    await sleep(IDLE_WINDOWS * WINDOW_MS)
    await seenBy(prober)
    for (const each of cases) {
      let mostIdle = 0
      for (let n = 0; n < IDLE_WINDOWS; n++) mostIdle = Math.max(mostIdle, await cpuOf(server))
      const idle = await seenBy(prober)
      const outcome = await send(server, each)
      const longer = await rest(server, mostIdle)
      const seen = await seenBy(prober)
      const worst = Math.max(...Object.values(seen).flat())
      console.log(
        `${each.name}: ${outcome}; at rest ${longer.toFixed(1)} s later; load ${loadavg()[0].toFixed(1)}, workerd ${server.memory().toFixed(0)} MiB\n` +
          `  idle ms: ${told(idle)}\n  beside ms: ${told(seen)}`,
      )
      report({
        what: `the worst wait of others beside ${each.name}, in ms (p95 of all)`,
        parley: `${worst.toFixed(0)} (${percentile(Object.values(seen).flat(), 95).toFixed(0)})`,
        baseline: `${Math.max(...Object.values(idle).flat()).toFixed(0)} (${percentile(Object.values(idle).flat(), 95).toFixed(0)}) idle`,
        ratio: worst,
        aim: AIM_MS,
        better: 'lower',
      })
    }
  } finally {
    prober?.kill()
    upstream.kill()
  }
}
