/** After a change of ENCRYPTION_KEY: seals every stored credential under the new key. */
import { database } from '../db/client'
import { isOwn, listCollectionRows } from '../db/collections'
import { resealRegistry } from '../db/resealing'
import { ApiError } from '../errors'
import { collectionObject } from '../search/collection/handle'

/** Objects called at the same time. */
const AT_ONCE = 20

/**
 * Seals again everything that was sealed under ENCRYPTION_KEY_PREVIOUS. When it returns, that key is no longer
 * needed. It can be called again at any time.
 *
 * @returns how many credentials were sealed again
 * @throws ApiError 400 when neither key opens a credential; the remaining ones were not looked at
 */
export async function resealAll(env: Cloudflare.Env): Promise<number> {
  const db = database(env)
  let count = await resealRegistry(db, env)
  const rows = (await listCollectionRows(db, 0, 0)).filter(isOwn)
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    const some = rows.slice(from, from + AT_ONCE)
    const outcomes = await Promise.all(some.map(({ objectId }) => collectionObject(env, objectId).reseal()))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.ok) count += outcome.value
      // 404: deleted meanwhile.
      else if (outcome.error.status !== 404) {
        const { status, message } = outcome.error
        throw new ApiError(status, `Collection \`${some[index]!.name}\`: ${message}`)
      }
    }
  }
  return count
}
