/**
 * An AI Gateway between Parley and the providers: it asks who calls, finds the provider and its path as Cloudflare
 * documents them, and keeps whole answers that it is asked to keep
 * (https://developers.cloudflare.com/ai-gateway/usage/providers/, .../configuration/authentication/, .../features/caching/).
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bodyOf, headersOf } from './relay'

/** Path behind a gateway, provider first -> path of the provider's own API. */
const PATHS: Record<string, [pattern: RegExp, path: string]> = {
  openai: [/^\/(.*)$/, '/v1/$1'],
  'azure-openai': [/^\/[a-z0-9-]+\/([^/]+)\/(.*)$/, '/openai/deployments/$1/$2'],
  'google-ai-studio': [/^(\/v1beta\/.*)$/, '$1'],
  anthropic: [/^(\/v1\/.*)$/, '$1'],
  'aws-bedrock': [/^\/bedrock-runtime\/[a-z0-9-]+(\/model\/.*)$/, '$1'],
  'workers-ai': [/^\/(@cf\/.*)$/, '/accounts/account/ai/run/$1'],
}

export type Provider = keyof typeof PATHS

export interface Passed {
  /** behind the gateway's name */
  path: string
  cache: 'HIT' | 'MISS'
}

export interface AiGateway {
  /** for `AI_GATEWAY_URL` */
  url: string
  /** what was let through, oldest first */
  passed: Passed[]
  stop(): Promise<void>
}

const refuse = (response: ServerResponse, status: number, code: number, message: string): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ success: false, result: [], messages: [], error: [{ code, message }] }))
}

/**
 * @param name `<account>/<gateway>`
 * @param token what its callers have to say
 * @param upstream where each provider answers
 */
export async function startGateway(
  name: string,
  token: string,
  upstream: Record<string, string>,
): Promise<AiGateway> {
  const passed: Passed[] = []
  const cache = new Map<string, { type: string; bytes: Buffer }>()

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    if (request.headers['cf-aig-authorization'] !== `Bearer ${token}`) {
      return refuse(response, 401, 2009, 'Unauthorized')
    }
    const asked = request.url ?? ''
    const begin = `/v1/${name}/`
    const [, provider = '', rest = ''] = /^([^/]+)(\/.*)$/.exec(asked.slice(begin.length)) ?? []
    const [pattern, path] = PATHS[provider] ?? []
    const target = upstream[provider]
    if (!asked.startsWith(begin) || !pattern?.test(rest) || target === undefined) {
      return refuse(response, 400, 2008, 'Invalid provider')
    }
    const key = `${asked} ${body}`
    const known = cache.get(key)
    passed.push({ path: asked.slice(begin.length), cache: known ? 'HIT' : 'MISS' })
    if (known) {
      response.writeHead(200, { 'content-type': known.type, 'cf-aig-cache-status': 'HIT' })
      return void response.end(known.bytes)
    }
    const headers = headersOf(request)
    const keeps = headers.has('cf-aig-cache-ttl')
    for (const header of [...headers.keys()]) if (header.startsWith('cf-aig-')) headers.delete(header)
    const answer = await fetch(target + rest.replace(pattern, path!), {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
    })
    const type = answer.headers.get('content-type') ?? ''
    response.writeHead(answer.status, { 'content-type': type, 'cf-aig-cache-status': 'MISS' })
    const pieces: Uint8Array[] = []
    for await (const piece of answer.body ?? []) {
      pieces.push(piece)
      response.write(piece)
    }
    response.end()
    if (keeps && answer.ok) cache.set(key, { type, bytes: Buffer.concat(pieces) })
  }

  const server = createServer((request, response) => {
    // A provider that breaks off breaks off behind the gateway too.
    handle(request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    passed,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
