/**
 * Which hosts outbound calls may reach. Every URL of a provider is checked when a model is created and again when it
 * is called: otherwise anyone who can create a model could reach hosts inside the network that Parley runs in.
 *
 * URLs are checked after the platform's parser has normalised them, so 2130706433, 0x7f.1 and 127.0.0.1 are the same
 * address. Numeric addresses are never public: providers have names, and no list of internal ranges is complete. What
 * a name resolves to is not visible here. Hence names that are not listed need https: an internal machine would need
 * a trusted certificate for that name.
 */
import { ApiError } from '../errors'
import { outgoing } from '../lib/waiting'

export interface Egress {
  /**
   * Hosts besides the providers' own, separated by commas: `host`, `host:port`, `*.suffix`, or `*` for every public
   * name over https. A listed host may be private and may use plain http.
   */
  ALLOWED_HOSTS?: string
}

/** Hosts of known providers: always allowed, over https on its default port. */
const PROVIDERS = [
  /^(?:[a-z]{2}\.)?api\.openai\.com$/,
  /^[a-z0-9-]+\.openai\.azure\.com$/,
  /^[a-z0-9-]+\.cognitiveservices\.azure\.com$/,
  /^[a-z0-9-]+\.services\.ai\.azure\.com$/,
  /^(?:generativelanguage|oauth2|[a-z0-9-]+-aiplatform)\.googleapis\.com$/,
  /^(?:api|gateway\.ai)\.cloudflare\.com$/,
  /^api\.anthropic\.com$/,
  /^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com$/,
]

/** Names that are internal by custom or standard (RFC 6761, RFC 6762, RFC 8375, cloud metadata). */
const INSIDE =
  /\.(?:localhost|local|localdomain|internal|intranet|private|lan|home|corp|home\.arpa|arpa|onion)$/

/**
 * @param url complete, as it will be fetched
 * @param what the subject of the error message
 * @throws ApiError 400 that tells how to allow it
 */
export function requireAllowed(url: string, env: Egress, what = 'The URL of the model'): void {
  const target = URL.parse(url)
  if (target === null || !/^https?:$/.test(target.protocol)) {
    throw refused(`${what} is not a complete \`https://\` or \`http://\` URL.`)
  }
  if (target.username !== '' || target.password !== '') {
    throw refused(`${what} may not carry a user name or a password.`)
  }
  // A name with the root's dot at its end is the same host.
  const host = target.hostname.replace(/(?<!\.)\.+$/, '')
  const entries = (env.ALLOWED_HOSTS ?? '').split(',').map((entry) => entry.trim().toLowerCase())
  if (target.protocol === 'https:') {
    if (target.port === '' && PROVIDERS.some((provider) => provider.test(host))) return
    if (entries.includes('*') && isPublicName(host)) return
  }
  if (entries.some((entry) => isListed(host, target, entry))) return
  throw refused(
    `Calls to \`${target.protocol}//${target.host}\` are not allowed. To allow them, add \`${host}\` to the variable ALLOWED_HOSTS of the deployment.`,
  )
}

/** The message names a host and a variable, for the operator. */
const refused = (message: string): ApiError => new ApiError(400, message, undefined, true)

/** Whether a host is a public name: not a number, not a single word, not an internal name. */
const isPublicName = (host: string): boolean =>
  host.includes('.') && !host.startsWith('[') && !/(?:^|\.)\d+$/.test(host) && !INSIDE.test(`.${host}`)

function isListed(host: string, target: URL, entry: string): boolean {
  if (entry === '' || entry === '*') return false
  if (entry.startsWith('*.')) return !host.startsWith('[') && host.endsWith(entry.slice(1))
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  return entry === host || entry === `${host}:${port}`
}

// =============================================================================
// AI Gateway: one setting routes calls to all known providers through a Cloudflare gateway, which logs, caches and
// limits them (https://developers.cloudflare.com/ai-gateway/usage/providers/).
//
// Each call is built for the provider's own address, and signed for it where necessary. All calls pass through this
// file, which rewrites the address. Models on other servers are called directly.

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

/**
 * What Parley needs of a Workers AI client. The binding (`env.AI`) satisfies it, and so does the older SDK (`new
 * Ai(env.AI)` of @cloudflare/ai), which only forwards `run`.
 */
export interface AiRunner {
  run(model: string, inputs: Record<string, unknown>, options?: RunOptions): Promise<unknown>
}

interface RunOptions {
  signal?: AbortSignal
  gateway?: { id: string }
  /** sent with the binding's call */
  extraHeaders?: Record<string, string>
}

/**
 * Runs a model until a signal aborts. Passing the signal on is not enough, since a binding may ignore it.
 * @throws what `run` rejects with, or the signal's reason
 */
export async function runUntil(
  signal: AbortSignal,
  ai: AiRunner,
  model: string,
  inputs: Record<string, unknown>,
  options: RunOptions = {},
): Promise<unknown> {
  signal.throwIfAborted()
  const running = ai.run(model, inputs, { ...options, signal })
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  try {
    return await Promise.race([running, aborted])
  } catch (error) {
    // Cancel a stream that arrives after the abort: nobody reads it.
    running.then((late) => (late instanceof ReadableStream ? late.cancel() : undefined)).catch(() => {})
    throw error
  }
}
