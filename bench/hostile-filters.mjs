/**
 * Searches whose conditions take as much as they can, for hostile.mjs: those that once stopped everybody, and random ones of
 * their kinds. BENCH_SEED draws others.
 */
import { call } from './server.mjs'

const COUNT = Number(process.env.BENCH_FILTERED ?? 50_000)
const SEED = Number(process.env.BENCH_SEED ?? 1)
const RANDOM = Number(process.env.BENCH_RANDOM ?? 30)
const BATCH = 2_500

const SCHEMA = {
  name: 'filtered',
  enable_nested_fields: true,
  fields: [
    { name: 'title', type: 'string', infix: true },
    { name: 'body', type: 'string' },
    { name: 'uid', type: 'string' },
    { name: 'kind', type: 'string', facet: true },
    { name: 'tags', type: 'string[]', facet: true },
    { name: 'points', type: 'int32', facet: true },
    { name: 'place', type: 'geopoint' },
    { name: 'parts', type: 'object[]' },
    { name: 'parts.name', type: 'string[]' },
    { name: 'parts.size', type: 'int32[]' },
    { name: 'vector', type: 'float[]', num_dim: 32 },
  ],
}

/** Numbers from 0 to 1 that are the same in each run. */
function random(seed) {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const SYLLABLES = ['ba', 'ke', 'lo', 'mi', 'nu', 'ra', 'se', 'ti', 'vo', 'zu']
const wordOf = (n) => [...String(1_000 + (n % 9_000))].map((digit) => SYLLABLES[Number(digit)]).join('')

export function filteredDocument(n) {
  const next = random(n + 1)
  const words = (count) =>
    Array.from({ length: count }, () => wordOf(Math.floor(next() ** 2 * 9_000))).join(' ')
  return {
    id: `f-${n}`,
    title: words(6),
    body: words(60),
    uid: `u${(n * 7_919) % 1_000_003}`,
    kind: `kind ${n % 500}`,
    tags: [`tag ${n % 50}`, `tag ${n % 7}`],
    points: Math.floor(next() * 100_000),
    place: [next() * 180 - 90, next() * 360 - 180],
    parts: [
      { name: words(1), size: n % 100 },
      { name: words(1), size: n % 37 },
    ],
    vector: Array.from({ length: 32 }, () => next() - 0.5),
  }
}

export async function prepareFilters(server) {
  // First all of them: a connection that is idle for long is closed.
  const lines = Array.from({ length: COUNT }, (_, n) => JSON.stringify(filteredDocument(n)))
  await call(server, '/collections', { method: 'POST', body: JSON.stringify(SCHEMA) })
  for (let from = 0; from < COUNT; from += BATCH) {
    const path = '/collections/filtered/documents/import'
    const body = lines.slice(from, from + BATCH).join('\n')
    const results = await call(server, path, { method: 'POST', body })
    const refused = results.split('\n').find((line) => !line.includes('"success":true'))
    if (refused) throw new Error(refused)
  }
}

const list = (count, of) => Array.from({ length: count }, (_, n) => of(n))

const polygon = (corners, next = random(7)) =>
  `(${list(corners, (n) => {
    const [angle, radius] = [(n / corners) * 2 * Math.PI, 40 + next() * 40]
    return `${(Math.sin(angle) * radius).toFixed(4)}, ${(Math.cos(angle) * radius * 2).toFixed(4)}`
  }).join(', ')})`

const scattered = (n) => `u${(n * 104_729) % 1_000_003}`

/** @param patience milliseconds after which the caller leaves */
const searching = (name, searches, patience) => ({
  name: `filtered: ${name}`,
  patience,
  send: async (server, signal) => {
    const response = await fetch(`${server.url}/multi_search?limit_multi_searches=250`, {
      method: 'POST',
      headers: { 'x-typesense-api-key': 'xyz' },
      body: JSON.stringify({
        searches: searches.map((search) => ({ collection: 'filtered', q: '*', ...search })),
      }),
      signal,
    })
    return { status: response.status, text: await response.text() }
  },
})

const getting = (name, params, patience) => ({
  name: `filtered: ${name}`,
  patience,
  send: async (server, signal) => {
    const response = await fetch(
      `${server.url}/collections/filtered/documents/search?${new URLSearchParams({ q: '*', ...params })}`,
      { headers: { 'x-typesense-api-key': 'xyz' }, signal },
    )
    return { status: response.status, text: await response.text() }
  },
})

const finding = (name, body, patience) => ({
  name: `filtered: ${name}`,
  patience,
  send: async (server, signal) => {
    const response = await fetch(`${server.url}/filtered/_search`, {
      method: 'POST',
      headers: { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })
    return { status: response.status, text: await response.text() }
  },
})

const prefixes = (count, from = 0) => list(count, (n) => `body:${wordOf(n + from).slice(0, 3)}*`).join(' || ')
const LEAVES = 1_500

const FIXED = [
  getting('a hundred beginnings', { filter_by: prefixes(100) }),
  getting('a hundred beginnings, left', { filter_by: prefixes(100) }, LEAVES),
  searching('a polygon of 200 corners', [{ filter_by: `place:${polygon(200)}` }]),
  searching('a polygon of 2,000 corners', [{ filter_by: `place:${polygon(2_000)}` }]),
  searching('500 words that are not there', [
    { filter_by: list(500, (n) => `body:!=${wordOf(n)}`).join(' && ') },
  ]),
  searching(
    'ten times 40 beginnings',
    list(10, (n) => ({ filter_by: prefixes(40, n * 40) })),
  ),
  searching(
    'ten times 40 beginnings, left',
    list(10, (n) => ({ filter_by: prefixes(40, n * 40) })),
    LEAVES,
  ),
  searching('65,000 values', [{ filter_by: `uid:[${list(65_000, scattered).join(',')}]` }]),
  searching('65,000 values, left', [{ filter_by: `uid:[${list(65_000, scattered).join(',')}]` }], 500),
  finding('65,000 terms', { query: { terms: { uid: list(65_000, scattered) } } }),
  searching('an order by a polygon of 500 corners', [{ sort_by: `_eval(place:${polygon(500)}):desc` }]),
  searching(
    'ten times words and vectors',
    list(10, (n) => ({
      q: `${wordOf(n)} ${wordOf(n + 1)}`,
      query_by: 'title,body',
      vector_query: `vector:([${list(32, (at) => (at + n) / 32).join(',')}], k: 1000)`,
    })),
  ),
  searching('300 words within words', [
    { q: list(300, (n) => wordOf(n * 7).slice(1, 5)).join(' '), query_by: 'title', infix: 'always' },
  ]),
  searching('4,000 clauses', [{ filter_by: list(4_000, (n) => `points:!=${n}`).join(' && ') }]),
  searching(
    '25 times 4,000 clauses',
    list(25, (at) => ({ filter_by: list(4_000, (n) => `points:!=${n + at}`).join(' && ') })),
  ),
  // Every edge crosses the map, so that none can be left out.
  searching('a zigzag of 20,000 corners', [
    {
      filter_by: `place:(${list(20_000, (n) => `${(n % 170) - 85}, ${n % 2 === 0 ? -80 : 80}`).join(', ')})`,
    },
  ]),
  searching('objects of 200 beginnings', [
    { filter_by: `parts.{${list(200, (n) => `name:${wordOf(n).slice(0, 4)}*`).join(' || ')} && size:>3}` },
  ]),
]

/** A random search, of a size near what is allowed. */
function drawn(number) {
  const next = random(SEED * 1_000 + number)
  const upTo = (most) => 1 + Math.floor(next() * most)
  const size = (most) => Math.ceil(most * (0.3 + 0.7 * next()))
  const one = (...kinds) => kinds[Math.floor(next() * kinds.length)]
  const values = (field, operator, count, of) => `${field}:${operator}[${list(count, of).join(',')}]`
  const clauses = [
    () => values('uid', one('', '=', '!='), size(20_000), () => `u${upTo(1_000_000)}`),
    () => values('body', one('', '!='), size(2_000), () => wordOf(upTo(9_000))),
    () => values('body', '', size(500), () => `${wordOf(upTo(9_000)).slice(0, 2 + upTo(4))}*`),
    () => values('kind', one('=', ''), size(500), () => `kind ${upTo(500)}`),
    () => values('tags', '', size(300), () => `tag ${upTo(60)}*`),
    () => values('points', one('', '!='), size(20_000), () => `${upTo(100_000)}`),
    () => values('points', '', size(1_000), () => `${upTo(50_000)}..${50_000 + upTo(50_000)}`),
    () => values('id', one('', '!='), size(20_000), () => `f-${upTo(60_000)}`),
    () => `place:${polygon(size(2_000), next)}`,
    () => `place:[${list(size(12), () => polygon(size(300), next)).join(',')}]`,
    () =>
      `(${list(size(300), () => `${one('body', 'title', 'uid')}:${one('', '=', '!=')}${wordOf(upTo(9_000))}`).join(one(' && ', ' || '))})`,
    () =>
      `(${list(size(1_000), () => `points:${one('>', '<', '!=')}${upTo(100_000)}`).join(one(' && ', ' || '))})`,
    () => `parts.{${list(size(100), () => `name:${wordOf(upTo(9_000)).slice(0, 5)}*`).join(' || ')}}`,
  ]
  const filter = () =>
    list(upTo(3), () => clauses[Math.floor(next() * clauses.length)]()).join(one(' && ', ' || '))
  const search = () => ({
    ...(next() < 0.8 && { filter_by: filter() }),
    ...(next() < 0.3 && { q: list(size(60), () => wordOf(upTo(9_000))).join(' '), query_by: 'title,body' }),
    ...(next() < 0.3 && { sort_by: `_eval(${filter()}):desc` }),
    ...(next() < 0.3 && {
      facet_by: 'kind,tags,points(low:[0, 5000], high:[5000, 100000])',
      facet_query: 'tags:tag 1',
    }),
    ...(next() < 0.2 && { group_by: one('kind', 'tags') }),
    ...(next() < 0.2 && {
      pinned_hits: list(size(1_000), (n) => `f-${upTo(50_000)}:${n + 1}`).join(','),
      filter_curated_hits: true,
    }),
    ...(next() < 0.2 && { hidden_hits: list(size(1_000), () => `f-${upTo(50_000)}`).join(',') }),
  })
  const count = next() < 0.3 ? upTo(10) : 1
  const leaves = next() < 0.5 ? LEAVES : undefined
  return searching(
    `drawn search ${SEED}.${number}${count > 1 ? `, ${count} at once` : ''}${leaves ? ', left' : ''}`,
    list(count, search),
    leaves,
  )
}

export const filterCases = [...FIXED, ...list(RANDOM, drawn)]
