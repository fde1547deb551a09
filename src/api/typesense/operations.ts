/** Operations of whoever runs the deployment. */
import { resealAll } from '../../search/resealing'
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
]
