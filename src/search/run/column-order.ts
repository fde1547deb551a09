/** Orders the matches of a block, by values in memory (schema/column-memory.ts), and finds the first of all. */
import { FirstItems } from '../../lib/first-items'
import { BLOCK, type Block, numberAt, type Offsets, placeAt, type Words } from '../schema/block'
import { rankOf } from '../text/compared'
import type { Scores } from './candidates'
import type { BlockNumbers } from './gathered'
import { eachBlock, type MatchSet } from './match-set'
import type { Pace } from './pace'

/** How good a document is by a key: greater comes first. All documents have the same type, but for BigInts among numbers. */
export type Goodness = number | bigint | string

/** A match with its goodness by each key. */
export interface Placed {
  seq: number
  keys: Goodness[]
}

/** Negative if `a` comes first. Equal documents come newest first. */
export function place(a: Placed, b: Placed): number {
  for (let at = 0; at < a.keys.length; at++) {
    const [one, other] = [a.keys[at]!, b.keys[at]!]
    if (one !== other) return one > other ? -1 : 1
  }
  return b.seq - a.seq
}

/** How good a document of a block is by a key. Without a value it is infinitely good or bad. */
type Part = (at: number) => Goodness

/** The order in one block. */
export interface BlockOrder {
  /** by key; there is one at least */
  parts: Part[]
  /** The documents whose first key is at least this good. For speed, its loop calls nothing. */
  atLeast(offsets: Offsets, least: Goodness): Offsets
}

/** Returns the order of a block's documents. */
export type OrderOf = (number: number, offsets: Offsets) => BlockOrder

export type KeyOrder = (number: number, offsets: Offsets) => { part: Part; atLeast: BlockOrder['atLeast'] }

export const orderOf =
  (keys: readonly KeyOrder[]): OrderOf =>
  (number, offsets) => {
    const orders = keys.map((key) => key(number, offsets))
    return { parts: orders.map(({ part }) => part), atLeast: orders[0]!.atLeast }
  }

/** The order of a part, which its first key decides by a call for each document. */
export const byPart = (part: Part): ReturnType<KeyOrder> => ({
  part,
  atLeast: (offsets, least) => offsets.filter((at) => part(at) >= least),
})

export const equal: KeyOrder = () => ({
  part: () => 0,
  atLeast: (offsets, least) => ((least as number) <= 0 ? offsets : offsets.subarray(0, 0)),
})

/** Scores are better when lower. They are only read of documents that are equal by all keys before. */
export const byScore =
  (scores: Scores, sign: number): KeyOrder =>
  (number) => {
    let scoreOf: ((at: number) => number) | undefined
    return byPart((at) => {
      scoreOf ??= scores(number)
      return -sign * scoreOf(at)
    })
  }

export const byAge =
  (sign: number): KeyOrder =>
  (number) =>
    byPart((at) => sign * (number * BLOCK + at))

/** A reused buffer for documents until their number is known. It holds nothing between calls. */
let scratch: Uint16Array | undefined

/** By numbers that are known by block and offset; NaN for none. */
export const byNumbers =
  (numbers: BlockNumbers, sign: number, missing: number): KeyOrder =>
  (number) =>
    byNumber({ values: numbers.get(number) ?? NONE, starts: undefined }, sign, missing)

const NONE = new Float64Array(BLOCK).fill(Number.NaN)

