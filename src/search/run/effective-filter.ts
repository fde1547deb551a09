/** The conditions that every hit of a search meets. */
import { findRows } from '../documents/rows'
import { Filter } from '../filter/filter'
import type { SearchRequest } from '../request/request'
import { BLOCK } from '../schema/column'
import type { ParsedQuery, TextMatch } from '../text/query'
import type { Conditions } from './candidates'
import type { SearchContext } from './context'
import { allMatches, wordsOf } from './kept-matches'
import { allDocuments, filteredIn, type MatchSet, minus, once, setOf } from './match-set'
import type { Pace } from './pace'
import { matchOfExcluded } from './query-words'

/** filter_by, minus hidden and pinned documents and those with an excluded word. */
export function effectiveFilter(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  pinned: { seq: number }[],
): Conditions {
  const filter = new Filter(context.schema, request.filterBy, context.joins?.documents)
  const hidden = request.hiddenHits.length > 0 ? findRows(context.sql, request.hiddenHits) : new Map()
  const without = setOf([...new Set([...pinned.map(({ seq }) => seq), ...hidden.values()])])
  return new Effective(context, filter, without, matchOfExcluded(context, request, query))
}

class Effective implements Conditions {
  readonly isAll: boolean
  readonly set = once((pace: Pace) => this.#all(pace))
  readonly #context: SearchContext
  readonly #filter: Filter
  readonly #without: MatchSet
  readonly #excluded: TextMatch | undefined
  /** by block: which documents were tested, and which have passed. A search asks for the same ones again and again. */
  readonly #known = new Map<number, { tested: Uint8Array; passed: Uint8Array }>()

  constructor(context: SearchContext, filter: Filter, without: MatchSet, excluded: TextMatch | undefined) {
    this.#context = context
    this.#filter = filter
    this.#without = without
    this.#excluded = excluded
    this.isAll = filter.isAll && without.size === 0 && excluded === undefined
  }

  async among(set: MatchSet, pace: Pace): Promise<MatchSet> {
    if (this.isAll) return set
    const excluded = this.#excluded && (await allMatches(this.#context, wordsOf(this.#excluded), pace)).set
    const left = minus(minus(set, this.#without), excluded ?? new Map())
    if (this.#filter.isAll) return left
    const untested = new Map<number, Uint16Array>()
    for (const [number, offsets] of left) {
      const tested = this.#knownOf(number).tested
      const others = offsets.filter((at) => tested[at] === 0)
      if (others.length > 0) untested.set(number, others)
    }
    await filteredIn(this.#context, this.#filter, untested, pace, (number, offsets, passed) => {
      const known = this.#knownOf(number)
      for (const at of offsets) known.tested[at] = 1
      for (const at of passed) known.passed[at] = 1
    })
    const passing = new Map<number, Uint16Array>()
    for (const [number, offsets] of left) {
      const { passed } = this.#knownOf(number)
      const own = offsets.filter((at) => passed[at] === 1)
      if (own.length > 0) passing.set(number, own)
    }
    return passing
  }

  #knownOf(number: number) {
    const known = this.#known.get(number) ?? { tested: new Uint8Array(BLOCK), passed: new Uint8Array(BLOCK) }
    this.#known.set(number, known)
    return known
  }

  async #all(pace: Pace): Promise<MatchSet> {
    return this.among(await allDocuments(this.#context, pace), pace)
  }
}

/** The filters of a search: its own and those of its order. */
export const filtersOf = ({ filterBy, sort = [] }: SearchRequest): string[] => [
  filterBy,
  ...sort.flatMap((key) => (key.kind === 'eval' ? key.cases.map(({ filter }) => filter) : [])),
]
