/**
 * The scores of all matches of a large collection by BM25, as FTS5's bm25() computes them, for orders that compare every match
 * and for groups. FTS5 itself reads all documents of each word in one statement, whatever part of them it is asked for.
 */
import { fragment } from '../fragment'
import { BLOCK } from '../schema/block'
import { type MatchMemory, unpacked } from '../schema/match-memory'
import type { Expression, WordIn } from '../text/expression'
import { Unreadable, weightOfPlaces } from '../text/fts5-format'
import type { Postings } from '../text/postings'
import {
  type Candidates,
  type Match,
  type Part,
  type RangedFilter,
  type ScoredSet,
  type TextMatch,
  textMatches,
  textMatchesIn,
} from './candidates'
import type { SearchContext } from './context'
import { filteredMatches } from './filtered-matches'
import { allMatches, type Matches, MOST_WORDS, wordsOf } from './kept-matches'
import { eachBlock, setOf } from './match-set'
import { keyOfWord, OpenPostings, POSTINGS_A_ROW } from './open-postings'
import type { Pace } from './pace'
import {
  B,
  type Broad,
  countingWords,
  K1,
  LEAST_IDF,
  LEFT,
  lengthsOf,
  sweepBroad,
  type Weighed,
  weightsOf,
} from './word-ranking'

/** Blocks whose postings are read together. With several words they are fewer, so that it takes as long. */
const MOST_BLOCKS = 16
/** Once so many lengths of a block were read one by one, all of them are read. */
const FEW_LENGTHS = 8
/** Calculating this many scores takes about as long as reading a row with SQL. */
const SCORES_A_ROW = 16
/** Matches that come as one relation. */
const A_PART = 1_024

/** What the scores of an expression count. */
interface Weighing {
  postings: OpenPostings
  /** each counts only in the documents of `beside`, if it has that */
  words: readonly (Weighed & { beside: Matches | undefined })[]
  broad: Broad
  totals: ReturnType<Postings['totals']>
}

/**
 * Weighs the words of an expression.
 * @returns undefined if FTS5 has to score its matches
 * @throws Unreadable if it has to, too
 */
async function weighing(context: SearchContext, match: TextMatch, pace: Pace): Promise<Weighing | undefined> {
  const asked = wordsOf(match, () => fragment('1'))?.words
  const counting = asked && countingWords(asked.expression)
  if (asked === undefined || counting === undefined || match.first !== undefined) return undefined
  if (counting.length > MOST_WORDS) return undefined
  const { table } = asked
  const matching = (key: string, expression: Expression) =>
    allMatches(context, { key, words: { table, expression }, ...LEFT }, pace)
  const counted: { word: WordIn; n: number; beside: Matches | undefined }[] = []
  for (const { word, beside } of counting) {
    const matches = await matching(keyOfWord(table, word), word)
    const among = beside && (await matching(JSON.stringify([table, beside]), beside))
    if (matches === undefined || (beside && among === undefined)) return undefined
    counted.push({ word, n: matches.size, beside: among })
  }
  const postings = new OpenPostings(context, table, pace)
  const totals = postings.now.totals()
  const weights = weightsOf(match.rank)
  const words = counted.map(({ word, n, beside }) => {
    const own: number[] = []
    for (const column of word.columns) own[column] = weights[column] ?? 1
    const idf = Math.max(LEAST_IDF, Math.log((totals.documents - n + 0.5) / (n + 0.5)))
    return { word, idf, weights: own, beside }
  })
  return { postings, words, broad: await sweepBroad(postings, words), totals }
}

/** The scores of the documents of one search. As of FTS5, lower is better. */
class BlockScores {
  readonly #weighing: Weighing
  readonly #often: Float64Array[]
  readonly #most: number
  /** the blocks that were read: the first, and how many */
  #first = Number.NaN
  #count = 0
  /** the writes before the blocks were read */
  #writes = -1
  /** by block: how many lengths were read one by one */
  readonly #asked = new Map<number, number>()

  constructor(found: Weighing) {
    this.#weighing = found
    this.#most = Math.max(1, Math.floor(MOST_BLOCKS / Math.max(1, found.words.length)))
    this.#often = found.words.map(() => new Float64Array(this.#most * BLOCK))
  }

  /**
   * The scores of a block, until another block is asked for.
   * @param isAlone the blocks beside it are not asked for next
   * @throws Unreadable
   */
  of(number: number, isAlone = false): (at: number) => number {
    const { words, totals, postings } = this.#weighing
    const isRead = number >= this.#first && number < this.#first + this.#count
    if (!isRead || this.#writes !== this.#matches.writes) {
      this.#read(isAlone ? number : number - (number % this.#most), isAlone ? 1 : this.#most)
    }
    postings.pace.countRows(BLOCK / SCORES_A_ROW)
    const from = (number - this.#first) * BLOCK
    const lengthOf = this.#lengthsOf(number)
    const average = totals.words / totals.documents
    return (at) => {
      const length = lengthOf(at)
      let score = 0
      for (let index = 0; index < words.length; index++) {
        const often = this.#often[index]![from + at]!
        // In the order in which FTS5 calculates, so that no digit differs.
        if (often > 0) {
          score += words[index]!.idf * ((often * (K1 + 1)) / (often + K1 * (1 - B + (B * length) / average)))
        }
      }
      return -score
    }
  }

  get #matches(): MatchMemory {
    return this.#weighing.postings.context.columns.matches
  }

