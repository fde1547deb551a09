/**
 * OpenAI's routes at a base address without `/v1`. Some programs append `/v1` to the address that they are given, and some
 * do not.
 *
 * `/conversations` is Parley's own. `/models` may be an index, so it means OpenAI's list only with a Bearer token, which
 * OpenAI's clients send and OpenSearch's do not.
 */
const POSTED = /^\/(?:chat\/completions|completions|responses|embeddings|vector_stores\/[^/]+\/search)$/
const RESPONSE = /^\/responses\/resp_[^/]+(?:\/input_items)?$/
const CANCELLED = /^\/responses\/resp_[^/]+\/cancel$/
const MODELS = /^\/models(?:\/[^/]+)?$/

/** The path that a request means. @param path of its address */
export function meantPath(path: string, { method, headers }: Pick<Request, 'method' | 'headers'>): string {
  const isPosted = method === 'POST' && (POSTED.test(path) || CANCELLED.test(path))
  const isOfResponse = (method === 'GET' || method === 'DELETE') && RESPONSE.test(path)
  const isModels =
    method === 'GET' && MODELS.test(path) && /^Bearer /i.test(headers.get('authorization') ?? '')
  return isPosted || isOfResponse || isModels ? `/v1${path}` : path
}
