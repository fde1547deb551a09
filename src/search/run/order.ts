/** The order of a search's matches, by values in memory. */

import { ApiError, detailed } from '../../errors'
import { Filter } from '../filter/filter'
import { metersTo } from '../filter/geopoint'
import { jsonLists } from '../fragment'
import { bucketColumn, type JoinedKey, type SortKey } from '../request/sort'
import { decayed, randomOf } from '../request/sort-functions'
import { BLOCK, numberAt, placeAt } from '../schema/block'
import { isString } from '../schema/layout'
import type { Candidates, Scores } from './candidates'
import {
  byAge,
  byNumber,
  byNumbers,
  byPart,
  byScore,
  byString,
  equal,
  type KeyOrder,
  type OrderOf,
  orderOf,
} from './column-order'
import type { SearchContext } from './context'
import { passingOf } from './filtered-matches'
import { type BlockNumbers, Gathered, numberIn, numbersOf, type OrderedMatch } from './gathered'
import { shownOf } from './join-shown'
import { Columns, eachBlock, type MatchSet, minus, seqsOf } from './match-set'
import { distancesTo, type VectorSearch } from './nearest'
import type { Pace } from './pace'

/** What an order is made for. */
export interface Ordered extends Pick<Candidates, 'text' | 'vector' | 'gathered' | 'fit'> {
  /** the matches that are ordered */
  set: MatchSet
  /** the vectors of the `_vector_query` keys of sort_by */
  sortVectors?: VectorSearch[] | undefined
  /** Only documents that are equal by all keys before the text match need its score, and are read for it later. */
  scoresLast?: boolean
}

