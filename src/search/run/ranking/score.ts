/**
 * The text match of a document: how well the words of a query fit it, as Typesense counts it.
 *
 * Only the best field counts. Fields are compared by these in turn: how many words are within ten tokens of each
 * other, how many words the field has, how little was corrected or completed, how close the words are, whether they
 * are the whole field or adjacent in order. Then come the field's weight and the number of fields with a word.
 *
 * Documents that fit equally well have equal numbers, so that the next key of the sort decides between them.
 */

import { wordDistance } from '../../../lib/nearest'
import type { RankingRules } from '../../request/request'
import type { Analyzer } from '../../text/analyzer'
import { type Term, typed } from '../../text/query'

/** A word of the query, found in a text. */
export interface Occurrence {
  /** number of the token in the text */
  token: number
  /** number of the word in the query */
  word: number
  /** 0 for the word itself, 1 for a longer one that begins with it, 2 more for each typo */
  cost: number
}

/** One text of a field. A list has several. */
export interface Reading {
  /** tokens of the text */
  length: number
  /** by `token`, ascending */
  occurrences: Occurrence[]
  /** the text begins with the first of them */
  begins?: boolean
}

export interface ReadField {
  /** Typesense's weight, 0 to 15 */
  weight: number
  texts: Reading[]
}

export interface MatchRules extends RankingRules {
  /** the words of the query as they were typed, repetitions included */
  sequence: readonly number[]
  /** the words are synonyms of this many words of the query, and count like those */
  insteadOf?: number
  /** come after all matches that are not demoted */
  demoted?: boolean
}

/** The parts of a field's score, most important first. */
interface FieldMatch {
  /** words within a window of ten tokens */
  together: number
  /** words in the field */
  present: number
  /** the sum of the words' costs */
  cost: number
  /** tokens from the first to the last word of the window */
  distance: number
  /** 2: the words are all of the text; 1: they follow each other in order; 0: neither */
  order: 0 | 1 | 2
  /** the position of the window's end, if the rules use it; 0 for the beginning */
  position: number
  /** the window is the beginning of the text */
  begins: boolean
  /** tokens of the text */
  length: number
}

export interface TextScore {
  /** words found in any field */
  tokens: number
  /** fields with a word */
  fields: number
  /** undefined if no word was found */
  best: FieldMatch | undefined
  /** weight of the best field */
  weight: number
  /** the number that orders documents, higher is better: a whole number below 2^52 */
  rank: number
}

const WINDOW = 10
/** The cost of a longer word in the place of an unfinished one. */
const COMPLETION = 1
const MOST_WORDS = 15
const MOST_WEIGHT = 15
const MOST_FIELDS = 7
const MOST_COST = 31
const MOST_DISTANCE = 100
const LAST_POSITION = 255

/** Bits of a field's score in `rank`. */
const FIELD_BITS = 4 + 4 + 5 + 7 + 2 + 8

export function scoreDocument(fields: readonly ReadField[], rules: MatchRules): TextScore {
  const found = new Set<number>()
  let matching = 0
  let best: FieldMatch | undefined
  let weight = 0
  let highest = -1
  let sum = 0
  for (const field of fields) {
    const match = matchOfField(field.texts, rules, found)
    if (match === undefined) continue
    matching++
    const value = fieldValue(match)
    sum += field.weight * value
    const isBetter =
      rules.type === 'max_weight'
        ? best === undefined || field.weight > weight
        : value > highest || (value === highest && field.weight > weight)
    if (!isBetter) continue
    best = match
    highest = value
    weight = field.weight
  }
  const tokens = rules.demoted ? 0 : Math.min(MOST_WORDS, asAsked(found.size, rules))
  const counted = rules.matchingFields ? Math.min(MOST_FIELDS, matching) : 0
  const score = { tokens, fields: counted, best, weight: Math.min(MOST_WEIGHT, weight) }
  return { ...score, rank: best === undefined ? 0 : rankOf(score, highest, sum, rules.type) }
}

