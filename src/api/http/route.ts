/** Routes are data: one table for each resource, registered in one place, so that no route can forget its key check. */
import type { Context, Hono } from 'hono'
import type { Access } from '../../auth/access'
import { admit } from '../../auth/admit'
import { type Named, Prefetch } from '../../conversation/prefetch'
import type { SearchParameters } from '../../search/types'
import { enter, leave } from './admit-turn'
import { discardBody } from './body'
import { parseQuery } from './parameters'
import { typesenseKey } from './presented-key'
import { newRecord, type RequestRecord } from './request-log'
import { errorResponse } from './response'

/** A request with its route, whose key has been checked. */
export interface Call {
  env: Cloudflare.Env
  request: Request
  /** parameters of the path, url-decoded */
  path: Record<string, string>
  query: SearchParameters
  /** what the request's key may do */
  access: Access
  /** the request's entry in the log */
  record: RequestRecord
  /** what is read ahead for it */
  prefetch: Prefetch
}

/** A request whose handler checks keys itself. */
export type OpenCall = Omit<Call, 'access'> & { access?: Access }

interface RouteBase {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Hono's syntax. A key has to allow `:collection` as well as the action */
  path: string
  /** the registry rows that a question here names, besides `:assistant`; they are read together with the key */
  names?: (path: Record<string, string>, query: SearchParameters) => Named | undefined
  /** reads something else together with the key instead; must not reject */
  begin?: ((env: Cloudflare.Env, request: Request) => Promise<unknown>) | undefined
  /** whether the request may begin a turn, judged by its parameters: such requests queue first (`enter` in admit-turn.ts). Absent: no */
  begins?: (query: SearchParameters) => boolean
}

/** The key must allow `action`. An `open` route is public, or checks keys itself. */
export type Route =
  | (RouteBase & { action: string; open?: false; handle: (call: Call) => Promise<Response> | Response })
  | (RouteBase & { open: true; handle: (call: OpenCall) => Promise<Response> | Response })

export type App = Hono<Env>
type Env = { Bindings: Cloudflare.Env; Variables: { record: RequestRecord } }
type Handler = (context: Context<Env>) => Promise<Response>

/**
 * Adds one route, as Hono's `on` does for an app without a base path. `on` accepts lists of methods and paths, copies
 * them, and joins each path with the base path. For hundreds of routes that is a noticeable part of the start-up.
 */
export function addRoute(app: App, method: Route['method'] | 'ALL', path: string, handler: Handler): void {
  const route = { basePath: '/', path, method, handler }
  app.router.add(method, path, [handler, route])
  app.routes.push(route)
}

/** Registers routes. Order matters if a parameter could match a fixed word. */
export function register(app: App, routes: Route[]): void {
  for (const route of routes) {
    addRoute(app, route.method, route.path, async (context) => {
      const request = context.req.raw
      const record = context.get('record') ?? newRecord(request)
      record.route = route.path
      const response = await serve(route, context.env, request, context.req.param(), record).catch((error) =>
        errorResponse(error, record),
      )
      leave(request)
      await discardBody(request)
      return response
    })
  }
}

async function serve(
  route: Route,
  env: Cloudflare.Env,
  request: Request,
  path: Record<string, string>,
  record: RequestRecord,
): Promise<Response> {
  const queryStart = request.url.indexOf('?')
  const query = parseQuery(queryStart < 0 ? '' : request.url.slice(queryStart))
  if (route.begins?.(query)) await enter(request)
  const named =
    route.names?.(path, query) ?? (path.assistant === undefined ? undefined : { assistant: path.assistant })
  const prefetch: Prefetch = new Prefetch(env, record, () =>
    route.begin ? route.begin(env, request) : named && prefetch.registry(named),
  )
  if (route.open) return route.handle({ env, request, path, query, record, prefetch })
  record.action = route.action
  if (path.collection !== undefined) record.collection = path.collection
  record.target = Object.values(path).join('/')
  const access = await admit(
    env,
    typesenseKey(request, query),
    route.action,
    path.collection,
    record,
    prefetch,
  )
  return route.handle({ env, request, path, query, access, record, prefetch })
}
