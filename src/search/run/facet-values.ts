/** Counts the values of a facet. SQLite or memory (facet-memory.ts) counts each part, and the counts are added up here. */
import { ApiError } from '../../errors'
import { integer } from '../../exact-json'
import { fragment, join, type SqlFragment } from '../fragment'
import { MAX_DISTINCT } from '../limits'
import type { FacetQuery, FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import { fieldValue } from '../request/sort'
import { isBool, isInt64, isNumber, type StoredSchema } from '../schema/layout'
import { comparedTokens } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { TokenRules } from '../text/words'
import type { FacetCounts, Field } from '../types'
import { SeenInGroups } from './facet-groups'
import { type Numeric, Totals } from './facet-totals'
import { type Similar, similarity } from './facet-typos'
import { highlightFacet } from './highlight'
import type { Pace } from './pace'

export type Counted = Pick<FacetCounts, 'counts' | 'stats'>

export interface Counting {
  /** Counts the values of a part. @param values the relation v(seq, value) */
  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void
  counted(request: SearchRequest): Counted
}

/** A BigInt is a whole number that a double cannot hold. */
export type Scalar = string | number | bigint

/**
 * SQL of a field's values, for `readValue`. SqlStorage would round whole numbers beyond 2^53, so those are read as
 * text.
 */
export const exactly = (field: Field, value: string): string =>
  isInt64(field) ? `iif(${value} BETWEEN -${SAFE} AND ${SAFE}, ${value}, CAST(${value} AS TEXT))` : value

const SAFE = Number.MAX_SAFE_INTEGER

const readValue = <Value extends Scalar | null>(field: Field, value: Value): Value | bigint | number =>
  typeof value === 'string' && isInt64(field) ? integer(value) : value

/**
 * The most values that are compared for typos, if none begins with the facet query. A comparison takes microseconds.
 */
const MAX_COMPARED = 50_000

/** A value and its counts so far. */
export interface Entry {
  value: Scalar
  count: number
  /** occurrences in the documents */
  times: number
  /** the sort field's value in the best document that has this value */
  rank: Scalar | null
  /** the sequence number of a document with it, where parents are wanted */
  seq: number | null
  /** its index among the values, in grouped searches */
  place?: number
}

/** A value; in grouped searches, a value in one group. */
type Row = Entry & { group_key?: string | number }

export class Values implements Counting {
  readonly #field: Field
  readonly #order: FacetRequest['order']
  readonly #rank: string
  readonly #rankField: Field | undefined
  readonly #entries = new Map<Scalar, Entry>()
  readonly #seq: string
  readonly #group: string | undefined
  readonly #seen = new SeenInGroups()
  /** by the text of a value on the page: a document that has it */
  readonly #documents = new Map<string, number>()
  readonly #beginnings = new Map<Scalar, string[]>()
  readonly #rules: TokenRules
  /** the words of a facet query */
  readonly #wanted: string[]
  /** whether there is a facet query */
  readonly #isNarrowed: boolean
  /** of all that was found, also of what the facet query leaves out */
  readonly #totals: Totals
  /** the first MAX_COMPARED values are enough */
  takesSome = false

  /**
   * @param group SQL over `d` of a document's group key, in grouped searches
   * @param query numbers are compared with it here, other values before
   */
  constructor(
    schema: StoredSchema,
    { field, order, returnParent }: FacetRequest,
    group?: string,
    query?: FacetQuery,
  ) {
    this.#field = field
    this.#totals = new Totals(field)
    this.#rules = rulesOf(schema, field)
    this.#wanted = query === undefined ? [] : comparedTokens(query.text, this.#rules).map(({ text }) => text)
    this.#isNarrowed = query !== undefined
    this.#group = group
    this.#seq = returnParent ? 'max(d.seq)' : 'NULL'
    this.#order = order
    // A value ranks as high as its best document.
    this.#rankField = order === undefined || order.by === 'value' ? undefined : order.by
    this.#rank =
      this.#rankField === undefined
        ? 'NULL'
        : exactly(
            this.#rankField,
            `${order?.direction === 'ASC' ? 'min' : 'max'}(${fieldValue(schema, this.#rankField)})`,
          )
  }

  #query(values: SqlFragment): SqlFragment {
    const group = this.#group === undefined ? '' : `, ${this.#group} AS group_key`
    return join(
      [
        fragment(
          `SELECT ${exactly(this.#field, 'd.value')} AS value, count(DISTINCT d.seq) AS count, count(*) AS times, ${this.#rank} AS rank, ${this.#seq} AS seq${group} FROM (`,
        ),
        values,
        fragment(`) d GROUP BY d.value${group && ', group_key'}`),
      ],
      '',
    )
  }

  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void {
    const isAscending = this.#order?.direction === 'ASC'
    // The rows become the entries. There may be half a million, and copies would double the memory.
    for (const row of pace.query<Row>(sql, this.#query(values))) {
      row.value = readValue(this.#field, row.value)
      if (this.#rankField) row.rank = readValue(this.#rankField, row.rank)
      if (!this.#takes(row.value, row.times)) continue
      const known = this.#entries.get(row.value)
      if (known === undefined) {
        row.place = this.#entries.size
        this.#countGroup(row, row.place)
        this.#entries.set(row.value, row)
        continue
      }
      this.#countGroup(row, known.place!)
      known.count += row.count
      known.times += row.times
      if (row.rank === null) continue
      const isBetter = known.rank === null || compare(row.rank, known.rank) < 0 === isAscending
      if (isBetter) known.rank = row.rank
    }
    this.#requireFew()
  }

  /**
   * A group counts once for each value. A document without group values is its own group and occurs in one part only,
   * so it needs no check.
   */
  #countGroup(row: Row, place: number): void {
    const { group_key: key } = row
    if (key === undefined) return
    row.count = typeof key === 'number' || this.#seen.add(place, key) ? 1 : 0
  }

  /** Adds the counts of a value that is not listed yet. */
  addCounted(value: Scalar, count: number, times: number): void {
    if (!this.#takes(value, times)) return
    this.#entries.set(value, { value, count, times, rank: null, seq: null })
    this.#requireFew()
  }

  /** Adds to the totals. @returns whether the value counts */
  #takes(value: Scalar, times: number): boolean {
    if (this.takesSome) return this.#entries.size < MAX_COMPARED || this.#entries.has(value)
    if (!isNumber(this.#field)) return true
    this.#totals.add(value as Numeric, times)
    if (!this.#isNarrowed) return true
    const text = String(value)
    // There may be a million, and to tokenize one takes microseconds.
    const words = /^\d+$/.test(text) ? [text] : comparedTokens(text, this.#rules).map((token) => token.text)
    return (
      this.#wanted.length > 0 && this.#wanted.every((wanted) => words.some((word) => word.startsWith(wanted)))
    )
  }

  /** @throws ApiError 422 */
  #requireFew(): void {
    if (this.#entries.size > MAX_DISTINCT) {
      throw new ApiError(
        422,
        `\`facet_by\` counts at most ${MAX_DISTINCT} values of a field, and \`${this.#field.name}\` has more. Find fewer documents with \`filter_by\`, or narrow the values with \`facet_query\`.`,
      )
    }
  }

  counted(request: SearchRequest): Counted {
    const first = firstOf(this.#entries.values(), request.maxFacetValues, this.#compare)
    const counts: Counted['counts'] = first.map(({ value, count, seq }) => {
      const text = this.#text(value)
      if (seq !== null) this.#documents.set(text, seq)
      const marked = this.#beginnings.get(value) ?? this.#wanted
      return { count, highlighted: highlightFacet(text, marked, this.#rules, request.highlight), value: text }
    })
    return { counts, stats: this.#stats() }
  }

  #text(value: Scalar): string {
    return isBool(this.#field) ? (value === 1 ? 'true' : 'false') : String(value)
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  documentWith(text: string): number {
    return this.#documents.get(text) ?? -1
  }

  /** Leaves the values with the fewest typos. */
  keepSimilar({ maxTypos }: FacetQuery): void {
    const similar = new Map<Scalar, Similar>()
    for (const value of this.#entries.keys()) {
      const found = similarity(this.#text(value), this.#wanted, maxTypos, this.#rules)
      if (found !== undefined) similar.set(value, found)
    }
    const least = Math.min(...[...similar.values()].map(({ typos }) => typos))
    for (const value of this.#entries.keys()) {
      const found = similar.get(value)
      if (found?.typos === least) this.#beginnings.set(value, found.beginnings)
      else this.#entries.delete(value)
    }
  }

  #compare = (a: Entry, b: Entry): number => {
    const order = this.#order
    const sign = order?.direction === 'DESC' ? -1 : 1
    let by: number
    if (order === undefined) by = b.count - a.count
    else if (order.by === 'value') by = sign * compare(withoutCase(a.value), withoutCase(b.value))
    else if (a.rank === null || b.rank === null) by = Number(a.rank === null) - Number(b.rank === null)
    else by = sign * (compare(a.rank, b.rank) || a.count - b.count)
    return by || compareTies(a.value, b.value)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    return { ...this.#totals.stats, total_values: total }
  }
}

/** The first `limit` items in order, without sorting all of them. */
function firstOf<Item>(items: Iterable<Item>, limit: number, order: (a: Item, b: Item) => number): Item[] {
  const kept: Item[] = []
  for (const item of items) {
    kept.push(item)
    if (kept.length > 2 * limit + 1_000) kept.sort(order).splice(limit)
  }
  return kept.sort(order).slice(0, limit)
}

/** As in Typesense, among otherwise equal texts the shorter come first, then the alphabetically later. */
const compareTies = (a: Scalar, b: Scalar): number =>
  typeof a === 'string' && typeof b === 'string' ? a.length - b.length || compare(b, a) : compare(a, b)

/** Compares as SQLite does: numbers by value, texts by code points. */
export function compare(a: Scalar, b: Scalar): number {
  if (a === b) return 0
  if (typeof a !== 'string' && typeof b !== 'string') return a < b ? -1 : a > b ? 1 : 0
  const [left, right] = [String(a), String(b)]
  for (let at = 0; at < left.length && at < right.length; at++) {
    if (left.charCodeAt(at) === right.charCodeAt(at)) continue
    return rankOf(left.charCodeAt(at)) - rankOf(right.charCodeAt(at))
  }
  return left.length - right.length
}

/** In UTF-16 order, surrogates precede the units from U+E000 on. In code point order they come last. */
const rankOf = (unit: number): number =>
  unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit

const withoutCase = (value: Scalar): Scalar =>
  typeof value === 'string' ? value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : value
