/**
 * OpenSearch's routes: the same gate as all others, the key wherever OpenSearch's clients put it, and OpenSearch's
 * errors.
 */
import type { Access } from '../../auth/access'
import { admit, requireAccess } from '../../auth/authenticate'
import { inFull } from '../../errors'
import { parseExact, requireShallow } from '../../lib/json'
import { namesOf } from '../../lib/nearest'
import { lookUp } from '../../registry/collections'
import { ownObject } from '../../registry/engines'
import type { CollectionRpc } from '../../search/collection/handle'
import type { Outline } from '../../search/collection/outline'
import { isObject } from '../../search/schema/values'
import { badJson, readText } from '../http/body'
import { presentedKey } from '../http/cors'
import { notFound } from '../http/deliver'
import { type App, type Call, type OpenCall, openRoute, type Route, register } from '../http/router'
import {
  answer,
  illegalArgument,
  incorrectMethod,
  indexNotFound,
  type Json,
  noHandler,
  OpenSearchError,
  openSearchError,
  PlainError,
  parseError,
  suggestion,
  unsupported,
} from './errors'

import { pathFilter, textIn } from './source'

type Method = Route['method']

/**
 * A route as a line of a table. Its result is a Response, or a value that is written as JSON with status 200.
 * `methods` and `params` are names separated by blanks; `params` are those that it takes besides the common ones.
 * A key must allow one of the actions and, besides, the `:collection` of the path, which is in Hono's syntax.
 * `begin` begins to read what a request needs while its key is looked up, and never rejects.
 */
export type RouteRow = readonly [
  methods: string,
  path: string,
  actions: readonly string[],
  handle: (call: Call) => Promise<unknown> | unknown,
  params?: string | undefined,
  begin?: (env: Cloudflare.Env, request: Request) => Promise<void>,
]

const methodsOf = ([methods]: RouteRow): Method[] => namesOf(methods) as Method[]

/**
 * Parameters of every route: the format of the reply, the key, what may be said of several indices, and those that clients send unasked
 * and that change no answer here, since an index has one shard and one node, and nothing waits.
 */
const COMMON = namesOf(`
  pretty human error_trace filter_path x-typesense-api-key ignore_unavailable allow_no_indices
  expand_wildcards ignore_throttled local timeout master_timeout cluster_manager_timeout
  wait_for_active_shards
`)

/** What clients send unasked of what is not served: with this value they ask for nothing. */
const NOTHING: Readonly<Record<string, string>> = {
  explain: 'false',
  version: 'false',
  seq_no_primary_term: 'false',
  track_scores: 'false',
  profile: 'false',
  phase_took: 'false',
  terminate_after: '0',
  analyze_wildcard: 'false',
  require_alias: 'false',
  version_type: 'internal',
  include_type_name: 'false',
  include_defaults: 'false',
  flat_settings: 'false',
  level: 'cluster',
  slices: '1',
  requests_per_second: '-1',
}

/** Whether a parameter, or a key of a line, asks for nothing. */
export const isUnasked = (name: string, value: unknown): boolean =>
  COMMON.includes(name) || NOTHING[name] === String(value)

/** Registers routes, and the reply to methods they do not take. @param reserved first words of other APIs' paths */
export function registerAll(
  app: App,
  routes: readonly RouteRow[],
  reserved: () => ReadonlySet<string>,
): void {
  const methods = new Map<string, Method[]>()
  for (const row of routes) methods.set(row[1], [...(methods.get(row[1]) ?? []), ...methodsOf(row)])
  register(app, [
    ...routes.flatMap((row) => methodsOf(row).map((method) => routeOf(row, method, reserved))),
    ...[...methods].map(([path, own]) =>
      openRoute('ALL', path, ({ request, path: { collection } }) => {
        const other = elsewhere(collection, reserved, request)
        if (other !== undefined) return other
        const allowed = [...new Set(own)].sort().join(', ')
        const response = incorrectMethod(request, allowed)
        response.headers.set('allow', allowed)
        return response
      }),
    ),
  ])
}

/** The answer where the name of an index is another API's word, or an OpenSearch word that nothing here handles. */
function elsewhere(name: string | undefined, reserved: () => ReadonlySet<string>, request: Request) {
  if (name === undefined || name === '*' || name === '_all') return undefined
  if (name.startsWith('_')) return noHandler(request)
  return reserved().has(name) ? notFound() : undefined
}

function routeOf(row: RouteRow, method: Method, reserved: () => ReadonlySet<string>): Route {
  const [, path, actions, handle, params = '', begin] = row
  const served = async (call: OpenCall): Promise<Response> => {
    const other = elsewhere(call.path.collection, reserved, call.request)
    if (other !== undefined) return other
    const access = await admitCaller(call, actions)
    checkParameters(call, namesOf(params))
    const value = await handle({ ...call, access })
    const indent = isOn(call.query.pretty) ? 2 : undefined
    const response = value instanceof Response ? value : answer(value, 200, indent)
    const { filter_path: shown } = call.query
    return shown === undefined ? response : filtered(response, shown, indent)
  }
  const refuse = (error: unknown, { record, request }: OpenCall): Response =>
    openSearchError(error, record, acceptsPage(request))
  return openRoute(method, path, served, { begin, refuse })
}

/** An answer with what `filter_path` shows of it. */
async function filtered(response: Response, shown: string, indent: number | undefined): Promise<Response> {
  if (response.body === null) return response
  if (!(response.headers.get('content-type') ?? '').includes('json')) {
    await response.body.cancel()
    throw unsupported('[filter_path] of an answer that is not JSON')
  }
  const value = pathFilter(shown)(parseExact(await response.text()))
  return new Response(JSON.stringify(value, null, indent), response)
}

