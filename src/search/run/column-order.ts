/** Orders matches by values in memory (schema/column-memory.ts), as the SQL of request/sort.ts does. */
import type { SortKey } from '../request/sort'
import { BLOCK, type Column } from '../schema/column-memory'
import { isString } from '../schema/layout'
import type { Field } from '../types'
import { compare } from './facet-values'
import type { Columns, MatchSet } from './match-set'
import { eachBlock } from './match-set'
import type { Pace } from './pace'

/** A match and its goodness by each key: the higher one comes first. */
export interface Placed {
  seq: number
  keys: number[]
}

/** Negative if `a` comes first. Equal documents come newest first. */
export function place(a: Placed, b: Placed): number {
  for (let at = 0; at < a.keys.length; at++) {
    const [one, other] = [a.keys[at]!, b.keys[at]!]
    if (one !== other) return one > other ? -1 : 1
  }
  return b.seq - a.seq
}

/**
 * The fields whose values an order needs, if it can be made in memory.
 * @param bySize the order may use the sizes of groups
 */
export function fieldsOfOrder(sort: readonly SortKey[], bySize = false): Field[] | undefined {
  const fields: Field[] = []
  for (const key of sort) {
    if (key.kind === 'field' && key.decay === undefined) fields.push(key.field)
    else if (key.kind !== 'seq' && key.kind !== 'text_match' && !(bySize && key.kind === 'group_found'))
      return undefined
    else if (key.kind === 'text_match' && key.buckets !== undefined) return undefined
  }
  return fields
}

/** Tells the goodness of a block's documents by each key. Documents without a value are infinitely good or bad. */
export type Goodness = (number: number) => ((at: number) => number)[]

/**
 * @param sort keys of `fieldsOfOrder`; without words in the search, all documents match equally well. The size of its group is not
 *   known of a document, so it counts as 0 here
 */
export async function goodnessOf(
  sort: readonly SortKey[],
  columns: Columns,
  set: MatchSet,
  pace: Pace,
): Promise<Goodness> {
  const parts: ((number: number) => (at: number) => number)[] = []
  for (const key of sort) {
    const sign = key.direction === 'ASC' ? -1 : 1
    if (key.kind === 'seq') parts.push((number) => (at) => sign * (number * BLOCK + at))
    else if (key.kind !== 'field') parts.push(() => () => 0)
    else {
      const column = columns.of(key.field)
      const largest = isString(key.field) && key.direction === 'DESC' ? 'first' : 'last'
      const missing =
        (key.missing === 'normal' ? largest : key.missing) === 'first'
          ? Number.POSITIVE_INFINITY
          : Number.NEGATIVE_INFINITY
      if (!column.isText) {
        parts.push((number) => {
          const { values } = columns.block(column, number, pace)
          return (at) => {
            const value = values[at]!
            return Number.isNaN(value) ? missing : sign * value
          }
        })
        continue
      }
      // Every string has to be known before they are put in order.
      await eachBlock(set, pace, (number) => columns.block(column, number, pace))
      const ranks = ranksOf(column)
      parts.push((number) => {
        const { values } = columns.block(column, number, pace)
        return (at) => {
          const rank = ranks[values[at]!] ?? 0
          return rank === 0 ? missing : sign * rank
        }
      })
    }
  }
  return (number) => parts.map((part) => part(number))
}

/** By id: the rank of a string among the normal forms, from 1 on; 0 for none and for an empty one. */
function ranksOf(column: Column): Uint32Array {
  const ids = column.words.map((_, id) => id)
  ids.sort((a, b) => compare(column.norm(a), column.norm(b)))
  const ranks = new Uint32Array(ids.length)
  let rank = 0
  for (const [at, id] of ids.entries()) {
    const norm = column.norm(id)
    if (norm === '') continue
    if (at === 0 || norm !== column.norm(ids[at - 1]!)) rank++
    ranks[id] = rank
  }
  return ranks
}

/** Keeps the first `limit` of all that it is offered. */
export class First<Item extends Placed> {
  readonly #limit: number
  /** a binary heap, the last of them on top */
  readonly #heap: Item[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Whether a match would be kept whose first key is this good. */
  takes(goodness: number): boolean {
    if (this.#heap.length < this.#limit) return true
    const last = this.#heap[0]
    return last !== undefined && (last.keys.length === 0 || goodness >= last.keys[0]!)
  }

  offer(item: Item): void {
    const heap = this.#heap
    if (heap.length < this.#limit) {
      heap.push(item)
      for (let at = heap.length - 1; at > 0; ) {
        const parent = (at - 1) >> 1
        if (place(heap[at]!, heap[parent]!) <= 0) return
        ;[heap[at], heap[parent]] = [heap[parent]!, heap[at]!]
        at = parent
      }
    } else if (this.#limit > 0 && place(item, heap[0]!) < 0) {
      heap[0] = item
      for (let at = 0; ; ) {
        const left = 2 * at + 1
        if (left >= heap.length) return
        const right = left + 1
        const later = right < heap.length && place(heap[right]!, heap[left]!) > 0 ? right : left
        if (place(heap[at]!, heap[later]!) >= 0) return
        ;[heap[at], heap[later]] = [heap[later]!, heap[at]!]
        at = later
      }
    }
  }

  /** In order. */
  get items(): Item[] {
    return [...this.#heap].sort(place)
  }
}

/** The first matches in order. */
export async function firstOf(
  set: MatchSet,
  goodness: Goodness,
  limit: number,
  pace: Pace,
): Promise<Placed[]> {
  const first = new First<Placed>(limit)
  await eachBlock(set, pace, (number, offsets) => {
    const parts = goodness(number)
    const [main] = parts
    for (let index = offsets.length - 1; index >= 0; index--) {
      const at = offsets[index]!
      if (!first.takes(main === undefined ? 0 : main(at))) continue
      first.offer({ seq: number * BLOCK + at, keys: parts.map((part) => part(at)) })
    }
  })
  return first.items
}
