/** Properties of a model that are the same for every provider. */
import { ApiError } from '../errors'
import { LONGEST_SILENCE } from './call'
import { checkHeaders } from './headers'
import { checkSampling, SAMPLING } from './sampling'

/** Where a provider is called, if not at its own address. */
const ADDRESSES = [
  'openai_url',
  'openai_path',
  'url',
  'google_url',
  'anthropic_url',
  'bedrock_url',
  'cloudflare_url',
  'vllm_url',
]

const PARAMETERS: readonly string[] = [
  ...ADDRESSES,
  ...SAMPLING,
  'timeout',
  'headers',
  'fallbacks',
  'rewrite_model',
  'tokens_per_day',
  'turns_per_day',
  'starts_thinking',
]

/** A model's config without properties that are `null`. Null removes a property, which a merge cannot. */
export const withoutNulls = <T extends Record<string, unknown>>(config: T): T =>
  Object.fromEntries(
    Object.entries(config).filter(([name, value]) => value !== null || !PARAMETERS.includes(name)),
  ) as T

/** @throws ApiError 400 that tells what a property has to be */
export function checkParameters(config: Record<string, unknown>): void {
  checkSampling(config)
  if (config.retrieval !== undefined) {
    throw new ApiError(400, 'Property `retrieval` belongs to an assistant, not to a conversation model.')
  }
  const { timeout } = config
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout <= LONGEST_SILENCE)) {
    throw new ApiError(
      400,
      `Property \`timeout\` is not a number of seconds, more than 0 and ${LONGEST_SILENCE} at most.`,
    )
  }
  const { starts_thinking } = config
  if (starts_thinking !== undefined && typeof starts_thinking !== 'boolean') {
    throw new ApiError(400, 'Property `starts_thinking` is not true or false.')
  }
  checkHeaders(config.headers)
}
