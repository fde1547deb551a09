/**
 * Answers expressions of a small collection from words in memory.
 *
 * FTS5 reads all places of each word again in each of the three or four statements of a plain search. Here the places of a
 * word are read once (text/word-pages.ts), and cached until something is written.
 */
import { readColumn } from '../../stored-json'
import { fragment, join } from '../fragment'
import { NOWHERE } from '../range'
import { WORDS } from '../text/analyzer'
import {
  type Expression,
  PLAIN_WORD,
  parseExpression,
  type Together,
  type WordIn,
  wordsIn,
} from '../text/expression'
import { Unreadable } from '../text/fts5-format'
import { bitsOf, follow, hasColumn, intersect, isNear, reach, subtract, unite } from '../text/place-sets'
import type { Postings } from '../text/postings'
import type { TermMemory } from '../text/term-memory'
import { type Asked, PLACE_BITS, type Places, readPlaces } from '../text/word-pages'
import { type RangedFilter, type TextMatch, where } from './candidates'
import type { SearchContext } from './context'
import { keepsMatches } from './kept-matches'
import type { WordMemory } from './kept-words'
import type { Pace } from './pace'
import {
  type Counting,
  countingWords,
  LEAST_IDF,
  lengthsOf,
  type Scored,
  share,
  weightsOf,
} from './word-ranking'
import { OpenPostings } from './word-sets'

/** Bytes of places that are read in the time of a row. */
const PLACES_A_ROW = 16
/** Words that are in the table of terms if the index has them. */
const TERM = /^[a-z0-9]{1,64}$/
/** Words that one statement reads before they are needed. */
const MOST_AT_ONCE = 16

/** Documents that a filter is tested on at once, if it costs little (`Pace.weight`). FTS5's matches are tested in slices. */
const MOST_TESTED = 16_384

const SEARCHES = new WeakMap<Pace, WordsInMemory>()

/** The words of this search's collection; undefined if FTS5 has to find them. */
export function wordsInMemory(context: SearchContext, table: string, pace: Pace): WordsInMemory | undefined {
  const { words: memory } = context
  if (memory === undefined || table !== WORDS.table || keepsMatches(context, pace)) return undefined
  const known = SEARCHES.get(pace)
  if (known !== undefined) return known.isCurrent ? known : undefined
  memory.begin(pace.written(context.sql).changes)
  const words = new WordsInMemory(context, memory, pace)
  SEARCHES.set(pace, words)
  return words
}

const keyOf = ({ word, prefix }: Asked): string => (prefix ? `${word}*` : word)

/** The words of a collection during one search. */
export class WordsInMemory {
  readonly table = WORDS.table
  readonly #writes: number
  #opened: { pauses: number; postings: Postings } | undefined
  readonly #found = new Map<string, { expression: Expression; seqs: Uint32Array } | undefined>()
  readonly #passing = new WeakMap<RangedFilter, Map<number, boolean>>()

  constructor(
    readonly context: SearchContext,
    readonly memory: WordMemory,
    readonly pace: Pace,
  ) {
    this.#writes = context.columns.matches.writes
  }

  /** whether nothing was written since the search began */
  get isCurrent(): boolean {
    return this.#writes === this.context.columns.matches.writes
  }

  /**
   * The documents that match an expression, ascending.
   * @returns undefined if FTS5 has to find them
   */
  seqsOf(match: TextMatch, filter: RangedFilter): Uint32Array | undefined {
    const found = this.#matches(match)
    return found && this.pass(found.seqs, filter)
  }

  #matches({ match }: TextMatch): { expression: Expression; seqs: Uint32Array } | undefined {
    if (this.#found.has(match)) return this.#found.get(match)
    let found: { expression: Expression; seqs: Uint32Array } | undefined
    try {
      const expression = parseExpression(match, WORDS)
      if (expression !== undefined) {
        this.fetch(wordsIn(expression))
        found = { expression, seqs: this.#evaluate(expression) }
      }
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
    }
    this.#found.set(match, found)
    return found
  }

  /** @throws Unreadable if FTS5 has to read it */
  word(word: string, prefix: boolean): Places {
    const kept = this.memory.find(keyOf({ word, prefix }))
    if (kept === undefined) return this.#read(word, prefix)
    if (kept === 'unread') throw new Unreadable()
    return kept === 'whole' ? this.word(word, false) : kept
  }

  /** Whether no longer word begins with this one; undefined if that is not known. */
  isLongest(word: string): boolean | undefined {
    try {
      return this.word(word, true) === this.word(word, false)
    } catch (error) {
      if (error instanceof Unreadable) return undefined
      throw error
    }
  }

  #read(word: string, prefix: boolean): Places {
    const [read] = this.#readAll([{ word, prefix }])
    if (read !== undefined) return read.all ?? read.whole
    this.memory.keep(keyOf({ word, prefix }), 'unread')
    throw new Unreadable()
  }

