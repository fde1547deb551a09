/** How long a search waits for the model that embeds its text. */
import { ApiError } from '../../errors'
import type { EmbeddingLimits } from '../../models/embedding-model'
import type { SearchParameters } from '../types'

/** @throws ApiError 400 */
export function parseEmbeddingLimits(params: SearchParameters): EmbeddingLimits {
  const timeoutMs = positive(params, 'remote_embedding_timeout_ms')
  const attempts = positive(params, 'remote_embedding_num_tries')
  return { ...(timeoutMs !== undefined && { timeoutMs }), ...(attempts !== undefined && { attempts }) }
}

function positive(params: SearchParameters, name: string): number | undefined {
  const text = params[name]
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,9}$/.test(text)) throw new ApiError(400, `Parameter \`${name}\` must be an unsigned integer.`)
  if (Number(text) === 0) throw new ApiError(400, `Parameter \`${name}\` must be greater than 0.`)
  return Number(text)
}
