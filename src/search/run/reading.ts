/**
 * The second stage of a search for a question: the best documents are read passage by passage, and reordered.
 *
 *     value = 0.6 words + 0.8 likeness + 0.4 said + 0.1 pairs, divided by their sum
 *
 * `words` is the document's BM25 as a share of the ideal one, as in fusion.ts; the others are those of the best passage
 * (models/static-embedder/reader.ts). All other documents follow in the order of the fusion.
 *
 * The weights were chosen by leaving out one set of questions at a time, like those of the fusion (docs/search.md).
 */
import { ApiError } from '../../errors'
import { settlesWithin } from '../../lib/waiting'
import type { Reranker } from '../../models/reranker'
import type { PassageReader, Reading, Written } from '../../models/static-embedder/reader'
import { logFault, type Origin } from '../fault-log'
import { EVERYWHERE, oneOf } from '../fragment'
import { parameter } from '../request/parameters'
import { isNameField } from '../request/question'
import type { SearchRequest } from '../request/request'
import { isSearchable } from '../schema/layout'
import { stringsAt } from '../schema/values'
import { stepwise } from '../steps'
import type { Term, TextMatch } from '../text/query'
import type { Document, Hit, RerankInfo, SearchParameters } from '../types'
import type { Neighbour } from '../vectors/vector-index'
import { Gathered, gatherScores, type OrderedMatch, type Top, textMatchesIn } from './candidates'
import type { Running, SearchContext } from './context'
import { CONTEXT_WEIGHT, type ScoredWords, share } from './fusion'
import { measured, type VectorSearch } from './nearest'
import { idealScore, queryOf, type WeighedWord, weighWords } from './query-words'

/** How many documents are read. With 30, a few questions lose their answer; with 100, none gains one. */
const MOST_READ = 50
/** Characters that are read of one document, and of all of them. */
const MOST_OF_ONE = 40_000
const MOST_CHARACTERS = 400_000
/** A longer value is text, whatever its field is called. */
const LONGEST_NAME = 300
/** Documents that are fetched before other searches get a turn. */
const AT_ONCE = 10

const WEIGHTS = { words: 0.6, likeness: 0.8, said: 0.4, pairs: 0.1 }
const ALL_WEIGHTS = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0)

/**
 * Whether a search reads its best hits: it joins words and meaning by their scores, and orders by what fits best. A
 * `vector_query` with its own vector, texts or weight decides itself how meaning counts.
 */
const reads = ({ fusion, vectorQuery: query, sort }: SearchRequest): boolean =>
  fusion === 'score' &&
  (query === undefined ||
    (query.vector.length + query.queries.length === 0 &&
      query.id === undefined &&
      query.alpha === undefined)) &&
  (sort === undefined || sort.some(({ kind }) => kind === 'text_match'))

/**
 * The reader for a search by words alone, if it reads its best hits.
 * @returns undefined too where the reader cannot be loaded now: the words' own order serves then
 */
export async function readerFor(
  context: SearchContext,
  request: SearchRequest,
  origin: Origin,
): Promise<PassageReader | undefined> {
  if (!reads(request)) return undefined
  try {
    return await context.reader?.()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    logFault(context.schema.name, 'reader', origin, error)
    return undefined
  }
}

/** The window that is to be read instead of a page. */
export const windowToRead = (top: Top): Top => ({
  ...top,
  offset: 0,
  limit: Math.max(MOST_READ, top.offset + top.limit),
})

/**
 * Reads the best of some fused matches and orders them anew, in place.
 * @param words the matches of the words
 * @param terms what was searched for
 */
export async function readBest(
  context: Running,
  request: SearchRequest,
  {
    fused,
    words,
    terms,
    vector,
  }: { fused: Gathered; words: ScoredWords; terms: Term[]; vector: VectorSearch },
): Promise<void> {
  if (!reads(request) || vector.field.embed === undefined) return
  const reader = context.embedder(vector.field).reader?.()
  if (reader === undefined) return
  const fields = fieldsToRead(request, vector.field.embed.from)
  await readInto(fused, context, valuer(context, request, reader, { terms, words }), { words, fields })
}