function rankOf(
  { tokens, fields, weight }: Omit<TextScore, 'rank' | 'best'>,
  field: number,
  sum: number,
  type: MatchRules['type'],
): number {
  // Multiplied, since JavaScript shifts 32 bits only.
  if (type === 'sum_score') return beside(beside(tokens, Math.min(sum, 2 ** 44 - 1), 44), fields, 3)
  if (type === 'max_weight') return beside(beside(beside(tokens, weight, 4), field, FIELD_BITS), fields, 3)
  return beside(beside(beside(tokens, field, FIELD_BITS), weight, 4), fields, 3)
}

type Graded = Omit<FieldMatch, 'begins' | 'length'>

const fieldValue = ({ together, present, cost, distance, order, position }: Graded): number => {
  const words = beside(together, present, 4)
  const exact = beside(beside(words, MOST_COST - cost, 5), MOST_DISTANCE - distance, 7)
  return beside(beside(exact, order, 2), LAST_POSITION - position, 8)
}

/** Packs a number of some bits behind another one. */
const beside = (whole: number, value: number, bits: number): number => whole * 2 ** bits + value

/**
 * The best match among the texts of a field. Words of several texts of a list are all present in the field.
 * @param found gets the words that the field has
 */
function matchOfField(
  texts: readonly Reading[],
  rules: MatchRules,
  found: Set<number>,
): FieldMatch | undefined {
  let best: FieldMatch | undefined
  let highest = -1
  const words = new Set<number>()
  for (const text of texts) {
    if (text.occurrences.length === 0) continue
    const match = matchOfText(text, rules, words)
    const value = fieldValue(match)
    if (value <= highest) continue
    best = match
    highest = value
  }
  for (const word of words) found.add(word)
  if (best !== undefined && texts.length > 1) best.present = Math.min(MOST_WORDS, asAsked(words.size, rules))
  return best
}

/** Scales a count of synonym words to the number of query words that they replace. */
const asAsked = (words: number, { sequence, insteadOf }: MatchRules): number =>
  insteadOf === undefined || words === 0
    ? words
    : Math.max(1, Math.round((words * insteadOf) / sequence.length))

function matchOfText(text: Reading, rules: MatchRules, found: Set<number> = new Set()): FieldMatch {
  const { occurrences } = text
  const costs = new Map<number, number>()
  let isMixed = false
  for (const { word, cost } of occurrences) {
    found.add(word)
    const known = costs.get(word)
    isMixed ||= known !== undefined && known !== cost
    if (known === undefined || cost < known) costs.set(word, cost)
  }
  const all = matchOf(text, occurrences, costs, rules)
  if (!isMixed) return all
  // Use only the cheapest form of each word: the exact word somewhere must not lend its low cost to a longer word
  // beside the other words.
  const cheapest = occurrences.filter(({ word, cost }) => cost === costs.get(word))
  const own = matchOf(text, cheapest, costs, rules)
  return fieldValue(own) >= fieldValue(all) ? own : all
}

/** @param costs the least cost of each word in the text */
function matchOf(
  text: Reading,
  occurrences: readonly Occurrence[],
  costs: ReadonlyMap<number, number>,
  rules: MatchRules,
): FieldMatch {
  const { sequence, exactMatch, tokenPosition, insteadOf = sequence.length } = rules
  const window = bestWindow(occurrences, costs)
  let { cost } = window
  for (const each of costs.values()) cost += each
  const isTyping = cost === COMPLETION && insteadOf === sequence.length && isBeginning(text, sequence)
  return {
    together: Math.min(MOST_WORDS, asAsked(window.words, rules)),
    present: Math.min(MOST_WORDS, asAsked(costs.size, rules)),
    cost: isTyping ? 0 : Math.min(MOST_COST, cost),
    distance: Math.min(MOST_DISTANCE, Math.max(0, window.distance + insteadOf - sequence.length)),
    order:
      exactMatch && isWhole(text, sequence)
        ? 2
        : !isTyping && window.inOrder && insteadOf > 1 && (window.words > 1 || sequence.length === 1)
          ? 1
          : 0,
    position: tokenPosition ? Math.min(LAST_POSITION, window.last) : LAST_POSITION,
    begins: text.begins === true && window.first === 0,
    length: text.length,
  }
}

/**
 * Whether a text begins with a query of several words whose last one is unfinished. Then somebody is probably typing
 * that text. It comes after texts that have the whole words in a row, and before those that have them scattered.
 */
