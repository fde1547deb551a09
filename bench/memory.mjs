/**
 * Memory of workerd with one collection: after an import, and after searches that keep values in memory. Then the same with a
 * vector of the built-in embedder for each document. Each has a server of its own.
 *
 *     BENCH_MEMORY=100000,1000000    numbers of documents; 100,000 unless it says otherwise
 *     BENCH_MEMORY_OF=plain,vectors  what to measure; both unless it says otherwise
 */
import { GROWTH_SCHEMA, growthDocument } from './growth-cases.mjs'
import { call, startServer } from './server.mjs'

const SIZES = (process.env.BENCH_MEMORY ?? '100000').split(',').map(Number)
const KINDS = (process.env.BENCH_MEMORY_OF ?? 'plain,vectors').split(',')
const BATCH = 1_000
const EMBEDDING = {
  name: 'embedding',
  type: 'float[]',
  embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
}

const lines = (from, to) =>
  Array.from({ length: to - from }, (_, n) => JSON.stringify(growthDocument(from + n))).join('\n')

/** @returns how many documents the collection took: it refuses vectors past its limit, with the reason */
async function fill(server, name, from, to) {
  let taken = 0
  for (let start = from; start < to; start += BATCH) {
    const results = await call(server, `/collections/${name}/documents/import`, {
      method: 'POST',
      body: lines(start, Math.min(to, start + BATCH)),
    })
    const all = results.split('\n')
    const refused = all.find((line) => !line.includes('"success":true'))
    taken += all.filter((line) => line.includes('"success":true')).length
    if (refused) return { taken, refused }
  }
  return { taken }
}

async function measure(kind) {
  const server = await startServer()
  const tell = (what) => console.log(`${kind}, ${what}: workerd ${server.memory().toFixed(0)} MiB`)
  const search = (params) =>
    call(server, '/multi_search', {
      method: 'POST',
      body: JSON.stringify({ searches: [{ collection: kind, per_page: 1, ...params }] }),
    })
  try {
    tell('at the start')
    const fields = kind === 'vectors' ? [...GROWTH_SCHEMA.fields, EMBEDDING] : GROWTH_SCHEMA.fields
    await call(server, '/collections', {
      method: 'POST',
      body: JSON.stringify({ name: kind, ...GROWTH_SCHEMA, fields }),
    })
    let count = 0
    for (const size of SIZES) {
      const { taken, refused } = await fill(server, kind, count, size)
      count += taken
      tell(`${count.toLocaleString('en')} documents`)
      await search({ q: '*', facet_by: 'category,maker', sort_by: 'points:desc' })
      tell('after a search that keeps two facets and a number in memory')
      if (kind === 'vectors') {
        await search({ q: growthDocument(5).title, query_by: 'title,embedding', exclude_fields: 'embedding' })
        tell('after a search by words and meaning')
      }
      if (refused) {
        console.log(`${kind}: the next document was refused: ${refused}`)
        break
      }
    }
  } finally {
    await server.close()
  }
}

/** Each kind has a server of its own, as workerd returns little of the memory that it once had. */
export async function benchMemory() {
  for (const kind of KINDS) await measure(kind)
}
