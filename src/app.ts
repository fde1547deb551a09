/** Mounts all protocols, and what they share: request ids, the log, CORS, headers, and replies to unknown routes. */
import { HonoBase as Hono } from 'hono/hono-base'
import { getPath } from 'hono/utils/url'
import { mountA2a } from './api/a2a'
import { mountAgUi } from './api/agui'
import { mountAiChat } from './api/ai-chat'
import { mountAiSearch, withoutKey } from './api/ai-search'
import { mountDeepChat } from './api/deep-chat'
import { discardBody } from './api/http/body'
import {
  allowOrigin,
  preflight,
  presentedKey,
  protect,
  refuseHost,
  refuseKeyInUrl,
  refuseOrigin,
} from './api/http/cors'
import { errorResponse, notFound } from './api/http/deliver'
import { findPage, isLost } from './api/http/html-pages'
import { rpcRefusal } from './api/http/json-rpc'
import { countRequest, logRequest, newRecord, type RequestRecord } from './api/http/request-log'
import { type App, LazyRouter, meantPath, methodsOf, options } from './api/http/router'
import { mountMcp } from './api/mcp'
import { mountN8n } from './api/n8n'
import { mountOpenAi } from './api/openai'
import { openAiError } from './api/openai/errors'
import { beginSearch, incorrectMethod, keyOf, mountOpenSearch, noHandler } from './api/opensearch'
import { mountParley } from './api/parley'
import { mountTypesense } from './api/typesense'
import { mountUiStream } from './api/ui-stream'
import { authenticate } from './auth/authenticate'
import { isVerified, requireNoForeignDatabase } from './db/owner'
import { ApiError } from './errors'

export const app: App = new Hono({
  router: new LazyRouter(),
  // Slashes at the end and repeated ones change nothing, as in Typesense. Its Java client writes documents to `/documents//`.
  getPath: (request) => meantPath(getPath(request).replace(/\/+(?=\/|$)/g, '') || '/', request),
})

app.use(async (context, next) => {
  const { env } = context
  const request = context.req.raw
  const record = newRecord(request)
  context.set('record', record)
  const misdirected = refuseHost(env, request)
  const asked = misdirected ?? preflight(env, request)
  if (asked) {
    await discardBody(request)
    asked.headers.set('x-request-id', record.requestId)
    return asked
  }
  const refused =
    refuseOrigin(env, request) ??
    refuseKeyInUrl(env, request, context.req.path) ??
    (await refuseDatabase(env, request, context.req.path, record))
  if (refused) {
    await discardBody(request)
    context.res = refused
  } else await next()
  const refusal = wrongMethod(request, context.req.path, context.res)
  if (refusal) {
    await context.res.body?.cancel()
    // Hono copies the headers of a response onto the one that replaces it.
    context.res = undefined
    context.res = refusal
  }
  if (isLost(request, context.res)) {
    const { body, status } = context.res
    await body?.cancel()
    context.res = await findPage(env, request, context.req.path, status)
  }
  const { headers, status } = context.res
  // A page that may not use the key must not be able to read why.
  if (record.denied !== 'origin') allowOrigin(env, request, headers)
  protect(headers, request.url.startsWith('https:'))
  headers.set('x-request-id', record.requestId)
  countRequest(record, status)
  logRequest(env, record, status)
})

/** The answer to a method that the path does not take, and to `OPTIONS`. @returns undefined for all others */
function wrongMethod(request: Request, path: string, { status, headers }: Response): Response | undefined {
  // OpenSearch has 400 for an address that it does not know.
  if (status !== 404 && status !== 405 && !(status === 400 && path.startsWith('/_'))) return undefined
  const { method } = request
  const methods = new Set([...(headers.get('allow')?.split(', ') ?? []), ...methodsOf(app, path)])
  const isTaken = methods.has(method === 'HEAD' ? 'GET' : method)
  if (methods.size === 0 || isTaken) return undefined
  const allowed = [...methods].sort().join(', ')
  if (method === 'OPTIONS') return options(allowed)
  return headers.get('allow') === allowed ? undefined : notAllowed(request, path, allowed)
}

/** A 405 in the words of the path's protocol. */
function notAllowed(request: Request, path: string, allowed: string): Response {
  const error = new ApiError(405, `${withoutKey(path)} takes ${allowed}, not ${request.method}.`)
  const response = isOpenSearch(path)
    ? incorrectMethod(request, allowed)
    : /^\/v1\//.test(path)
      ? openAiError(error)
      : /^\/(mcp|a2a)(\/|$)/.test(path)
        ? rpcRefusal(error)
        : errorResponse(error)
  response.headers.set('allow', allowed)
  return response
}

/** Paths with a part that begins with an underscore belong to OpenSearch. */
const isOpenSearch = (path: string): boolean => /\/_/.test(path)

/**
 * Refuses everything but /health if the database belongs to another Worker. An isolate's first request looks up its key at
 * the same time, and finds it in the cache afterwards.
 */
async function refuseDatabase(
  env: Cloudflare.Env,
  request: Request,
  path: string,
  record: RequestRecord,
): Promise<Response | undefined> {
  if (path === '/health' || isVerified(env)) return undefined
  const key = isOpenSearch(path) ? keyOf(request) : presentedKey(request)
  const [refused] = await Promise.all([
    requireNoForeignDatabase(env).then(() => undefined, errorResponse),
    authenticate(env, key, record.address, () => void beginSearch(env, request)).catch(() => {}),
  ])
  return refused
}

mountTypesense(app)
mountParley(app)
mountAiChat(app)
mountUiStream(app)
mountOpenAi(app)
mountMcp(app)
mountAgUi(app)
mountA2a(app)
mountAiSearch(app)
mountDeepChat(app)
mountN8n(app)
mountOpenSearch(app)

app.notFound(async (context) => {
  await discardBody(context.req.raw)
  return isOpenSearch(context.req.path) ? noHandler(context.req.raw) : notFound()
})
app.onError((error, context) => errorResponse(error, context.get('record')))
