/** Which fields of a collection can be searched, for requests that do not name any. */

import * as v from 'valibot'
import { requireOwnDatabase } from '../../db/owner'
import { findCollectionByObject, saveOutline } from '../../db/registry'
import { logFailure } from '../../errors'
import { namespaceOf } from '../../models/providers'
import type { Store } from '../documents/store'
import { hasRows } from '../fragment'
import { hasMeta, readMeta, writeMeta } from '../meta'
import { isVector } from '../schema/layout'
import type { CollectionSchema, Field } from '../types'
import type { Background, Surroundings } from '../work'

/** Names of a collection's fields. Unlike the schema, it contains no credentials. */
export interface Outline {
  name: string
  /** indexed fields of text */
  texts: string[]
  /** indexed fields with an embedder */
  embeddings: string[]
  /** all vector fields, with or without an embedder */
  vectors: string[]
  indexed: string[]
  /** of `embeddings`, those whose model has to be called; absent: none */
  called?: string[]
}

export function outlineOf({ name, fields }: Pick<CollectionSchema, 'name' | 'fields'>): Outline {
  const indexed = fields.filter((field) => field.index)
  const called = indexed.filter(isCalled).map((field) => field.name)
  const namesOf = (some: typeof fields) => some.map((field) => field.name)
  return {
    name,
    texts: namesOf(indexed.filter(({ type }) => type === 'string' || type === 'string[]')),
    embeddings: namesOf(indexed.filter(({ embed }) => embed)),
    vectors: namesOf(fields.filter(isVector)),
    indexed: namesOf(indexed),
    ...(called.length > 0 && { called }),
  }
}

/** Models without a namespace, and those of `local/` and `ts/`, run in the Worker unless the schema names another server. */
const BUILT_IN = ['', 'local', 'ts']

function isCalled({ embed }: Field): boolean {
  if (embed === undefined) return false
  const { served_by: server = embed.model_config.model_name } = embed
  return !BUILT_IN.includes(namespaceOf(server))
}

/** What `parley import` notes in each document for itself (scripts/parley/import/schema.mjs). */
const SOURCE = 'parley_source'
const NOTES = [SOURCE, 'parley_hash', 'parley_page', 'parley_part']

/** Fields that no answer is made of, and that nobody reads unless a search names them. */
export const hiddenFields = ({ vectors, indexed }: Outline): string[] =>
  indexed.includes(SOURCE) ? [...vectors, ...NOTES] : vectors

/**
 * The default query_by: one embedding field, if there is any, and all text. A search takes only one embedding field.
 */
export const searchableFields = ({ embeddings, texts }: Outline): string[] => [
  ...embeddings.slice(0, 1),
  ...texts.filter((name) => !NOTES.includes(name)),
]

// =============================================================================
// Writes the collection's outline to its row in the registry, where questions read it. `meta` holds what was written last, so
// D1 gets a write only if a change of the schema changes the outline.

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
    await saveOutline(env.DB, objectId, outline)
    if (store.closed) return undefined
    writeMeta(store.sql, KEY, outline)
    // The schema may have changed meanwhile.
    return 0
  },
})

// =============================================================================
// Finds orphans: objects that no name leads to, because their Worker died before registering them, or another request
// registered the name first.

/** An object that is not registered after this long never will be. */
export const REGISTRATION_MS = 600_000

/** @returns what the object is, or in how many milliseconds that is known */
export async function checkRegistration(
  sql: SqlStorage,
  env: Cloudflare.Env,
  objectId: string,
): Promise<'registered' | 'orphan' | number> {
  if (hasMeta(sql, 'registered')) return 'registered'
  const age = Date.now() - (readMeta(sql, 'created_at', v.number()) ?? 0) * 1000
  if (age < REGISTRATION_MS) return REGISTRATION_MS - age
  try {
    if ((await findCollectionByObject(env.DB, objectId)) === undefined) {
      // The database of another Worker knows nothing of this Worker's objects.
      await requireOwnDatabase(env)
      // Nobody can write to an object that was never registered. If it holds documents, D1 has lost its row, as after
      // a restore.
      if (hasRows(sql, 'SELECT 1 FROM documents LIMIT 1')) {
        throw new Error('D1 does not know of this collection, which holds documents: it is left as it is')
      }
      return 'orphan'
    }
    writeMeta(sql, 'registered', true)
    return 'registered'
  } catch (error) {
    logFailure('a collection could not be looked up', error, { collection: objectId })
    return REGISTRATION_MS
  }
}
