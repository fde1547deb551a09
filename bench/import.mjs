/** Documents imported a second through the API, against raw prepared inserts into the same kind of object. */
import { makeDocument, SCHEMA } from './documents.mjs'
import { median, report } from './report.mjs'
import { call } from './server.mjs'

const COUNT = 10_000
const RAW_BATCH = 500
const ROUNDS = 3

export async function benchImport(server) {
  const lines = Array.from({ length: COUNT }, (_, n) => JSON.stringify(makeDocument(n)))
  const body = lines.join('\n')
  const ours = []
  const raw = []
  for (let round = 0; round < ROUNDS; round++) {
    const name = `import-${round}`
    await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name, ...SCHEMA }) })
    let started = performance.now()
    const results = await call(server, `/collections/${name}/documents/import`, { method: 'POST', body })
    ours.push(COUNT / ((performance.now() - started) / 1000))
    const failed = results.split('\n').filter((line) => !line.includes('"success":true'))
    if (failed.length > 0) throw new Error(`${failed.length} documents were not imported: ${failed[0]}`)

    const from = (round + 1) * 1_000_000
    await call(server, `/__bench/raw/prepare?from=${from}&count=${COUNT}`)
    started = performance.now()
    await call(server, `/__bench/raw/insert?count=${COUNT}&batch=${RAW_BATCH}`)
    raw.push(COUNT / ((performance.now() - started) / 1000))
  }
  report({
    what: `import of ${COUNT.toLocaleString('en')} documents of 1 KB, documents a second (HTTP to acknowledged) against raw prepared inserts`,
    parley: `${Math.round(median(ours))}/s`,
    baseline: `${Math.round(median(raw))}/s`,
    ratio: median(ours) / median(raw),
    aim: 0.5,
    better: 'higher',
  })
}