export const acceptsPage = ({ headers }: Request): boolean =>
  (headers.get('accept') ?? '').includes('text/html')

/** The one gate. What patterns find is for who looks it up (`findIndices`). @throws ApiError 401, 403, 429 */
export async function admitCaller(
  { env, request, path, record, prefetch }: OpenCall,
  actions: readonly string[],
): Promise<Access> {
  record.action = actions[0]!
  record.target = Object.values(path).join('/')
  const [first, ...others] = path.collection === undefined ? [] : namedIn(path.collection)
  const access = await admit(env, keyOf(request), actions, first, record, prefetch)
  for (const name of others) requireAccess(access, undefined, actions, name, record)
  return access
}

/** The key of a request: from where Parley's own routes expect it, or the password of Basic authentication. */
export function keyOf(request: Request): string | undefined {
  const basic = /^Basic\s+([A-Za-z0-9+/=]+)\s*$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (basic === undefined) return presentedKey(request)
  try {
    return /^[^:]*:(.+)$/s.exec(textIn(basic))?.[1]
  } catch {
    return undefined
  }
}

/** Whether a parameter was given as `true` or without a value. */
export const isOn = (value: string | undefined): boolean => value === 'true' || value === ''

/** @throws ApiError 400 that names what is unknown */
function checkParameters({ query, request }: OpenCall, known: readonly string[]): void {
  const unknown = Object.keys(query).filter((name) => !known.includes(name) && !isUnasked(name, query[name]))
  if (unknown.length === 0) return
  const { pathname } = new URL(request.url)
  const noun = unknown.length === 1 ? 'parameter' : 'parameters'
  throw illegalArgument(
    `request [${pathname}] contains unrecognized ${noun}: ${unknown.map((name) => `[${name}]${suggestion(name, [...known, ...COMMON])}`).join(', ')}`,
  )
}

/** The text of a body; '' for none. @throws ApiError 406 if the body is not declared as JSON, 413 */
export async function readBody(request: Request, limit?: number): Promise<string> {
  const text = await readText(request, limit)
  const type = request.headers.get('content-type') ?? ''
  if (text !== '' && !/^application\/(?:[\w.+-]+\+)?(?:x-)?(?:nd)?json\b/i.test(type)) {
    throw new PlainError(406, `Content-Type header [${type}] is not supported`)
  }
  return text
}

export { isObject, type Json }

/** A table's own row of a name: a caller may send `constructor`. */
export const own = <Row>(table: Readonly<Record<string, Row>>, name: string): Row | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

/** What may be given alone or in a list. */
export const listed = (given: unknown): unknown[] =>
  Array.isArray(given) ? given : given === undefined ? [] : [given]

/** The name and the value of an object's one entry. undefined: it has none, or several, or is no object. */
export function onlyEntry(given: unknown): [name: string, value: unknown] | undefined {
  const entries = isObject(given) ? Object.entries(given) : []
  return entries.length === 1 ? entries[0] : undefined
}

/** An object without the keys whose values are undefined. */
export const defined = <Given extends object>(given: Given) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Given]?: Exclude<Given[Key], undefined>
  }

/**
 * Reads a body that must be an object.
 * @param otherwise the value of an absent body
 * @param faulty the type of the error for one that is none
 * @throws ApiError 400
 */
export async function readObject(request: Request, otherwise?: Json, faulty?: string): Promise<Json> {
  const text = await readBody(request)
  if (text.trim() === '') {
    if (otherwise !== undefined) return otherwise
    throw parseError('request body is required')
  }
  return parseObject(text, faulty)
}

/** @throws ApiError 400 */
export function parseObject(text: string, faulty?: string): Json {
  requireShallow(text)
  let value: unknown
  try {
    // Keeps whole numbers that a double cannot hold.
    value = parseExact(text)
  } catch (error) {
    throw new OpenSearchError(400, faulty ?? 'json_parse_exception', inFull(badJson(text, error)))
  }
  if (!isObject(value))
    throw new OpenSearchError(400, faulty ?? 'parse_exception', 'The body has to be a JSON object.')
  return value
}

/** An index that the request names. */
export interface Index {
  /** the collection's own name, if the request gave an alias */
  name: string
  objectId: string
  object: CollectionRpc
  outline?: Outline
}

/** @throws ApiError 400 for several, 404 */
export async function openIndex(env: Cloudflare.Env, name: string): Promise<Index> {
  if (isSeveral(name)) throw unsupported(`[${name}]: several indices at once; it`)
  const handle = await lookUp(env, name)
  if (handle === undefined) throw indexNotFound(name)
  return { ...handle, object: ownObject(env, handle) }
}

/** Whether what stands for indices has a pattern, which also is `_all`. No index is called so. */
const isPatterned = (text: string): boolean => text.includes('*') || text === '_all'

/** Whether it is no name of one index. */
export const isSeveral = (text: string): boolean => text.includes(',') || isPatterned(text)

/** The parts of what stands for indices, as `logs-*,-logs-old`. */
export function partsOf(expression: string) {
  let isBehindPattern = false
  return expression.split(',').map((given) => {
    /** whether it leaves out what it names */
    const isOut = isBehindPattern && given.startsWith('-')
    const text = isOut ? given.slice(1) : given
    const isPattern = isPatterned(text)
    isBehindPattern ||= isPattern
    return { text: text === '_all' ? '*' : text, isPattern, isOut }
  })
}

/** The names among the parts of what stands for indices. */
export const namedIn = (expression: string): string[] =>
  partsOf(expression).flatMap(({ text, isPattern, isOut }) => (isPattern || isOut ? [] : text))
