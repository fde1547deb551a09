/** The words of an index, to look up similar ones. */
import type { SqlFragment } from '../fragment'
import type { TextIndex } from '../text/analyzer'
import type { Vocabulary } from '../text/similar'
import type { TermMemory } from '../text/term-memory'
import { TERMS } from '../text/terms'
import { vocabularyOf } from '../text/typo'
import type { SearchContext } from './context'
import type { Pace } from './pace'

/** The words of an index, for typos. */
export function vocabularyFor(context: SearchContext, index: TextIndex, pace: Pace): Vocabulary {
  const { sql } = context
  const table = index.stems ? vocabularyOf(sql, index) : TERMS
  return {
    index,
    table,
    read: <Row extends object>(query: SqlFragment) => pace.query<Row>(sql, query),
    rest: () => pace.rest(),
    ...(table === TERMS && { near: (...asked) => termsIn(context, pace)?.near(...asked) }),
  }
}

/** The table of terms; undefined if it is not in memory. */
const termsIn = ({ terms, sql }: SearchContext, pace: Pace): TermMemory | undefined =>
  terms?.begin(sql, pace.read) ? terms : undefined