/**
 * Reads the best matches of words alone, in a search for a question, and orders them anew. Their new scores are on the scale of
 * BM25.
 * @param known the rows of `windowToRead`, best first, and the number of all matches
 * @param top the page beside the pinned documents
 */
export async function readPage(
  context: Running,
  request: SearchRequest,
  known: { rows: OrderedMatch[]; found: number },
  { terms, reader, top: { offset, limit } }: { terms: Term[]; reader: PassageReader; top: Top },
): Promise<{ rows: OrderedMatch[]; found: number }> {
  const matches = new Gathered()
  for (const { seq, score } of known.rows) matches.add(seq, score ?? undefined)
  const asked = weighWords(context, request.index, terms)
  const words = { matches, ideal: idealScore(asked), asked }
  const { scores } = await readWords(context, request, words, { terms, reader })
  const read = known.rows.map((row, at) => ({ ...row, score: scores[at]! }))
  read.sort((one, other) => one.score - other.score)
  return { rows: read.slice(offset, offset + limit), found: known.found }
}

/** The same for matches in memory. @returns them in their old order, with new scores */
export async function readWords(
  context: Running,
  request: SearchRequest,
  words: ScoredWords,
  { terms, reader }: { terms: Term[]; reader: PassageReader },
): Promise<Gathered> {
  const { matches, ideal } = words
  if (ideal === 0) return matches
  const fused = new Gathered()
  for (const [at, seq] of matches.seqs.entries()) {
    const score = matches.scores[at]!
    fused.add(seq, score, Number.NaN, share(score, words))
  }
  const fields = fieldsToRead(request, [])
  await readInto(fused, context, valuer(context, request, reader, { terms, words }), { words, fields })
  const read = new Gathered()
  for (const [at, seq] of fused.seqs.entries()) read.add(seq, -ideal * fused.fused[at]!)
  return read
}

async function readInto(
  fused: Gathered,
  context: Running,
  value: (words: number, document: Written) => number,
  { words, fields }: { words: ScoredWords; fields: string[] },
): Promise<void> {
  const places = bestOf(fused)
  const values = new Map<number, number>()
  let left = MOST_CHARACTERS
  for (let from = 0; from < places.length && left > 0; from += AT_ONCE) {
    if (from > 0 && !(await context.pace.rest())) break
    const some = places.slice(from, from + AT_ONCE)
    const documents = context.read(
      some.map((at) => fused.seqs[at]!),
      true,
    )
    for (const at of some) {
      const document = documents.get(fused.seqs[at]!)
      if (document === undefined || left <= 0) continue
      const written = writtenIn(document, fields)
      left -= written.text.length
      const score = fused.scores[at]!
      values.set(at, value(Number.isNaN(score) ? 0 : share(score, words), written))
    }
  }
  rearrange(fused, values)
}

/** Returns a function that values a document by its BM25 share and its passages. */
function valuer(
  context: SearchContext,
  request: SearchRequest,
  reader: PassageReader,
  { terms, words: { asked, said } }: { terms: Term[]; words: ScoredWords },
): (words: number, document: Written) => number {
  const weighed = (some: Term[]) => weighWords(context, request.index, some)
  const ask = (text: string, words: WeighedWord[]) =>
    // Replace a word that the index lacks by its likeliest correction.
    reader.ask({ text, words: words.map(({ words, says }) => ({ word: words[1] ?? words[0]!, says })) })
  const of = ({ likeness, words, pairs }: Reading): number =>
    WEIGHTS.likeness * likeness + WEIGHTS.said * words + WEIGHTS.pairs * pairs
  const question = ask(request.q, asked ?? weighed(terms))
  const { contextQ } = request
  const before =
    contextQ === ''
      ? undefined
      : ask(contextQ, said ?? weighed(queryOf(context, { ...request, q: contextQ }).terms))
  return (words, document) => {
    const own = of(question(document))
    const read = before ? (1 - CONTEXT_WEIGHT) * own + CONTEXT_WEIGHT * of(before(document)) : own
    return Math.max(0, WEIGHTS.words * words + read) / ALL_WEIGHTS
  }
}

