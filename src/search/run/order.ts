/** The order of a search's matches, by values in memory. */
import { ApiError, detailed } from '../../errors'
import { FirstItems } from '../../lib/first-items'
import { metersTo } from '../filter/area'
import { Filter } from '../filter/filter'
import { jsonLists } from '../fragment'
import { decayed, type JoinedKey, randomOf, type SortKey } from '../request/sort'
import { BLOCK, type Block, numberAt, type Offsets, placeAt, type Words } from '../schema/column'
import type { BlockOf } from '../schema/column-memory'
import { isString } from '../schema/layout'
import { rankOf } from '../text/terms'
import {
  type BlockNumbers,
  type Candidates,
  type Fit,
  Gathered,
  numberIn,
  numbersOf,
  type OrderedMatch,
  type Scores,
} from './candidates'
import type { Running, SearchContext } from './context'
import { shownOf } from './join-attach'
import { passingOf } from './kept-matches'
import { blocksOf, eachBlock, type MatchSet, minus, seqsOf, setOf, sizeOf } from './match-set'
import { distancesTo, type VectorSearch } from './nearest'
import type { Pace } from './pace'

/** What an order is made for. */
interface Ordered extends Pick<Candidates, 'text' | 'vector' | 'gathered' | 'fit'> {
  /** the matches that are ordered */
  set: MatchSet
  /** the vectors of the `_vector_query` keys of sort_by */
  sortVectors?: VectorSearch[] | undefined
  /** Only documents that are equal by all keys before the text match need its score, and are read for it later. */
  scoresLast?: boolean
}

