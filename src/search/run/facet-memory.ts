/** Counts facet values in memory (schema/column-memory.ts). */
import type { FacetQuery, FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import type { Block, Offsets } from '../schema/block'
import { type Column, isKept } from '../schema/column'
import { isString } from '../schema/layout'
import { beginning } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { SearchContext } from './context'
import { SeenInGroups } from './facet-groups'
import type { Values } from './facet-values'
import { columnsOf, eachBlock, ifKept, isWorthKeeping, type MatchSet } from './match-set'
import { groupsOfBlocks, NO_GROUP } from './memory-groups'
import type { Pace } from './pace'

/** Whether a facet can be counted in memory. Ranges, and orders by another field, are left to SQL. */
export const isCountable = (
  { field, ranges, order, returnParent }: FacetRequest,
  query: FacetQuery | undefined,
): boolean =>
  isKept(field) &&
  ranges.length === 0 &&
  !returnParent &&
  (order === undefined || order.by === 'value') &&
  (query === undefined || isString(field))

/** @returns false if SQL has to count */
export async function countInMemory(
  context: SearchContext,
  request: SearchRequest,
  set: MatchSet,
  { field }: FacetRequest,
  query: FacetQuery | undefined,
  values: Values,
  pace: Pace,
): Promise<boolean> {
  if (!isWorthKeeping(context, set, [field])) return false
  const columns = columnsOf(context, [field])
  if (columns === undefined) return false
  const isGrouped = request.groupBy.length > 0
  const groups = isGrouped ? groupsOfBlocks(context, request, set, pace) : undefined
  if (isGrouped && groups === undefined) return false
  const column = columns.of(field)
  const counter = column.isText ? new TextCounter(column) : new NumberCounter()
  const counted = await ifKept(async () => {
    let document = 0
    await eachBlock(set, pace, (number, offsets) => {
      const { values: all, starts } = columns.block(column, number, pace)
      if (groups === undefined && starts === undefined && counter instanceof TextCounter) {
        counter.addAll(all, offsets)
        return
      }
      const groupOf = groups?.(number)
      for (const at of offsets) {
        document++
        const group = groupOf === undefined ? NO_GROUP : groupOf(at)
        if (starts === undefined) counter.add(all[at]!, document, group)
        else
          for (let place = starts[at]!; place < starts[at + 1]!; place++)
            counter.add(all[place]!, document, group)
      }
    })
    return true
  })
  if (counted === undefined) return false
  const passes = query && beginning(query.text, rulesOf(context.schema, field))
  for (const { value, count, times } of counter.counted()) {
    if (passes === undefined || passes(column.norm(value))) {
      values.addCounted(column.isText ? column.words[value]! : value, count, times)
    }
  }
  return true
}

interface Count {
  /** an id, or a number */
  value: number
  /** documents that have it; in grouped searches, groups */
  count: number
  /** occurrences in these documents, if they are counted */
  times: number
}

/** Counts strings by their ids. How often a document has them does not matter. */
class TextCounter {
  readonly #column: Column
  #counts: Uint32Array
  /** by id: the last document that had this string */
  #last: Uint32Array
  readonly #seen = new SeenInGroups()

  constructor(column: Column) {
    this.#column = column
    this.#counts = new Uint32Array(column.words.length)
    this.#last = new Uint32Array(column.words.length)
  }

  add(id: number, document: number, group: number): void {
    if (id >= this.#counts.length) this.#grow()
    if (this.#last[id] === document) return
    this.#last[id] = document
    if (group !== NO_GROUP && !this.#seen.add(id, group)) return
    this.#counts[id]!++
  }

  /** Counts documents that have one string at most, without a call for each of them. */
  addAll(ids: Block['values'], offsets: Offsets): void {
    if (this.#column.words.length > this.#counts.length) this.#grow()
    const counts = this.#counts
    for (let index = 0; index < offsets.length; index++) counts[ids[offsets[index]!]!]!++
  }

  /** Reading blocks finds further strings. */
  #grow(): void {
    const larger = (before: Uint32Array): Uint32Array => {
      const after = new Uint32Array(2 * this.#column.words.length)
      after.set(before)
      return after
    }
    this.#counts = larger(this.#counts)
    this.#last = larger(this.#last)
  }

  *counted(): Generator<Count> {
    for (let id = 1; id < this.#counts.length; id++) {
      const count = this.#counts[id]!
      if (count > 0) yield { value: id, count, times: count }
    }
  }
}

class NumberCounter {
  readonly #counts = new Map<number, Count & { last: number; place: number }>()
  readonly #seen = new SeenInGroups()

  add(value: number, document: number, group: number): void {
    if (Number.isNaN(value)) return
    const known = this.#counts.get(value)
    if (known === undefined) {
      const place = this.#counts.size
      this.#counts.set(value, { value, count: 1, times: 1, last: document, place })
      if (group !== NO_GROUP) this.#seen.add(place, group)
      return
    }
    known.times++
    if (known.last === document) return
    known.last = document
    if (group !== NO_GROUP && !this.#seen.add(known.place, group)) return
    known.count++
  }

  counted(): Iterable<Count> {
    return this.#counts.values()
  }
}
