/** The words of an index, to look up similar ones. */
import type { SqlFragment } from '../fragment'
import type { TextIndex } from '../text/analyzer'
import type { Vocabulary } from '../text/similar'
import { TERMS } from '../text/terms'
import { vocabularyOf } from '../text/typo'
import type { SearchContext } from './context'
import type { Pace } from './pace'
import { wordsInMemory } from './word-memory'

/** The words of an index, for typos. */
export function vocabularyFor(context: SearchContext, index: TextIndex, pace: Pace): Vocabulary {
  const { sql } = context
  const table = index.stems ? vocabularyOf(sql, index) : TERMS
  const memory = () => wordsInMemory(context, index.table, pace)
  return {
    index,
    table,
    read: <Row extends object>(query: SqlFragment) => pace.query<Row>(sql, query),
    rest: () => pace.rest(),
    ...(table === TERMS && { near: (...asked) => memory()?.near(...asked) }),
    counts: (words) => memory()?.counts(words),
  }
}