  /** Reads those words that are not in memory with one statement. */
  fetch(words: readonly Asked[]): void {
    const prefixes = new Set(words.flatMap(({ word, prefix }) => (prefix ? [word] : [])))
    const missing = new Map<string, Asked>()
    for (const { word, prefix } of words) {
      const asked = { word, prefix: prefix || prefixes.has(word) }
      if (!this.memory.has(keyOf({ word, prefix }))) missing.set(word, asked)
    }
    if (missing.size > 1) this.#readAll([...missing.values()].slice(0, MOST_AT_ONCE))
  }

  /**
   * In how many documents the index has each of some words, in the form that they have there.
   * @returns undefined if FTS5 has to count them
   */
  counts(words: readonly string[]): ((word: string) => number) | undefined {
    if (!words.every((word) => PLAIN_WORD.test(word))) return undefined
    const some = words.length > MOST_AT_ONCE ? this.#written(words) : words
    if (some.length > MOST_AT_ONCE) return undefined
    this.fetch(some.map((word) => ({ word, prefix: false })))
    try {
      const counts = new Map(some.map((word) => [word, this.word(word, false).seqs.length]))
      return (word) => counts.get(word) ?? 0
    } catch (error) {
      if (error instanceof Unreadable) return undefined
      throw error
    }
  }

  /** The words of the table of terms near another one (TermMemory); undefined if it is not in memory. */
  near(...asked: Parameters<TermMemory['near']>): string[] | undefined {
    return this.#terms()?.near(...asked)
  }

