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

const noted = (schema: CollectionSchema): string => JSON.stringify(outlineOf(schema)) + MARK

/** Whoever creates the collection writes its first outline (registry/collections.ts). */
export const noteOutline = (sql: SqlStorage, schema: CollectionSchema): void =>
  writeMeta(sql, KEY, noted(schema))

/** Takes a collection over from a version with other normal forms. @returns whether it was one that opened it last */
export function takeOver(sql: SqlStorage): boolean {
  const last = readMeta(sql, KEY, v.string()) ?? ''
  if (last.endsWith(MARK)) return false
  writeMeta(sql, KEY, last + MARK)
  return true
}

export const isOutdated = ({ sql, schema }: Store): boolean =>
  readMeta(sql, KEY, v.string()) !== noted(schema)

export const outlining = ({ env, objectId }: Surroundings, store: Store): Background => ({
  name: 'outline',
  step: async () => {
    if (store.closed || !isOutdated(store)) return undefined
    const { schema } = store
    const note = noted(schema)
    await saveOutline(database(env), objectId, JSON.stringify(outlineOf(schema)))
    if (store.closed) return undefined
    writeMeta(store.sql, KEY, note)
    // The schema may have changed meanwhile.
    return 0
  },
})
