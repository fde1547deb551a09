/**
 * Requests that take as much as one request can, for hostile.mjs. A case has a name and `send(server, signal)`, which
 * sends its request and settles when it is answered or hung up. `prepare(server)` runs once before all cases.
 */
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { makeDocument } from './documents.mjs'
import { call } from './server.mjs'

const COUNT = Number(process.env.BENCH_HOSTILE ?? 300_000)
const BATCH = 20_000

const SCHEMA = {
  name: 'hostile',
  fields: [
    { name: 'title', type: 'string' },
    { name: 'category', type: 'string', facet: true },
    { name: 'maker', type: 'string', facet: true },
    { name: 'tags', type: 'string[]', facet: true },
    { name: 'points', type: 'int32', facet: true },
    { name: 'place', type: 'float[]', num_dim: 4 },
  ],
}

/** Small documents, which differ in what they are grouped by. */
function hostileDocument(n) {
  const { title, category, points } = makeDocument(n % 5_000)
  return {
    id: `doc-${n}`,
    title: `common ${title}`,
    category,
    maker: `maker ${(n * 7_919) % 50_000}`,
    tags: [`tag ${n % 50}`, `tag ${n % 7}`],
    points: (points * 31 + n) % 1_000,
    place: [n % 3, n % 5, n % 7, n % 11],
  }
}

export async function prepareSearches(server) {
  // First all of them: a connection that is idle for long is closed.
  const lines = Array.from({ length: COUNT }, (_, n) => JSON.stringify(hostileDocument(n)))
  await call(server, '/collections', { method: 'POST', body: JSON.stringify(SCHEMA) })
  for (let from = 0; from < COUNT; from += BATCH) {
    const results = await call(server, '/collections/hostile/documents/import', {
      method: 'POST',
      body: lines.slice(from, from + BATCH).join('\n'),
    })
    const refused = results.split('\n').find((line) => !line.includes('"success":true'))
    if (refused) throw new Error(refused)
  }
  // Values that searches read are packed after the first one that reads them.
  const read =
    '?q=common&query_by=title&facet_by=category,tags,points,maker&group_by=maker&sort_by=points:desc'
  await call(server, `/collections/hostile/documents/search${read}`)
}

const post = async (server, path, body, signal, headers = {}) => {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'x-typesense-api-key': 'xyz', ...headers },
    body,
    signal,
    duplex: 'half',
  })
  return { status: response.status, text: await response.text() }
}

const searches = (name, count, search) => ({
  name: `${count} searches: ${name}`,
  send: (server, signal) =>
    post(
      server,
      `/multi_search?limit_multi_searches=250`,
      JSON.stringify({
        searches: Array.from({ length: count }, () => ({ collection: 'hostile', ...search })),
      }),
      signal,
    ),
})

const ALL = { q: '*', per_page: 10 }

export const searchCases = [
  searches('grouped and faceted', 50, {
    ...ALL,
    group_by: 'maker',
    facet_by: 'category,tags,points,maker',
    sort_by: 'points:desc',
  }),
  searches('words that every document has, in buckets', 50, {
    q: 'common',
    query_by: 'title',
    sort_by: '_text_match(buckets:10):desc,points:desc',
    facet_by: 'category',
  }),
  searches('words and vectors, all measured', 20, {
    q: 'common',
    query_by: 'title',
    vector_query: 'place:([1, 2, 3, 4], k: 10000)',
    rerank_hybrid_matches: true,
  }),
  searches('a filter of 1,000 conditions', 10, {
    ...ALL,
    filter_by: Array.from({ length: 1_000 }, (_, n) => `points:!=${n + 2_000}`).join(' && '),
    facet_by: 'maker',
  }),
  searches('as many facet values and grouped hits as there may be', 10, {
    ...ALL,
    per_page: 25,
    facet_by: 'maker',
    max_facet_values: 10_000,
    group_by: 'category,tags',
    group_limit: 99,
  }),
  searches('sorted by the size of groups, by places and by conditions', 10, {
    ...ALL,
    group_by: 'maker',
    group_limit: 3,
    sort_by: '_group_found:desc,_eval([(tags:=`tag 3`):3,(category:=guide):2]):desc',
  }),
]

/** A gzipped body of the same bytes over and over. */
function repeated(text, megabytes) {
  const piece = Buffer.from(text.repeat(Math.ceil((1 << 20) / text.length)))
  const pieces = Readable.from(
    (function* () {
      for (let n = 0; n < megabytes; n++) yield piece
    })(),
  )
  return Readable.toWeb(pieces.pipe(createGzip({ level: 6 })))
}

const imported = (name, text, megabytes) => ({
  name: `import of ${name}`,
  send: (server, signal) =>
    post(server, '/collections/hostile/documents/import', repeated(text, megabytes), signal),
})

export const importCases = [
  imported('200 MB of blank lines, 204 KB gzipped', '\n', 200),
  imported('a line of 1.5 GB', ' x', 1_500),
  imported('200 MB of lines that are no documents', '{}\n', 200),
]
