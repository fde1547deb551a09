/** Mounts the APIs and what they share: CORS and the answers to what no route took. */
import { Hono } from 'hono'
import { mountParley } from './api/parley'
import { mountTypesense } from './api/typesense'
import { discardBody } from './api/typesense/body'
import { errorResponse, notFound } from './api/typesense/response'
import type { App } from './api/typesense/route'

const METHODS = 'POST, GET, DELETE, PUT, PATCH, OPTIONS'

// A slash at the end of a path changes nothing.
export const app: App = new Hono({ strict: false })

app.use(async (context, next) => {
  const { headers } = context.req.raw
  const asked = headers.get('access-control-request-headers')
  if (context.req.method === 'OPTIONS' && (asked ?? headers.get('access-control-request-method')) !== null) {
    return new Response(null, {
      status: 200,
      headers: {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': asked ?? '',
        'access-control-max-age': '3600',
      },
    })
  }
  await next()
  context.res.headers.set('access-control-allow-origin', '*')
})

mountTypesense(app)
mountParley(app)

app.notFound(async (context) => {
  await discardBody(context.req.raw)
  return notFound()
})
app.onError((error) => errorResponse(error))
