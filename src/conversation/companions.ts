/**
 * The other models that a conversation model names: `fallbacks`, which answer while it cannot, and
 * `rewrite_model`, which writes standalone questions and suggestions in its place.
 *
 * Both are named by id, so that no credentials are kept twice. A name leads one step: what a fallback names in its
 * turn is not followed, and cycles are harmless. One that was deleted is passed over.
 */
import { ApiError, reasonOf } from '../errors'
import { silenceOf } from '../models/call'
import type { ConversationModelConfig, LanguageModel } from '../models/language-model'
import { createLanguageModel, namespaceOf, providerOf } from '../models/providers'
import { type Candidate, resilient } from '../models/resilient'
import { withoutSampling } from '../models/sampling'
import { findModel } from './models'

const MOST_FALLBACKS = 5

/**
 * Checks the names in a model that is about to be stored.
 * @param exists whether there is a conversation model of an id
 * @throws ApiError 400 saying which name leads nowhere, or with what the provider says of `rewrite_model`
 */
export async function checkCompanions(
  env: Cloudflare.Env,
  config: ConversationModelConfig,
  exists: (id: string) => Promise<boolean>,
): Promise<void> {
  await checkFallbacks(config, exists)
  const { rewrite_model: name } = config
  if (name === undefined) return
  if (typeof name !== 'string' || name === '') {
    throw new ApiError(400, 'Property `rewrite_model` is not a string.')
  }
  if (await exists(name)) return
  const sibling = siblingOf(config, name)
  if (!sibling) {
    throw new ApiError(
      400,
      'Property `rewrite_model` is neither the id of a conversation model nor the name of a model of the same provider.',
    )
  }
  const provider = providerOf(sibling)
  provider.validate(sibling, env)
  await provider.probe(sibling, env)
}

async function checkFallbacks(
  config: ConversationModelConfig,
  exists: (id: string) => Promise<boolean>,
): Promise<void> {
  const { fallbacks } = config
  if (fallbacks === undefined) return
  if (!Array.isArray(fallbacks) || fallbacks.some((id) => typeof id !== 'string' || id === '')) {
    throw new ApiError(400, 'Property `fallbacks` is not a list of ids of conversation models.')
  }
  if (fallbacks.length > MOST_FALLBACKS) {
    throw new ApiError(400, `Property \`fallbacks\` names more than ${MOST_FALLBACKS} models.`)
  }
  for (const id of fallbacks) {
    if (id === config.id) throw new ApiError(400, 'Property `fallbacks` names the model itself.')
    if (!(await exists(id))) {
      throw new ApiError(400, `Property \`fallbacks\` names \`${id}\`, which is no conversation model.`)
    }
  }
}

/** A model ready to be asked, with its fallbacks behind it. @throws ApiError 400 for an unknown namespace */
export const languageModelOf = (config: ConversationModelConfig, env: Cloudflare.Env): LanguageModel =>
  resilient(candidate(config, env), { others: () => fallbacksOf(config, env) })

/**
 * The model that writes standalone questions and suggestions, where one is named. Whatever keeps it from that, the
 * model itself and then its fallbacks are asked.
 */
export async function rewriterOf(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
): Promise<LanguageModel | undefined> {
  const { rewrite_model: name } = config
  if (typeof name !== 'string') return undefined
  const named = (await read(env, name)) ?? siblingOf(config, name)
  if (!named) return undefined
  return resilient(candidate(config, env), {
    ahead: candidate(named, env),
    others: () => fallbacksOf(config, env),
  })
}

/** A model of the same provider, under the same credentials: what else is set is meant for the model itself. */
function siblingOf(config: ConversationModelConfig, name: string): ConversationModelConfig | undefined {
  const namespace = namespaceOf(config.model_name)
  // Azure names its model in the URL, and `local` has but one.
  if (namespaceOf(name) !== namespace || namespace === 'azure' || namespace === 'local') return undefined
  return { ...withoutSampling(config), model_name: name }
}

async function fallbacksOf(config: ConversationModelConfig, env: Cloudflare.Env): Promise<Candidate[]> {
  const ids = Array.isArray(config.fallbacks) ? (config.fallbacks as string[]) : []
  const models = await Promise.all(ids.map((id) => read(env, id)))
  return models.flatMap((model) => (model ? [candidate(model, env)] : []))
}

/** A model that may be gone, or that cannot be read just now: the turn goes on without it. */
const read = (env: Cloudflare.Env, id: string): Promise<ConversationModelConfig | undefined> =>
  findModel(env, id).catch((error) => {
    console.error('a model that another one names could not be read', reasonOf(error))
    return undefined
  })

const candidate = (config: ConversationModelConfig, env: Cloudflare.Env): Candidate => ({
  model: createLanguageModel(config, env),
  patience: silenceOf(config) * 1000,
})
