/** Changing ENCRYPTION_KEY: every stored credential is sealed under the present one. */
import { database } from '../db/client'
import { listCollectionRows } from '../db/collections'
import { resealRegistry } from '../db/resealing'
import { ApiError } from '../errors'
import { collectionObject } from '../search/collection/handle'

/** Objects that are asked at the same time. */
const AT_ONCE = 20

/**
 * Seals anew all that was sealed under ENCRYPTION_KEY_PREVIOUS. Once it has answered, that key is not needed any
 * more. It may be called again at any time.
 *
 * @returns how many credentials were sealed anew
 * @throws ApiError 400 when a credential opens under neither key: nothing after it was looked at
 */
export async function resealAll(env: Cloudflare.Env): Promise<number> {
  const db = database(env)
  let count = await resealRegistry(db, env)
  const rows = await listCollectionRows(db, 0, 0)
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    const some = rows.slice(from, from + AT_ONCE)
    const outcomes = await Promise.all(some.map(({ objectId }) => collectionObject(env, objectId).reseal()))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.ok) count += outcome.value
      // 404: it was deleted meanwhile.
      else if (outcome.error.status !== 404) {
        const { status, message } = outcome.error
        throw new ApiError(status, `Collection \`${some[index]!.name}\`: ${message}`)
      }
    }
  }
  return count
}