export function byNumber(block: Block, sign: number, missing: number): ReturnType<KeyOrder> {
  const { values } = block
  if (!(values instanceof Float64Array)) {
    return byPart((at) => {
      const place = placeAt(block, at)
      if (place === -1) return missing
      const value = numberAt(values, place)
      return sign === 1 ? value : -value
    })
  }
  return {
    part: (at) => {
      const value = values[at]!
      return Number.isNaN(value) ? missing : sign * value
    },
    atLeast: (offsets, good) => {
      scratch ??= new Uint16Array(BLOCK)
      const into = scratch
      const least = good as number
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

export function byString(
  ids: Block['values'],
  words: Words,
  sign: number,
  isFirst: boolean,
): ReturnType<KeyOrder> {
  const missing = isFirst ? BEST : WORST
  const { ranks, sorted } = ranksOf(words)
  const keys: string[] = []
  const keyOf = (id: number): string => {
    keys[id] ??= sortable(words.norm(id), sign)
    return keys[id]
  }
  /** the lowest rank that is good enough; in a rising order the highest one */
  const limitOf = (least: Goodness): number => {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (keyOf(sorted[middle]!) >= least === (sign === 1)) high = middle
      else low = middle + 1
    }
    return sign === 1 ? low + 1 : low
  }
  return {
    part: (at) => {
      const id = ids[at] as number
      return ranks[id] === 0 ? missing : keyOf(id)
    },
    atLeast: (offsets, least) => {
      scratch ??= new Uint16Array(BLOCK)
      const into = scratch
      const limit = limitOf(least)
      const takesMissing = missing >= least
      let count = 0
      for (let index = 0; index < offsets.length; index++) {
        const at = offsets[index]!
        const rank = ranks[ids[at] as number]!
        into[count] = at
        if (rank === 0 ? takesMissing : sign === 1 ? rank >= limit : rank <= limit) count++
      }
      return into.slice(0, count)
    },
  }
}

/** Strings that are better and worse than all. */
const [BEST, WORST] = ['\uffff\uffff', '']

/** Characters of a string that decide its place. */
const MOST_CHARACTERS = 1_000

/** A string that is greater, unit by unit, for what comes first: by code points, or by turned ones in a rising order. */
function sortable(norm: string, sign: number): string {
  const text = norm.slice(0, MOST_CHARACTERS)
  if (sign === 1) return /[\ud800-\uffff]/.test(text) ? text.replace(/[\ud800-\uffff]/g, unitOf) : text
  let turned = ''
  for (let at = 0; at < text.length; at++) turned += String.fromCharCode(0xffff - rankOf(text.charCodeAt(at)))
  // What goes on is later.
  return `${turned}\uffff`
}

const unitOf = (unit: string): string => String.fromCharCode(rankOf(unit.charCodeAt(0)))

interface Ranks {
  /** By id: the rank of a string among the normal forms of its block, from 1 on; 0 for none and for an empty one */
  ranks: Uint32Array
  /** by rank, less 1: an id */
  sorted: number[]
}

const RANKS = new WeakMap<Words, Ranks>()

function ranksOf(words: Words): Ranks {
  const known = RANKS.get(words)
  if (known !== undefined) return known
  const forms = words.texts.map((_, id) => (id === 0 ? '' : sortable(words.norm(id), 1)))
  const ids = [...forms.keys()].filter((id) => forms[id] !== '')
  ids.sort((a, b) => (forms[a]! < forms[b]! ? -1 : forms[a]! > forms[b]! ? 1 : 0))
  const ranks = new Uint32Array(forms.length)
  const sorted: number[] = []
  for (const id of ids) {
    const last = sorted.at(-1)
    ranks[id] = last !== undefined && forms[last] === forms[id] ? sorted.length : sorted.push(id)
  }
  RANKS.set(words, { ranks, sorted })
  return { ranks, sorted }
}

/** Keeps the first `limit` of all that it is offered. */
export class First<Item extends Placed> extends FirstItems<Item> {
  constructor(limit: number) {
    super(limit, place)
  }

  /** The goodness by the first key that a match needs to be kept; undefined if any is enough. */
  get least(): Goodness | undefined {
    return this.isFull ? this.last?.keys[0] : undefined
  }

  /** Whether a match would be kept. */
  takes(seq: number, parts: readonly Part[], at: number): boolean {
    if (!this.isFull) return true
    const { last } = this
    if (last === undefined) return false
    for (let index = 0; index < parts.length; index++) {
      const [value, least] = [parts[index]!(at), last.keys[index]!]
      if (value !== least) return value > least
    }
    return seq > last.seq
  }
}

/** The first matches in order. */
export async function firstOf(set: MatchSet, order: OrderOf, limit: number, pace: Pace): Promise<Placed[]> {
  const first = new First<Placed>(limit)
  await eachBlock(set, pace, (number, offsets) => {
    const { parts, atLeast } = order(number, offsets)
    const { least } = first
    // Go from the newest to the oldest: among many equally good documents the newest win, so later ones need not be
    // kept for a while.
    const good = least === undefined ? offsets : atLeast(offsets, least)
    for (let index = good.length - 1; index >= 0; index--) {
      const at = good[index]!
      const seq = number * BLOCK + at
      if (first.takes(seq, parts, at)) first.offer({ seq, keys: parts.map((part) => part(at)) })
    }
  })
  return first.items
}