/** @throws ApiError 400 for a bad filter in `_eval` */
export function checkOrder(context: SearchContext, sort: readonly SortKey[] = []): void {
  try {
    for (const key of sort) {
      for (const { filter } of key.kind === 'eval' ? key.cases : []) new Filter(context.schema, filter)
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw detailed(error.status, 'Error parsing eval expression in sort_by clause.', error.message)
  }
}

/** Of a match without a value, which is the worst in either direction. */
const lastBy = (sign: number): number => sign * Number.NEGATIVE_INFINITY

/**
 * @param sort the size of a document's group is not known yet, so it counts as 0 here
 * @throws ApiError 422 for more matches than are ranked together
 */
export async function orderingOf(context: Running, sort: readonly SortKey[], asked: Ordered) {
  const { set, fit } = asked
  const blockOf = blocksOf(context)
  const keys: KeyOrder[] = []
  let vectors = 0
  let distances: BlockNumbers | undefined
  const found = await asked.gathered?.()
  for (const key of sort) {
    const sign = key.direction === 'ASC' ? -1 : 1
    switch (key.kind) {
      case 'seq':
        keys.push({ sign, partOf: age })
        break
      case 'random':
        keys.push({ sign, partOf: (number) => (at) => randomOf(key.seed, number * BLOCK + at) })
        break
      case 'field':
        keys.push(byField(key, blockOf))
        break
      case 'geopoint':
        keys.push(byDistance(key, blockOf))
        break
      case 'eval':
        keys.push(byNumbers(await scoresOf(context, key.cases, set), sign))
        break
      case 'joined': {
        const bySeq = await ranks(context, key, seqsOf(set))
        const numbers = await context.pace.through(numbersOf([...bySeq.keys()], [...bySeq.values()]))
        keys.push(byNumbers(numbers, -1))
        break
      }
      case 'vector_query': {
        const seqs = seqsOf(set)
        const measured = await distancesTo(context, asked.sortVectors![vectors++]!, seqs)
        const numbers = await context.pace.through(numbersOf(seqs, measured))
        distances ??= numbers
        keys.push(byNumbers(numbers, sign))
        break
      }
      case 'text_match':
      case 'vector_distance':
        keys.push(await byMatch(key, { ...asked, found }, context.pace))
        break
      case 'group_found':
        keys.push({ sign, partOf: equal })
    }
  }
  if (keys.length === 0) keys.push({ sign: 1, partOf: age })
  return {
    order: keys,
    /** matches with what they were found by */
    rowsOf(seqs: readonly number[]): OrderedMatch[] {
      const scores = fit?.of(seqs)
      const rows = found?.rowsOf(seqs)
      return seqs.map((seq) => {
        const row = rows?.get(seq) ?? { seq, score: scores?.get(seq) ?? null, distance: null, fused: null }
        const distance = row.distance ?? (distances && numberIn(distances, seq)) ?? Number.NaN
        // A hit reports the distance that it is sorted by.
        return { ...row, distance: Number.isNaN(distance) ? null : distance }
      })
    },
  }
}

function byField(key: SortKey & { kind: 'field' }, blockOf: BlockOf): KeyOrder {
  const { field, decay } = key
  const sign = key.direction === 'ASC' ? -1 : 1
  const largest = isString(field) && key.direction === 'DESC' ? 'first' : 'last'
  const isFirst = (key.missing === 'normal' ? largest : key.missing) === 'first'
  const partOf = (number: number, offsets: Offsets): Part => {
    const block = blockOf(field, number, offsets)
    // A string that is first in a rising order is less than all others.
    if (block.words !== undefined) return textPart(block.values, block.words, isFirst === (sign === 1))
    return numberPart(
      block,
      isFirst ? -lastBy(sign) : lastBy(sign),
      decay && ((value) => decayed(decay, value)),
    )
  }
  return { sign, partOf }
}

/** By the distance from a place, of the nearest of a document's places. */
function byDistance(key: SortKey & { kind: 'geopoint' }, blockOf: BlockOf): KeyOrder {
  const sign = key.direction === 'ASC' ? -1 : 1
  const partOf = (number: number, offsets: Offsets): Part => {
    const block = blockOf(key.field, number, offsets)
    return (at) => {
      const meters = metersTo(key, block, at)
      if (meters === undefined) return lastBy(sign)
      const counted = meters < key.exclude ? 0 : meters
      return key.precision > 0 ? Math.floor(counted / key.precision) : counted
    }
  }
  return { sign, partOf }
}

/** By how well the words fit, or by the distance of a vector. */
async function byMatch(
  key: SortKey & { kind: 'text_match' | 'vector_distance' },
  { set, text, vector, fit, found, scoresLast }: Ordered & { found: Gathered | undefined },
  pace: Pace,
): Promise<KeyOrder> {
  const sign = key.direction === 'ASC' ? -1 : 1
  const isText = key.kind === 'text_match'
  if (key.buckets !== undefined) {
    const gathered = found ?? (await gatheredOf(set, await fit?.all(), pace))
    // The first part is the best one.
    const parts = await pace.through(gathered.bucketsOf(key.buckets, text && vector))
    return numbered(parts, isText ? -sign : sign, gathered)
  }
  if (!(isText ? text : vector)) return { sign, partOf: equal }
  if (found === undefined) return scoresLast ? { sign, partOf: equal } : byScore(await fit!.all(), -sign)
  if (!isText) return numbered(found.distances, sign, found)
  // FTS5's BM25 is best when lowest. A fused score is best when highest.
  return vector ? numbered(found.fused, sign, found) : numbered(found.scores, -sign, found)

  async function numbered(values: readonly number[], by: number, matches: Gathered): Promise<KeyOrder> {
    return byNumbers(await pace.through(matches.numbers(values)), by)
  }
}

/** @param scores without them, all matches are equally good */
async function gatheredOf(set: MatchSet, scores: Scores | undefined, pace: Pace): Promise<Gathered> {
  const gathered = new Gathered()
  await eachBlock(set, pace, (number, offsets) => {
    const scoreOf = scores?.(number)
    for (const at of offsets) gathered.add(number * BLOCK + at, scoreOf?.(at))
  })
  return gathered
}

/** The scores of `_eval`: of the first condition that a document meets. */
async function scoresOf(
  context: Running,
  cases: readonly { filter: string; score: number }[],
  set: MatchSet,
): Promise<BlockNumbers> {
  const scores = new Map([...set.keys()].map((number) => [number, new Float64Array(BLOCK)]))
  let left = set
  for (const { filter, score } of cases) {
    const passed = await passingOf(context, filter, left)
    for (const [number, offsets] of passed) for (const at of offsets) scores.get(number)![at] = score
    left = minus(left, passed)
  }
  return scores
}

/** By sequence number, the rank of a document's best related one. Documents without any have none. */
async function ranks(
  context: Running,
  { collection, sortBy }: JoinedKey,
  seqs: readonly number[],
): Promise<Map<number, number>> {
  const joins = context.joins!
  const place = joins.place(collection, 'sort_by')
  const found = new Map<number, number>()
  const { on } = await context.pace.away(joins.relation(place))
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = joins.keysOf(group, on)
    const lists = jsonLists(new Set(keys.map(({ key }) => key)))
    const answer = await context.pace.away(joins.ask(place, { filter, want: { sortBy, keys: lists } }))
    const byKey = new Map(answer.ranks)
    for (const { seq, key } of keys) {
      const rank = byKey.get(key)
      if (rank !== undefined) found.set(seq, Math.min(rank, found.get(seq) ?? rank))
    }
  }
  return found
}

// =============================================================================
// Orders the matches of a block, by values in memory (schema/column-memory.ts), and finds the first of all.

/** A document's value by a key. All documents have the same type, but for BigInts among numbers. */
type Goodness = number | bigint | string

/** A match with its value by each key. */
export interface Placed {
  seq: number
  keys: Goodness[]
}

/** A document's value by a key. Without a value it is infinitely large or small. */
type Part = (at: number) => Goodness