export interface Ordering {
  order: OrderOf
  /** matches with what they were found by */
  rowsOf(seqs: readonly number[]): OrderedMatch[]
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

/** Without a value, a match is the worst in either direction. */
const LAST = Number.NEGATIVE_INFINITY

/**
 * @param sort the size of a document's group is not known yet, so it counts as 0 here
 * @throws ApiError 422 for more matches than are ranked together
 */
export async function orderingOf(
  context: SearchContext,
  sort: readonly SortKey[],
  asked: Ordered,
  pace: Pace,
): Promise<Ordering> {
  const { set, fit } = asked
  const fields = sort.flatMap((key) => (key.kind === 'field' || key.kind === 'geopoint' ? [key.field] : []))
  const columns = new Columns(context, fields)
  const keys: KeyOrder[] = []
  let vectors = 0
  let distances: BlockNumbers | undefined
  const found = await asked.gathered?.(pace)
  for (const key of sort) {
    const sign = key.direction === 'ASC' ? -1 : 1
    switch (key.kind) {
      case 'seq':
        keys.push(byAge(sign))
        break
      case 'random':
        keys.push((number) => byPart((at) => sign * randomOf(key.seed, number * BLOCK + at)))
        break
      case 'field':
        keys.push(byField(key, columns, pace))
        break
      case 'geopoint':
        keys.push(byDistance(key, columns, pace))
        break
      case 'eval':
        keys.push(byNumbers(await scoresOf(context, key.cases, set, pace), sign, LAST))
        break
      case 'joined': {
        const bySeq = await ranks(context, key, seqsOf(set), pace)
        const numbers = await pace.through(numbersOf([...bySeq.keys()], [...bySeq.values()]))
        keys.push(byNumbers(numbers, -1, LAST))
        break
      }
      case 'vector_query': {
        const seqs = seqsOf(set)
        const measured = await distancesTo(context, asked.sortVectors![vectors++]!, seqs, pace)
        const numbers = await pace.through(numbersOf(seqs, measured))
        distances ??= numbers
        keys.push(byNumbers(numbers, sign, LAST))
        break
      }
      case 'text_match':
      case 'vector_distance':
        keys.push(await byMatch(key, { ...asked, found }, pace))
        break
      case 'group_found':
        keys.push(equal)
    }
  }
  if (keys.length === 0) keys.push(byAge(1))
  return {
    order: orderOf(keys),
    rowsOf(seqs) {
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

function byField(key: SortKey & { kind: 'field' }, columns: Columns, pace: Pace): KeyOrder {
  const { field, decay } = key
  const sign = key.direction === 'ASC' ? -1 : 1
  const largest = isString(field) && key.direction === 'DESC' ? 'first' : 'last'
  const isFirst = (key.missing === 'normal' ? largest : key.missing) === 'first'
  const missing = isFirst ? Number.POSITIVE_INFINITY : LAST
  return (number, offsets) => {
    const block = columns.block(field, number, pace, offsets)
    if (block.words !== undefined) return byString(block.values, block.words, sign, isFirst)
    if (decay === undefined) return byNumber(block, sign, missing)
    return byPart((at) => {
      const place = placeAt(block, at)
      if (place === -1) return missing
      const score = decayed(decay, numberAt(block.values, place))
      return sign === 1 ? score : -score
    })
  }
}

/** By the distance from a place, of the nearest of a document's places. */
function byDistance(key: SortKey & { kind: 'geopoint' }, columns: Columns, pace: Pace): KeyOrder {
  const sign = key.direction === 'ASC' ? -1 : 1
  return (number, offsets) => {
    const block = columns.block(key.field, number, pace, offsets)
    return byPart((at) => {
      const meters = metersTo(key, block, at)
      if (meters === undefined) return LAST
      const counted = meters < key.exclude ? 0 : meters
      return sign * (key.precision > 0 ? Math.floor(counted / key.precision) : counted)
    })
  }
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
    const gathered = found ?? (await gatheredOf(set, await fit?.all(pace), pace))
    await pace.through(gathered.fill(key.buckets, text && vector))
    // The first part is the best one.
    return numbered(gathered.buckets.get(bucketColumn(key.buckets))!, isText ? -sign : sign, gathered)
  }
  if (!(isText ? text : vector)) return equal
  if (found === undefined) return scoresLast ? equal : byScore(await fit!.all(pace), sign)
  if (!isText) return numbered(found.distances, sign, found)
  // FTS5's BM25 is best when lowest. A fused score is best when highest.
  return vector ? numbered(found.fused, sign, found) : numbered(found.scores, -sign, found)

  async function numbered(values: readonly number[], by: number, matches: Gathered): Promise<KeyOrder> {
    return byNumbers(await pace.through(matches.numbers(values)), by, LAST)
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
  context: SearchContext,
  cases: readonly { filter: string; score: number }[],
  set: MatchSet,
  pace: Pace,
): Promise<BlockNumbers> {
  const scores = new Map([...set.keys()].map((number) => [number, new Float64Array(BLOCK)]))
  let left = set
  for (const { filter, score } of cases) {
    const passed = await passingOf(context, filter, left, pace)
    for (const [number, offsets] of passed) for (const at of offsets) scores.get(number)![at] = score
    left = minus(left, passed)
  }
  return scores
}

/** By sequence number, the rank of a document's best related one. Documents without any have none. */
export async function ranks(
  context: SearchContext,
  { collection, sortBy }: JoinedKey,
  seqs: readonly number[],
  pace: Pace,
): Promise<Map<number, number>> {
  const joins = context.joins!
  const place = joins.place(collection, 'sort_by')
  const found = new Map<number, number>()
  const { on } = await pace.away(joins.relation(place))
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = joins.keysOf(group, on)
    const lists = jsonLists(new Set(keys.map(({ key }) => key)))
    const answer = await pace.away(joins.ask(place, { filter, want: { sortBy, keys: lists } }))
    const byKey = new Map(answer.ranks)
    for (const { seq, key } of keys) {
      const rank = byKey.get(key)
      if (rank !== undefined) found.set(seq, Math.min(rank, found.get(seq) ?? rank))
    }
  }
  return found
}
