/**
 * Random requests of a search box, to Parley and to a real Typesense 0.24.1 in turn: `npm run bench typesense`. How often both find as many
 * documents, how much of the first page is the same, whether facets agree, and how long each took. BENCH_REQUESTS says how many requests (3,000),
 * BENCH_SHOW=1 lists those that differ.
 *
 * Typesense tries four endings of an unfinished word and four corrections of a mistyped one, and Parley all of them. So it is asked for all
 * of them too (`max_candidates`).
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTypesense } from '../test/reference/typesense.mjs'
import { median } from './report.mjs'
import { call } from './server.mjs'

const corpus = join(
  process.env.PARLEY_DATA ?? join(import.meta.dirname, '../../shared/data'),
  'wiki-movies/corpus.jsonl',
)
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 3_000)
/** that of the bench server */
const KEY = 'xyz'
const AIMS = { found: 0.89, page: 0.92, facets: 0.98 }

const GENRES = ['Drama', 'Comedy', 'Action', 'Thriller', 'Horror', 'Romance', 'War']
const SCHEMA = {
  name: 'films',
  default_sorting_field: 'reviews',
  fields: [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'year', type: 'int32', facet: true },
    { name: 'reviews', type: 'int32' },
    { name: 'genre', type: 'string[]', facet: true },
    { name: 'studio', type: 'string', facet: true },
  ],
}

let seed = 7
const random = () => {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
  return seed / 0x7fffffff
}
const between = (from, to) => from + Math.floor(random() * (to - from + 1))
const pick = (list) => list[Math.floor(random() * list.length)]

const filmOf = ({ title, text }, n) => ({
  id: String(n),
  title,
  text: text.slice(0, 600),
  year: 1930 + ((n * 7_919) % 90),
  reviews: (n * 7_907) % 5_003,
  genre: [...new Set([GENRES[n % 7], GENRES[(3 * n + 1) % 7]])],
  studio: `Studio ${n % 23}`,
})

const wordsOf = (text) => text.match(/[\p{L}\p{N}]+/gu) ?? ['x']
/** @param count so many words of a text, in a row */
const some = (text, count) => {
  const words = wordsOf(text)
  const from = between(0, Math.max(0, words.length - count))
  return words.slice(from, from + count).join(' ')
}
const longWord = (text, letters) =>
  pick([...wordsOf(text).filter((word) => word.length > letters), 'Alphabet'])

/** A letter left out, added or replaced, or two swapped. */
function mistyped(text) {
  const at = between(1, Math.max(1, text.length - 1))
  const letter = pick([...'aeiorst'])
  return pick([
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + letter + text.slice(at),
    () => text.slice(0, at) + letter + text.slice(at + 1),
    () => text.slice(0, at - 1) + (text[at] ?? '') + text[at - 1] + text.slice(at + 1),
  ])()
}

const KINDS = {
  'a title': ({ title }) => title,
  'the beginning of a title': ({ title }) => title.slice(0, between(1, title.length)),
  'a title with an unfinished word': ({ title }) => title.slice(0, title.lastIndexOf(' ') + between(2, 4)),
  'a word': ({ title, text }) => pick(wordsOf(pick([title, text]))),
  'two words': ({ title, text }) => `${pick(wordsOf(pick([title, text])))} ${pick(wordsOf(text))}`,
  'three words in a row': ({ text }) => some(text, 3),
  'a phrase': ({ text }) => `"${some(text, 2)}"`,
  'a word without another': ({ text }) => `${pick(wordsOf(text))} -${pick(wordsOf(text))}`,
  'a title with a typo': ({ title }) => mistyped(title),
  'a word with a typo': ({ text }) => mistyped(longWord(text, 4)),
  'a word with two typos': ({ text }) => mistyped(mistyped(longWord(text, 6))),
  everything: () => '*',
}

const MORE = [
  () => ({}),
  () => ({}),
  () => ({}),
  () => ({ filter_by: `year:>${between(1940, 2010)}` }),
  () => ({ filter_by: `genre:=${pick(GENRES)}` }),
  () => ({ sort_by: 'reviews:desc' }),
  () => ({ sort_by: '_text_match:desc,reviews:desc' }),
  () => ({ sort_by: 'year:asc,_text_match:desc' }),
  () => ({ facet_by: 'genre,studio' }),
  () => ({ facet_by: 'year', filter_by: `year:[${between(1940, 1960)}..${between(1970, 2010)}]` }),
  () => ({ group_by: 'studio', group_limit: '2' }),
  () => ({ query_by: 'title' }),
  () => ({ query_by: 'title', prefix: 'false' }),
  () => ({ query_by_weights: '3,1' }),
  () => ({ num_typos: '0' }),
  () => ({ page: '2' }),
]

