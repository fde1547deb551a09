/** Parley's own API: conversations of all protocols, assistants, and maintenance. */
import { type App, ASKS, type Route, register } from '../http/router'
import { assistants } from './assistants'
import { conversations } from './conversations'
import { type Operation, operations } from './operations'
import { operator } from './operator'
import { questionSets } from './question-sets'
import { questions } from './questions'
import { type Handlers, routeOf, type Served } from './route'
import { tools } from './tools'
import { webhooks } from './webhooks'

const handlers: Handlers = {
  ...questions,
  ...conversations,
  ...assistants,
  ...questionSets,
  ...tools,
  ...webhooks,
  ...operator,
}

const routes = Object.entries(operations).map(([name, operation]): Route => {
  const handle = handlers[name as keyof Handlers] as (served: Served<Operation>) => Response
  return { ...routeOf(operation, handle), ...(name === 'ask' && ASKS) }
})

// Registered after Typesense's routes, because /conversations/models is Typesense's.
export const mountParley = (app: App): void => register(app, routes)
