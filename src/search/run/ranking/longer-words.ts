/** Reads the places of words, and tells whether the index has a longer word than the one that was typed. */
import { reform } from '../../changes'
import { fragment, type SqlFragment } from '../../fragment'
import type { SearchRequest } from '../../request/request'
import { WORDS } from '../../text/analyzer'
import { type Term, typed } from '../../text/query'
import { hasSynonyms } from '../../text/synonyms'
import { TERMS } from '../../text/terms'
import type { SearchContext } from '../context'
import type { Pace } from '../pace'
import { columnsOf } from '../query-words'

/** Longer words that begin with a word, which is bound twice. */
const LONGER = 'WHERE term >= ? || char(1) AND term <= ? || char(1114111) LIMIT 1'

/** Words that FTS5 leaves as they are. */
const PLAIN = /^[a-z0-9]+$/

/**
 * The terms, and of the last one whether the index has longer words that begin with it. FTS5 first collects the places of all
 * of those, in each statement of a search.
 */
export function withLongest(
  context: SearchContext,
  request: SearchRequest,
  terms: Term[],
  pace: Pace,
): Term[] {
  const last = terms.at(-1)!
  const [word = '', ...more] = last.tokens
  if (!last.prefix || more.length > 0 || request.index.table !== WORDS.table || !PLAIN.test(word))
    return terms
  const isSame = columnsOf(context, request).every(({ analyzer, code }) => {
    const { text } = analyzer.phrase(typed(last))
    return !code && text === word && analyzer.completions(word).length === 0
  })
  if (!isSame || hasSynonyms(terms)) return terms
  const isNone = (rows: readonly object[]) => rows.length === 0
  // The table of terms is quick to ask, but it may have words that no document has any more, and lacks very long ones.
  const isLongest =
    isNone(pace.query(context.sql, fragment(`SELECT 1 FROM ${TERMS} ${LONGER}`, word, word))) &&
    isNone(readPlaces(context.sql, fragment(`SELECT 1 FROM word_instances ${LONGER}`, word, word), pace))
  return isLongest ? terms.with(-1, { ...last, longest: word }) : terms
}

/**
 * Queries the places of words. Their table is made on first use: to ask for it each time would count as a write. It shows the index
 * in another form, so replies that were kept stay valid.
 */
function readPlaces<Row extends object>(sql: SqlStorage, query: SqlFragment, pace: Pace): Row[] {
  const read = () => pace.query<Row>(sql, query)
  try {
    return read()
  } catch {
    const table = `CREATE VIRTUAL TABLE IF NOT EXISTS word_instances USING fts5vocab('${WORDS.table}', 'instance')`
    reform(sql, () => sql.exec(table))
    return read()
  }
}