interface KeyOrder {
  /** 1: greater values come first; -1: smaller ones */
  sign: number
  /** the values of a block's documents */
  partOf: (number: number, offsets: Offsets) => Part
}

/** By key; there is one at least. */
export type Order = readonly KeyOrder[]

/** The values of a block's documents, by key. */
export const partsOf = (order: Order, number: number, offsets: Offsets): Part[] =>
  order.map(({ partOf }) => partOf(number, offsets))

/** Negative if `a` comes first. Equal documents come newest first. */
const placeBy =
  (order: Order) =>
  (a: Placed, b: Placed): number => {
    for (let at = 0; at < a.keys.length; at++) {
      const [one, other] = [a.keys[at]!, b.keys[at]!]
      if (one !== other) return one > other === order[at]!.sign > 0 ? -1 : 1
    }
    return b.seq - a.seq
  }

/** Whether a match comes before another one, whose values are known. */
export function comesBefore(
  order: Order,
  seq: number,
  parts: readonly Part[],
  at: number,
  other: Placed,
): boolean {
  for (let index = 0; index < parts.length; index++) {
    const value = parts[index]!(at)
    const known = other.keys[index]!
    if (value !== known) return value > known === order[index]!.sign > 0
  }
  return seq > other.seq
}

const equal: KeyOrder['partOf'] = () => () => 0

const age: KeyOrder['partOf'] = (number) => (at) => number * BLOCK + at

/** Scores are only read of documents that are equal by all keys before. */
const byScore = (scores: Scores, sign: number): KeyOrder => ({
  sign,
  partOf: (number) => {
    let scoreOf: ((at: number) => number) | undefined
    return (at) => {
      scoreOf ??= scores(number)
      return scoreOf(at)
    }
  },
})

/** By numbers that are known by block and offset; NaN for none. @param missing the value of those without a number */
export const byNumbers = (numbers: BlockNumbers, sign: number, missing = lastBy(sign)): KeyOrder => ({
  sign,
  partOf: (number) => numberPart({ values: numbers.get(number) ?? NONE, starts: undefined }, missing),
})

const NONE = new Float64Array(BLOCK).fill(Number.NaN)

/** @param scoreOf a value; the value itself without it */
function numberPart(
  block: Block,
  missing: number,
  scoreOf?: (value: number | bigint) => number | bigint,
): Part {
  const { values, starts } = block
  // Most orders are by such a field, and look at every match. With the calls below a document takes three times as long.
  if (values instanceof Float64Array && starts === undefined && scoreOf === undefined) {
    return (at) => {
      const value = values[at]!
      return Number.isNaN(value) ? missing : value
    }
  }
  return (at) => {
    const place = placeAt(block, at)
    if (place === -1) return missing
    const value = numberAt(values, place)
    return scoreOf === undefined ? value : scoreOf(value)
  }
}

/** @param isLargest whether a missing string is greater than all others */
function textPart(ids: Block['values'], words: Words, isLargest: boolean): Part {
  const missing = isLargest ? LARGEST : ''
  const known = SORTABLE.get(words) ?? new Array<string>(words.size).fill('')
  SORTABLE.set(words, known)
  return (at) => {
    const id = ids[at] as number
    if (id === 0) return missing
    known[id] ||= sortable(words.norm(id))
    return known[id] || missing
  }
}

/** By id: the strings of a block as they are ordered, as far as they are known. */
const SORTABLE = new WeakMap<Words, string[]>()

/** Greater than all strings. */
const LARGEST = '\uffff\uffff'

/** Characters of a string that decide its place. */
const MOST_CHARACTERS = 1_000

/** A string that is greater, unit by unit, where the given one is greater by code points. */
function sortable(norm: string): string {
  const text = norm.slice(0, MOST_CHARACTERS)
  return /[\ud800-\uffff]/.test(text) ? text.replace(/[\ud800-\uffff]/g, unitOf) : text
}

const unitOf = (unit: string): string => String.fromCharCode(rankOf(unit.charCodeAt(0)))

/** Keeps the first `limit` of all that it is offered. */
export class First<Item extends Placed> extends FirstItems<Item> {
  constructor(
    limit: number,
    private readonly by: Order,
  ) {
    super(limit, placeBy(by))
  }

  /** The value by the first key of the last match that is kept; undefined while any match is taken. */
  get least(): Goodness | undefined {
    return this.isFull ? this.last?.keys[0] : undefined
  }

  /** Whether a match would be kept. */
  takes(seq: number, parts: readonly Part[], at: number): boolean {
    return !this.isFull || (this.last !== undefined && comesBefore(this.by, seq, parts, at, this.last))
  }
}

