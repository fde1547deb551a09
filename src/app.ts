/** Mounts all protocols, and what they share: request ids, the log, CORS, headers, and replies to unknown routes. */
import { HonoBase as Hono } from 'hono/hono-base'
import { mountAiChat } from './api/ai-chat'
import { discardBody } from './api/edge/body'
import { allowOrigin, preflight, refuseHost, refuseOrigin } from './api/edge/cors'
import { findPage, isLost } from './api/edge/pages'
import { logRequest, newRecord } from './api/edge/request-log'
import { errorResponse, notFound } from './api/edge/response'
import type { App } from './api/edge/route'
import { LazyRouter } from './api/edge/router'
import { protect } from './api/edge/security-headers'
import { countRequest } from './api/edge/stats'
import { mountOpenAi } from './api/openai'
import { mountOpenSearch, noHandler } from './api/opensearch'
import { mountParley } from './api/parley'
import { mountTypesense } from './api/typesense'
import { mountUiStream } from './api/ui-stream'
import { requireNoForeignDatabase } from './db/owner'

// A trailing slash changes nothing.
export const app: App = new Hono({ strict: false, router: new LazyRouter() })

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
  const refused = refuseOrigin(env, request) ?? (await refuseDatabase(env, context.req.path))
  if (refused) {
    await discardBody(request)
    context.res = refused
  } else await next()
  if (isLost(request, context.res)) {
    const { body, status } = context.res
    await body?.cancel()
    context.res = await findPage(env, request, status)
  }
  const { headers, status } = context.res
  // A page that may not use the key must not be able to read why.
  if (record.denied !== 'origin') allowOrigin(env, request, headers)
  protect(headers, request.url.startsWith('https:'))
  headers.set('x-request-id', record.requestId)
  countRequest(record, status)
  logRequest(env, record, status)
})

/** Refuses everything but /health if the database belongs to another Worker. */
async function refuseDatabase(env: Cloudflare.Env, path: string): Promise<Response | undefined> {
  if (path === '/health') return undefined
  return requireNoForeignDatabase(env).then(() => undefined, errorResponse)
}

mountTypesense(app)
mountParley(app)
mountAiChat(app)
mountUiStream(app)
mountOpenAi(app)
mountOpenSearch(app)

app.notFound(async (context) => {
  await discardBody(context.req.raw)
  // Paths with a part that begins with an underscore belong to OpenSearch.
  return /\/_/.test(context.req.path) ? noHandler(context.req.raw) : notFound()
})
app.onError((error, context) => errorResponse(error, context.get('record')))