/** The places of the best matches, best first; among equals the newest document first. */
const bestOf = ({ seqs, fused }: Gathered): number[] => {
  const least = Float64Array.from(fused).sort().at(-MOST_READ) ?? Number.NEGATIVE_INFINITY
  const places: number[] = []
  for (let at = 0; at < fused.length; at++) if (fused[at]! >= least) places.push(at)
  return places.sort((a, b) => fused[b]! - fused[a]! || seqs[b]! - seqs[a]!).slice(0, MOST_READ)
}

/** Puts the documents that were read before all others, which keep their order. */
function rearrange({ fused }: Gathered, values: ReadonlyMap<number, number>): void {
  if (values.size === 0) return
  const least = Math.min(...values.values())
  let most = 0
  for (const [at, value] of fused.entries()) if (!values.has(at)) most = Math.max(most, value)
  for (const [at, value] of fused.entries()) {
    fused[at] = values.get(at) ?? (most > 0 ? (least * value) / most : 0)
  }
}

/** The fields that were searched, and those that the vector was made from. */
const fieldsToRead = ({ queryFields }: SearchRequest, embedded: readonly string[]): string[] => [
  ...new Set([...queryFields.map((searched) => searched.field.name), ...embedded]),
]

function writtenIn(document: Document, fields: string[]): Written {
  const names: string[] = []
  const texts: string[] = []
  for (const name of fields) {
    for (const text of stringsAt(document, name)) {
      if (isNameField(name) && text.length <= LONGEST_NAME) names.push(text)
      else texts.push(text)
    }
  }
  return { names: names.join('. '), text: texts.join('\n\n').slice(0, MOST_OF_ONE) }
}

// =============================================================================
// rerank_hybrid_matches: completes both sides of every hit. Keyword matches get their distance measured, however far
// they are, and neighbours get a score by whichever words they contain.
//
// Distances are measured for the best ten thousand keyword matches and for the neighbours. Any later match keeps its
// keyword rank: its vector could add no more than 0.3 / 101.

/** Keyword matches whose distances are measured: each takes 6 microseconds. */
const MAX_MEASURED = 10_000

/**
 * Completes both sides of a hybrid search.
 * @param text keyword matches; gets those added that only the vector has found
 * @param anyWord matches documents with any of the words
 * @returns distances of all of them, nearest first
 */
export async function completeSides(
  context: Running,
  {
    vector,
    nearest,
    text,
    anyWord,
  }: { vector: VectorSearch; nearest: Neighbour[]; text: Gathered; anyWord: TextMatch },
): Promise<Neighbour[]> {
  const byVectorAlone = new Set(nearest.map(({ seq }) => seq))
  await context.pace.through(stepwise(text.size, (at) => byVectorAlone.delete(text.seqs[at]!)))
  const best = await context.pace.through(text.best(MAX_MEASURED))
  const all = new Set([...best.seqs.slice(0, MAX_MEASURED), ...nearest.map(({ seq }) => seq)])
  const relation = textMatchesIn(anyWord, oneOf([...byVectorAlone]), EVERYWHERE)
  async function* added() {
    yield relation
  }
  await gatherScores(context, added(), text)
  return measured(context, vector, [...all])
}

// =============================================================================
// rerank_model: a model reads the question together with each of the best hits, and puts them in order. That costs a
// call, so the search has to ask for it, and the model has limited time. If it fails or is late, the hits keep their
// order.

export interface Reranking {
  /** the model's name */
  name: string
  /** undefined if this deployment cannot serve it */
  model: Reranker | undefined
  /** how many of the best hits are reranked */
  top: number
  /** milliseconds */
  budget: number
}

