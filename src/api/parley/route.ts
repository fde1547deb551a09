/** Makes a route of an operation: checks the key, then path, query, headers and body by their schemas. */
import { getDotPath, type InferOutput, safeParse } from 'valibot'
import type { Access } from '../../auth/access'
import { admit } from '../../auth/admit'
import type { Prefetch } from '../../conversation/prefetch'
import { ApiError } from '../../errors'
import type { SearchParameters } from '../../search/types'
import { namedUser } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import { presentedKey } from '../http/cors'
import { notFound } from '../http/deliver'
import type { RequestRecord } from '../http/request-log'
import type { Route } from '../http/router'
import { parleyError } from './errors'
import type { Operation, Schema } from './operations'
import { requireKnown, requireKnownParameters } from './unknown'

type Checked<S> = S extends () => Schema ? InferOutput<ReturnType<S>> : undefined

/** A checked request, typed by its schemas. */
export interface Served<O extends Operation> {
  env: Cloudflare.Env
  request: Request
  access: Access
  /** the user that the request names */
  user: string | undefined
  /** the query as it was sent */
  parameters: SearchParameters
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

export const route = <O extends Operation>(
  operation: O,
  handle: (served: Served<O>) => Promise<Response>,
  more: Pick<Route, 'begins'> = {},
): Route => ({
  ...more,
  method: operation.method,
  path: operation.path.replace(/\{(\w+)\}/g, ':$1'),
  open: true,
  async handle({ env, request, path, query, record, prefetch }) {
    try {
      // /conversations/models belongs to Typesense, so what it does not serve there is not found.
      if (operation.path.startsWith('/conversations/') && path.id === 'models') return notFound()
      record.action = operation.actions[0]
      record.target = Object.values(path).join('/')
      const access = await admit(env, presentedKey(request), operation.actions, undefined, record, prefetch)
      const headers = Object.fromEntries(request.headers)
      requireKnownParameters(operation.query, query)
      const text = operation.body ? await readText(request) : ''
      return await handle({
        env,
        request,
        access,
        user: namedUser(request, query),
        parameters: query,
        record,
        prefetch,
        text,
        path: check(operation.params, path) as Checked<O['params']>,
        query: check(operation.query, query) as Checked<O['query']>,
        headers: check(operation.headers, headers) as Checked<O['headers']>,
        body: check(operation.body, operation.body && parseJson(text)) as Checked<O['body']>,
      })
    } catch (error) {
      return parleyError(error, record)
    }
  },
})

/** @throws ApiError 400 that names the first fault and its place */
function check(schemaOf: (() => Schema) | undefined, given: unknown): unknown {
  if (!schemaOf) return undefined
  const schema = schemaOf()
  requireKnown(schema, given)
  const result = safeParse(schema, given, { abortEarly: true })
  if (result.success) return result.output
  const [issue] = result.issues
  const place = getDotPath(issue)
  if (issue.input === undefined && place !== null) throw new ApiError(400, `\`${place}\`: It is missing.`)
  throw new ApiError(400, place === null ? issue.message : `\`${place}\`: ${issue.message}`)
}