const isBeginning = ({ begins, occurrences }: Reading, sequence: readonly number[]): boolean =>
  begins === true &&
  sequence.length > 1 &&
  sequence.every((word, at) => {
    const found = occurrences[at]
    return (
      found?.token === at && found.word === word && found.cost <= (at < sequence.length - 1 ? 0 : COMPLETION)
    )
  })

/** Whether a text is the query, word by word. */
const isWhole = ({ length, occurrences }: Reading, sequence: readonly number[]): boolean =>
  length === sequence.length &&
  occurrences.length === length &&
  occurrences.every(({ word, cost }, at) => cost === 0 && word === sequence[at])

/**
 * The window with the most words, and of those the shortest; of equal ones the first.
 * @returns `cost`: that of its words above that of the cheapest ones in the text
 */
function bestWindow(occurrences: readonly Occurrence[], costs: ReadonlyMap<number, number>) {
  let best = { words: 0, distance: 0, first: 0, last: 0, inOrder: false, cost: 0 }
  for (let first = 0; first < occurrences.length; first++) {
    const { token } = occurrences[first]!
    const seen = new Set<number>()
    let words = 0
    let last = token
    let word = -1
    let inOrder = true
    let cost = 0
    for (let at = first; at < occurrences.length && occurrences[at]!.token - token <= WINDOW; at++) {
      const each = occurrences[at]!
      if (seen.has(each.word)) continue
      seen.add(each.word)
      words++
      cost += each.cost - costs.get(each.word)!
      // A compound can be two words at one place.
      inOrder &&= each.word === (word < 0 ? each.word : word + 1) && (words === 1 || each.token === last + 1)
      word = each.word
      last = each.token
    }
    const distance = last - token
    const isBetter =
      words > best.words ||
      (words === best.words &&
        (distance < best.distance || (distance === best.distance && inOrder && !best.inOrder)))
    if (isBetter) best = { words, distance, first: token, last, inOrder, cost }
    if (best.words === costs.size && best.inOrder) break
  }
  return best
}

/** Typesense's number for a match: 63 bits. */
export function wireScore(
  { tokens, fields, best, weight, rank }: TextScore,
  type: MatchRules['type'],
): bigint {
  if (best === undefined) return 0n
  const [high, low] = [BigInt(tokens) << 59n, BigInt(fields)]
  if (type === 'sum_score') return high | (BigInt(rank % 2 ** 47) << 3n)
  const field = wireFieldScore(best)
  return type === 'max_weight'
    ? high | (BigInt(weight) << 51n) | (field << 3n) | low
    : high | (field << 11n) | (BigInt(weight) << 3n) | low
}

/** Typesense's number for the best field: 48 bits. */
export const wireFieldScore = ({ together, present, cost, distance, order, position }: Graded): bigint =>
  (BigInt(together) << 40n) |
  (BigInt(present) << 32n) |
  (BigInt(LAST_POSITION - cost) << 24n) |
  (BigInt(MOST_DISTANCE - distance) << 16n) |
  (BigInt(order) << 12n) |
  (BigInt(LAST_POSITION - position) << 4n) |
  1n

// =============================================================================
// Finds the words of a query in the texts of documents, for ranking: where they are, and how exactly they match.

/** A typo costs as much as two completions, as in Typesense. */
const TYPO = 2
const MOST_TYPOS = 2
/** In a text with more characters, words are counted only if the text could be the query itself. */
const EXACTLY_COUNTED = 256
const CHARACTERS_A_WORD = 6
/** Two words with this many characters between them are surely more than ten words apart, at least in English. */
const FAR = 400
const BLANK = 0x20

/** A word to look for. */
interface Wanted {
  text: string
  /** number of the word in the query */
  word: number
  cost: number
  /** the cost of a longer word that begins with it; undefined if such words do not match */
  longer: number | undefined
}

/** Where a word is in a text, in characters. */
interface Place {
  at: number
  word: number
  cost: number
}

/** The words of a text as an index has them, with blanks between. */
export const wordsOfText = (text: string, analyzer: Analyzer): string => analyzer.prepare(text).toLowerCase()

/** A text without any of the words. Its length does not count. */
const NOTHING: Reading = { length: 0, occurrences: [], begins: false }

