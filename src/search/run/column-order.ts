/** Orders matches by values in memory (schema/column-memory.ts), as the SQL of request/sort.ts does. */
import type { SortKey } from '../request/sort'
import { BLOCK, type Block, type Offsets } from '../schema/block'
import type { Column } from '../schema/column'
import { isString } from '../schema/layout'
import type { Field } from '../types'
import type { Scores } from './candidates'
import { compare } from './facet-values'
import type { Columns, MatchSet } from './match-set'
import { eachBlock } from './match-set'
import type { Pace } from './pace'

/** A match with its goodness by each key. Higher goodness comes first. */
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

/** How good a document of a block is by a key. Without a value it is infinitely good or bad. */
type Part = (at: number) => number

/** The order in one block. */
export interface BlockOrder {
  /** by key; there is one at least */
  parts: Part[]
  /** The documents whose first key is at least this good. For speed, its loop calls nothing. */
  atLeast(offsets: Offsets, least: number): Offsets
}

/** Returns the order of a block's documents. */
export type Goodness = (number: number) => BlockOrder

type KeyOrder = (number: number) => { part: Part; atLeast: BlockOrder['atLeast'] }

/**
 * @param sort keys of `fieldsOfOrder`. The size of a document's group is not known yet, so it counts as 0 here
 * @param found without scores, all documents match equally well
 */
export async function goodnessOf(
  sort: readonly SortKey[],
  columns: Columns,
  { set, scores }: { set: MatchSet; scores?: Scores | undefined },
  pace: Pace,
): Promise<Goodness> {
  const keys: KeyOrder[] = []
  for (const key of sort) {
    const sign = key.direction === 'ASC' ? -1 : 1
    if (key.kind === 'seq') keys.push(byAge(sign))
    else if (key.kind === 'text_match' && scores !== undefined) keys.push(byScore(scores, sign))
    else if (key.kind !== 'field') keys.push(equal)
    else {
      const column = columns.of(key.field)
      const largest = isString(key.field) && key.direction === 'DESC' ? 'first' : 'last'
      const missing =
        (key.missing === 'normal' ? largest : key.missing) === 'first'
          ? Number.POSITIVE_INFINITY
          : Number.NEGATIVE_INFINITY
      // Ranks need all strings, so read every block first.
      if (column.isText) await eachBlock(set, pace, (number) => columns.block(column, number, pace))
      const ranks = column.isText ? ranksOf(column) : undefined
      keys.push((number) => {
        const { values } = columns.block(column, number, pace)
        return ranks === undefined ? byNumber(values, sign, missing) : byString(values, ranks, sign, missing)
      })
    }
  }
  if (keys.length === 0) keys.push(byAge(1))
  return (number) => {
    const orders = keys.map((key) => key(number))
    return { parts: orders.map(({ part }) => part), atLeast: orders[0]!.atLeast }
  }
}

const equal: KeyOrder = () => ({
  part: () => 0,
  atLeast: (offsets, least) => (least <= 0 ? offsets : offsets.subarray(0, 0)),
})

/** Scores are better when lower. They are only read of documents that are equal by all keys before. */
const byScore =
  (scores: Scores, sign: number): KeyOrder =>
  (number) => {
    let scoreOf: Part | undefined
    const part = (at: number) => {
      scoreOf ??= scores(number)
      return -sign * scoreOf(at)
    }
    return { part, atLeast: (offsets, least) => offsets.filter((at) => part(at) >= least) }
  }

const byAge =
  (sign: number): KeyOrder =>
  (number) => {
    const part = (at: number) => sign * (number * BLOCK + at)
    return { part, atLeast: (offsets, least) => offsets.filter((at) => part(at) >= least) }
  }

/** A reused buffer for documents until their number is known. It holds nothing between calls. */
let scratch: Uint16Array | undefined

function byNumber(values: Block['values'], sign: number, missing: number): ReturnType<KeyOrder> {
  return {
    part: (at) => {
      const value = values[at]!
      return Number.isNaN(value) ? missing : sign * value
    },
    atLeast: (offsets, least) => {
      scratch ??= new Uint16Array(BLOCK)
      const into = scratch
      const takesMissing = missing >= least
      let count = 0
      for (let index = 0; index < offsets.length; index++) {
        const at = offsets[index]!
        const value = sign * values[at]!
        into[count] = at
        if (value >= least || (takesMissing && Number.isNaN(value))) count++
      }
      return into.slice(0, count)
    },
  }
}

function byString(
  values: Block['values'],
  ranks: Uint32Array,
  sign: number,
  missing: number,
): ReturnType<KeyOrder> {
  const part = (at: number) => {
    const rank = ranks[values[at]!] ?? 0
    return rank === 0 ? missing : sign * rank
  }
  return {
    part,
    atLeast: (offsets, least) => {
      scratch ??= new Uint16Array(BLOCK)
      const into = scratch
      const takesMissing = missing >= least
      let count = 0
      for (let index = 0; index < offsets.length; index++) {
        const at = offsets[index]!
        const rank = ranks[values[at]!] ?? 0
        into[count] = at
        if (rank === 0 ? takesMissing : sign * rank >= least) count++
      }
      return into.slice(0, count)
    },
  }
}

/** Cached ranks of strings. They are out of date once reading a block adds strings. */
const RANKS = new WeakMap<Column, Uint32Array>()

/** By id: the rank of a string among the normal forms, from 1 on; 0 for none and for an empty one. */
function ranksOf(column: Column): Uint32Array {
  const known = RANKS.get(column)
  if (known?.length === column.words.length) return known
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
  RANKS.set(column, ranks)
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

  /** The goodness by the first key that a match needs to be kept. */
  get least(): number {
    if (this.#limit <= 0) return Number.POSITIVE_INFINITY
    return this.#heap.length < this.#limit ? Number.NEGATIVE_INFINITY : this.#heap[0]!.keys[0]!
  }

  /** Whether a match would be kept. */
  takes(seq: number, parts: readonly Part[], at: number): boolean {
    if (this.#heap.length < this.#limit) return true
    const last = this.#heap[0]
    if (last === undefined) return false
    for (let index = 0; index < parts.length; index++) {
      const [value, least] = [parts[index]!(at), last.keys[index]!]
      if (value !== least) return value > least
    }
    return seq > last.seq
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
    const { parts, atLeast } = goodness(number)
    const { least } = first
    // Go from the newest to the oldest: among many equally good documents the newest win, so later ones need not be
    // kept for a while.
    const good = least === Number.NEGATIVE_INFINITY ? offsets : atLeast(offsets, least)
    for (let index = good.length - 1; index >= 0; index--) {
      const at = good[index]!
      const seq = number * BLOCK + at
      if (first.takes(seq, parts, at)) first.offer({ seq, keys: parts.map((part) => part(at)) })
    }
  })
  return first.items
}
