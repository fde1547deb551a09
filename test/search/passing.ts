/** The documents that pass a filter, for tests below a search. */
import { Filter } from '../../src/search/filter/filter'
import { readAll } from '../../src/search/fragment'
import { seqsOf, setOf } from '../../src/search/run/match-set'
import { BLOCK } from '../../src/search/schema/column'
import { ColumnMemory } from '../../src/search/schema/column-memory'
import type { StoredSchema } from '../../src/search/schema/layout'
import { atOnce } from '../../src/search/steps'

export function passingIn(sql: SqlStorage, schema: StoredSchema, filterBy: string): number[] {
  const filter = new Filter(schema, filterBy)
  const all = sql.exec<{ seq: number }>('SELECT seq FROM documents').toArray()
  const source = { sql, columns: new ColumnMemory(), read: readAll }
  return [...setOf(all.map(({ seq }) => seq))].flatMap(([number, offsets]) =>
    Array.from(atOnce(filter.among(source, number, offsets)), (at) => number * BLOCK + at),
  )
}

/** Conditions that all documents meet. */
export const ALL_PASS = { isAll: true, among: async <Set>(set: Set) => set, set: async () => new Map() }

/** Conditions that some documents meet. */
export const only = (passes: (seq: number) => boolean) => ({
  isAll: false,
  among: async (set: Parameters<typeof seqsOf>[0]) => setOf(seqsOf(set).filter(passes)),
  set: async () => new Map(),
})