const idsIn = ({ hits, grouped_hits: groups }) =>
  (hits ?? groups.flatMap((group) => group.hits)).map(({ document }) => document.id)

/** The part of the longer page that both have. */
function sharedBy(one, other) {
  const most = Math.max(one.length, other.length)
  return most === 0 ? 1 : one.filter((id) => other.includes(id)).length / most
}

const countsIn = ({ facet_counts: facets }) =>
  JSON.stringify(facets.map(({ counts }) => counts.map(({ count }) => count)))

export async function benchTypesense(server) {
  if (!existsSync(corpus)) return console.log('no wiki-movies: not compared with Typesense')
  let typesense
  try {
    typesense = await startTypesense(KEY)
  } catch (error) {
    return console.log(`no Typesense to compare with: ${error.message.trim().split('\n').at(-1)}`)
  }
  try {
    await compare(server, typesense.url)
  } finally {
    await typesense.stop()
  }
}

async function compare(server, url) {
  const askTypesense = async (path, init) => {
    const reply = await fetch(url + path, { ...init, headers: { 'x-typesense-api-key': KEY } })
    return reply.text()
  }
  const films = readFileSync(corpus, 'utf8')
    .trim()
    .split('\n')
    .map((line, n) => filmOf(JSON.parse(line), n))
  const lines = films.map((film) => JSON.stringify(film)).join('\n')
  for (const ask of [(...asked) => call(server, ...asked), askTypesense]) {
    await ask('/collections', { method: 'POST', body: JSON.stringify(SCHEMA) })
    await ask('/collections/films/documents/import?action=create', { method: 'POST', body: lines })
  }
  const results = []
  for (let n = 0; n < REQUESTS; n++) {
    const kind = pick(Object.keys(KINDS))
    const q = KINDS[kind](pick(films)).trim() || 'a'
    const more = pick(MORE)()
    const query = new URLSearchParams({ q, query_by: 'title,text', max_candidates: '10000', ...more })
    const path = `/collections/films/documents/search?${query}`
    const timed = []
    for (const ask of [() => call(server, path), () => askTypesense(path)]) {
      const started = performance.now()
      const reply = JSON.parse(await ask())
      timed.push({ reply, ms: performance.now() - started })
    }
    const [own, other] = timed
    const found = own.reply.found === other.reply.found
    const page = sharedBy(idsIn(own.reply), idsIn(other.reply))
    const facets = more.facet_by && found ? countsIn(own.reply) === countsIn(other.reply) : undefined
    results.push({ kind, found, page, facets, ms: [own.ms, other.ms] })
    if (process.env.BENCH_SHOW && !(found && page === 1))
      console.log(`  ${query}: found ${own.reply.found} and ${other.reply.found}, page ${page.toFixed(2)}`)
  }
  const mean = (list) => list.reduce((sum, value) => sum + Number(value), 0) / list.length
  console.log('| requests beside Typesense 0.24.1 | of them | found equal | page | p50, times Typesense |')
  console.log('| --- | --- | --- | --- | --- |')
  const row = (name, list) => {
    const [own, other] = [0, 1].map((at) => median(list.map(({ ms }) => ms[at])))
    const shares = [list.map(({ found }) => found), list.map(({ page }) => page)].map((of) =>
      mean(of).toFixed(3),
    )
    console.log(`| ${name} | ${list.length} | ${shares.join(' | ')} | ${(own / other).toFixed(1)} |`)
  }
  for (const kind of Object.keys(KINDS))
    row(
      kind,
      results.filter((result) => result.kind === kind),
    )
  row('all', results)
  const totals = {
    found: mean(results.map(({ found }) => found)),
    page: mean(results.map(({ page }) => page)),
    facets: mean(results.flatMap(({ facets }) => facets ?? [])),
  }
  for (const [name, aim] of Object.entries(AIMS)) {
    const isMet = totals[name] >= aim
    console.log(`${name} ${totals[name].toFixed(3)}, at least ${aim}${isMet ? '' : '   MISSED'}`)
    if (!isMet) process.exitCode = 1
  }
}
