/** A window of the matches of a search. */
import type { SortKey } from '../request/sort'
import { BLOCK } from '../schema/block'
import type { Candidates, Fit } from './candidates'
import { firstOf, type OrderOf, type Placed, place } from './column-order'
import type { SearchContext } from './context'
import type { OrderedMatch } from './gathered'
import { eachBlock, type MatchSet, setOf, sizeOf } from './match-set'
import type { VectorSearch } from './nearest'
import { orderingOf } from './order'
import type { Pace } from './pace'

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
  context: SearchContext,
  candidates: Candidates,
  sort: readonly SortKey[],
  { offset, limit }: Window,
  pace: Pace,
  sortVectors?: VectorSearch[],
): Promise<{ rows: OrderedMatch[]; found: number }> {
  const set = await candidates.set(pace)
  const found = candidates.found ?? sizeOf(set)
  if (limit <= 0) return { rows: [], found }
  const key = candidates.fit === undefined ? -1 : sort.findIndex(({ kind }) => kind === 'text_match')
  const text = sort[key]
  const isLast = key > 0 && text!.direction === 'DESC' && 'buckets' in text! && text.buckets === undefined
  const asked = { ...candidates, set, sortVectors, scoresLast: isLast }
  const { order, rowsOf } = await orderingOf(context, sort, asked, pace)
  const first = await firstOf(set, order, offset + limit, pace)
  const rows = isLast
    ? await withTies(candidates.fit!, set, order, { first, offset, sort, key }, pace)
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
  order: OrderOf,
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
    const equals: Placed[] = []
    await eachBlock(set, pace, (number, offsets) => {
      const { parts, atLeast } = order(number, offsets)
      for (const at of atLeast(offsets, one.keys[0]!)) {
        const keys = parts.map((part) => part(at))
        if (keys.slice(0, count).every((value, index) => value === one.keys[index])) {
          equals.push({ seq: number * BLOCK + at, keys })
        }
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
      for (const { seq, keys } of some) keys[key] = -(scores.get(seq) ?? 0)
    }
    const inOrder = some.toSorted(place).map(({ seq }) => seq)
    return inOrder.slice(window.offset, window.offset + window.limit)
  }
}
