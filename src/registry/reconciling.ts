/** POST /operations/vectorize/reconcile: a collection's vectors compared with Vectorize, by whoever runs the deployment. */
import { ApiError, unwrap } from '../errors'
import { collectionObject } from '../search/collection/handle'
import { nothing, type Reconciliation } from '../search/vectors/vectorize/reconcile'
import { findCollection } from './names'

/** One request compares for this long, and is continued by the next. */
const PATIENCE_MS = 20_000

export interface ReconcileReply extends Reconciliation {
  /** what differed and is now on its way to Vectorize */
  mended: number
  done: boolean
  /** where to go on; only while not done */
  after?: string
}

/**
 * Compares a collection's vectors with what Vectorize shows, and has sent again what differs.
 * @param after the last reply's `after`, '' at first
 * @throws ApiError 400 where Vectorize is not used or `after` was never given, 404, 503 when Vectorize does not answer
 */
export async function reconcileCollection(
  env: Cloudflare.Env,
  name: string,
  after: string,
): Promise<ReconcileReply> {
  if (env.VECTORS !== 'vectorize')
    throw new ApiError(400, 'Vectors are in Vectorize only where VECTORS says "vectorize".')
  const { objectId } = await findCollection(env, name)
  const object = collectionObject(env, objectId)
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
