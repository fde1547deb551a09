/** Makes a route of an operation: checks the key, then path, query, headers and body by their schemas. */
import { getDotPath, type InferOutput, safeParse } from 'valibot'
import type { Access } from '../../auth/access'
import { admit } from '../../auth/authenticate'
import type { Prefetch } from '../../conversation/prefetch'
import { badRequest } from '../../errors'
import { meant, nearest } from '../../lib/nearest'
import { isObject } from '../../search/schema/values'
import { namedUser } from '../http/admit-turn'
import { COMMON_PARAMETERS, parseJson, readText } from '../http/body'
import { presentedKey } from '../http/cors'
import { notFound } from '../http/deliver'
import type { RequestRecord } from '../http/request-log'
import { type Answered, openRoute, type Route } from '../http/router'
import { parleyError } from './encoder'
import type { Operation, operations, Schema } from './operations'

type Checked<S> = S extends () => Schema ? InferOutput<ReturnType<S>> : undefined

/** A checked request, typed by its schemas. */
export interface Served<O extends Operation> {
  env: Cloudflare.Env
  request: Request
  access: Access
  /** the user that the request names */
  user: string | undefined
  /** the request's entry in the log */
  record: RequestRecord
  prefetch: Prefetch
  path: Checked<O['params']>
  query: Checked<O['query']>
  headers: Checked<O['headers']>
  body: Checked<O['body']>
  /** the body as it was sent */
  text: string
}

type Operations = typeof operations

/** A checked request of one of the operations. */
export type Serving<Name extends keyof Operations> = Served<Operations[Name]>

/** What serves each operation. */
export type Handlers = {
  [Name in keyof Operations]: (served: Serving<Name>) => Promise<Answered> | Answered
}

/** Handlers whose key is checked once more, before they run. @param require throws for a key that may not */
export function guarded<Guarded extends Partial<Handlers>>(
  require: (served: Served<Operation>) => void,
  handlers: Guarded,
): Guarded {
  const checked = Object.entries(handlers).map(([name, handle]) => [
    name,
    (served: never) => {
      require(served)
      return handle(served)
    },
  ])
  return Object.fromEntries(checked)
}

export const routeOf = <O extends Operation>(
  operation: O,
  handle: (served: Served<O>) => Promise<Answered> | Answered,
): Route => {
  const { method, actions, params, query: parameters } = operation
  return openRoute(
    method,
    operation.path.replace(/\{(\w+)\}/g, ':$1'),
    async ({ env, request, path, query, record, prefetch }) => {
      // /conversations/models belongs to Typesense, so what it does not serve there is not found.
      if (operation.path.startsWith('/conversations/') && path.id === 'models') return notFound()
      record.action = actions[0]
      record.target = Object.values(path).join('/')
      const access = await admit(env, presentedKey(request), actions, undefined, record, prefetch)
      const headers = Object.fromEntries(request.headers)
      requireKnownParameters(parameters, query)
      const text = operation.body ? await readText(request) : ''
      return handle({
        env,
        request,
        access,
        user: namedUser(request, query),
        record,
        prefetch,
        text,
        path: check(params, path) as Checked<O['params']>,
        query: check(parameters, query) as Checked<O['query']>,
        headers: check(operation.headers, headers) as Checked<O['headers']>,
        body: check(operation.body, operation.body && parseJson(text)) as Checked<O['body']>,
      })
    },
    { refuse: (error, { record }) => parleyError(error, record) },
  )
}

/** @throws ApiError 400 that names the first fault and its place */
function check(schemaOf: (() => Schema) | undefined, given: unknown): unknown {
  if (!schemaOf) return undefined
  const schema = schemaOf()
  requireKnown(schema, given)
  const result = safeParse(schema, given, { abortEarly: true })
  if (result.success) return result.output
  const [issue] = result.issues
  const place = getDotPath(issue)
  if (issue.input === undefined && place !== null) throw badRequest(`\`${place}\`: It is missing.`)
  throw badRequest(place === null ? issue.message : `\`${place}\`: ${issue.message}`)
}

// =============================================================================
// Refuses names in a request that its schema does not know, before any other check: otherwise a mistyped name would
// be reported as a missing one.

/** What valibot's schemas of objects, lists and optional values have in common. */
interface Node {
  type: string
  entries?: Record<string, Node>
  /** of a list */
  item?: Node
  /** of an optional value */
  wrapped?: Node
}

/**
 * Checks the properties of a body and of objects inside it. If a schema allows further properties, they are search
 * parameters: then only a name that is similar to a known one is refused.
 *
 * @throws ApiError 400 for a value that is not an object, or for the first unknown name, with the name that may be
 *   meant
 */
function requireKnown(schema: Schema, given: unknown): void {
  if ('entries' in schema && !isObject(given)) throw badRequest('Expected a JSON object.')
  look(schema, given, '')
}

function look(schema: Partial<Node>, given: unknown, place: string): void {
  const { type, entries, item, wrapped } = schema
  if (wrapped) look(wrapped, given, place)
  if (item && Array.isArray(given)) {
    for (const [index, each] of given.entries()) look(item, each, `${place}${index}.`)
  }
  if (!entries || !isObject(given)) return
  for (const [name, value] of Object.entries(given)) {
    const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
    if (entry) look(entry, value, `${place}${name}.`)
    else if (type === 'strict_object') refuse('property', place, name, Object.keys(entries))
    else if (type === 'object_with_rest' && !COMMON_PARAMETERS.includes(name)) {
      const known = [...Object.keys(entries), ...COMMON_PARAMETERS]
      if (nearest(name, known) !== undefined) refuse('property', place, name, known)
    }
  }
}

/** Parameters that every route takes. */
const EVERYWHERE = ['x-typesense-api-key', 'x-typesense-user-id', 'x-parley-visitor']

/** @throws ApiError 400 for the first parameter of a query string that the route does not take */
function requireKnownParameters(schemaOf: Operation['query'], query: Record<string, unknown>): void {
  const { entries = {} }: Partial<Node> = schemaOf?.() ?? {}
  for (const name of Object.keys(query)) {
    if (Object.hasOwn(entries, name) || EVERYWHERE.includes(name)) continue
    refuse('parameter', '', name, [...Object.keys(entries), ...EVERYWHERE])
  }
}

function refuse(kind: 'property' | 'parameter', place: string, name: string, known: string[]): never {
  throw badRequest(`Unknown ${kind} \`${place}${name}\`; ${meant(name, known)}`)
}