/** The first matches in order. */
export async function firstOf(set: MatchSet, order: Order, limit: number, pace: Pace): Promise<Placed[]> {
  const first = new First<Placed>(limit, order)
  const isRising = order[0]!.sign < 0
  await eachBlock(set, pace, (number, offsets) => {
    const parts = partsOf(order, number, offsets)
    // Go from the newest to the oldest: among many equally good documents the newest win, so later ones need not be
    // kept for a while.
    const main = parts[0]!
    let { least } = first
    for (let index = offsets.length - 1; index >= 0; index--) {
      const at = offsets[index]!
      // The first key alone tells that nearly all others come later.
      if (least !== undefined) {
        const value = main(at)
        if (isRising ? value > least : value < least) continue
      }
      const seq = number * BLOCK + at
      if (!first.takes(seq, parts, at)) continue
      first.offer({ seq, keys: parts.map((part) => part(at)) })
      least = first.least
    }
  })
  return first.items
}

// =============================================================================
// A window of the matches of a search.

export interface Window {
  offset: number
  limit: number
}

/** The part of a slice that reading documents takes. */
const READING = 0.5

/** So many matches that are equal by all keys before the text match are read one by one. */
const MOST_TIED = 64

/** A window of the matches, and how many there are. */
export async function windowOf(
  context: Running,
  candidates: Candidates,
  sort: readonly SortKey[],
  { offset, limit }: Window,
  sortVectors?: VectorSearch[],
): Promise<{ rows: OrderedMatch[]; found: number }> {
  const set = await candidates.set()
  const found = candidates.found ?? sizeOf(set)
  if (limit <= 0) return { rows: [], found }
  const key = candidates.fit === undefined ? -1 : sort.findIndex(({ kind }) => kind === 'text_match')
  const text = sort[key]
  const isLast = key > 0 && text!.direction === 'DESC' && 'buckets' in text! && text.buckets === undefined
  const asked = { ...candidates, set, sortVectors, scoresLast: isLast }
  const { order, rowsOf } = await orderingOf(context, sort, asked)
  const first = await firstOf(set, order, offset + limit, context.pace)
  const rows = isLast
    ? await withTies(candidates.fit!, set, order, { first, offset, sort, key }, context.pace)
    : first.slice(offset).map(({ seq }) => seq)
  return { rows: rowsOf(rows), found }
}

/**
 * Orders a window where keys before the text match leave documents equal. Few of them are read; of many, those that fit best are
 * found as in a search for them alone.
 * @param first the first documents without regard to how well they fit, up to the end of the window
 * @param key the place of the text match in the order
 */
async function withTies(
  fit: Fit,
  set: MatchSet,
  order: Order,
  {
    first,
    offset,
    sort,
    key,
  }: { first: readonly Placed[]; offset: number; sort: readonly SortKey[]; key: number },
  pace: Pace,
): Promise<number[]> {
  const ties: Placed[][] = []
  const isEqual = (a: Placed, b: Placed) => a.keys.slice(0, key).every((value, at) => value === b.keys[at])
  for (const placed of first) {
    const before = ties.at(-1)
    if (before !== undefined && isEqual(before[0]!, placed)) before.push(placed)
    else ties.push([placed])
  }
  const last = ties.at(-1)
  // Others may be as good as the last one.
  if (last !== undefined && first.length < sizeOf(set)) ties.splice(-1, 1, await equalTo(last[0]!, key))
  const seqs: number[] = []
  let from = 0
  for (const some of ties) {
    const window = { offset: Math.max(0, offset - from), limit: 0 }
    const taken = Math.min(some.length, first.length - from)
    window.limit = taken - window.offset
    from += taken
    if (window.limit > 0) seqs.push(...(await ordered(some, window)))
  }
  return seqs

  async function equalTo(one: Placed, count: number): Promise<Placed[]> {
    const wanted = one.keys.slice(0, count)
    const equals: Placed[] = []
    await eachBlock(set, pace, (number, offsets) => {
      const parts = partsOf(order, number, offsets)
      for (const at of offsets) {
        if (!wanted.every((value, index) => value === parts[index]!(at))) continue
        equals.push({ seq: number * BLOCK + at, keys: parts.map((part) => part(at)) })
      }
    })
    return equals
  }

  async function ordered(some: readonly Placed[], window: Window): Promise<number[]> {
    const all = some.map(({ seq }) => seq)
    if (some.length > MOST_TIED) {
      return (await fit.first(setOf(all), sort.slice(key + 1), window)).map(({ seq }) => seq)
    }
    if (some.length > 1) {
      await pace.rest(READING)
      const scores = fit.of(all)
      // The key's own sign is that of a falling order.
      for (const { seq, keys } of some) keys[key] = -(scores.get(seq) ?? 0)
    }
    const inOrder = some.toSorted(placeBy(order)).map(({ seq }) => seq)
    return inOrder.slice(window.offset, window.offset + window.limit)
  }
}
