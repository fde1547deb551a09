/** Routes are data: one table for each resource, registered in one place, so that no route can forget its key check. */
import type { Context, Hono } from 'hono'
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { Access } from '../../auth/access'
import { admit } from '../../auth/authenticate'
import { type Named, Prefetch } from '../../conversation/prefetch'
import type { SearchParameters } from '../../search/types'
import { enter, leave } from './admit-turn'
import { discardBody, parseQuery } from './body'
import { typesenseKey } from './cors'
import { errorResponse, json } from './deliver'
import type { RequestRecord } from './request-log'

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

/** What a handler answers: a response, or a value that is written as JSON with status 200. */
export type Answered = Response | object

interface RouteBase {
  /** `ALL`: those that no route before it takes */
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'ALL'
  /** Hono's syntax. A key has to allow `:collection` as well as the action */
  path: string
  /** the registry rows that a question here names, besides `:assistant`; they are read together with the key */
  names?: (path: Record<string, string>, query: SearchParameters) => Named | undefined
  /** reads something else together with the key instead; must not reject */
  begin?: ((env: Cloudflare.Env, request: Request) => Promise<unknown>) | undefined
  /** whether the request may begin a turn, judged by its parameters: such requests queue first (`enter` in admit-turn.ts). Absent: no */
  begins?: (query: SearchParameters) => boolean
  /** an error of the handler in the protocol's own shape. Absent: in Typesense's */
  refuse?: (error: unknown, call: OpenCall) => Response
}

type More = Omit<RouteBase, 'method' | 'path'>
type Handle<Given> = (call: Given) => Promise<Answered> | Answered

/** The key must allow `action`. An `open` route is public, or checks keys itself. */
export type Route =
  | (RouteBase & { action: string; open?: false; handle: Handle<Call> })
  | (RouteBase & { open: true; handle: Handle<OpenCall> })

export const route = (
  method: Route['method'],
  path: string,
  action: string,
  handle: Handle<Call>,
  more: More = {},
): Route => ({ ...more, method, path, action, handle })

export const openRoute = (
  method: Route['method'],
  path: string,
  handle: Handle<OpenCall>,
  more: More = {},
): Route => ({ ...more, method, path, open: true, handle })

/** Of a route whose every request asks a question. */
export const ASKS: Pick<RouteBase, 'begins'> = { begins: () => true }

export type App = Hono<Env>
type Env = { Bindings: Cloudflare.Env; Variables: { record: RequestRecord } }
type Handler = (context: Context<Env>) => Promise<Response>

/**
 * Registers routes. Order matters if a parameter could match a fixed word.
 *
 * They are added as Hono's `on` does for an app without a base path. `on` accepts lists of methods and paths, copies them, and joins
 * each path with the base path. For hundreds of routes that is a noticeable part of the start-up.
 */
export function register(app: App, routes: Route[]): void {
  for (const route of routes) {
    const { method, path } = route
    const handler: Handler = async (context) => {
      const request = context.req.raw
      const record = context.get('record')
      record.route = path
      const response = await serve(route, context.env, request, context.req.param(), record).catch((error) =>
        errorResponse(error, record),
      )
      leave(request)
      await discardBody(request)
      return response
    }
    const added = { basePath: '/', path, method, handler }
    app.router.add(method, path, [handler, added])
    app.routes.push(added)
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
  const call: OpenCall = { env, request, path, query, record, prefetch }
  if (route.open) return answered(route, call, () => route.handle(call))
  record.action = route.action
  if (path.collection !== undefined) record.collection = path.collection
  record.target = Object.values(path).join('/')
  const key = typesenseKey(request, query)
  const access = await admit(env, key, route.action, path.collection, record, prefetch)
  return answered(route, call, () => route.handle({ ...call, access }))
}

async function answered(
  { refuse }: Route,
  call: OpenCall,
  handle: () => Promise<Answered> | Answered,
): Promise<Response> {
  try {
    const answer = await handle()
    return answer instanceof Response ? answer : json(answer)
  } catch (error) {
    if (!refuse) throw error
    return refuse(error, call)
  }
}

// =============================================================================
// The app's router: Hono's trie, built on demand for the routes that a kind of request can match.

/** Represents all first words that no route begins with. */
const OTHER = ''

/** Whether the first word of a route's path matches any word. */
const isOpen = (word: string): boolean => /[:*{]/.test(word)

/** The first word of a path. */
const firstWord = (path: string): string => path.split('/', 2)[1] ?? ''

/**
 * Matches as Hono's `TrieRouter` does.
 *
 * Inserting a path into a trie takes several regular expressions: two milliseconds for all routes when an isolate starts. So `add`
 * only notes a route, and the first request with a certain first word builds a trie of the routes that such requests can match.
 * Words that no route has share a trie, so there are not many.
 */
export class LazyRouter<T> implements Router<T> {
  readonly name = 'LazyRouter'
  readonly #routes: [method: string, path: string, handler: T][] = []
  readonly #words = new Set<string>()
  readonly #tries = new Map<string, TrieRouter<T>>()

  add(method: string, path: string, handler: T): void {
    this.#routes.push([method, path, handler])
    this.#words.add(firstWord(path))
    this.#tries.clear()
  }

  match(method: string, path: string): Result<T> {
    const first = firstWord(path)
    const word = this.#words.has(first) && !isOpen(first) ? first : OTHER
    let trie = this.#tries.get(word)
    if (!trie) {
      trie = new TrieRouter<T>()
      for (const route of this.#routes) {
        const own = firstWord(route[1])
        if (own === word || isOpen(own)) trie.add(...route)
      }
      this.#tries.set(word, trie)
    }
    return trie.match(method, path)
  }
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * The methods of the routes that match a path. Patterns that take every method, or any first word, do not count: they
 * answer wrong methods themselves.
 */
export function methodsOf(app: App, path: string): string[] {
  return METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => {
      const pattern = route.path
      return route.method === method && !pattern.startsWith('/:') && !pattern.endsWith('/*')
    }),
  )
}

/** Answers `OPTIONS` outside a preflight. @param allowed not empty */
export const options = (allowed: string): Response =>
  new Response(null, { status: 204, headers: { allow: `${allowed}, OPTIONS` } })

/**
 * OpenAI's routes at a base address without `/v1`. Some programs append `/v1` to the address that they are given, and some
 * do not.
 *
 * `/conversations` is Parley's own. `/models` may be an index, so it means OpenAI's list only with a Bearer token, which
 * OpenAI's clients send and OpenSearch's do not.
 */
const POSTED = /^\/(?:chat\/completions|completions|responses|embeddings|vector_stores\/[^/]+\/search)$/
const RESPONSE = /^\/responses\/resp_[^/]+(?:\/input_items)?$/
const CANCELLED = /^\/responses\/resp_[^/]+\/cancel$/
const MODELS = /^\/models(?:\/[^/]+)?$/

/** The path that a request means. @param path of its address */
export function meantPath(path: string, { method, headers }: Pick<Request, 'method' | 'headers'>): string {
  const isPosted = method === 'POST' && (POSTED.test(path) || CANCELLED.test(path))
  const isOfResponse = (method === 'GET' || method === 'DELETE') && RESPONSE.test(path)
  const isModels =
    method === 'GET' && MODELS.test(path) && /^Bearer /i.test(headers.get('authorization') ?? '')
  return isPosted || isOfResponse || isModels ? `/v1${path}` : path
}
