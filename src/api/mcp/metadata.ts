/**
 * OAuth's metadata of a protected resource (RFC 9728). It names no authorization server, since Parley's keys are made by its
 * operator. A client then asks for a token instead of starting a login.
 */
import type { OpenCall } from '../http/route'

/** Address of the server that a request is for, or that its metadata describes. */
export function resourceAddress({ request, path }: Pick<OpenCall, 'request' | 'path'>): string {
  const { assistant } = path
  return new URL(assistant === undefined ? '/mcp' : `/mcp/${encodeURIComponent(assistant)}`, request.url).href
}

export const protectedResource = (call: OpenCall) => ({
  resource: resourceAddress(call),
  resource_name: 'Parley',
  bearer_methods_supported: ['header'],
})