export class WordReader {
  /** the words of the query as they were typed, repetitions included */
  readonly sequence: number[] = []
  readonly #wanted: Wanted[] = []

  /** @param countsAll whether the places of words count, not only how far apart they are */
  constructor(
    terms: readonly Term[],
    analyzer: Analyzer,
    private readonly countsAll = false,
  ) {
    const numbers = new Map<string, number>()
    for (const term of terms) {
      const { words, begins } = analyzer.phrase(typed(term))
      for (const [index, text] of words.entries()) {
        const word = numbers.get(text) ?? numbers.size
        const isLast = index === words.length - 1
        this.sequence.push(word)
        if (numbers.has(text) && !term.prefix) continue
        numbers.set(text, word)
        const longer = isLast && begins ? 0 : isLast && term.prefix ? 1 : undefined
        this.#wanted.push({ text, word, cost: 0, longer })
        if (words.length > 1) continue
        const completed = term.prefix ? analyzer.completions(term.tokens[0] ?? '') : []
        for (const other of completed) this.#wanted.push({ text: other, word, cost: 1, longer: undefined })
        for (const other of term.corrections) {
          this.#wanted.push({ text: other, word, cost: costOf(text, other, term.prefix), longer: undefined })
        }
      }
    }
  }

  /**
   * Finds the query's words in a text. Searching for a few words is several times as fast as checking every word.
   * @param words of a text as the index has them, with blanks between (`wordsOf`)
   */
  read(words: string): Reading {
    const found: Place[] = []
    for (const { text: wanted, word, cost, longer } of this.#wanted) {
      for (let at = words.indexOf(wanted); at >= 0; at = words.indexOf(wanted, at + wanted.length)) {
        if (at > 0 && words.charCodeAt(at - 1) > BLANK) continue
        const end = at + wanted.length
        const isWhole = end >= words.length || words.charCodeAt(end) <= BLANK
        if (isWhole) found.push({ at, word, cost })
        else if (longer !== undefined) found.push({ at, word, cost: longer })
      }
    }
    if (found.length === 0) return NOTHING
    const occurrences = numbered(words, found, this.countsAll)
    return { length: this.#lengthOf(words), occurrences, begins: found[0]!.at === 0 }
  }

  /** The number of words of a text; an estimate for a long text. */
  #lengthOf(text: string): number {
    const isLong = text.length > Math.max(EXACTLY_COUNTED, CHARACTERS_A_WORD * 2 * this.sequence.length)
    return isLong ? Math.round(text.length / CHARACTERS_A_WORD) : wordsIn(text, 0, text.length)
  }
}

/** Numbers the words by their positions. For words far apart, the numbers only show that they are far apart. */
function numbered(text: string, found: Place[], countsAll: boolean): Occurrence[] {
  if (found.length > 1) found.sort((a, b) => a.at - b.at || a.cost - b.cost)
  const occurrences: Occurrence[] = []
  let token = 0
  let before = countsAll ? 0 : (found[0]?.at ?? 0)
  let last = -1
  for (const { at, word, cost } of found) {
    // If one query word is the beginning of another, both find the longer word.
    if (at === last) continue
    token += at - before > FAR && !countsAll ? FAR : wordsIn(text, before, at)
    occurrences.push({ token, word, cost })
    before = at
    last = at
  }
  return occurrences
}

/** How many words begin in a part of a text, up to a place where a word begins. */
function wordsIn(text: string, from: number, to: number): number {
  let count = 0
  let inside = false
  for (let at = from; at < to; at++) {
    const isWord = text.charCodeAt(at) > BLANK
    if (isWord && !inside) count++
    inside = isWord
  }
  return count
}

/**
 * The cost of a correction. If the word may be unfinished, all following letters together cost as much as one
 * completion.
 */
export function costOf(written: string, correction: string, prefix: boolean): number {
  const { whole, beginning } = wordDistance(written, correction, MOST_TYPOS)
  const completed = prefix ? TYPO * Math.min(MOST_TYPOS, beginning) + 1 : Number.POSITIVE_INFINITY
  return Math.min(TYPO * Math.min(MOST_TYPOS, whole), completed)
}
