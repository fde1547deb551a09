/** Groups the matches of a search in memory (schema/column-memory.ts), where all keys of the order are there. */
import { MAX_DISTINCT } from '../limits'
import type { SearchRequest } from '../request/request'
import type { SortKey } from '../request/sort'
import { BLOCK } from '../schema/block'
import type { Column } from '../schema/column'
import { findField } from '../schema/find-field'
import type { Candidates } from './candidates'
import { First, fieldsOfOrder, type Goodness, goodnessOf, type Placed } from './column-order'
import type { SearchContext } from './context'
import { type GroupRow, type Groups, tooManyGroups } from './grouping'
import { type Columns, columnsOf, eachBlock, ifKept, isWorthKeeping, type MatchSet } from './match-set'
import type { Pace } from './pace'

/** The place of the text match among the keys of an order; -1 if nothing depends on it. */
export const textKey = ({ text }: Candidates, sort: readonly SortKey[]): number =>
  text ? sort.findIndex(({ kind }) => kind === 'text_match') : -1

/** Whether memory can order the matches. */
export const canOrder = ({ text, vector, set, fit }: Candidates): boolean =>
  set !== undefined && !vector && (!text || fit !== undefined)

/** A group: its best match, how many it has, and its key. */
interface Group extends Placed {
  size: number
  key: GroupRow['group_key']
}

/** A group while its members are counted. */
interface Counted extends Placed {
  size: number
}

/** Upper bound of a field's distinct values, so that the numbers of two values fit into one safe integer. */
const RADIX = 2 ** 26
const MOST_FIELDS = 2

/**
 * The groups of a page with their best hits.
 * @returns undefined if SQL has to find them
 * @throws ApiError 422 for more groups than are counted
 */
export async function groupsInMemory(
  context: SearchContext,
  request: SearchRequest,
  candidates: Candidates,
  sort: readonly SortKey[],
  pace: Pace,
): Promise<Groups | undefined> {
  const { groupBy, groupLimit, groupMissingValues } = request
  const fields = groupBy.map((name) => findField(context.schema, name)!)
  const ordered = canOrder(candidates) ? fieldsOfOrder(sort, true) : undefined
  if (ordered === undefined || fields.length > MOST_FIELDS) return undefined
  const columns = columnsOf(context, [...fields, ...ordered])
  if (columns === undefined || fields.some((field) => columns.of(field).isList)) return undefined
  const set = await candidates.set!(pace)
  if (set === undefined || !(candidates.text || isWorthKeeping(context, set, [...fields, ...ordered])))
    return undefined
  return ifKept(async () => {
    const scores = textKey(candidates, sort) === -1 ? undefined : await candidates.fit!.all(pace)
    const goodness = await goodnessOf(sort, columns, { set, scores }, pace)
    const grouping = new Grouping(
      fields.map((field) => columns.of(field)),
      columns,
      groupMissingValues,
    )
    const { groups, alone } = await grouping.count(set, goodness, pace)
    const wanted = request.offset + request.perPage
    const heads = grouping.heads(groups, alone, sort, wanted).slice(request.offset)
    const rows = groupLimit > 1 ? await grouping.members(set, goodness, heads, groupLimit, pace) : heads
    const found = groups.size + alone.length
    const known = candidates.fit?.of(rows.map(({ seq }) => seq))
    return {
      rows: rows.map(({ seq, key, size }) => ({
        ...{ seq, score: known?.get(seq) ?? null, distance: null, fused: null },
        ...{ group_key: key, group_found: size },
      })),
      found,
    }
  })
}

/**
 * Returns the group of each document of a block as a number; NO_GROUP for a document that is its own group.
 * @returns undefined if SQL must find the groups
 */
export function groupsOfBlocks(
  context: SearchContext,
  { groupBy, groupMissingValues }: SearchRequest,
  set: MatchSet,
  pace: Pace,
): ((number: number) => (at: number) => number) | undefined {
  const fields = groupBy.map((name) => findField(context.schema, name)!)
  const columns = fields.length > MOST_FIELDS ? undefined : columnsOf(context, fields)
  if (columns === undefined || !isWorthKeeping(context, set, fields)) return undefined
  const by = fields.map((field) => columns.of(field))
  if (by.some(({ isList }) => isList)) return undefined
  const grouping = new Grouping(by, columns, groupMissingValues)
  return (number) => grouping.groupsOf(number, pace)
}

/** A document without a value is a group of its own. */
export const NO_GROUP = -1

class Grouping {
  readonly #by: Column[]
  readonly #columns: Columns
  readonly #groupsMissing: boolean
  /** of each field of numbers: a number for each value */
  readonly #numbers: Map<number, number>[]

  constructor(by: Column[], columns: Columns, groupsMissing: boolean) {
    this.#by = by
    this.#columns = columns
    this.#groupsMissing = groupsMissing
    this.#numbers = by.map(() => new Map())
  }

