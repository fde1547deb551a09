/** Counts the values of a facet. */

import { ApiError } from '../../errors'
import { FirstItems } from '../../lib/first-items'
import { wordDistance } from '../../lib/nearest'
import { MAX_DISTINCT } from '../limits'
import type { FacetQuery, FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import { BLOCK, type Block, numberAt, type Offsets, placeAt, type Scalar, type Words } from '../schema/block'
import { isBool, isNumber, type StoredSchema } from '../schema/layout'
import { type Steps, stepwise } from '../steps'
import { beginning, compare, comparedTokens } from '../text/compared'
import { rulesOf } from '../text/rules'
import { typosAllowed } from '../text/typo'
import type { TokenRules } from '../text/words'
import type { FacetCounts, Field } from '../types'
import { type Numeric, SeenInGroups, Totals } from './facet-totals'
import { NO_GROUP } from './grouping'
import { highlightFacet } from './highlight'

export type Counted = Pick<FacetCounts, 'counts' | 'stats'>

/** The matches of a block, with the values of a facet. */
export interface FacetBlock {
  number: number
  offsets: Offsets
  block: Block
  /** in grouped searches: a document's group */
  groupOf: ((at: number) => number) | undefined
  /** the values of the field that orders a facet's values */
  ranks: Block | undefined
}

export interface Counting {
  add(part: FacetBlock): void
}

/**
 * The most values that are compared for typos, if none begins with the facet query. A comparison takes microseconds.
 */
const MAX_COMPARED = 50_000
/** To compare the words of a value, or to find its place in the order, takes so many times as long as to look at a number (steps.ts). */
const [COST_OF_COMPARING, COST_OF_ORDERING] = [32, 8]

/** A value and its counts so far. */
interface Entry {
  value: Scalar
  /** its index among the values */
  place: number
  /** documents that have it; in grouped searches, groups */
  count: number
  /** occurrences in the documents */
  times: number
  /** the last document that was counted */
  last: number
  /** the sort field's value in the best document that has this value */
  rank: Scalar | undefined
  /** the newest document with it, where parents are wanted */
  seq: number
}

export class Values implements Counting {
  readonly #field: Field
  readonly #order: FacetRequest['order']
  readonly #entries = new Map<Scalar, Entry>()
  readonly #returnsParent: boolean
  readonly #seen = new SeenInGroups()
  /** by the text of a value on the page: a document that has it */
  readonly #documents = new Map<string, number>()
  readonly #beginnings = new Map<Scalar, string[]>()
  readonly #rules: TokenRules
  /** the words of a facet query */
  readonly #wanted: string[]
  readonly #passes: (text: () => string) => boolean
  /** of numbers: those that the facet query leaves out */
  readonly #others = new Map<Scalar, number>()
  /** all values count, and the first MAX_COMPARED are enough */
  takesSome = false

  constructor(schema: StoredSchema, { field, order, returnParent }: FacetRequest, query?: FacetQuery) {
    this.#field = field
    this.#rules = rulesOf(schema, field)
    this.#wanted = query === undefined ? [] : comparedTokens(query.text, this.#rules).map(({ text }) => text)
    this.#passes = query === undefined ? () => true : this.#test(query)
    this.#returnsParent = returnParent
    this.#order = order
  }

  /** @returns whether a value passes a facet query, by its normal form */
  #test(query: FacetQuery): (text: () => string) => boolean {
    const passes = beginning(query.text, this.#rules)
    if (!isNumber(this.#field)) return (text) => passes(text())
    return (given) => {
      const text = given()
      // There may be a million, and to tokenize one takes microseconds.
      const words = /^\d+$/.test(text) ? [text] : comparedTokens(text, this.#rules).map((token) => token.text)
      return (
        this.#wanted.length > 0 &&
        this.#wanted.every((wanted) => words.some((word) => word.startsWith(wanted)))
      )
    }
  }

  add({ number, offsets, block, groupOf, ranks }: FacetBlock): void {
    const { values, starts, words } = block
    const isPlain = groupOf === undefined && ranks === undefined && !this.#returnsParent
    if (words !== undefined && starts === undefined && isPlain) {
      this.#addWords(values, words, offsets)
      return
    }
    /** by id: null for strings that do not count */
    const known: (Entry | null | undefined)[] = []
    const entryAt = (place: number): Entry | null => {
      if (words === undefined) {
        const value = numberAt(values, place)
        return Number.isNaN(value) ? null : this.#entryOf(value, () => this.#text(value))
      }
      const id = Number(values[place])
      if (id === 0) return null
      const before = known[id]
      if (before !== undefined) return before
      const entry = this.#entryOf(words.text(id), () => words.norm(id))
      known[id] = entry
      return entry
    }
    for (const at of offsets) {
      const seq = number * BLOCK + at
      const group = groupOf?.(at) ?? NO_GROUP
      const end = starts === undefined ? at + 1 : starts[at + 1]!
      for (let place = starts === undefined ? at : starts[at]!; place < end; place++) {
        const entry = entryAt(place)
        if (entry === null) continue
        entry.times++
        if (entry.last === seq) continue
        entry.last = seq
        if (this.#returnsParent) entry.seq = Math.max(entry.seq, seq)
        if (ranks !== undefined) this.#rank(entry, ranks, at)
        if (group === NO_GROUP || this.#seen.add(entry.place, group)) entry.count++
      }
    }
    this.#requireFew()
  }

  /** Counts documents that have one string at most, without a call for each of them. */
  #addWords(ids: Block['values'], words: Words, offsets: Offsets): void {
    const counts = new Uint32Array(words.size)
    for (let index = 0; index < offsets.length; index++) counts[ids[offsets[index]!] as number]!++
    for (let id = 1; id < counts.length; id++) {
      const count = counts[id]!
      const entry = count === 0 ? null : this.#entryOf(words.text(id), () => words.norm(id))
      if (entry === null) continue
      entry.count += count
      entry.times += count
    }
    this.#requireFew()
  }

  /** A value ranks as high as its best document. */
  #rank(entry: Entry, ranks: Block, at: number): void {
    const place = placeAt(ranks, at)
    if (place === -1) return
    const { values, words } = ranks
    const rank = words === undefined ? numberAt(values, place) : words.norm(Number(values[place]))
    const isBetter =
      entry.rank === undefined || compare(rank, entry.rank) < 0 === (this.#order?.direction === 'ASC')
    if (isBetter) entry.rank = rank
  }

  /** @param form by which the value is compared with the facet query @returns null for a value that does not count */
  #entryOf(value: Scalar, form: () => string): Entry | null {
    const known = this.#entries.get(value)
    if (known !== undefined) return known
    if (this.takesSome ? this.#entries.size >= MAX_COMPARED : !this.#isWanted(value, form)) return null
    const place = this.#entries.size
    const entry = { value, place, count: 0, times: 0, last: -1, rank: undefined, seq: -1 }
    this.#entries.set(value, entry)
    return entry
  }

  /** Numbers that are not wanted are counted for the totals, which are of everything found. */
  #isWanted(value: Scalar, form: () => string): boolean {
    const others = this.#others.get(value)
    if (others === undefined && this.#passes(form)) return true
    if (isNumber(this.#field)) this.#others.set(value, (others ?? 0) + 1)
    return false
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

  *counted({ maxFacetValues, highlight }: SearchRequest): Steps<Counted> {
    const entries = [...this.#entries.values()]
    const first = new FirstItems(maxFacetValues, this.#compare)
    yield* stepwise(entries.length, (at) => first.offer(entries[at]!), COST_OF_ORDERING)
    const { items } = first
    const counts: Counted['counts'] = []
    const show = ({ value, count, seq }: Entry) => {
      const text = this.#text(value)
      if (this.#returnsParent) this.#documents.set(text, seq)
      const marked = this.#beginnings.get(value) ?? this.#wanted
      counts.push({ count, highlighted: highlightFacet(text, marked, this.#rules, highlight), value: text })
    }
    yield* stepwise(items.length, (at) => show(items[at]!), COST_OF_COMPARING)
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
  *keepSimilar({ maxTypos }: FacetQuery): Steps {
    const similar = new Map<Scalar, Similar>()
    const values = [...this.#entries.keys()]
    const look = (at: number) => {
      const found = similarity(this.#text(values[at]!), this.#wanted, maxTypos, this.#rules)
      if (found !== undefined) similar.set(values[at]!, found)
    }
    yield* stepwise(values.length, look, COST_OF_COMPARING)
    const least = Math.min(...[...similar.values()].map(({ typos }) => typos))
    for (const value of values) {
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
    else if (a.rank === undefined || b.rank === undefined) {
      by = Number(a.rank === undefined) - Number(b.rank === undefined)
    } else by = sign * (compare(a.rank, b.rank) || a.count - b.count)
    return by || compareTies(a.value, b.value)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    if (!isNumber(this.#field)) return { total_values: total }
    const totals = new Totals(this.#field)
    for (const { value, times } of this.#entries.values()) {
      if (!this.#others.has(value)) totals.add(value as Numeric, times)
    }
    for (const [value, times] of this.#others) totals.add(value as Numeric, times)
    return { ...totals.stats, total_values: total }
  }
}

/** As in Typesense, among otherwise equal texts the shorter come first, then the alphabetically later. */
const compareTies = (a: Scalar, b: Scalar): number =>
  typeof a === 'string' && typeof b === 'string' ? a.length - b.length || compare(b, a) : compare(a, b)

const withoutCase = (value: Scalar): Scalar =>
  typeof value === 'string' ? value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : value

/** A value whose words are near those of a query. */
export interface Similar {
  /** typos in all words together */
  typos: number
  /** beginnings of the value's words to highlight, as long as the words of the query */
  beginnings: string[]
}

/**
 * How near a value is to a query: each word of the query is near the beginning of one of the value's.
 * @param maxTypos in a word; short words may have fewer
 * @returns undefined if it is not near
 */
export function similarity(
  value: string,
  wanted: readonly string[],
  maxTypos: number,
  rules: TokenRules,
): Similar | undefined {
  if (wanted.length === 0) return undefined
  const words = comparedTokens(value, rules).map(({ text }) => text)
  const found: Similar = { typos: 0, beginnings: [] }
  for (const word of wanted) {
    const most = typosAllowed(word, {
      maxTypos,
      minLengthOneTypo: 4,
      minLengthTwoTypos: 7,
      withDigits: true,
      numbers: true,
    })
    let best: { typos: number; beginning: string } | undefined
    for (const other of words) {
      const { beginning: typos } = wordDistance(word, other, most)
      if (typos <= most && typos < (best?.typos ?? Number.POSITIVE_INFINITY)) {
        best = { typos, beginning: other.slice(0, word.length) }
      }
    }
    if (best === undefined) return undefined
    found.typos += best.typos
    found.beginnings.push(best.beginning)
  }
  return found
}