  /** Those words that the index may have. */
  #written(words: readonly string[]): readonly string[] {
    const terms = this.#terms()
    return terms ? words.filter((word) => !TERM.test(word) || terms.has(word)) : words
  }

  /** undefined if they are not in memory */
  #terms(): TermMemory | undefined {
    const { context, memory, pace } = this
    return memory.terms.begin(context.sql, pace.read) ? memory.terms : undefined
  }

  #readAll(asked: readonly Asked[]): ReturnType<typeof readPlaces> {
    const { context, pace, memory } = this
    let found: ReturnType<typeof readPlaces>
    try {
      found = readPlaces(context.sql, this.#postings(), asked, pace.read)
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      return []
    }
    for (const [at, read] of found.entries()) {
      if (read === undefined) break
      const { whole, all } = read
      const { word, prefix } = asked[at]!
      pace.countRows((all ?? whole).places.length / PLACES_A_ROW)
      if (prefix) memory.keep(`${word}*`, all ?? 'whole')
      memory.keep(word, whole)
    }
    return found
  }

  /** Opened again after a pause, in which the index may have been merged. */
  #postings(): Postings {
    const { pauses } = this.pace
    if (this.#opened?.pauses !== pauses) {
      this.#opened = { pauses, postings: new OpenPostings(this.context, this.table, this.pace).now }
    }
    return this.#opened.postings
  }

  #evaluate(expression: Expression): Uint32Array {
    if (expression.kind === 'word') return this.#wordIn(expression)
    if (expression.kind === 'together') return this.#together(expression)
    if (expression.kind === 'not') {
      return subtract(this.#evaluate(expression.part), this.#evaluate(expression.without))
    }
    const parts = expression.parts.map((part) => this.#evaluate(part))
    if (expression.kind === 'or') return parts.reduce(unite)
    parts.sort((a, b) => a.length - b.length)
    return parts.reduce(intersect)
  }

  #wordIn({ word, prefix, columns }: WordIn): Uint32Array {
    const places = this.word(word, prefix)
    const wanted = bitsOf(columns)
    return (places.columns & ~wanted) === 0
      ? places.seqs
      : places.seqs.filter((_, at) => hasColumn(places, at, wanted))
  }

  #together({ words, initial, near }: Together): Uint32Array {
    const all = words.map(({ word, prefix }) => this.word(word, prefix))
    const wanted = bitsOf(words[0]!.columns)
    const inAll = all
      .map(({ seqs }) => seqs)
      .sort((a, b) => a.length - b.length)
      .reduce(intersect)
    const cursors = new Uint32Array(all.length)
    const found = new Uint32Array(inAll.length)
    let size = 0
    for (const seq of inAll) {
      for (let index = 0; index < all.length; index++)
        cursors[index] = reach(all[index]!.seqs, seq, cursors[index]!)
      const fits =
        near === undefined ? follow(all, cursors, wanted, initial) : isNear(all, cursors, wanted, near)
      if (fits) found[size++] = seq
    }
    return found.slice(0, size)
  }

  /** Those that pass the filter. Each document is tested once a search. @returns undefined if that takes too long at once */
  pass(seqs: Uint32Array, filter: RangedFilter): Uint32Array | undefined {
    let known = this.#passing.get(filter)
    if (known === undefined) {
      if (filter(NOWHERE).sql === '1') return seqs
      known = new Map()
      this.#passing.set(filter, known)
    }
    const unknown = seqs.filter((seq) => !known.has(seq))
    if (unknown.length * this.pace.weight > MOST_TESTED) return undefined
    if (unknown.length > 0) {
      const relation = fragment('SELECT value AS seq FROM json_each(?)', `[${unknown.join(',')}]`)
      const range = { low: unknown[0]!, high: unknown.at(-1)! }
      const [row] = this.pace.query<{ list: string }>(
        this.context.sql,
        join(
          [
            fragment('SELECT json_group_array(seq) AS list FROM ('),
            where(relation, filter(range)),
            fragment(')'),
          ],
          '',
        ),
      )
      for (const seq of unknown) known.set(seq, false)
      for (const seq of readColumn<number>(row!.list)) known.set(seq, true)
    }
    return seqs.filter((seq) => known.get(seq) === true)
  }

  /**
   * The best matches by BM25, best first and the newest first of equal ones, as FTS5 has them (word-ranking.ts), but that
   * FTS5 loses parts of some scores where a word is excluded beside alternatives. Others that are as good as
   * the last one wanted come along.
   * @returns undefined if FTS5 has to rank them
   */
  best(
    match: TextMatch,
    filter: RangedFilter,
    { wanted, lacks }: { wanted: number; lacks: readonly number[] },
  ): Scored[] | undefined {
    const found = this.#matches(match)
    const counting = found && match.first === undefined && countingWords(found.expression)
    if (!counting) return undefined
    let seqs = this.pass(found.seqs, filter)
    if (seqs === undefined) return undefined
    if (lacks.length > 0) {
      const without = new Set(lacks)
      seqs = seqs.filter((seq) => !without.has(seq))
    }
    const scores = this.#scores(seqs, counting, weightsOf(match.rank))
    let limit = Number.POSITIVE_INFINITY
    if (seqs.length > wanted) limit = Float64Array.from(scores).sort()[wanted - 1]!
    const rows: Scored[] = []
    for (let at = 0; at < seqs.length; at++) {
      if (scores[at]! <= limit) rows.push({ seq: seqs[at]!, score: scores[at]! })
    }
    return rows.sort((a, b) => a.score - b.score || b.seq - a.seq)
  }

  /**
   * The documents that have all but one of some words at their places: the first word begins the column, and so on.
   * @returns undefined if FTS5 has to find them
   */
  inPlace(seqs: Uint32Array, words: readonly string[], column: number): Uint32Array | undefined {
    try {
      const all = words.map((word) => this.word(word, false))
      return seqs.filter((seq) => {
        const isThere = ({ seqs: own, starts, places }: Places, place: number) => {
          const at = reach(own, seq, 0)
          const wanted = column * 2 ** PLACE_BITS + place
          return own[at] === seq && places.subarray(starts[at], starts[at + 1]).includes(wanted)
        }
        return all.filter(isThere).length >= words.length - 1
      })
    } catch (error) {
      if (error instanceof Unreadable) return undefined
      throw error
    }
  }

  /** How many words some documents have, in one column or in all. */
  lengths(seqs: Uint32Array, column?: number): (seq: number) => number {
    const { memory } = this
    memory.ends ??= this.pace.ends(this.context.sql)
    const {
      lengths,
      ends: { low, high },
    } = memory
    const known = lengths.get(column) ?? new Uint32Array(high - low + 1)
    lengths.set(column, known)
    const unknown = Array.from(seqs.filter((seq) => known[seq - low] === 0))
    if (unknown.length > 0) {
      for (const [seq, length] of lengthsOf(this, unknown, column)) known[seq - low] = length + 1
    }
    return (seq) => known[seq - low]! - 1
  }

  #scores(seqs: Uint32Array, counting: readonly Counting[], weights: readonly number[]): Float64Array {
    const { memory } = this
    memory.totals ??= this.#postings().totals()
    const average = memory.totals.words / memory.totals.documents
    const lengthOf = this.lengths(seqs)
    const scores = new Float64Array(seqs.length)
    for (const { word, beside } of counting) {
      const places = this.word(word.word, word.prefix)
      const among = beside ? intersect(seqs, this.#evaluate(beside)) : seqs
      const n = this.#wordIn(word).length
      const idf = Math.max(LEAST_IDF, Math.log((memory.totals.documents - n + 0.5) / (n + 0.5)))
      const own: number[] = []
      for (const column of word.columns) own[column] = weights[column] ?? 1
      let [cursor, at] = [0, 0]
      for (const seq of among) {
        cursor = reach(places.seqs, seq, cursor)
        if (cursor === places.seqs.length) break
        if (places.seqs[cursor] !== seq) continue
        at = reach(seqs, seq, at)
        let often = 0
        for (let index = places.starts[cursor]!; index < places.starts[cursor + 1]!; index++) {
          often += own[places.places[index]! >>> PLACE_BITS] ?? 0
        }
        if (often > 0) scores[at]! -= idf * share(often, lengthOf(seq) / average)
      }
    }
    return scores
  }
}
