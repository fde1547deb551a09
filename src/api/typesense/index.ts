/** Typesense's HTTP API: all its routes, in the order in which they are tried. */

import { type App, type Route, register } from '../http/route'
import { aliasRoutes } from './aliases'
import { analyticsRoutes } from './analytics'
import { collectionRoutes } from './collections'
import { documentRoutes } from './documents'
import { healthRoutes } from './health'
import { keyRoutes } from './keys'
import { modelRoutes } from './models'
import { multiSearchRoutes } from './multi-search'
import { namedSetRoutes } from './named-sets'
import { nlModelRoutes } from './nl/models'
import { operationRoutes } from './operations'
import { searchRoutes } from './search'
import { searchSetRoutes } from './search-sets'

// Search before documents: `search` would otherwise match as a document's id.
export const typesenseRoutes: Route[] = [
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
