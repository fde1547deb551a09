/**
 * The AI Chat Protocol: `/chat` asks the assistant `default`. The path can name another assistant, and a version. Clients
 * append `/stream` to the URL that they are given, and drop its query. `/ask` is where front ends of the Azure Search demos
 * send questions of one turn.
 */
import { ApiError } from '../../errors'
import { type Answered, type App, type OpenCall, openRoute, type Route, register } from '../http/router'
import { authSetup, chat, frontConfig, refuse } from './chat'
import { content } from './content'

const ask = (call: OpenCall): Promise<Response> => chat(call, false)
const stream = (call: OpenCall): Promise<Response> => chat(call, true)

export const mountAiChat = (app: App): void =>
  register(app, [
    ...['', '/a/:assistant'].flatMap((prefix) => [
      openRoute('GET', `${prefix}/config`, frontConfig, { refuse }),
      openRoute('GET', `${prefix}/auth_setup`, authSetup, { refuse }),
      // Not the other methods: `ask` may be an index of OpenSearch's.
      openRoute('POST', `${prefix}/ask`, ask),
    ]),
    ...['', '/a/:assistant', '/v/:version', '/a/:assistant/v/:version'].flatMap((prefix) => [
      only('POST', `${prefix}/chat`, ask),
      only('POST', `${prefix}/chat/stream`, stream),
      only('GET', `${prefix}/content/:label{.+}`, content),
    ]),
  ])

/** A route that refuses all other methods in the protocol's words. */
const only = (method: 'GET' | 'POST', path: string, handle: (call: OpenCall) => Promise<Answered>): Route =>
  openRoute(
    'ALL',
    path,
    (call) => {
      const given = call.request.method
      if (given === method || (method === 'GET' && given === 'HEAD')) return handle(call)
      const response = refuse(new ApiError(405, `Only ${method} is answered here.`), call)
      response.headers.set('allow', method)
      return response
    },
    { refuse },
  )
