/** Counts the ranges of a facet. */
import { integer } from '../../exact-json'
import { fragment, join, type SqlFragment } from '../fragment'
import type { FacetRange, FacetRequest } from '../request/facet-request'
import { isInt64 } from '../schema/layout'
import type { Field } from '../types'
import { SeenInGroups } from './facet-groups'
import { type Numeric, Totals } from './facet-totals'
import { type Counted, type Counting, exactly } from './facet-values'
import type { Pace } from './pace'

/** A range with documents, and the totals of the part. Large whole numbers come as text. */
interface RangeRow {
  range: number
  count: number
  times: number
  min: number | string
  max: number | string
  sum: number | string
  high: number | string
}

const readNumber = (value: number | string): Numeric => (typeof value === 'string' ? integer(value) : value)

/** SQL: whether a row's value is in the range `r`. */
const inside = (row: string): string =>
  `(r.value ->> 0 IS NULL OR ${row}.value >= r.value ->> 0) AND (r.value ->> 1 IS NULL OR ${row}.value < r.value ->> 1)`

/** Counts ranges. Empty ones are left out, like values without documents. */
export class Ranges implements Counting {
  readonly #field: Field
  readonly #ranges: FacetRange[]
  readonly #counts: number[]
  readonly #totals: Totals
  readonly #group: string | undefined
  readonly #seen = new SeenInGroups()

  /** @param group SQL over `d` of a document's group key, in grouped searches */
  constructor({ field, ranges }: FacetRequest, group?: string) {
    this.#group = group
    this.#field = field
    this.#totals = new Totals(field)
    this.#ranges = ranges
    this.#counts = ranges.map(() => 0)
  }

  #query(values: SqlFragment): SqlFragment {
    return join(
      [
        fragment('WITH v AS MATERIALIZED ('),
        values,
        fragment(
          `), t AS (SELECT ${exactly(this.#field, 'min(value)')} AS min, ${exactly(this.#field, 'max(value)')} AS max,
                           ${this.#sums()}, count(*) AS times FROM v)
           SELECT r.key AS range, count(DISTINCT v.seq) AS count, t.* FROM t JOIN json_each(?) r LEFT JOIN v ON ${inside('v')}
             WHERE t.times > 0 GROUP BY r.key`,
          this.#bounds(),
        ),
      ],
      '',
    )
  }

  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void {
    const rows = pace.query<RangeRow>(sql, this.#query(values))
    if (this.#group === undefined) for (const { range, count } of rows) this.#counts[range]! += count
    else this.#countGroups(pace, sql, values, this.#group)
    const [first] = rows
    if (first === undefined) return
    this.#totals.bounds(readNumber(first.min), readNumber(first.max))
    this.#totals.times(first.times)
    this.#totals.sum(readNumber(first.sum))
    this.#totals.sum(readNumber(first.high), 2 ** 32)
  }

  #bounds(): string {
    return JSON.stringify(this.#ranges.map(({ from, to }) => [from ?? null, to ?? null]))
  }

  /** A group counts once in each range that it has a value in. */
  #countGroups(pace: Pace, sql: SqlStorage, values: SqlFragment, group: string): void {
    const query = join(
      [
        fragment(`SELECT DISTINCT r.key AS range, ${group} AS group_key FROM (`),
        values,
        fragment(`) d JOIN json_each(?) r ON ${inside('d')}`, this.#bounds()),
      ],
      '',
    )
    for (const { range, group_key: key } of pace.query<{ range: number; group_key: string | number }>(
      sql,
      query,
    )) {
      if (typeof key === 'number' || this.#seen.add(range, key)) this.#counts[range]!++
    }
  }

  /**
   * 64-bit values are summed as two halves, `high` * 2^32 + `sum`: the sum of a few whole ones would exceed 64 bits.
   */
  #sums(): string {
    if (!isInt64(this.#field)) return 'total(value) AS sum, 0 AS high'
    const low = exactly(this.#field, 'sum(value & 4294967295)')
    return `${low} AS sum, ${exactly(this.#field, 'sum(value >> 32)')} AS high`
  }

  counted(): Counted {
    const counts = this.#ranges
      .map(({ label }, index) => ({ count: this.#counts[index]!, highlighted: label, value: label }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
    return { counts, stats: { ...this.#totals.stats, total_values: counts.length } }
  }
}
