/**
 * Writes the collection's outline to its row in the registry, where questions read it. `meta` holds what was written last, so
 * D1 gets a write only if a change of the schema changes the outline.
 */
import * as v from 'valibot'
import { database } from '../../db/client'
import { saveOutline } from '../../db/collections'
import type { Store } from '../documents/store'
import { readMeta, writeMeta } from '../meta'
import type { CollectionSchema } from '../types'
import type { Background, Surroundings } from '../work'
import { outlineOf } from './outline'

const KEY = 'outline'

/**
 * What this version notes behind an outline. A version with other normal forms notes something else, and notes it wherever it
 * opens a collection: it takes the outline for changed. Choose another mark whenever text/compared.ts changes.
 */
const MARK = ' joined'

/**
 * Noted behind the mark while searches read former fields (schema/former.ts). A version that does not keep them when documents are
 * written does not note it.
 */
const FORMER = ' former'

const noted = (schema: CollectionSchema, former = false): string =>
  JSON.stringify(outlineOf(schema)) + MARK + (former ? FORMER : '')

/** Whoever creates the collection writes its first outline (registry/collections.ts). */
export const noteOutline = (sql: SqlStorage, schema: CollectionSchema): void =>
  writeMeta(sql, KEY, noted(schema))

/** Takes a collection over from a version with other normal forms. @returns whether it was one that opened it last */
export function takeOver(sql: SqlStorage): boolean {
  const last = readMeta(sql, KEY, v.string()) ?? ''
  if (last.endsWith(MARK) || last.endsWith(MARK + FORMER)) return false
  writeMeta(sql, KEY, last + MARK)
  return true
}

/** Notes that former fields are kept. Belongs in the transaction that begins it. */
export const noteFormer = (sql: SqlStorage): void =>
  writeMeta(sql, KEY, (readMeta(sql, KEY, v.string()) ?? '') + FORMER)

/** Whether former fields have been kept since: another version that had the collection open may have written documents. */
export const isFormerNoted = (sql: SqlStorage): boolean =>
  (readMeta(sql, KEY, v.string()) ?? '').endsWith(FORMER)

const noteOf = ({ readable, former }: Store): string => noted(readable, former !== undefined)

export const isOutdated = (store: Store): boolean => readMeta(store.sql, KEY, v.string()) !== noteOf(store)

export const outlining = ({ env, objectId }: Surroundings, store: Store): Background => ({
  name: 'outline',
  step: async () => {
    if (store.closed || !isOutdated(store)) return undefined
    const note = noteOf(store)
    await saveOutline(database(env), objectId, JSON.stringify(outlineOf(store.readable)))
    if (store.closed) return undefined
    writeMeta(store.sql, KEY, note)
    // The schema may have changed meanwhile.
    return 0
  },
})
