/**
 * POST /v1/vector_stores/ASSISTANT/search: the documents that an assistant finds for a question, without an answer.
 */
import * as v from 'valibot'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { parseJson, readText } from '../http/body'
import { json } from '../http/deliver'
import { admitAsker, openAssistant } from '../http/open-assistant'
import type { OpenCall } from '../http/router'
import { searchDocuments } from '../shared/sources'
import { checkBody, InvalidParameter, requireQuestion } from './question'

const MOST = 50
const MOST_BY_DEFAULT = 10

const unsupported = (what: string) =>
  v.optional(v.null(`${what} is not supported here. The assistant and the key decide what is searched.`))

const body = once(() =>
  v.looseObject({
    query: v.union([v.pipe(v.string(), v.minLength(1)), v.pipe(v.array(v.string()), v.length(1))]),
    max_num_results: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST))),
    rewrite_query: v.nullish(v.literal(false, 'A question alone is searched as it is.')),
    filters: unsupported('A filter'),
    ranking_options: unsupported('Another ranking'),
  }),
)

export async function searchStore(call: OpenCall): Promise<Response> {
  const { env, request, record, path } = call
  const access = await admitAsker(call)
  const id = path.store ?? ''
  const assistant = await openAssistant(call, access, id).catch((error) => {
    const isUnknown = error instanceof ApiError && error.code === 'unknown_assistant'
    throw isUnknown
      ? new InvalidParameter(
          `There is no vector store '${id}'. Give the name of an assistant.`,
          null,
          undefined,
          404,
        )
      : error
  })
  const { query, max_num_results: most } = checkBody(body(), parseJson(await readText(request)))
  const asked = typeof query === 'string' ? query : query[0]!
  requireQuestion(asked, 'query')
  const top = most ?? MOST_BY_DEFAULT
  const { query: searched, found } = await searchDocuments({ env, access, assistant, record }, asked, top)
  return json({
    object: 'vector_store.search_results.page',
    search_query: [searched],
    data: found
      .toSorted((a, b) => b.score - a.score)
      .map(({ id, title, url, text, collection, score }) => ({
        file_id: id,
        filename: title,
        score,
        attributes: { collection, ...(url !== undefined && { url }) },
        content: [{ type: 'text', text }],
      })),
    has_more: false,
    next_page: null,
  })
}
