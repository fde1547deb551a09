/**
 * AI Gateway: one setting routes calls to all known providers through a Cloudflare gateway, which logs, caches and
 * limits them (https://developers.cloudflare.com/ai-gateway/usage/providers/).
 *
 * Each call is built for the provider's own address, and signed for it where necessary. All calls pass through this
 * file, which rewrites the address. Models on other servers are called directly.
 */
import { ApiError } from '../errors'
import { outgoing } from '../lib/outgoing'
import type { AiRunner } from './ai-runner'
import { type Egress, requireAllowed } from './egress'

export interface Gateway {
  /** `<account id>/<gateway name>`; empty or absent: providers are called directly */
  AI_GATEWAY?: string
  /** for a gateway with authentication: sent as `cf-aig-authorization` */
  AI_GATEWAY_TOKEN?: string
  /** the gateways' address, for tests and proxies; its host has to be in ALLOWED_HOSTS */
  AI_GATEWAY_URL?: string
}

const GATEWAYS = 'https://gateway.ai.cloudflare.com/v1'

/** A provider's own URL, and its path behind the gateway. */
const ROUTES: [RegExp, string][] = [
  [/^https:\/\/api\.openai\.com(?:\/v1(?=\/))?(\/.*)$/, 'openai$1'],
  [
    /^https:\/\/([a-z0-9-]+)\.openai\.azure\.com\/openai\/deployments\/([^/?]+)(\/.*)$/,
    'azure-openai/$1/$2$3',
  ],
  [/^https:\/\/generativelanguage\.googleapis\.com(\/.*)$/, 'google-ai-studio$1'],
  [/^https:\/\/api\.anthropic\.com(\/.*)$/, 'anthropic$1'],
  [/^https:\/\/bedrock-runtime\.([a-z0-9-]+)\.amazonaws\.com(\/.*)$/, 'aws-bedrock/bedrock-runtime/$1$2'],
]

/**
 * Workers AI's REST API includes the account. The gateway serves only its own; another account is called directly.
 */
const WORKERS_AI = /^https:\/\/api\.cloudflare\.com\/client\/v4\/accounts\/([^/]+)\/ai\/run(\/.*)$/

interface Parts {
  account: string
  name: string
}

/** @throws ApiError 400 for a malformed setting */
function gatewayOf(env: Gateway): Parts | undefined {
  if (!env.AI_GATEWAY) return undefined
  const [, account, name] = /^([A-Za-z0-9_-]+)\/([A-Za-z0-9_-]+)$/.exec(env.AI_GATEWAY) ?? []
  if (account === undefined || name === undefined) {
    throw new ApiError(
      400,
      'The variable AI_GATEWAY of the deployment is not `<account id>/<gateway name>`.',
      undefined,
      true,
    )
  }
  return { account, name }
}

/**
 * The real URL of a call, and the gateway's headers for it.
 * @param url of the provider, complete
 * @throws ApiError 400 if the provider's or the gateway's host may not be called
 */
export function throughGateway(
  url: string,
  env: Egress & Gateway,
): { url: string; headers: Record<string, string> } {
  requireAllowed(url, env)
  const gateway = gatewayOf(env)
  // Normalised by the platform's parser, so that no path escapes the provider's part of the gateway.
  const path = gateway && pathOf(new URL(url).href, gateway)
  if (!gateway || path === undefined) return { url, headers: {} }
  const base = (env.AI_GATEWAY_URL || GATEWAYS).replace(/\/$/, '')
  const routed = `${base}/${gateway.account}/${gateway.name}/${path}`
  requireAllowed(routed, env)
  const token = env.AI_GATEWAY_TOKEN
  return { url: routed, headers: token ? { 'cf-aig-authorization': `Bearer ${token}` } : {} }
}

function pathOf(url: string, { account }: Parts): string | undefined {
  const workersAi = WORKERS_AI.exec(url)
  if (workersAi) return workersAi[1] === account ? `workers-ai${workersAi[2]}` : undefined
  for (const [provider, path] of ROUTES) {
    if (provider.test(url)) return url.replace(provider, path)
  }
  return undefined
}

/** The Workers AI binding, through the gateway if there is one. */
export function aiBinding(env: Cloudflare.Env): AiRunner {
  const ai = env.AI as unknown as AiRunner
  const gateway = gatewayOf(env)
  const through = gateway && { gateway: { id: gateway.name } }
  return {
    run: (model, inputs, options) =>
      outgoing(env, () => ai.run(model, inputs, { ...options, ...through }), options?.signal),
  }
}
