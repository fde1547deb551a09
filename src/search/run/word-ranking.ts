/**
 * The best matches by BM25, ranked from the postings (text/postings.ts) a few blocks of documents at a time.
 *
 * The scores are those of FTS5's bm25():
 *
 *     score = -sum of idf * f * (k1 + 1) / (f + k1 * (1 - b + b * words / average))
 *     idf   = ln((documents - n + 0.5) / (n + 0.5)), at least a millionth
 *
 * where f adds up the weights of the columns in which a word is, and n documents have the word. A word of more than
 * half of the documents has the least idf: it adds at most 2.2 millionths. So if there are other words, it is looked up
 * only in the documents that may be among the best by those.
 *
 * Lengths are read only for documents that may be among the best: no document can score better than it would with
 * length 0.
 */
import { readColumn } from '../../stored-json'
import { fragment } from '../fragment'
import type { Range } from '../range'
import { BLOCK } from '../schema/block'
import { bitsOf } from '../schema/match-memory'
import type { Expression, WordIn } from '../text/expression'
import { Unreadable, weightOfPlaces } from '../text/fts5-format'
import { sweep } from './broad-words'
import type { TextMatch } from './candidates'
import type { SearchContext } from './context'
import { allMatches, type Matches, MOST_WORDS, wordsOf } from './kept-matches'
import type { Pace } from './pace'
import { eachFewBlocks, keyOfWord, OpenPostings } from './word-sets'

export const [K1, B] = [1.2, 0.75]
export const LEAST_IDF = 1e-6
/** If the words have fewer documents than this in all, they are ranked at once. */
const FEW = 10_000
/** If more documents than this tie with the last one wanted, FTS5 ranks. */
const MOST_TIES = 20_000
/** Reading the positions of this many words takes about as long as reading a row with SQL. */
const PLACES_A_ROW = 8
/** How often ranking at once begins. */
const MOST_ATTEMPTS = 3
/** Lengths of documents that one statement reads. */
const AT_ONCE = 512

export interface Scored {
  seq: number
  /** as of FTS5, lower is better */
  score: number
}

/** A match that is ranked by some of the words so far. */
interface Ranked extends Scored {
  /** how many words it has, as a multiple of the average */
  relative: number
}

/** A word with its weights. */
export interface Weighed {
  word: WordIn
  idf: number
  /** by column */
  weights: number[]
}

/**
 * The best matches, and all that are as good as the last of them.
 * @param lacks matches that do not count
 * @param few words with fewer documents together are ranked at once
 * @returns undefined if FTS5 has to rank them
 */
