/**
 * The AI Chat Protocol: `/chat` asks the assistant `default`. The path can name another assistant, and a version. Clients
 * append `/stream` to the URL that they are given, and drop its query. `/ask` is where front ends of the Azure Search demos
 * send questions of one turn.
 */
import { Prefetch } from '../../conversation/prefetch'
import { ApiError } from '../../errors'
import { leave } from '../http/admit-turn'
import { discardBody } from '../http/body'
import { newRecord } from '../http/request-log'
import { type App, addRoute, register } from '../http/router'
import { authSetup, type ChatCall, chat, frontConfig, refuse } from './chat'
import { content } from './content'

const PREFIXES = ['', '/a/:assistant', '/v/:version', '/a/:assistant/v/:version']

type Handler = (call: ChatCall, label: string) => Promise<Response>

export function mountAiChat(app: App): void {
  for (const prefix of ['', '/a/:assistant']) {
    register(app, [
      { method: 'GET', path: `${prefix}/config`, open: true, handle: frontConfig },
      { method: 'GET', path: `${prefix}/auth_setup`, open: true, handle: authSetup },
    ])
    // Not the other methods: `ask` may be an index of OpenSearch's.
    mount(app, 'POST', `${prefix}/ask`, (call) => chat(call, false), 'POST')
  }
  for (const prefix of PREFIXES) {
    mount(app, 'POST', `${prefix}/chat`, (call) => chat(call, false))
    mount(app, 'POST', `${prefix}/chat/stream`, (call) => chat(call, true))
    mount(app, 'GET', `${prefix}/content/:label{.+}`, content)
  }
}

function mount(
  app: App,
  method: 'GET' | 'POST',
  path: string,
  handle: Handler,
  takes: 'ALL' | 'POST' = 'ALL',
): void {
  addRoute(app, takes, path, async (context) => {
    const request = context.req.raw
    const record = context.get('record') ?? newRecord(request)
    record.route = path
    const { label = '', ...names } = context.req.param() as Record<string, string>
    const { env } = context
    const call: ChatCall = { env, request, record, prefetch: new Prefetch(env, record), path: names }
    const isMethod = request.method === method || (method === 'GET' && request.method === 'HEAD')
    const response = isMethod ? await handle(call, label) : notAllowed(call, method)
    leave(request)
    await discardBody(request)
    return response
  })
}

function notAllowed(call: ChatCall, method: string): Response {
  const response = refuse(call, new ApiError(405, `Only ${method} is answered here.`))
  response.headers.set('allow', method)
  return response
}
