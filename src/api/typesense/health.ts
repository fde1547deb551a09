/** Health, and which version this is. */
import { json } from '../http/response'
import type { Route } from '../http/route'

/** The release of Typesense whose wire this is: the official client branches on its major number. */
const VERSION = '30.2'

export const healthRoutes: Route[] = [
  { method: 'GET', path: '/health', open: true, handle: () => json({ ok: true }) },
  // State 1: the leader of its cluster.
  {
    method: 'GET',
    path: '/debug',
    action: 'debug:list',
    handle: () => json({ state: 1, version: VERSION }),
  },
]
