/** What Parley adds to a search in a cluster: the same search of the cluster itself, through Parley, and through a bare Worker, in turn. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { loadavg } from 'node:os'
import { makeDocument } from './documents.mjs'
import { percentile, report } from './report.mjs'
import { call, startServer } from './server.mjs'

const SEARCHES = 2_000
/** So many that the functions of both processes are compiled. */
const WARM_UP = 1_000
/** Searches of one kind in a row: so many that their CPU can be told from that of others. */
const BLOCK = 50
const HITS = 10

/** A node that answers each search at once: all time beside it is Parley's. */
async function startCluster() {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
  ]
  const hits = Array.from({ length: HITS }, (_, n) => ({
    document: makeDocument(n),
    highlight: {},
    highlights: [],
    text_match: 1_000 - n,
  }))
  const result = {
    facet_counts: [],
    found: HITS,
    hits,
    out_of: HITS,
    page: 1,
    request_params: { collection_name: 'there', first_q: 'a', per_page: HITS, q: 'a' },
    search_cutoff: false,
    search_time_ms: 0,
  }
  const replies = {
    '/multi_search': JSON.stringify({ results: [result] }),
    '/collections/there': JSON.stringify({ name: 'there', num_documents: HITS, created_at: 0, fields }),
  }
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(replies[request.url])
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${server.address().port}`, server }
}

const timed = async (work) => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** A Worker that passes a search on and does nothing else: what it adds is workerd's own. */
const RELAY = {
  name: 'relay',
  script: `export default { async fetch(request) {
    const headers = { 'content-type': 'application/json', 'x-typesense-api-key': 'a-key' }
    const body = await request.text()
    const response = await fetch(request.headers.get('x-to'), { method: 'POST', body, headers })
    const reply = JSON.parse(await response.text())
    return new Response(JSON.stringify(reply), { headers: { 'content-type': 'application/json' } })
  } }`,
}

/** What one way of searching has taken. */
const newTally = () => ({ ms: [], cpu: 0 })

const addedBy = ({ ms }, own, at) => percentile(ms, at) - percentile(own.ms, at)

export async function benchEngines() {
  const server = await startServer({ others: [RELAY] })
  const cluster = await startCluster()
  const bare = { url: await server.other(RELAY.name) }
  try {
    const engine = {
      type: 'typesense',
      nodes: [cluster.url],
      credentials: { api_key: 'a-key' },
      collection: 'there',
    }
    await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name: 'linked', engine }) })
    const search = (of, collection) =>
      call(of, '/multi_search', {
        method: 'POST',
        headers: { 'x-to': `${cluster.url}/multi_search` },
        body: JSON.stringify({ searches: [{ collection, q: 'a', query_by: 'title,text' }] }),
      })
    const [own, parley, relay] = [newTally(), newTally(), newTally()]
    const ways = [
      [own, () => search(cluster, 'there')],
      [parley, () => search(server, 'linked')],
      [relay, () => search(bare, 'there')],
    ]
    for (let round = 0; round < WARM_UP; round++) for (const [, ask] of ways) await ask()
    for (let done = 0; done < SEARCHES; done += BLOCK) {
      for (const [tally, ask] of ways) {
        const before = server.cpu()
        for (let round = 0; round < BLOCK; round++) tally.ms.push(await timed(ask))
        tally.cpu += server.cpu() - before
      }
    }
    for (const [name, at] of [
      ['p50', 50],
      ['p95', 95],
    ]) {
      report({
        what: `milliseconds that Parley adds to a search of a cluster, ${name} (load ${loadavg()[0].toFixed(1)})`,
        parley: `${percentile(parley.ms, at).toFixed(2)} ms`,
        baseline: `${percentile(own.ms, at).toFixed(2)} ms`,
        ratio: addedBy(parley, own, at),
        aim: 3,
        better: 'lower',
      })
    }
    const [half, most] = [50, 95].map((at) => addedBy(relay, own, at).toFixed(2))
    console.log(`  a Worker that only passes the search on adds: p50 ${half} ms, p95 ${most} ms`)
    // On a busy machine a call waits for a processor several times. What it computes stays the same.
    const [computed, least] = [parley, relay].map(({ cpu }) => ((cpu * 1_000) / SEARCHES).toFixed(2))
    console.log(
      `  ${SEARCHES} searches each, in turn; workerd computed ${computed} ms for each, ${least} ms there`,
    )
  } finally {
    cluster.server.closeAllConnections()
    cluster.server.close()
    await server.close()
  }
}
