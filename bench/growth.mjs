/**
 * One collection as it grows: what each kind of search costs with the default parameters, against the least SQL in the
 * same object, and how long another search of the collection waits meanwhile.
 *
 *     BENCH_GROWTH=10000,100000    numbers of documents to measure at; 300,000 too, the most of a collection, unless it says otherwise
 *     BENCH_PICTURE=docs/images/growth.svg    where to draw the lines
 */
import { writeFileSync } from 'node:fs'
import { VOCABULARY } from './documents.mjs'
import { GROWTH_SCHEMA, growthCases, growthDocument } from './growth-cases.mjs'
import { drawGrowth } from './growth-picture.mjs'
import { median, percentile, report } from './report.mjs'
import { call } from './server.mjs'

const SIZES = (process.env.BENCH_GROWTH ?? '10000,100000,300000').split(',').map(Number)
const NAME = 'growing'
const BATCH = 10_000
/** Each kind of search runs for this long, and so many times at least and at most. */
const LONG_ENOUGH_MS = 1_500
const [LEAST, MOST] = [3, 60]
/** Searches that fill what the collection keeps in memory. */
const WARMING = 2
/** milliseconds between the searches that wait */
const PAUSE_MS = 10
/** A search that finds a few documents by itself: what it takes longer than alone, it waits. */
const SMALL = {
  q: VOCABULARY[15_000],
  query_by: 'title',
  prefix: 'false',
  num_typos: '0',
  drop_tokens_threshold: '0',
  per_page: '1',
}
/** Another search waits no longer than this. */
const WAIT_AIM_MS = 50

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

const timed = async (work) => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** @returns documents a second */
async function grow(server, from, to) {
  let milliseconds = 0
  for (let start = from; start < to; start += BATCH) {
    const count = Math.min(BATCH, to - start)
    const body = Array.from({ length: count }, (_, n) => JSON.stringify(growthDocument(start + n))).join('\n')
    milliseconds += await timed(async () => {
      const results = await call(server, `/collections/${NAME}/documents/import`, { method: 'POST', body })
      const refused = results.split('\n').find((line) => !line.includes('"success":true'))
      if (refused) throw new Error(refused)
    })
  }
  return (to - from) / (milliseconds / 1000)
}

const search = (server, params) =>
  call(server, `/collections/${NAME}/documents/search?${new URLSearchParams(params)}`)

const raw = (server, statement) =>
  call(server, `/__bench/sql?collection=${NAME}`, { method: 'POST', body: JSON.stringify(statement) })

/** Times both sides in turn, so that a busy moment meets both. */
async function measure(server, { search: params, raw: statement }) {
  const ours = []
  const least = []
  let cold = 0
  for (let n = 0; n < WARMING; n++) {
    const took = await timed(() => search(server, params(n)))
    cold ||= took
    await raw(server, statement(n))
  }
  const started = performance.now()
  for (let n = 0; n < MOST && (n < LEAST || performance.now() - started < LONG_ENOUGH_MS); n++) {
    ours.push(await timed(() => search(server, params(n))))
    least.push(await timed(() => raw(server, statement(n))))
  }
  return { ours, least, cold }
}

/** How long a small search waits while searches of a kind run one after the other. */
async function waits(server, { search: params }) {
  const waited = []
  let done = false
  const beside = (async () => {
    while (!done) {
      waited.push(await timed(() => search(server, SMALL)))
      await sleep(PAUSE_MS)
    }
  })()
  const started = performance.now()
  for (let n = 0; n < LEAST || performance.now() - started < LONG_ENOUGH_MS; n++) {
    await search(server, params(n))
  }
  done = true
  await beside
  return waited
}

const ms = (value) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`

/** The exponent of the growth between two sizes: 1 doubles the wait with the documents, 0 leaves it as it is. */
export const slopeOf = (points) => {
  const [[fewer, before], [more, after]] = points.slice(-2)
  return Math.log(after / before) / Math.log(more / fewer)
}

export async function benchGrowth(server) {
  await call(server, '/collections', {
    method: 'POST',
    body: JSON.stringify({ name: NAME, ...GROWTH_SCHEMA }),
  })
  const columns = JSON.parse(await call(server, `/__bench/columns?collection=${NAME}`))
  const cases = growthCases(columns).filter(({ name }) => name.includes(process.env.BENCH_CASE ?? ''))
  const lines = cases.map(({ name, aim }) => ({ name, aim, points: [] }))
  let count = 0
  for (const size of SIZES) {
    const speed = await grow(server, count, size)
    count = size
    console.log(
      `\n${size.toLocaleString('en')} documents: ${speed.toFixed(0)} a second, workerd ${server.memory().toFixed(0)} MiB`,
    )
    const hop = []
    for (let n = 0; n < LEAST + WARMING; n++) hop.push(await timed(() => raw(server, ['SELECT 1'])))
    for (const [index, each] of cases.entries()) {
      const { ours, least, cold } = await measure(server, each)
      const waited = await waits(server, each)
      lines[index].points.push([size, median(ours)])
      report({
        what: `${each.name}, p50 at ${size.toLocaleString('en')} documents, against the least SQL`,
        parley: ms(median(ours)),
        baseline: ms(median(least)),
        ratio: median(ours) / median(least),
        aim: 1.5,
        better: 'lower',
      })
      console.log(
        `  the first one ${ms(cold)}; aim at 300,000: ${each.aim === undefined ? 'none' : ms(each.aim)}; another search meanwhile: p95 ${ms(percentile(waited, 95))}, ` +
          `worst ${ms(Math.max(...waited))} (aim ${WAIT_AIM_MS}); a call alone ${ms(median(hop))}`,
      )
    }
    console.log(`  workerd ${server.memory().toFixed(0)} MiB after the searches`)
  }
  if (SIZES.length > 1) {
    for (const { name, points } of lines) console.log(`slope of ${name}: ${slopeOf(points).toFixed(2)}`)
  }
  if (process.env.BENCH_PICTURE) writeFileSync(process.env.BENCH_PICTURE, drawGrowth(lines))
}
