/** What Parley adds to a search in a cluster: the same search of the cluster itself, and through Parley, in turn. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { loadavg } from 'node:os'
import { makeDocument } from './documents.mjs'
import { percentile, report } from './report.mjs'
import { call } from './server.mjs'

const SEARCHES = 2_000
/** So many that the functions of both processes are compiled. */
const WARM_UP = 1_000
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

export async function benchEngines(server) {
  const cluster = await startCluster()
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
        body: JSON.stringify({ searches: [{ collection, q: 'a', query_by: 'title,text' }] }),
      })
    const theirs = []
    const whole = []
    let cpu = 0
    for (let round = 0; round < WARM_UP + SEARCHES; round++) {
      const direct = await timed(() => search(cluster, 'there'))
      const through = await timed(() => search(server, 'linked'))
      if (round === WARM_UP - 1) cpu = server.cpu()
      if (round < WARM_UP) continue
      theirs.push(direct)
      whole.push(through)
    }
    for (const [name, at] of [
      ['p50', 50],
      ['p95', 95],
    ]) {
      const [own, all] = [percentile(theirs, at), percentile(whole, at)]
      report({
        what: `milliseconds that Parley adds to a search of a cluster, ${name} (load ${loadavg()[0].toFixed(1)})`,
        parley: `${all.toFixed(2)} ms`,
        baseline: `${own.toFixed(2)} ms`,
        ratio: all - own,
        aim: 3,
        better: 'lower',
      })
    }
    // On a busy machine a call waits for a processor several times. What it computes stays the same.
    const computed = ((server.cpu() - cpu) * 1_000) / SEARCHES
    console.log(`  ${SEARCHES} searches each, in turn; workerd computed ${computed.toFixed(2)} ms for each`)
    const differences = whole.map((all, at) => all - theirs[at])
    const [half, most] = [50, 95].map((at) => percentile(differences, at).toFixed(2))
    console.log(`  differences of each pair: p50 ${half} ms, p95 ${most} ms`)
  } finally {
    cluster.server.closeAllConnections()
    cluster.server.close()
  }
}
