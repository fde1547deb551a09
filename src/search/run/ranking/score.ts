/**
 * The text match of a document: how well the words of a query fit it, as Typesense counts it.
 *
 * Only the best field counts. Fields are compared by these in turn: how many words are within ten tokens of each
 * other, how many words the field has, how little was corrected or completed, how close the words are, whether they
 * are the whole field or adjacent in order. Then come the field's weight and the number of fields with a word.
 *
 * Documents that fit equally well have equal numbers, so that the next key of the sort decides between them.
 */

import type { RankingRules } from '../../request/matching'

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
export interface FieldMatch {
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

export function matchOfText(text: Reading, rules: MatchRules, found: Set<number> = new Set()): FieldMatch {
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

interface WordSpan {
  words: number
  distance: number
  first: number
  last: number
  inOrder: boolean
  /** the cost of its words above that of the cheapest ones in the text */
  cost: number
}

/** The window with the most words, and of those the shortest; of equal ones the first. */
function bestWindow(occurrences: readonly Occurrence[], costs: ReadonlyMap<number, number>): WordSpan {
  let best: WordSpan = { words: 0, distance: 0, first: 0, last: 0, inOrder: false, cost: 0 }
  for (let first = 0; first < occurrences.length; first++) {
    const { token } = occurrences[first]!
    let seen = 0
    let words = 0
    let last = token
    let word = -1
    let inOrder = true
    let cost = 0
    let later: Set<number> | undefined
    for (let at = first; at < occurrences.length && occurrences[at]!.token - token <= WINDOW; at++) {
      const each = occurrences[at]!
      if (each.word < 32 ? (seen & (1 << each.word)) !== 0 : later?.has(each.word)) continue
      if (each.word < 32) seen |= 1 << each.word
      else {
        later ??= new Set()
        later.add(each.word)
      }
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
