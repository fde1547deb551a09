/** POST /operations/vectorize/reconcile: compares a collection's vectors with Vectorize, for operators. */
import { ApiError, unwrap } from '../errors'
import { nothing, type Reconciliation } from '../vectorize/reconcile'
import { ownObject } from './engines'
import { findCollection } from './names'

/** One request compares for this long. The next one continues. */
const PATIENCE_MS = 20_000

export interface ReconcileReply extends Reconciliation {
  /** vectors that differed and are being sent again */
  mended: number
  done: boolean
  /** where to continue; only if not done */
  after?: string
}

/**
 * Compares a collection's vectors with what Vectorize shows, and sends again what differs.
 * @param after the last reply's `after`, '' at first
 * @throws ApiError 400 if Vectorize is not used or `after` is invalid, 404, 503 when Vectorize does not answer
 */
export async function reconcileCollection(
  env: Cloudflare.Env,
  name: string,
  after: string,
): Promise<ReconcileReply> {
  if (env.VECTORS !== 'vectorize')
    throw new ApiError(400, 'Vectors are in Vectorize only where VECTORS says "vectorize".')
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
