/** The registry of language models: maps the namespace of a `model_name` to its provider. */
import { badRequest } from '../errors'
import { anthropic } from './anthropic'
import { bedrock } from './bedrock'
import { cloudflare } from './cloudflare'
import { connector } from './connector'
import { google } from './google'
import type {
  AnswerForm,
  ConversationModelConfig,
  LanguageModel,
  LanguageModelProvider,
} from './language-model'
import { local } from './local'
import { azure, openai, vllm } from './openai-compatible'

const PROVIDERS = new Map(
  [openai, cloudflare, vllm, google, azure, anthropic, bedrock, connector, local].map((provider) => [
    provider.namespace,
    provider,
  ]),
)

/** The text before the first slash of a model's name; empty without a slash. */
export const namespaceOf = (name: string): string => name.slice(0, Math.max(0, name.indexOf('/')))

/** @throws ApiError 400 if there is no such namespace (contract 1.2, rule 9) */
export function providerOf(config: { model_name: string }): LanguageModelProvider {
  const namespace = namespaceOf(config.model_name)
  const provider = PROVIDERS.get(namespace)
  if (!provider) throw badRequest(`Model namespace \`${namespace}\` is not supported.`)
  return provider
}

/**
 * The provider and the host to which a checked model's secrets are sent. If tenants share the host, the tenant's
 * part of it is included.
 */
export function destinationOf(config: ConversationModelConfig, env: Cloudflare.Env): string {
  const { namespace, destination } = providerOf(config)
  const url = destination(config, env)
  // If it is no URL, its text alone identifies it.
  return `${namespace} ${url !== undefined && URL.canParse(url) ? placeOf(new URL(url)) : url}`
}

/** `/v1/<account>/<gateway>/<provider>`, and for Azure also the resource (as in egress.ts). */
const GATEWAY_SEGMENTS = 5

function placeOf({ origin, hostname, pathname }: URL): string {
  // A host name may end in the root's dot: it is the same host.
  if (hostname.replace(/(?<!\.)\.+$/, '') !== 'gateway.ai.cloudflare.com') return origin
  return (
    origin +
    pathname
      .split('/')
      .slice(0, 1 + GATEWAY_SEGMENTS)
      .join('/')
  )
}

/** @throws ApiError 400 if a model cannot be held to a form */
export function requireFormOf(config: { model_name: string }, { type }: AnswerForm): void {
  if (providerOf(config).forms?.includes(type)) return
  throw badRequest(
    type === 'json'
      ? 'The model of this assistant cannot be told to write JSON. Leave the format out, or ask for `{"type": "text"}`.'
      : 'The model of this assistant cannot be held to a schema. Leave the format out, or ask for `{"type": "text"}`.',
  )
}

/** A model ready to generate. Makes no call. @throws ApiError 400 for an unknown namespace */
export function createLanguageModel(config: ConversationModelConfig, env: Cloudflare.Env): LanguageModel {
  const provider = providerOf(config)
  return {
    name: config.model_name,
    generate: (request, signal) => {
      if (request.form) requireFormOf(config, request.form)
      return provider.generate(config, env, request, signal)
    },
  }
}
