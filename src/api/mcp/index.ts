/** The Model Context Protocol over streamable HTTP (https://modelcontextprotocol.io/specification). */

import { json } from '../http/deliver'
import { rpcRefusal } from '../http/json-rpc'
import { type App, type OpenCall, type Route, register } from '../http/router'
import { serve } from './server'
import { protectedResource, resourceAddress } from './tools'

const METADATA = '/.well-known/oauth-protected-resource'

/** A request with an error as JSON-RPC. A 401 says where the metadata is (RFC 9728, section 5.1). */
async function answer(call: OpenCall): Promise<Response> {
  try {
    return await serve(call)
  } catch (error) {
    const refusal = rpcRefusal(error, call.record)
    if (refusal.status === 401) {
      const { origin, pathname } = new URL(resourceAddress(call))
      refusal.headers.set(
        'www-authenticate',
        `Bearer realm="Parley", resource_metadata="${origin}${METADATA}${pathname}"`,
      )
    }
    return refusal
  }
}

const route = (path: string): Route => ({ method: 'POST', path, open: true, handle: answer })

const metadata = (path: string): Route => ({
  method: 'GET',
  path,
  open: true,
  handle: (call) => json(protectedResource(call)),
})

export const mountMcp = (app: App): void =>
  register(app, [
    route('/mcp'),
    route('/mcp/:assistant'),
    metadata(METADATA),
    metadata(`${METADATA}/mcp`),
    metadata(`${METADATA}/mcp/:assistant`),
  ])
