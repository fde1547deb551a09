/**
 * Memory of workerd with one collection: after an import, after searches that keep values in memory, and with a vector for
 * each document. `BENCH_MEMORY` is the number of documents.
 */
import { GROWTH_SCHEMA, growthDocument } from './growth-cases.mjs'
import { call } from './server.mjs'

const COUNT = Number(process.env.BENCH_MEMORY ?? 100_000)
const DIMENSIONS = 256
const BATCH = 1_000

const vectorOf = (n) =>
  Array.from({ length: DIMENSIONS }, (_, at) => Number(Math.sin(n * 31 + at * 7).toFixed(4)))

async function fill(server, name, fields, document) {
  await call(server, '/collections', {
    method: 'POST',
    body: JSON.stringify({ name, ...GROWTH_SCHEMA, fields: [...GROWTH_SCHEMA.fields, ...fields] }),
  })
  for (let from = 0; from < COUNT; from += BATCH) {
    const lines = Array.from({ length: Math.min(BATCH, COUNT - from) }, (_, n) =>
      JSON.stringify(document(from + n)),
    )
    const results = await call(server, `/collections/${name}/documents/import`, {
      method: 'POST',
      body: lines.join('\n'),
    })
    const refused = results.split('\n').find((line) => !line.includes('"success":true'))
    if (refused) throw new Error(refused)
  }
}

export async function benchMemory(server) {
  const tell = (what) => console.log(`${what}: workerd ${server.memory().toFixed(0)} MiB`)
  const documents = COUNT.toLocaleString('en')
  const search = (name, params) =>
    call(server, `/multi_search`, {
      method: 'POST',
      body: JSON.stringify({ searches: [{ collection: name, per_page: 1, ...params }] }),
    })
  tell('at the start')
  await fill(server, 'plain', [], growthDocument)
  tell(`${documents} documents imported`)
  await search('plain', { q: '*', facet_by: 'category,maker', sort_by: 'points:desc' })
  tell('after a search that keeps two facets and a number in memory')
  const field = { name: 'place', type: 'float[]', num_dim: DIMENSIONS }
  await fill(server, 'vectors', [field], (n) => ({ ...growthDocument(n), place: vectorOf(n) }))
  tell(`${documents} documents with ${DIMENSIONS} dimensions each imported beside them`)
  await search('vectors', {
    q: '*',
    vector_query: `place:([${vectorOf(5).join()}], k: 10)`,
    exclude_fields: 'place',
  })
  tell('after a search by vector')
}
