/** Works of whoever runs the deployment. */

import { reconcileCollection } from '../../registry/reconciling'
import { resealAll } from '../../registry/resealing'
import { json } from '../edge/response'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

/** After ENCRYPTION_KEY was changed (docs/security.md). */
export const reseal = async ({ env }: Serving<'reseal'>): Promise<Response> =>
  json({ resealed: await resealAll(env) })

/** Whether Vectorize holds what the documents say (docs/search.md). */
export const reconcile = async ({
  env,
  query: { collection, after = '' },
}: Serving<'reconcileVectors'>): Promise<Response> => json(await reconcileCollection(env, collection, after))
