/** Agent2Agent, revision 1.0, over JSON-RPC (https://a2a-protocol.org): an assistant as another agent's agent. */

import { json } from '../http/deliver'
import { rpcRefusal } from '../http/json-rpc'
import { type App, type OpenCall, type Route, register } from '../http/router'
import { cardOf, serve } from './server'

const CARD = '/.well-known/agent-card.json'

const route = (
  method: Route['method'],
  path: string,
  handle: (call: OpenCall) => Promise<Response>,
): Route => ({
  method,
  path,
  open: true,
  handle: (call) => handle(call).catch((error) => rpcRefusal(error, call.record)),
})

const card = async (call: OpenCall): Promise<Response> => json(await cardOf(call))

export const mountA2a = (app: App): void =>
  register(app, [
    route('GET', CARD, card),
    route('GET', `/a2a/:assistant${CARD}`, card),
    route('POST', '/a2a/:assistant', serve),
  ])