  #read(first: number, count: number): void {
    const { postings, words, broad } = this.#weighing
    this.#count = 0
    this.#writes = this.#matches.writes
    const [low, high] = [first * BLOCK, (first + count) * BLOCK - 1]
    let read = 0
    for (const [index, { word, weights, beside }] of words.entries()) {
      const own = this.#often[index]!.subarray(0, count * BLOCK).fill(0)
      const known = broad.get(word)
      if (known !== undefined) for (let at = 0; at < own.length; at++) own[at] = known.of(low + at)
      else {
        read += postings.now.visit(word.word, word.prefix, { low, high }, (seq, bytes, from, to) => {
          own[seq - low]! += weightOfPlaces(bytes, from, to, weights)
        })
      }
      if (beside === undefined) continue
      const counts = new Uint8Array(own.length)
      for (const [number, block] of beside.blocks) {
        if (number < first || number >= first + count) continue
        for (const at of unpacked(block)) counts[(number - first) * BLOCK + at] = 1
      }
      for (let at = 0; at < own.length; at++) own[at]! *= counts[at]!
    }
    postings.pace.countRows(read / POSTINGS_A_ROW)
    this.#first = first
    this.#count = count
  }

  /** How many words the documents of a block have; none if they are gone. */
  #lengthsOf(number: number): (at: number) => number {
    const { postings } = this.#weighing
    const { table, context } = postings
    const low = number * BLOCK
    const readAll = () => {
      const lengths = new Uint32Array(BLOCK)
      for (const [seq, length] of lengthsOf(postings, { low, high: low + BLOCK - 1 }))
        lengths[seq - low] = length
      return lengths
    }
    let all = context.columns.lengths(table, number)
    let asked = this.#asked.get(number) ?? 0
    return (at) => {
      if (all === undefined) {
        this.#asked.set(number, ++asked)
        if (asked <= FEW_LENGTHS) return lengthsOf(postings, [low + at]).get(low + at) ?? 0
        all = context.columns.lengths(table, number, readAll)!
      }
      return all[at]!
    }
  }
}

/** @returns undefined if FTS5 has to be used */
async function ifReadable<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
}

const SCORED =
  'SELECT value ->> 0 AS seq, value ->> 1 AS score, NULL AS distance, NULL AS fused FROM json_each(?)'

/**
 * The matches of an expression with scores.
 * @returns `scored` resolves to undefined where FTS5 has to find or score them
 */
export function scoredMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
): Pick<Candidates, 'parts'> & { scored: (pace: Pace) => Promise<ScoredSet | undefined> } {
  let found: Promise<ScoredSet | undefined> | undefined
  const find = async (pace: Pace): Promise<ScoredSet | undefined> => {
    const all = await filteredMatches(context, match, filter, pace)
    const words = all && (await ifReadable(() => weighing(context, match, pace)))
    return words && { set: all.set, scores: new BlockScores(words) }
  }
  const scored = (pace: Pace) => {
    found ??= find(pace)
    return found
  }
  return {
    scored,
    async *parts(pace, width) {
      const known = await scored(pace)
      if (known === undefined) {
        yield* textMatches(context.sql, match, filter)(pace, width)
        return
      }
      let rows: [seq: number, score: number][] = []
      const part = (): Part => {
        const range = { low: rows.at(-1)![0], high: rows[0]![0] }
        return { relation: fragment(SCORED, JSON.stringify(rows)), range }
      }
      for (const [number, offsets] of known.set) {
        const scoreOf = await ifReadable(async () => known.scores.of(number))
        if (scoreOf === undefined) {
          const range = { low: number * BLOCK, high: number * BLOCK + BLOCK - 1 }
          yield { relation: textMatchesIn(match, filter(range), range), range }
          continue
        }
        for (const at of offsets.toReversed()) {
          rows.push([number * BLOCK + at, scoreOf(at)])
          if (rows.length < A_PART) continue
          yield part()
          rows = []
          if (!(await pace.rest())) return
        }
      }
      if (rows.length > 0) yield part()
    },
  }
}

/** Gives rows the scores of their matches: those that SQLite read from JSON may lack the last digits. */
export async function withScores<Row extends Match>(
  rows: readonly Row[],
  { scored }: Pick<Candidates, 'scored'>,
  pace: Pace,
): Promise<Row[]> {
  const matched = rows.filter(({ score }) => score !== null).map(({ seq }) => seq)
  const known = matched.length > 0 ? await scored?.(pace) : undefined
  if (known === undefined) return [...rows]
  const exact = new Map<number, number>()
  await ifReadable(() =>
    eachBlock(setOf(matched), pace, (number, offsets) => {
      const scoreOf = known.scores.of(number, true)
      for (const at of offsets) exact.set(number * BLOCK + at, scoreOf(at))
    }),
  )
  return rows.map((row) => ({ ...row, score: exact.get(row.seq) ?? row.score }))
}
