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

/** Whoever creates the collection writes its first outline (registry/collections.ts). */
export const noteOutline = (sql: SqlStorage, schema: CollectionSchema): void =>
  writeMeta(sql, KEY, JSON.stringify(outlineOf(schema)))

export const isOutdated = (store: Store): boolean =>
  readMeta(store.sql, KEY, v.string()) !== JSON.stringify(outlineOf(store.readable))

export const outlining = ({ env, objectId }: Surroundings, store: Store): Background => ({
  name: 'outline',
  step: async () => {
    if (store.closed || !isOutdated(store)) return undefined
    const outline = JSON.stringify(outlineOf(store.readable))
    await saveOutline(database(env), objectId, outline)
    if (store.closed) return undefined
    writeMeta(store.sql, KEY, outline)
    // The schema may have changed meanwhile.
    return 0
  },
})
