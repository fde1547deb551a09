/** Agent2Agent, revision 1.0, over JSON-RPC (https://a2a-protocol.org): an assistant as another agent's agent. */

import { rpcRefusal } from '../http/json-rpc'
import { type App, type OpenCall, openRoute, register } from '../http/router'
import { cardOf, serve } from './server'

const CARD = '/.well-known/agent-card.json'

const REFUSED = { refuse: (error: unknown, { record }: OpenCall) => rpcRefusal(error, record) }

export const mountA2a = (app: App): void =>
  register(app, [
    openRoute('GET', CARD, cardOf, REFUSED),
    openRoute('GET', `/a2a/:assistant${CARD}`, cardOf, REFUSED),
    openRoute('POST', '/a2a/:assistant', serve, REFUSED),
  ])
