/**
 * How good the built-in answerer's answers are, through the HTTP API: `npm run bench quality`.
 *
 * Questions in natural words over three sets of documents lie in bench/quality/ with the documents and the phrases that
 * answer them. Half of them, chosen by a hash, are for development; the other half is held out, and nobody looks at its
 * answers while working on the answerer. Prints every figure with the one of before beside it.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeclined, mean } from '../scripts/parley/eval/metrics.mjs'
import { passages } from '../scripts/sample.mjs'
import { f1, recallAt } from './metrics.mjs'
import { misspell } from './misspell.mjs'
import { benchRetrieval } from './retrieval.mjs'
import { rewriting } from './rewriting.mjs'
import { call } from './server.mjs'

export const here = join(import.meta.dirname, 'quality')
export const shared = process.env.PARLEY_DATA ?? join(import.meta.dirname, '../../shared/data')
const { before } = JSON.parse(readFileSync(join(here, 'before.json'), 'utf8'))

export const readLines = (path) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** Whether a question is for development, not held out. */
export const isForDevelopment = ({ id, question }) =>
  createHash('sha256').update(`${id} ${question}`).digest()[0] % 2 === 0

/** The sets of documents. One whose data is not there is left out, and that is said. */
export const SETS = {
  parley: { documents: () => passages(''), fields: ['title', 'heading', 'text'] },
  hono: { folder: 'hono-docs', fields: ['title', 'text'] },
  northwind: { folder: 'northwind-qa', fields: ['title', 'text'] },
}

