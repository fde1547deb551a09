/** Operations of whoever runs the deployment. */
import { resealAll } from '../../search/resealing'
import { reconcileCollection } from '../../search/vectorize/reconciling'
import { json } from './response'
import type { Route } from './route'

export const operationRoutes: Route[] = [
  // Parley's own: after ENCRYPTION_KEY was changed (docs/security.md).
  {
    method: 'POST',
    path: '/operations/reseal',
    action: 'operations:reseal',
    handle: async ({ env }) => json({ resealed: await resealAll(env) }),
  },
  // Parley's own: whether Vectorize holds what the documents say (docs/search.md).
  {
    method: 'POST',
    path: '/operations/vectorize/reconcile',
    action: 'operations:reconcile',
    handle: async ({ env, query }) =>
      json(await reconcileCollection(env, query.collection ?? '', query.after ?? '')),
  },
]
