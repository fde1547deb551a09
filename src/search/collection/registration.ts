/** Objects that no name leads to: made by a Worker that did not live to register them, or that lost a race. */
import * as v from 'valibot'
import { database } from '../../db/client'
import { findCollectionByObject } from '../../db/collections'
import { requireOwnDatabase } from '../../db/owner'
import { reasonOf } from '../../errors'
import { hasMeta, readMeta, writeMeta } from '../meta'

/** An object that is not registered this long after it was made never will be. */
export const REGISTRATION_MS = 600_000

/** @returns what the object is, or in how many milliseconds that can be said */
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
      // Another Worker's database knows nothing of this Worker's objects.
      await requireOwnDatabase(env)
      // Nothing is written to what no name leads to. What holds documents has lost its row: D1 is not what it was.
      if (sql.exec('SELECT 1 FROM documents LIMIT 1').toArray().length > 0) {
        throw new Error('D1 does not know of this collection, which holds documents: it is left as it is')
      }
      return 'orphan'
    }
    writeMeta(sql, 'registered', true)
    return 'registered'
  } catch (error) {
    console.error('a collection could not be looked up', reasonOf(error))
    return REGISTRATION_MS
  }
}
