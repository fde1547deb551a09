/** Typesense's HTTP API: all its routes, in the order in which they are tried. */

import { type App, type Route, register } from '../http/router'
import { analyticsRoutes } from './analytics'
import { aliasRoutes, collectionRoutes } from './collections'
import { documentRoutes } from './documents'
import { keyRoutes, modelRoutes } from './keys'
import { namedSetRoutes, searchSetRoutes } from './named-sets'
import { nlModelRoutes } from './nl'
import { healthRoutes, operationRoutes } from './operations'
import { multiSearchRoutes, searchRoutes } from './search'

// Search before documents: `search` would otherwise match as a document's id.
const typesenseRoutes: Route[] = [
  ...healthRoutes,
  ...searchRoutes,
  ...documentRoutes,
  ...multiSearchRoutes,
  ...modelRoutes,
  ...collectionRoutes,
  ...aliasRoutes,
  ...keyRoutes,
  ...searchSetRoutes,
  ...namedSetRoutes,
  ...analyticsRoutes,
  ...operationRoutes,
  ...nlModelRoutes,
]

export const mountTypesense = (app: App): void => register(app, typesenseRoutes)
