/**
 * Fills the table of terms in a collection that is older than this table. It copies words from word_index, some at a
 * time. Words that are written meanwhile are added anyway. Until the table is complete, typos are looked up in the
 * index itself.
 */
import * as v from 'valibot'
import { hasMeta, readMeta, writeMeta } from '../meta'
import { WORDS } from '../text/analyzer'
import { LONGEST_TERM, TERMS } from '../text/terms'
import { vocabularyOf } from '../text/typo'
import type { Background } from '../work'

/** Row of `meta` with the last word that was copied. It is deleted when all have been copied. */
const KEY = 'terms_after'

/** Words in a step. For each, FTS5 reads all places where it occurs. */
const STEP = 100

/** Belongs in the migration that creates the table. */
export const beginTermFilling = (sql: SqlStorage): void => writeMeta(sql, KEY, '')

export const isTermFilling = (sql: SqlStorage): boolean => hasMeta(sql, KEY)

/**
 * @param isReady whether the index of words has all documents. This work is started again once the index is complete
 * @param done called when the table has all words
 */
export const termFilling = (
  storage: DurableObjectStorage,
  isReady: () => boolean,
  done: () => void,
): Background => ({
  name: 'terms',
  step: async () => {
    const { sql } = storage
    const after = readMeta(sql, KEY, v.string())
    if (after === undefined || !isReady()) return undefined
    const words = sql
      .exec<{ term: string }>(
        `SELECT term FROM ${vocabularyOf(sql, WORDS)} WHERE term > ? ORDER BY term LIMIT ${STEP}`,
        after,
      )
      .toArray()
      .map(({ term }) => term)
    const isLast = words.length < STEP
    storage.transactionSync(() => {
      sql.exec(
        `INSERT OR IGNORE INTO ${TERMS} (term) SELECT value FROM json_each(?) WHERE length(value) <= ${LONGEST_TERM}`,
        JSON.stringify(words),
      )
      writeMeta(sql, KEY, isLast ? undefined : words.at(-1))
    })
    if (!isLast) return 0
    done()
    return undefined
  },
})
