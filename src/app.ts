/** Mounts the APIs and what they share: request ids, the log, CORS, headers and the answers to what no route took. */
import { HonoBase as Hono } from 'hono/hono-base'
import { TrieRouter } from 'hono/router/trie-router'
import { mountAiChat } from './api/ai-chat'
import { discardBody } from './api/edge/body'
import { allowOrigin, preflight } from './api/edge/cors'
import { logRequest, newRecord } from './api/edge/request-log'
import { errorResponse, notFound } from './api/edge/response'
import type { App } from './api/edge/route'
import { protect } from './api/edge/security-headers'
import { mountOpenAi } from './api/openai'
import { mountParley } from './api/parley'
import { mountTypesense } from './api/typesense'
import { mountUiStream } from './api/ui-stream'

// A slash at the end of a path changes nothing.
export const app: App = new Hono({ strict: false, router: new TrieRouter() })

app.use(async (context, next) => {
  const { env } = context
  const request = context.req.raw
  const record = newRecord(request)
  context.set('record', record)
  const asked = preflight(env, request)
  if (asked) {
    asked.headers.set('x-request-id', record.requestId)
    return asked
  }
  await next()
  const { headers, status } = context.res
  allowOrigin(env, request, headers)
  protect(headers, request.url.startsWith('https:'))
  headers.set('x-request-id', record.requestId)
  logRequest(env, record, status)
})

mountTypesense(app)
mountParley(app)
mountAiChat(app)
mountUiStream(app)
mountOpenAi(app)

app.notFound(async (context) => {
  await discardBody(context.req.raw)
  return notFound()
})
app.onError((error, context) => errorResponse(error, context.get('record')))
