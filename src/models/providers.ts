/** The registry of language models: which namespace of a `model_name` goes to which provider. */
import { ApiError } from '../errors'
import { anthropic } from './anthropic'
import { azure } from './azure'
import { bedrock } from './bedrock'
import { cloudflare } from './cloudflare'
import { connector } from './connector'
import { google } from './google'
import type { ConversationModelConfig, LanguageModel, LanguageModelProvider } from './language-model'
import { local } from './local'
import { openai } from './openai'
import { vllm } from './vllm'

const PROVIDERS = new Map(
  [openai, cloudflare, vllm, google, azure, anthropic, bedrock, connector, local].map((provider) => [
    provider.namespace,
    provider,
  ]),
)

/** The text before the first slash of a model's name; empty without a slash. */
export const namespaceOf = (name: string): string => name.slice(0, Math.max(0, name.indexOf('/')))

/** @throws ApiError 400 when the namespace is none of ours (contract 1.2, rule 9) */
export function providerOf(config: { model_name: string }): LanguageModelProvider {
  const namespace = namespaceOf(config.model_name)
  const provider = PROVIDERS.get(namespace)
  if (!provider) throw new ApiError(400, `Model namespace \`${namespace}\` is not supported.`)
  return provider
}

/**
 * The provider and the host that a checked model's secrets are sent to, on a host that tenants share with the tenant's
 * part of it.
 */
export function destinationOf(config: ConversationModelConfig, env: Cloudflare.Env): string {
  const { namespace, destination } = providerOf(config)
  const url = destination(config, env)
  // What no URL can be made of is nowhere else's either.
  return `${namespace} ${url !== undefined && URL.canParse(url) ? placeOf(new URL(url)) : url}`
}

/** `/v1/<account>/<gateway>/<provider>`, and the resource where the provider is Azure (as in gateway.ts). */
const GATEWAY_SEGMENTS = 5

function placeOf({ origin, hostname, pathname }: URL): string {
  // A name may end in the dot of the root: the same host.
  if (hostname.replace(/(?<!\.)\.+$/, '') !== 'gateway.ai.cloudflare.com') return origin
  return (
    origin +
    pathname
      .split('/')
      .slice(0, 1 + GATEWAY_SEGMENTS)
      .join('/')
  )
}

/** A model ready to generate. Makes no call. @throws ApiError 400 for an unknown namespace */
export function createLanguageModel(config: ConversationModelConfig, env: Cloudflare.Env): LanguageModel {
  const provider = providerOf(config)
  return {
    name: config.model_name,
    generate: (request, signal) => provider.generate(config, env, request, signal),
  }
}
