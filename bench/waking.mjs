/**
 * The first search after a collection's object has slept, beside the same one warm. An object forgets its memory, and SQLite's
 * cache of pages, ten seconds after its last request.
 *
 * Tells for each kind of search: the ratio of both in this run, the rows and bytes that SQLite read for the first one, and how
 * long a neighbour had to wait meanwhile: a small collection of the same isolate that is searched without a break.
 *
 *     BENCH_WAKING=10000,50000   numbers of documents; past 149,000 without vectors
 *     BENCH_ROUNDS=3             sleeps for each kind of search
 *     BENCH_CASE=words           only kinds with this in their name
 *     BENCH_STATEMENTS=1         tells which statements read most
 */
import { GROWTH_SCHEMA, growthDocument } from './growth-cases.mjs'
import { median, report } from './report.mjs'
import { call, startServer } from './server.mjs'

const SIZES = (process.env.BENCH_WAKING ?? '10000,50000').split(',').map(Number)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const BATCH = 2_000
const SLEEPS_AFTER = 11_000
const WARM = 7
const NEIGHBOUR = 'neighbour'
const EMBEDDING = {
  name: 'embedding',
  type: 'float[]',
  embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
}

const { title } = growthDocument(5)
const words = title.split(' ').slice(0, 2).join(' ')
const ALL = {
  hybrid: { q: title, query_by: 'title,embedding' },
  words: { q: words, query_by: 'title,text' },
  'filter and sort': { q: '*', filter_by: 'maker:=`maker 7` || points:>900', sort_by: 'points:asc' },
  'two facets': { q: '*', facet_by: 'category,maker' },
  typo: { q: `${title.slice(0, 3)}x${title.slice(4)}`, query_by: 'title,text' },
}
const KINDS = Object.fromEntries(
  Object.entries(ALL).filter(([kind]) => kind.includes(process.env.BENCH_CASE ?? '')),
)

/** A collection takes no more vectors without Vectorize. */
const MOST_VECTORS = 149_000
const kindsOf = (size) => {
  const { hybrid, ...others } = KINDS
  return size > MOST_VECTORS || !hybrid ? others : { hybrid, ...others }
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const post = (server, path, body) => call(server, path, { method: 'POST', body })
const nameOf = (size) => `waking-${size}`

async function fill(server, name, count, schema) {
  await post(server, '/collections', JSON.stringify({ name, ...schema }))
  const started = performance.now()
  for (let from = 0; from < count; from += BATCH) {
    const lines = Array.from({ length: Math.min(BATCH, count - from) }, (_, n) =>
      JSON.stringify(growthDocument(from + n)),
    )
    const results = await post(server, `/collections/${name}/documents/import`, lines.join('\n'))
    const refused = results.split('\n').find((line) => !line.includes('"success":true'))
    if (refused) throw new Error(refused)
  }
  const seconds = (performance.now() - started) / 1_000
  console.log(`${name}: ${count.toLocaleString('en')} documents were imported in ${seconds.toFixed(1)} s`)
}

async function search(server, collection, params) {
  const started = performance.now()
  await post(
    server,
    '/multi_search',
    JSON.stringify({ searches: [{ collection, exclude_fields: 'embedding', ...params }] }),
  )
  return performance.now() - started
}

/** Searches the neighbour until `work` has ended. @returns its longest wait */
async function beside(server, work) {
  let done = false
  const ended = work().finally(() => {
    done = true
  })
  let worst = 0
  for (let n = 0; !done; n++)
    worst = Math.max(
      worst,
      await search(server, NEIGHBOUR, { q: growthDocument(n).title.split(' ')[0], query_by: 'title' }),
    )
  await ended
  return worst
}

/** What SQLite has read in the object since it woke. */
const readsOf = async (server, name) => JSON.parse(await call(server, `/__bench/reads?collection=${name}`))

export async function benchWaking() {
  const server = await startServer()
  try {
    await fill(server, NEIGHBOUR, 200, GROWTH_SCHEMA)
    for (const size of SIZES)
      await fill(server, nameOf(size), size, {
        ...GROWTH_SCHEMA,
        fields: [...GROWTH_SCHEMA.fields, ...(size > MOST_VECTORS ? [] : [EMBEDDING])],
      })
    // What searches leave in storage for the next wake is there from the second one on.
    for (const size of SIZES)
      for (const params of Object.values(kindsOf(size))) await search(server, nameOf(size), params)
    const seen = SIZES.map((size) =>
      Object.fromEntries(Object.keys(kindsOf(size)).map((kind) => [kind, { cold: [], warm: [], waits: [] }])),
    )
    for (const [kind, params] of Object.entries(KINDS)) {
      for (let round = 0; round <= ROUNDS; round++) {
        await sleep(SLEEPS_AFTER)
        for (const [at, size] of SIZES.entries()) {
          const of = seen[at][kind]
          if (!of) continue
          if (round === ROUNDS) {
            await search(server, NEIGHBOUR, { q: title, query_by: 'title' })
            of.waits.push(await beside(server, () => search(server, nameOf(size), params)))
            of.quiet = await beside(server, () => sleep(300))
            continue
          }
          const bytes = server.bytesRead()
          of.cold.push(await search(server, nameOf(size), params))
          of.bytes = server.bytesRead() - bytes
          of.reads = await readsOf(server, nameOf(size))
          for (let n = 0; n < WARM; n++) of.warm.push(await search(server, nameOf(size), params))
        }
      }
    }
    for (const [at, size] of SIZES.entries()) {
      for (const [kind, { cold, warm, waits, quiet, bytes, reads }] of Object.entries(seen[at])) {
        report({
          what: `${kind}, ${size.toLocaleString('en')} documents: the first search after a sleep beside the same one warm`,
          parley: `${median(cold).toFixed(1)} ms`,
          baseline: `${median(warm).toFixed(1)} ms`,
          ratio: median(cold) / median(warm),
          aim: size > 10_000 ? 3 : 2,
          better: 'lower',
        })
        console.log(
          `  read: ${reads.rows.toLocaleString('en')} rows, ${(bytes / 2 ** 20).toFixed(1)} MiB; ` +
            `a neighbour waited up to ${Math.max(...waits).toFixed(1)} ms (${quiet.toFixed(1)} ms when all is quiet)`,
        )
        if (process.env.BENCH_STATEMENTS)
          for (const [rows, text] of reads.statements) console.log(`    ${rows} ${text}`)
      }
    }
  } finally {
    await server.close()
  }
}
