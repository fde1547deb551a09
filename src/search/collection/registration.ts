/**
 * Finds orphans: objects that no name leads to, because their Worker died before registering them, or another request
 * registered the name first.
 */
import * as v from 'valibot'
import { database } from '../../db/client'
import { findCollectionByObject } from '../../db/collections'
import { requireOwnDatabase } from '../../db/owner'
import { logFailure } from '../../errors'
import { hasMeta, readMeta, writeMeta } from '../meta'

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
    if ((await findCollectionByObject(database(env), objectId)) === undefined) {
      // The database of another Worker knows nothing of this Worker's objects.
      await requireOwnDatabase(env)
      // Nobody can write to an object that was never registered. If it holds documents, D1 has lost its row, as after
      // a restore.
      if (sql.exec('SELECT 1 FROM documents LIMIT 1').toArray().length > 0) {
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
