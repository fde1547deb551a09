/** The postings of a collection's full-text indexes, open for its searches. */
import { reform } from '../changes'
import type { WordIn } from '../text/expression'
import { Postings } from '../text/postings'
import type { TextMatch } from './candidates'
import type { SearchContext } from './context'
import type { Pace } from './pace'

/** Reading this many postings takes about as long as reading a row with SQL. */
export const POSTINGS_A_ROW = 16

export const keyOfWord = (table: TextMatch['table'], { word, prefix, columns }: WordIn): string =>
  JSON.stringify([table, columns, word, prefix])

/** @returns by column: 1 if it is one of these */
export function listed(columns: readonly number[]): number[] {
  const isWanted: number[] = []
  for (const column of columns) isWanted[column] = 1
  return isWanted
}

/** Indexes that are open, by the memory of their collection. */
const OPEN = new WeakMap<object, Map<string, { postings: Postings; writes: number }>>()

/** The postings of an index, opened again whenever something was written. */
export class OpenPostings {
  constructor(
    readonly context: SearchContext,
    readonly table: TextMatch['table'],
    readonly pace: Pace,
  ) {}

  /** @throws Unreadable */
  get now(): Postings {
    const { sql, columns } = this.context
    const { matches } = columns
    const known = OPEN.get(columns) ?? new Map()
    OPEN.set(columns, known)
    const open = known.get(this.table)
    // A merge moves blocks, so every written row counts here.
    const { writes, changes } = this.pace.written(sql)
    if (open?.writes === writes) return open.postings.readBy(sql, this.pace.read)
    if (matches.flushed !== changes) {
      // FTS5 keeps the writes of an open transaction in memory, so its tables lack them. Flush them first.
      const tables = sql.exec<{ name: string }>(
        `SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('text_index', 'word_index')`,
      )
      reform(sql, () => {
        for (const { name } of tables.toArray()) sql.exec(`INSERT INTO ${name} (${name}) VALUES ('flush')`)
      })
      matches.flushed = changes
    }
    const postings = new Postings(sql, this.table, this.pace.read)
    known.set(this.table, { postings, writes: this.pace.written(sql).writes })
    return postings
  }
}
