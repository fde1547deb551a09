/** What operators ask for: forgotten replies, vectors compared with Vectorize, secrets sealed anew. */

import { RowCache } from '../db/client'
import { isOwn, listCollectionRows } from '../db/registry'
import { findResource, putResource } from '../db/resources'
import { resealRegistry } from '../db/sealing'
import { ApiError, badRequest, unwrap } from '../errors'
import { mapFew } from '../lib/few'
import { collectionObject } from '../search/collection/handle'
import { nothing, type Reconciliation } from '../vectorize/reconcile'
import { findCollection } from './collections'
import { ownObject } from './engines'

// =============================================================================
// The mark that `POST /operations/cache/clear` leaves: no reply from before it is used. A row of D1's `resources`.

/** How long the mark is cached, in milliseconds. Another isolate uses earlier replies that much longer. */
const CACHE_MS = 3_000

const KIND = 'cache'
const ID = 'cleared'

const marks = new RowCache<string>('the mark of cleared replies', CACHE_MS)

/** The mark that replies are cached under; '' before the first one. */
export const cacheMark = (env: Cloudflare.Env): Promise<string> =>
  marks.find(ID, async () => (await findResource(env.DB, KIND, ID))?.body ?? '') as Promise<string>

/** Makes every search run again instead of using a cached reply. */
export async function clearReplies(env: Cloudflare.Env): Promise<void> {
  await putResource(env.DB, { kind: KIND, id: ID, body: JSON.stringify(crypto.randomUUID()) })
  marks.forget(ID)
}

// =============================================================================
// POST /operations/vectorize/reconcile: compares a collection's vectors with Vectorize, for operators.

/** One request compares for this long. The next one continues. */
const PATIENCE_MS = 20_000

/**
 * Compares a collection's vectors with what Vectorize shows, and sends again what differs.
 * @param after the last reply's `after`, '' at first
 * @returns `mended`: vectors that differed and are being sent again. `after`: where to continue; only if not done
 * @throws ApiError 400 if Vectorize is not used or `after` is invalid, 404, 503 when Vectorize does not answer
 */
export async function reconcileCollection(env: Cloudflare.Env, name: string, after: string) {
  if (env.VECTORS !== 'vectorize')
    throw badRequest('Vectors are in Vectorize only where VECTORS says "vectorize".')
  const object = ownObject(env, await findCollection(env, name))
  const counts = nothing()
  const until = Date.now() + PATIENCE_MS
  let cursor = after
  do {
    const step = unwrap(await object.reconcileVectors(cursor))
    for (const key of Object.keys(counts) as (keyof Reconciliation)[]) counts[key] += step[key]
    cursor = step.cursor
  } while (cursor !== '' && Date.now() < until)
  const mended = counts.missing + counts.stale + counts.extra
  return { ...counts, mended, done: cursor === '', ...(cursor !== '' && { after: cursor }) }
}

// =============================================================================
// After a change of ENCRYPTION_KEY: seals every stored credential under the new key.

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
  const db = env.DB
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
