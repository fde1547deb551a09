/** After a change of ENCRYPTION_KEY: seals every stored credential under the new key. */
import { database } from '../db/client'
import { isOwn, listCollectionRows } from '../db/collections'
import { resealRegistry } from '../db/resealing'
import { ApiError } from '../errors'
import { mapFew } from '../lib/few'
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
  const count = await resealRegistry(db, env)
  const rows = (await listCollectionRows(db, 0, 0)).filter(isOwn)
  const counts = await mapFew(rows, AT_ONCE, async ({ name, objectId }) => {
    const outcome = await collectionObject(env, objectId).reseal()
    if (outcome.ok) return outcome.value
    const { status, message } = outcome.error
    // 404: deleted meanwhile.
    if (status === 404) return 0
    throw new ApiError(status, `Collection \`${name}\`: ${message}`)
  })
  return counts.reduce((sum, resealed) => sum + resealed, count)
}
