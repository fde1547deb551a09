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
import type { PassageReader, Reading, Written } from '../../models/static-embedder/reader'
import { logFault, type Origin } from '../fault-log'
import { isNameField } from '../request/question'
import type { SearchRequest } from '../request/request'
import { stringsAt } from '../schema/values'
import type { Term } from '../text/query'
import type { Document } from '../types'
import type { Top } from './candidates'
import { Gathered, type OrderedMatch } from './candidates'
import type { SearchContext } from './context'
import { besidePinned, type Pinned, withPinned } from './curate'
import { CONTEXT_WEIGHT, type ScoredWords, share } from './fusion'
import type { HitRow } from './hits'
import type { VectorSearch } from './nearest'
import type { Pace } from './pace'
import { queryOf } from './query-words'
import { idealScore, type WeighedWord, weighWords } from './word-weights'

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
  context: SearchContext,
  request: SearchRequest,
  {
    fused,
    words,
    terms,
    vector,
  }: { fused: Gathered; words: ScoredWords; terms: Term[]; vector: VectorSearch },
  pace: Pace,
): Promise<void> {
  if (!reads(request) || vector.field.embed === undefined) return
  const reader = context.embedder(vector.field).reader?.()
  if (reader === undefined) return
  const fields = fieldsToRead(request, vector.field.embed.from)
  await readInto(fused, context, valuer(context, request, reader, { terms, words }), { words, fields }, pace)
}

/**
 * Reads the best matches of words alone, in a search for a question, and orders them anew. Their new scores are on the scale of
 * BM25.
 * @param known the rows of `windowToRead`, best first, and the number of all matches
 * @param top the page
 */
export async function readPage(
  context: SearchContext,
  request: SearchRequest,
  known: { rows: OrderedMatch[]; found: number },
  {
    terms,
    reader,
    top,
    pinned,
  }: { terms: Term[]; reader: PassageReader; top: Top; pinned: readonly Pinned[] },
  pace: Pace,
): Promise<{ rows: HitRow[]; found: number }> {
  const matches = new Gathered()
  for (const { seq, score } of known.rows) matches.add(seq, score ?? undefined)
  const asked = weighWords(context, request.index, terms)
  const words = { matches, ideal: idealScore(asked), asked }
  const { scores } = await readWords(context, request, words, { terms, reader }, pace)
  const read = known.rows.map((row, at) => ({ ...row, score: scores[at]! }))
  read.sort((one, other) => one.score - other.score)
  const { offset, limit } = besidePinned(top, pinned)
  return withPinned({ rows: read.slice(offset, offset + limit), found: known.found }, pinned, top)
}

/** The same for matches in memory. @returns them in their old order, with new scores */
export async function readWords(
  context: SearchContext,
  request: SearchRequest,
  words: ScoredWords,
  { terms, reader }: { terms: Term[]; reader: PassageReader },
  pace: Pace,
): Promise<Gathered> {
  const { matches, ideal } = words
  if (ideal === 0) return matches
  const fused = new Gathered()
  for (const [at, seq] of matches.seqs.entries()) {
    const score = matches.scores[at]!
    fused.add(seq, score, Number.NaN, share(score, words))
  }
  const fields = fieldsToRead(request, [])
  await readInto(fused, context, valuer(context, request, reader, { terms, words }), { words, fields }, pace)
  const read = new Gathered()
  for (const [at, seq] of fused.seqs.entries()) read.add(seq, -ideal * fused.fused[at]!)
  return read
}

async function readInto(
  fused: Gathered,
  context: SearchContext,
  value: (words: number, document: Written) => number,
  { words, fields }: { words: ScoredWords; fields: string[] },
  pace: Pace,
): Promise<void> {
  const places = bestOf(fused)
  const values = new Map<number, number>()
  let left = MOST_CHARACTERS
  for (let from = 0; from < places.length && left > 0; from += AT_ONCE) {
    if (from > 0 && !(await pace.rest())) break
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
