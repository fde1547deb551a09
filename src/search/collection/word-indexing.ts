/**
 * Fills word_index in a collection that is older than this index, some documents at a time. Documents that are written
 * meanwhile are indexed anyway. Until the last document has its words, plain searches read text_index.
 */
import * as v from 'valibot'
import type { Store } from '../documents/store'
import { readMeta, WORDS_FROM, writeMeta } from '../meta'
import type { Background } from '../work'

/** Documents in a step. */
const STEP = 200

/** Belongs in the migration that creates the index. */
export const beginWordIndexing = (sql: SqlStorage): void => writeMeta(sql, WORDS_FROM, 0)

/** @param done called when every document has its words */
export const wordIndexing = (storage: DurableObjectStorage, store: Store, done: () => void): Background => ({
  name: 'words',
  step: async () => {
    const { sql } = storage
    const from = readMeta(sql, WORDS_FROM, v.number())
    if (from === undefined || store.closed) return undefined
    const seqs = sql
      .exec<{ seq: number }>(`SELECT seq FROM documents WHERE seq >= ? ORDER BY seq LIMIT ${STEP}`, from)
      .toArray()
      .map(({ seq }) => seq)
    const isLast = seqs.length < STEP
    storage.transactionSync(() => {
      for (const seq of seqs) store.indexWords(seq)
      writeMeta(sql, WORDS_FROM, isLast ? undefined : seqs.at(-1)! + 1)
    })
    if (!isLast) return 0
    done()
    return undefined
  },
})