/** Text as it is compared: in small letters, without marks of Markdown, blanks as one. */
const plain = (text) =>
  text
    .toLowerCase()
    .replace(/[*_`\\]/g, '')
    .replace(/\s+/g, ' ')

/** Letters and digits alone: what is left of a sentence however it was marked up. */
const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

/** All that a document says, and the marks that turn links into their texts. */
const textOf = (document = {}) =>
  Object.values(document)
    .filter((value) => typeof value === 'string')
    .join('\n')
    .replace(/\[([^\]]+)\]\([^)\n]*\)/g, '$1')

export async function load(server, name, { fields }, documents) {
  const embedding = {
    name: 'embedding',
    type: 'float[]',
    embed: { from: fields, model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
  }
  const schema = { name, fields: [...fields.map((field) => ({ name: field, type: 'string' })), embedding] }
  await call(server, '/collections', { method: 'POST', body: JSON.stringify(schema) })
  const lines = documents.map(({ id, title, heading, text }) => JSON.stringify({ id, title, heading, text }))
  const replies = await call(server, `/collections/${name}/documents/import`, {
    method: 'POST',
    body: lines.join('\n'),
  })
  const failed = replies.split('\n').find((line) => !JSON.parse(line).success)
  if (failed !== undefined) throw new Error(`${name}: ${failed}`)
}

const HISTORY = ['conversation_id', 'model_id', 'role', 'message'].map((name) => ({ name, type: 'string' }))

export async function prepare(server) {
  const fields = [...HISTORY, { name: 'timestamp', type: 'int32' }]
  await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name: 'history', fields }) })
  const model = {
    id: 'built-in',
    model_name: 'local/extractive',
    history_collection: 'history',
    max_bytes: 16_384,
  }
  await call(server, '/conversations/models', { method: 'POST', body: JSON.stringify(model) })
}

/** Asks one question of one set. */
async function ask(server, collection, question) {
  const turn = JSON.parse(
    await call(server, '/conversations', {
      method: 'POST',
      body: JSON.stringify({ question, model: 'built-in', collections: [collection] }),
    }),
  )
  const hits = (turn.results[0]?.hits ?? []).map(({ document }) => document)
  return { ...turn, hits, declined: turn.declined === true || (!turn.warned && isDeclined(turn)) }
}

/**
 * An answer is right when it has a phrase that answers and cites a document that does, or a passage of one; partly with
 * either.
 */
export function verdictOf({ documents, answers }, { answer, citations, declined, warned }) {
  if (declined) return 'declined'
  const said = plain(answer)
  const says = answers.some((phrase) => said.includes(plain(phrase)))
  const cites = citations.some(({ document_id: id }) =>
    documents.some((page) => id === page || id.startsWith(`${page}~`)),
  )
  if (says && cites) return 'correct'
  return says || cites ? 'partly' : warned ? 'warned' : 'wrong'
}

const share = (list, test) => (list.length === 0 ? 0 : list.filter(test).length / list.length)
const percent = (value) => `${(100 * value).toFixed(0)}%`

function summarise(answered, unanswerable) {
  const is = (wanted) => share(answered, ({ verdict }) => verdict === wanted)
  const found = (k) =>
    mean(
      answered.map(({ asked, turn }) =>
        recallAt(
          turn.hits.map(({ id }) => id),
          new Set(asked.documents),
          k,
        ) > 0
          ? 1
          : 0,
      ),
    ) ?? 0
  const quotes = [...answered, ...unanswerable].flatMap(({ turn }) =>
    turn.citations.flatMap(({ quote, document_id: id }) => {
      const document = turn.hits.find((hit) => hit.id === id)
      return quote === undefined ? [] : [letters(textOf(document)).includes(letters(quote))]
    }),
  )
  return {
    questions: `${answered.length} + ${unanswerable.length}`,
    correct: percent(is('correct')),
    partly: percent(is('partly')),
    'wrong, with a warning': percent(is('warned')),
    'wrong without a warning': percent(is('wrong')),
    'wrongly declined': percent(is('declined')),
    'rightly declined': percent(
      share(unanswerable, ({ turn }) => turn.declined || turn.citations.length === 0),
    ),
    'right document in the first 3': percent(found(3)),
    'right document in the first 10': percent(found(10)),
    'quoted sentences in their document': `${quotes.filter(Boolean).length} of ${quotes.length}`,
    'declines with a citation': String(
      [...answered, ...unanswerable].filter(({ turn }) => turn.declined && turn.citations.length > 0).length,
    ),
  }
}

/** Questions with a reference answer, which names its pages. */
async function northwind(server) {
  const folder = join(shared, SETS.northwind.folder)
  const results = []
  for (const { question, answer } of readLines(join(folder, 'answers.jsonl'))) {
    const pages = [...new Set(Array.from(answer.matchAll(/\[([^\]]+)\]/g), ([, page]) => page))]
    const turn = await ask(server, 'northwind', question)
    const cited = new Set(turn.citations.map(({ document_id: id }) => id))
    const expected = answer.replace(/\[[^\]]+\]/g, '')
    results.push({
      f1: f1(turn.answer, expected),
      matched: pages.length === 0 ? 1 : pages.filter((page) => cited.has(page)).length / pages.length,
    })
  }
  return {
    'northwind-qa: F1': mean(results.map((result) => result.f1)).toFixed(3),
    'northwind-qa: citations matched': mean(results.map(({ matched }) => matched)).toFixed(2),
  }
}

async function judged(server, collection, asked) {
  const turn = await ask(server, collection, asked.question)
  return { asked, turn, verdict: asked.answers ? verdictOf(asked, turn) : undefined }
}

/** What a newcomer tries first has few documents, so that no word is rare among them. */
const FEW = 5

/** Loads the documents that answer a question and some others of their set. @returns the collection's name */
async function loadFew(server, { id, set, documents: right = [] }, documents) {
  const wanted = documents.filter((document) => right.includes(document.id))
  const order = ({ id: other }) => createHash('sha256').update(`${id} ${other}`).digest('hex')
  const others = documents
    .filter((document) => !right.includes(document.id))
    .map((document) => ({ document, key: order(document) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ document }) => document)
  const name = `few-${set}-${id}`
  await load(server, name, SETS[set], [...wanted, ...others].slice(0, FEW))
  return name
}

export async function benchQuality(server) {
  await prepare(server)
  const asked = []
  const missing = []
  const documentsOf = {}
  const unanswerable = readLines(join(here, 'unanswerable.jsonl'))
  for (const [name, set] of Object.entries(SETS)) {
    const file = set.folder && join(shared, set.folder, 'corpus.jsonl')
    if (file && !existsSync(file)) {
      missing.push(name)
      continue
    }
    documentsOf[name] = file ? readLines(file) : set.documents()
    await load(server, name, set, documentsOf[name])
    for (const question of readLines(join(here, `${name}.jsonl`))) asked.push({ ...question, set: name })
    for (const question of unanswerable.filter(({ corpus }) => corpus === name))
      asked.push({ ...question, set: name })
  }
  const results = []
  const few = []
  const misspelled = []
  for (const question of asked) {
    const started = performance.now()
    results.push({ ...(await judged(server, question.set, question)), ms: performance.now() - started })
    misspelled.push(
      await judged(server, question.set, { ...question, question: misspell(question.question) }),
    )
    few.push(await judged(server, await loadFew(server, question, documentsOf[question.set]), question))
  }
  if (process.env.QUALITY_DUMP)
    writeFileSync(process.env.QUALITY_DUMP, JSON.stringify({ results, misspelled, few }))
  const of = (some) =>
    summarise(
      some.filter(({ verdict }) => verdict !== undefined),
      some.filter(({ verdict }) => verdict === undefined),
    )
  const columns = {
    'held out': of(results.filter(({ asked }) => !isForDevelopment(asked))),
    development: of(results.filter(({ asked }) => isForDevelopment(asked))),
    all: of(results),
    'all, one word misspelled': of(misspelled),
    [`${FEW} documents, held out`]: of(few.filter(({ asked }) => !isForDevelopment(asked))),
    [`${FEW} documents, development`]: of(few.filter(({ asked }) => isForDevelopment(asked))),
  }
  const rest = {
    ...(missing.includes('northwind') ? {} : await northwind(server)),
    ...(existsSync(join(shared, 'cast-rewrite')) ? rewriting(join(shared, 'cast-rewrite/turns.jsonl')) : {}),
    'milliseconds a turn, median': results
      .map(({ ms }) => ms)
      .sort((a, b) => a - b)
      [results.length >> 1].toFixed(0),
  }
  print(columns, rest)
  await benchRetrieval(server, shared)
  if (missing.length > 0) console.log(`Left out, their data is not in ${shared}: ${missing.join(', ')}.`)
}

function print(columns, rest) {
  console.log(
    `| built-in answerer | before | ${Object.keys(columns).join(' | ')} |\n| --- | --- |${' --- |'.repeat(Object.keys(columns).length)}`,
  )
  for (const name of Object.keys(columns.all)) {
    const cells = Object.values(columns).map((column) => column[name])
    console.log(`| ${[name, before[name] ?? '', ...cells].join(' | ')} |`)
  }
  for (const [name, value] of Object.entries(rest)) {
    console.log(`| ${name} | ${before[name] ?? ''} | | | ${value} |`)
  }
}