  /** Returns the group of each document of a block: a number, or NO_GROUP. */
  groupsOf(number: number, pace: Pace): (at: number) => number {
    const parts = this.#by.map((column, index) => {
      const { values } = this.#columns.block(column, number, pace)
      if (column.isText) return (at: number) => values[at]!
      const numbers = this.#numbers[index]!
      return (at: number) => {
        const value = values[at]!
        if (Number.isNaN(value)) return 0
        const known = numbers.get(value)
        if (known !== undefined) return known
        numbers.set(value, numbers.size + 1)
        return numbers.size
      }
    })
    const isGrouped = this.#groupsMissing
    const [only] = parts
    if (parts.length === 1) {
      return (at) => {
        const value = only!(at)
        return value === 0 && !isGrouped ? NO_GROUP : value
      }
    }
    return (at) => {
      let group = 0
      for (const part of parts) {
        const value = part(at)
        if (value === 0 && !isGrouped) return NO_GROUP
        group = group * RADIX + value
      }
      return group
    }
  }

  /** Counts the groups and finds their best documents. @throws ApiError 422 */
  async count(
    set: MatchSet,
    goodness: Goodness,
    pace: Pace,
  ): Promise<{ groups: Map<number, Counted>; alone: Placed[] }> {
    const groups = this.#isOneText ? new Listed<Counted>() : new Map<number, Counted>()
    const alone: Placed[] = []
    await eachBlock(set, pace, (number, offsets) => {
      const groupOf = this.groupsOf(number, pace)
      const { parts } = goodness(number)
      const main = parts[0]!
      for (let index = offsets.length - 1; index >= 0; index--) {
        const at = offsets[index]!
        const group = groupOf(at)
        const known = group === NO_GROUP ? undefined : groups.get(group)
        if (known !== undefined) {
          known.size++
          const value = main(at)
          if (value >= known.keys[0]!) improve(known, parts, number * BLOCK + at, at)
          continue
        }
        const placed = { seq: number * BLOCK + at, keys: parts.map((part) => part(at)) }
        if (group === NO_GROUP) alone.push(placed)
        else groups.set(group, { ...placed, size: 1 })
      }
      if (groups.size > MAX_DISTINCT) throw tooManyGroups()
    })
    return { groups: new Map(groups), alone }
  }

  /** The numbers of groups are those of strings: below 2^16. */
  get #isOneText(): boolean {
    return this.#by.length === 1 && this.#by[0]!.isText
  }

  /** The first groups in order. */
  heads(
    groups: ReadonlyMap<number, Counted>,
    alone: readonly Placed[],
    sort: readonly SortKey[],
    wanted: number,
  ): Group[] {
    const first = new First<Group>(wanted)
    const offer = (group: Group) => {
      for (const [at, key] of sort.entries()) {
        if (key.kind === 'group_found') group.keys[at] = key.direction === 'ASC' ? -group.size : group.size
      }
      first.offer(group)
    }
    for (const [number, { seq, keys, size }] of groups) offer({ seq, keys, size, key: this.#keyOf(number) })
    for (const { seq, keys } of alone) offer({ seq, keys, size: 1, key: seq })
    return first.items
  }

  /** The values of a group, as the JSON that SQL would make of them. */
  #keyOf(group: number): string {
    const numbers: number[] = []
    for (let rest = group; numbers.length < this.#by.length; rest = Math.floor(rest / RADIX)) {
      numbers.unshift(rest % RADIX)
    }
    const values = numbers.map((number, index) => {
      if (number === 0) return null
      if (this.#by[index]!.isText) return this.#by[index]!.words[number]!
      return this.#valueOf(index, number)
    })
    return JSON.stringify(values)
  }

  readonly #values: number[][] = []

  #valueOf(index: number, number: number): number {
    const numbers = this.#numbers[index]!
    // Numbers are given in the order in which values are first seen.
    if (this.#values[index]?.length !== numbers.size) this.#values[index] = [...numbers.keys()]
    return this.#values[index]![number - 1]!
  }

  /** The first members of each of these groups, group by group. */
  async members(
    set: MatchSet,
    goodness: Goodness,
    heads: readonly Group[],
    limit: number,
    pace: Pace,
  ): Promise<Group[]> {
    const found = new Map(heads.map((head) => [head.key, { head, first: new First<Placed>(limit) }]))
    const known = this.#isOneText
      ? new Listed<{ first: First<Placed> } | undefined>()
      : new Map<number, { first: First<Placed> } | undefined>()
    await eachBlock(set, pace, (number, offsets) => {
      const groupOf = this.groupsOf(number, pace)
      const { parts } = goodness(number)
      for (let index = offsets.length - 1; index >= 0; index--) {
        const at = offsets[index]!
        const group = groupOf(at)
        if (group === NO_GROUP) continue
        if (!known.has(group)) known.set(group, found.get(this.#keyOf(group)))
        const wanted = known.get(group)
        const seq = number * BLOCK + at
        if (wanted?.first.takes(seq, parts, at)) {
          wanted.first.offer({ seq, keys: parts.map((part) => part(at)) })
        }
      }
    })
    return heads.flatMap((head) => {
      if (typeof head.key === 'number') return [head]
      const { items } = found.get(head.key)!.first
      return items.map(({ seq, keys }) => ({ ...head, seq, keys }))
    })
  }
}

/** A map with small numbers as keys. An array finds an entry in a tenth of the time that a Map takes. */
class Listed<Value> {
  readonly #values: Value[] = []
  readonly #numbers: number[] = []

  get size(): number {
    return this.#numbers.length
  }

  has(number: number): boolean {
    return number in this.#values
  }

  get(number: number): Value | undefined {
    return this.#values[number]
  }

  set(number: number, value: Value): void {
    if (!this.has(number)) this.#numbers.push(number)
    this.#values[number] = value
  }

  *[Symbol.iterator](): Generator<[number, Value]> {
    for (const number of this.#numbers) yield [number, this.#values[number]!]
  }
}

/** Puts a document in place of a group's best one if it comes before it. */
function improve(best: Placed, parts: readonly ((at: number) => number)[], seq: number, at: number): void {
  for (const [index, part] of parts.entries()) {
    const value = part(at)
    if (value === best.keys[index]) continue
    if (value < best.keys[index]!) return
    best.seq = seq
    best.keys = parts.map((each) => each(at))
    return
  }
  if (seq > best.seq) best.seq = seq
}
