/** The Model Context Protocol over streamable HTTP (https://modelcontextprotocol.io/specification). */

import { rpcRefusal } from '../http/json-rpc'
import { type App, type OpenCall, openRoute, register } from '../http/router'
import { serve } from './server'
import { protectedResource, resourceAddress } from './tools'

const METADATA = '/.well-known/oauth-protected-resource'

/** An error as JSON-RPC. A 401 says where the metadata is (RFC 9728, section 5.1). */
function refuse(error: unknown, call: OpenCall): Response {
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

export const mountMcp = (app: App): void =>
  register(app, [
    openRoute('POST', '/mcp', serve, { refuse }),
    openRoute('POST', '/mcp/:assistant', serve, { refuse }),
    ...['', '/mcp', '/mcp/:assistant'].map((path) => openRoute('GET', METADATA + path, protectedResource)),
  ])
