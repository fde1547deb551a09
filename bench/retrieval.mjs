/**
 * How well questions find their documents, through the HTTP API: nDCG@10 of words, of meaning and of both, beside FTS5's
 * own OR over the same words, and of a plain search at its default parameters. Part of `npm run bench quality`.
 */
import './typescript.mjs'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { mean } from '../scripts/parley/eval/metrics.mjs'
import { ndcgAt } from './metrics.mjs'
import { call } from './server.mjs'

const { DatabaseSync } = await import('node:sqlite')
const { forQuestion, weightsOf } = await import('../src/search/request/question.ts')
const { isEnglishGrammar } = await import('../src/lib/grammar.ts')
const { standalone } = await import('../src/models/extractive/followup.ts')

const FIELDS = ['title', 'text']
/** What words alone are to reach. FTS5's OR is known to reach .694, .265, .303 and .415. */
const SETS = [
  { name: 'scifact', folder: 'scifact', queries: 'queries.jsonl', aim: 0.7 },
  { name: 'mtrag-clapnq, last turn', folder: 'mtrag-clapnq', queries: 'queries.jsonl', aim: 0.27 },
  { name: 'mtrag-clapnq, rewritten', folder: 'mtrag-clapnq', queries: 'queries-rewrite.jsonl', aim: 0.31 },
  { name: 'northwind-qa', folder: 'northwind-qa', queries: 'queries.jsonl', aim: 0.42 },
]
const TURNS = { folder: 'mtrag-clapnq', file: 'turns.jsonl' }

const readLines = (path) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** Relevant documents by query. */
function relevance(path) {
  const relevant = new Map()
  for (const line of readFileSync(path, 'utf8').trim().split('\n').slice(1)) {
    const [query, document, score] = line.split('\t')
    if (Number(score) > 0) relevant.set(query, (relevant.get(query) ?? new Set()).add(document))
  }
  return relevant
}

/** SQLite's full-text search as it comes: every informative word, any of which will do. */
function fts5(corpus) {
  const db = new DatabaseSync(':memory:')
  db.exec(`CREATE VIRTUAL TABLE t USING fts5(title, text, tokenize = 'porter unicode61')`)
  const insert = db.prepare('INSERT INTO t (rowid, title, text) VALUES (?, ?, ?)')
  for (const [row, { title, text }] of corpus.entries()) insert.run(row, title ?? '', text ?? '')
  const best = db.prepare('SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10')
  return (question) => {
    const words = [...new Set(question.toLowerCase().match(/[\p{L}\p{N}]+/gu))]
    const telling = words.filter((word) => !isEnglishGrammar(word))
    const match = (telling.length > 0 ? telling : words).map((word) => `"${word}"`).join(' OR ')
    return best.all(match).map(({ rowid }) => corpus[rowid].id)
  }
}

async function load(server, name, corpus) {
  const model_config = { model_name: 'local/minilm-l6-static' }
  const fields = [
    ...FIELDS.map((field) => ({ name: field, type: 'string' })),
    { name: 'embedding', type: 'float[]', embed: { from: FIELDS, model_config } },
  ]
  await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name, fields }) })
  for (let from = 0; from < corpus.length; from += 1_000) {
    const lines = corpus
      .slice(from, from + 1_000)
      .map(({ id, title, text }) => JSON.stringify({ id, title: title ?? '', text: text ?? '' }))
    await call(server, `/collections/${name}/documents/import`, { method: 'POST', body: lines.join('\n') })
  }
}

/** Searches as a question of a conversation does. */
const search = (server, collection, fields, question, said) =>
  find(server, collection, fields, question, forQuestion(weightsOf(fields), said))

async function find(server, collection, fields, question, params) {
  const query = new URLSearchParams({
    ...params,
    query_by: fields.join(','),
    q: question,
    include_fields: 'id',
    highlight_fields: 'none',
  })
  const reply = JSON.parse(await call(server, `/collections/${collection}/documents/search?${query}`))
  return reply.hits.map(({ document }) => document.id)
}

export async function benchRetrieval(server, shared) {
  const rows = []
  const loaded = new Map()
  for (const { name, folder, queries, aim } of SETS) {
    const path = join(shared, folder)
    if (!existsSync(path)) continue
    if (!loaded.has(folder)) {
      const corpus = readLines(join(path, 'corpus.jsonl'))
      loaded.set(folder, fts5(corpus))
      // The server closes connections that were idle meanwhile; Node hears of it when it gets to its sockets.
      await setTimeout(100)
      await load(server, `${folder}-retrieval`, corpus)
    }
    const relevant = relevance(join(path, 'qrels.tsv'))
    const asked = readLines(join(path, queries)).filter(({ id }) => relevant.has(id))
    const measure = async (find) => {
      const values = []
      for (const { id, text } of asked) values.push(ndcgAt(await find(text), relevant.get(id), 10))
      return mean(values)
    }
    const by = (fields) => (question) => search(server, `${folder}-retrieval`, fields, question)
    rows.push({
      name,
      aim,
      or: await measure(loaded.get(folder)),
      words: await measure(by(FIELDS)),
      meaning: await measure(by(['embedding'])),
      both: await measure(by(['embedding', ...FIELDS])),
      plain: await measure((question) => find(server, `${folder}-retrieval`, FIELDS, question, {})),
    })
  }
  print(rows)
  if (loaded.has(TURNS.folder)) await followUps(server, join(shared, TURNS.folder))
}

function print(rows) {
  console.log(
    '\n| nDCG@10 | FTS5 OR | aim for words | words | meaning | best half | both | against the best half | plain |',
  )
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |')
  for (const { name, aim, or, words, meaning, both, plain } of rows) {
    const best = Math.max(or, words, meaning)
    const cells = [or, aim, words, meaning, best, both].map((value) => value.toFixed(3))
    const gain = `${both >= best ? '+' : ''}${(both - best).toFixed(3)}`
    console.log(`| ${[name, ...cells, gain, plain.toFixed(3)].join(' | ')} |`)
  }
}

/** Follow-ups rewritten without a model, with and without the question before. */
async function followUps(server, path) {
  const fields = ['embedding', ...FIELDS]
  const collection = `${TURNS.folder}-retrieval`
  const turns = readLines(join(path, TURNS.file)).filter(
    ({ history, relevant_ids: ids }) => history.length > 0 && ids?.length > 0,
  )
  const figures = { own: [], rewritten: [], 'with the question before': [] }
  for (const { query, history, relevant_ids: ids } of turns) {
    const relevant = new Set(ids)
    const rewritten = standalone(query, history)
    const before = history.findLast(({ role }) => role === 'user').content
    const found = async (question, said) =>
      ndcgAt(await search(server, collection, fields, question, said), relevant, 10)
    figures.own.push(await found(query))
    figures.rewritten.push(await found(rewritten))
    figures['with the question before'].push(await found(rewritten, `${before} ${query}`))
  }
  console.log(`\n| ${turns.length} follow-ups of mtrag-clapnq, nDCG@10 | |\n| --- | --- |`)
  for (const [name, values] of Object.entries(figures))
    console.log(`| ${name} | ${mean(values).toFixed(3)} |`)
}