export async function bestByPostings(
  context: SearchContext,
  match: TextMatch,
  all: Matches,
  { wanted, lacks, few = FEW }: { wanted: number; lacks: readonly number[]; few?: number },
  pace: Pace,
): Promise<Scored[] | undefined> {
  const words = wordsOf(match, () => fragment('1'))?.words
  const scoring = words && scoringWords(words.expression)
  if (words === undefined || scoring === undefined || match.first !== undefined) return undefined
  if (scoring.length > MOST_WORDS) return undefined
  try {
    const sizes: number[] = []
    for (const word of scoring) {
      const asked = { key: keyOfWord(words.table, word), words: { ...words, expression: word }, ...LEFT }
      const matches = await allMatches(context, asked, pace)
      if (matches === undefined) return undefined
      sizes.push(matches.size)
    }
    const atOnce = sizes.reduce((sum, size) => sum + size, 0) < few
    const postings = new OpenPostings(context, words.table, pace)
    const { documents } = postings.now.totals()
    const weights = weightsOf(match.rank)
    const weighed = scoring.map((word, index): Weighed => {
      const n = sizes[index]!
      const own: number[] = []
      for (const column of word.columns) own[column] = weights[column] ?? 1
      const idf = Math.log((documents - n + 0.5) / (n + 0.5))
      return { word, idf: idf > 0 ? idf : LEAST_IDF, weights: own }
    })
    const broad = await sweepBroad(postings, weighed)
    const telling = weighed.filter(({ idf }) => idf > LEAST_IDF)
    const others = weighed.filter(({ idf }) => idf === LEAST_IDF)
    if (telling.length > 0 && others.length > 0) {
      const most = others.length * LEAST_IDF * (K1 + 1)
      const best = new Best(wanted, most)
      await rank(postings, all, telling, { best, lacks, atOnce, broad })
      // A match with none of these words may have the others.
      const isWhole = best.rows.length >= all.size - lacks.length
      if (isWhole || (best.rows.length >= wanted && best.limit < 0))
        return await reranked(postings, best.rows, others, broad, wanted)
    }
    const best = new Best(wanted)
    await rank(postings, all, weighed, { best, lacks, atOnce, broad })
    return best.rows
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
}

/** Leaves indexes that cannot be read to FTS5. */
export const LEFT = {
  relation: () => {
    throw new Unreadable()
  },
  collects: false,
}

/** A word that counts in a score. */
export interface Counting {
  word: WordIn
  /** it counts only in documents that match this */
  beside: Expression | undefined
}

/**
 * The words that count in a score. FTS5 counts all words of the expression that a match has, except those in an AND beside an OR
 * that the match does not fulfil.
 * @returns undefined if FTS5 has to rank the matches. Of an OR in such an AND, it loses some words
 */
export function countingWords(expression: Expression): Counting[] | undefined {
  const counting: Counting[] = []
  const collect = (part: Expression, isAlternative: boolean, beside?: Expression): boolean => {
    if (part.kind === 'word') return counting.push({ word: part, beside }) > 0
    if (beside) return false
    if (part.kind === 'or') return part.parts.every((each) => collect(each, true))
    if (part.kind !== 'and') return false
    return part.parts.every((each) => collect(each, isAlternative, isAlternative ? part : undefined))
  }
  const isNot = expression.kind === 'not'
  if (!collect(isNot ? expression.part : expression, false)) return undefined
  return isNot && counting.some(({ beside }) => beside) ? undefined : counting
}

/** The same words, if each counts in all documents that have it. */
function scoringWords(expression: Expression): WordIn[] | undefined {
  const counting = countingWords(expression)
  return counting?.every(({ beside }) => beside === undefined) ? counting.map(({ word }) => word) : undefined
}

/** The weights by column of `bm25(2.0, 1.0)`. */
export const weightsOf = (rank: string): number[] => rank.slice('bm25('.length, -1).split(',').map(Number)

/** The words that are broad beginnings, and how often documents have them. */
export type Broad = ReadonlyMap<WordIn, { of: (seq: number) => number }>

/** Broad beginnings are read once for all documents: in each of their slices they would be read from the beginning again. */
export async function sweepBroad(postings: OpenPostings, words: readonly Weighed[]): Promise<Broad> {
  const broad = new Map<WordIn, { of: (seq: number) => number }>()
  const { low, high } = postings.pace.ends(postings.context.sql)
  for (const { word, weights } of words) {
    if (!postings.now.isBroad(word.word, word.prefix)) continue
    let often = new Float64Array(0)
    await sweep(postings, word.word, () => {
      often = new Float64Array(high - low + 1)
      return (seq, bytes, from, to) => {
        if (seq >= low && seq <= high) often[seq - low]! += weightOfPlaces(bytes, from, to, weights)
      }
    })
    broad.set(word, { of: (seq) => often[seq - low] ?? 0 })
  }
  return broad
}

async function rank(
  postings: OpenPostings,
  all: Matches,
  words: readonly Weighed[],
  { best, lacks, atOnce, broad }: { best: Best; lacks: readonly number[]; atOnce: boolean; broad: Broad },
): Promise<void> {
  const { pace } = postings
  const without = new Set(lacks)
  const blocks = new Map(all.blocks)
  /** Others may have a turn between its steps. */
  function* rankSome(some: readonly number[]): Generator<undefined> {
    const low = Math.min(...some) * BLOCK
    const high = Math.max(...some) * BLOCK + BLOCK - 1
    const bits = new Uint8Array(atOnce ? 0 : (high - low + 1) / 8)
    if (!atOnce) for (const number of some) bits.set(bitsOf(blocks.get(number)!), (number * BLOCK - low) / 8)
    // Each document has a place in the arrays below. Documents that are ranked at once may be far apart, so they are
    // counted. Those of a few blocks are close together, so the distance from the first sequence number will do.
    const seqs = atOnce ? all.seqs : undefined
    const numbers = new Map(seqs?.map((seq, at) => [seq, at]))
    const seqOf = (at: number): number => seqs?.[at] ?? low + at
    const width = seqs?.length ?? high - low + 1
    const most = new Float64Array(width)
    const often = words.map(() => new Float64Array(width))
    let read = 0
    for (const [index, { word, idf, weights }] of words.entries()) {
      const own = often[index]!
      const known = broad.get(word)
      if (known !== undefined) {
        for (let at = 0; at < width; at++) {
          const sum = known.of(seqOf(at))
          if (sum === 0 || (!atOnce && (bits[at >> 3]! & (1 << (at & 7))) === 0)) continue
          own[at] = sum
          most[at]! += idf * share(sum, 0)
        }
        read += width / PLACES_A_ROW
        continue
      }
      read += postings.now.visit(word.word, word.prefix, { low, high }, (seq, bytes, from, to) => {
        const at = atOnce ? numbers.get(seq) : seq - low
        if (at === undefined || (!atOnce && (bits[at >> 3]! & (1 << (at & 7))) === 0)) return
        const before = own[at]!
        const now = before + weightOfPlaces(bytes, from, to, weights)
        own[at] = now
        // A document may have several words with the same prefix.
        most[at]! += idf * (share(now, 0) - share(before, 0))
      })
      yield
    }
    pace.countRows(read / PLACES_A_ROW)
    const places: number[] = []
    for (let at = 0; at < width; at++) {
      if (most[at]! > 0 && -most[at]! <= best.limit && !without.has(seqOf(at))) places.push(at)
    }
    const sorted = Float64Array.from(places, (at) => most[at]!)
    const order = Uint32Array.from(sorted.keys()).sort((a, b) => sorted[b]! - sorted[a]!)
    for (let from = 0; from < order.length && -sorted[order[from]!]! <= best.limit; from += AT_ONCE) {
      const chosen = Array.from(order.subarray(from, from + AT_ONCE), (index) => places[index]!)
      const lengths = lengthsOf(postings, chosen.map(seqOf))
      const { documents, words: total } = postings.now.totals()
      for (const at of chosen) {
        const length = lengths.get(seqOf(at))
        if (length === undefined) continue
        const relative = length / (total / documents)
        let score = 0
        for (const [index, { idf }] of words.entries()) {
          if (often[index]![at]! > 0) score += idf * share(often[index]![at]!, relative)
        }
        best.offer({ seq: seqOf(at), score: -score, relative })
      }
      best.prune()
      yield
    }
  }
  if (!atOnce) {
    await eachFewBlocks([...blocks.keys()], pace, (some) => {
      const steps = rankSome(some)
      while (!steps.next().done);
      return true
    })
    return
  }
  const { matches } = postings.context.columns
  for (let attempt = 1; blocks.size > 0; attempt++) {
    const { writes } = matches
    best.clear()
    for (const _ of rankSome([...blocks.keys()])) {
      if (attempt === MOST_ATTEMPTS) continue
      await pace.rest()
      if (writes !== matches.writes) break
    }
    // A document that was written on the way may count with some of its words alone.
    if (attempt === MOST_ATTEMPTS || writes === matches.writes) return
  }
}

/** The best of these once further words count too. */
async function reranked(
  postings: OpenPostings,
  rows: readonly Ranked[],
  words: readonly Weighed[],
  broad: Broad,
  wanted: number,
): Promise<Scored[]> {
  const { pace } = postings
  const often = words.map(() => new Map<number, number>())
  const blocks = new Map<number, number[]>()
  for (const { seq } of rows) {
    const number = Math.floor(seq / BLOCK)
    const own = blocks.get(number)
    if (own === undefined) blocks.set(number, [seq])
    else own.push(seq)
  }
  await eachFewBlocks(
    [...blocks.keys()].sort((a, b) => b - a),
    pace,
    (some) => {
      for (const number of some) {
        const seqs = new Set(blocks.get(number))
        const range = { low: Math.min(...seqs), high: Math.max(...seqs) }
        for (const [index, { word, weights }] of words.entries()) {
          const own = often[index]!
          const known = broad.get(word)
          if (known !== undefined) {
            for (const seq of seqs) own.set(seq, known.of(seq))
            continue
          }
          const read = postings.now.visit(word.word, word.prefix, range, (seq, bytes, from, to) => {
            if (seqs.has(seq)) own.set(seq, (own.get(seq) ?? 0) + weightOfPlaces(bytes, from, to, weights))
          })
          pace.countRows(read / PLACES_A_ROW)
        }
      }
      return true
    },
  )
  const best = new Best(wanted)
  for (const row of rows) {
    let { score } = row
    for (const [index, { idf }] of words.entries()) {
      const own = often[index]!.get(row.seq) ?? 0
      if (own > 0) score -= idf * share(own, row.relative)
    }
    best.offer({ ...row, score })
  }
  best.prune()
  return best.rows
}

/** The part of a word's idf that counts. @param length of the document, as a multiple of the average */
export const share = (often: number, length: number): number =>
  (often * (K1 + 1)) / (often + K1 * (1 - B + B * length))

/** How many words documents have, in one column or in all. @param seqs in a list or a range */
export function lengthsOf(
  { context, table, pace }: Pick<OpenPostings, 'context' | 'table' | 'pace'>,
  seqs: number[] | Range,
  column?: number,
): Map<number, number> {
  const isList = Array.isArray(seqs)
  // One row takes a third of the time of many.
  const [row] = pace.query<{ ids: string; sizes: string }>(
    context.sql,
    fragment(
      `SELECT json_group_array(id) AS ids, json_group_array(hex(sz)) AS sizes
         FROM ${table}_docsize WHERE id ${isList ? 'IN (SELECT value FROM json_each(?))' : 'BETWEEN ? AND ?'}`,
      ...(isList ? [JSON.stringify(seqs)] : [seqs.low, seqs.high]),
    ),
  )
  const sizes = readColumn<string>(row!.sizes)
  return new Map(
    readColumn<number>(row!.ids).map((id, index) => {
      let [sum, number, own] = [0, 0, 0]
      for (let at = 0; at < sizes[index]!.length; at += 2) {
        const byte = Number.parseInt(sizes[index]!.slice(at, at + 2), 16)
        number = number * 128 + (byte & 0x7f)
        if (byte >= 0x80) continue
        if (column === undefined || column === own++) sum += number
        number = 0
      }
      return [id, sum]
    }),
  )
}

/** Keeps the best of the offered matches, and all that tie with the last of them. */
class Best {
  rows: Ranked[] = []
  /** The worst score that is still kept. */
  limit = Number.POSITIVE_INFINITY

  /** @param more matches that are worse than the last one wanted by no more than this are kept too */
  constructor(
    readonly wanted: number,
    readonly more = 0,
  ) {}

  clear(): void {
    this.rows = []
    this.limit = Number.POSITIVE_INFINITY
  }

  offer(row: Ranked): void {
    if (row.score <= this.limit) this.rows.push(row)
  }

  /** @throws Unreadable if too many are as good as the last one wanted: each call looks at all of them */
  prune(): void {
    if (this.rows.length >= this.wanted) {
      const scores = Float64Array.from(this.rows, ({ score }) => score).sort()
      this.limit = scores[this.wanted - 1]! + this.more
      this.rows = this.rows.filter(({ score }) => score <= this.limit)
    }
    if (this.rows.length > MOST_TIES) throw new Unreadable()
  }
}
