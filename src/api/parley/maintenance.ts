/** Maintenance by the operator. */

import { reconcileCollection, resealAll } from '../../registry/operations'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

/** Seals all secrets again, after a change of ENCRYPTION_KEY (docs/security.md). */
export const reseal = async ({ env }: Serving<'reseal'>): Promise<Response> =>
  json({ resealed: await resealAll(env) })

/** Compares Vectorize with the documents (docs/search.md). */
export const reconcile = async ({
  env,
  query: { collection, after = '' },
}: Serving<'reconcileVectors'>): Promise<Response> => json(await reconcileCollection(env, collection, after))
