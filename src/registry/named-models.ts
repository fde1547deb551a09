/**
 * The other models that a conversation model names: `fallbacks`, which answer while it cannot, and
 * `rewrite_model`, which writes standalone questions and suggestions in its place.
 *
 * Both are named by id, so no credentials are stored twice. Names are followed for one step only: a fallback's own
 * fallbacks are ignored, so cycles do no harm. Deleted models are skipped.
 */
import { ApiError } from '../errors'
import type { ConversationModelConfig } from '../models/language-model'
import { namespaceOf, providerOf } from '../models/providers'
import { withoutSampling } from '../models/sampling'

const MOST_FALLBACKS = 5

/**
 * Checks the names in a model that is about to be stored.
 * @param exists whether there is a conversation model of an id
 * @throws ApiError 400 naming the model that does not exist, or with the provider's error for `rewrite_model`
 */
export async function checkNamedModels(
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

/** Another model of the same provider, with the same credentials. The other settings belong to the first model. */
export function siblingOf(
  config: ConversationModelConfig,
  name: string,
): ConversationModelConfig | undefined {
  const namespace = namespaceOf(config.model_name)
  // Azure names its model in the URL, and `local` has only one.
  if (namespaceOf(name) !== namespace || namespace === 'azure' || namespace === 'local') return undefined
  return { ...withoutSampling(config), model_name: name }
}
