/** Searches at 10,000 documents against the bare FTS5 query in the same object; then during a large import. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { makeDocument, makeQueries, SCHEMA } from './documents.mjs'
import { median, percentile, report } from './report.mjs'
import { call } from './server.mjs'

const COUNT = 10_000
const IMPORTED_MEANWHILE = Number(process.env.BENCH_IMPORT ?? 100_000)
const QUERIES = makeQueries(200)

async function fill(server, name, count) {
  await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name, ...SCHEMA }) })
  const body = Array.from({ length: count }, (_, n) => JSON.stringify(makeDocument(n))).join('\n')
  await call(server, `/collections/${name}/documents/import`, { method: 'POST', body })
}

const timed = async (work) => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const search = (server, name, q) =>
  call(
    server,
    `/collections/${name}/documents/search?q=${encodeURIComponent(q)}&query_by=title,text&prefix=false&drop_tokens_threshold=0`,
  )

export async function benchSearch(server) {
  const name = 'ten-thousand'
  await fill(server, name, COUNT)
  const raw = []
  const ours = []
  const rawInside = []
  const oursInside = []
  for (let round = 0; round < 3; round++) {
    for (const q of QUERIES) {
      raw.push(
        await timed(() =>
          call(server, `/__bench/raw/query?collection=${name}&match=${encodeURIComponent(q)}`),
        ),
      )
      ours.push(await timed(() => search(server, name, q)))
    }
    const init = { method: 'POST', body: JSON.stringify(QUERIES) }
    rawInside.push(
      (await timed(() => call(server, `/__bench/raw/queries?collection=${name}`, init))) / QUERIES.length,
    )
    oursInside.push(
      (await timed(() => call(server, `/__bench/searches?collection=${name}`, init))) / QUERIES.length,
    )
  }
  report({
    what: 'search p50 at 10,000 documents (HTTP) against the raw FTS5 query',
    parley: `${median(ours).toFixed(2)} ms`,
    baseline: `${median(raw).toFixed(2)} ms`,
    ratio: median(ours) / median(raw),
    aim: 2,
    better: 'lower',
  })
  report({
    what: 'the same inside the object, mean of 200 queries, no hops',
    parley: `${median(oursInside).toFixed(2)} ms`,
    baseline: `${median(rawInside).toFixed(2)} ms`,
    ratio: median(oursInside) / median(rawInside),
    aim: 2,
    better: 'lower',
  })
}

/** An import of 100,000 documents into the collection that is being searched. */
export async function benchSearchDuringImport(server) {
  const name = 'busy'
  await fill(server, name, COUNT)
  const idle = []
  for (let round = 0; round < 3; round++) {
    for (const q of QUERIES) idle.push(await timed(() => search(server, name, q)))
  }
  const url = `${server.url}/collections/${name}/documents/import`
  const importer = fork(join(import.meta.dirname, 'importer.mjs'), [url, COUNT, IMPORTED_MEANWHILE])
  let done
  importer.once('message', (message) => {
    done = message
  })
  const busy = []
  for (let i = 0; done === undefined; i++) {
    if (importer.exitCode !== null && importer.exitCode !== 0) throw new Error('the import failed')
    busy.push(await timed(() => search(server, name, QUERIES[i % QUERIES.length])))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { seconds, imported, failed } = done
  if (failed > 0 || imported !== IMPORTED_MEANWHILE) throw new Error(`${failed} documents were not imported`)
  // Searches get dearer as the collection grows; idle is measured again at its final size to tell both apart.
  const idleAfter = []
  for (const q of QUERIES) idleAfter.push(await timed(() => search(server, name, q)))
  console.log(
    `  (import of ${IMPORTED_MEANWHILE.toLocaleString('en')} took ${seconds.toFixed(0)} s with ${busy.length} searches beside it; ` +
      `p95 idle: ${percentile(idle, 95).toFixed(1)} ms at ${COUNT.toLocaleString('en')} documents, ` +
      `${percentile(idleAfter, 95).toFixed(1)} ms at ${(COUNT + IMPORTED_MEANWHILE).toLocaleString('en')}; ` +
      `longest search ${Math.max(...busy).toFixed(0)} ms)`,
  )
  report({
    what: `search p95 during an import of ${IMPORTED_MEANWHILE.toLocaleString('en')} documents against idle at its final size`,
    parley: `${percentile(busy, 95).toFixed(1)} ms`,
    baseline: `${percentile(idleAfter, 95).toFixed(1)} ms`,
    ratio: percentile(busy, 95) / percentile(idleAfter, 95),
    aim: 3,
    better: 'lower',
  })
}