/**
 * Parses rerank_model, rerank_top and rerank_timeout_ms.
 * @param create finds a model by its name
 * @returns undefined when reranking is not asked for
 * @throws ApiError 400
 */
export function parseReranking(
  params: SearchParameters,
  request: SearchRequest,
  create: (name: string) => Reranker | undefined,
): Reranking | undefined {
  const name = params.rerank_model
  if (!name) return undefined
  if (request.groupBy.length > 0) {
    throw new ApiError(400, '`rerank_model` cannot be combined with `group_by`.')
  }
  return {
    name,
    model: create(name),
    top: parameter(params, 'rerank_top'),
    budget: parameter(params, 'rerank_timeout_ms'),
  }
}

/** The search that finds the page and all hits that are reranked. */
export const widened = (request: SearchRequest, { top }: Reranking): SearchRequest => ({
  ...request,
  offset: 0,
  perPage: Math.max(top, request.offset + request.perPage),
})

/** Whether any reranked hit can be on the page. */
export const concerns = (request: SearchRequest, { top }: Reranking, hasWords: boolean): boolean =>
  hasWords && request.offset < top && request.perPage > 0

/** The text of each document for the model: the fields that were searched, or else the sources of the embedding. */
export function textsToRead(context: SearchContext, request: SearchRequest, seqs: number[]): string[] {
  const { schema } = context
  const searched = request.queryFields.map(({ field }) => field.name)
  const embedded = (request.vectorQuery?.field ?? request.embeddingField)?.embed?.from ?? []
  const every = schema.fields.filter(isSearchable).map(({ name }) => name)
  const names = [searched, embedded, every].find((list) => list.length > 0) ?? []
  const documents = context.read(seqs, true)
  return seqs.map((seq) => {
    const document = documents.get(seq) ?? {}
    return names.flatMap((name) => stringsAt(document, name)).join('\n')
  })
}

/**
 * Puts the best hits in the model's order. Pinned hits keep their places.
 * @param hits in the order of the search, from the first one
 * @param texts what the model reads of each, in the same order
 */
export async function rerankHits(
  reranking: Reranking,
  query: string,
  hits: Hit[],
  texts: string[],
): Promise<{ hits: Hit[]; info: RerankInfo }> {
  const started = performance.now()
  const info = (reranked: number, error?: string): RerankInfo => ({
    model: reranking.name,
    reranked,
    time_ms: Math.round(performance.now() - started),
    ...(error !== undefined && { error }),
  })
  const places = hits.flatMap((hit, place) => (place < reranking.top && !hit.curated ? [place] : []))
  if (places.length === 0) return { hits, info: info(0) }
  if (reranking.model === undefined) {
    return { hits, info: info(0, 'This model needs a deployment that runs on Workers AI.') }
  }
  try {
    const read = places.map((place) => texts[place] ?? '')
    const scores = await inTime(reranking.model, query, read, reranking.budget)
    const order = places.map((place, index) => ({ hit: hits[place]!, score: scores[index]! }))
    // The sort is stable, so hits with equal scores keep the order of the search.
    order.sort((a, b) => b.score - a.score)
    const arranged = [...hits]
    for (const [index, place] of places.entries()) {
      const { hit, score } = order[index]!
      arranged[place] = Number.isFinite(score) ? { ...hit, rerank_score: score } : hit
    }
    return { hits: arranged, info: info(places.length) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { hits, info: info(0, error.message) }
  }
}

/** @throws ApiError 408 when the model takes too long, or the model's own */
async function inTime(model: Reranker, query: string, texts: string[], budget: number): Promise<number[]> {
  const abort = new AbortController()
  const scoring = model.score(query, texts, abort.signal)
  if (await settlesWithin(budget, scoring)) return scoring
  abort.abort()
  throw new ApiError(408, `The model did not answer within ${budget} ms.`)
}
