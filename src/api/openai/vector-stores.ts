/** POST /v1/vector_stores/ASSISTANT/search: what an assistant would find for a question, without an answer. */
import * as v from 'valibot'
import { countSearches } from '../../auth/searches'
import { ApiError } from '../../errors'
import { once } from '../../once'
import { retrieverOf } from '../../registry/engines'
import { passagesOf } from '../../turn/passage'
import { fatalError, retrieve, sourcesOf as searched } from '../../turn/retrieve'
import { parseJson, readText } from '../edge/body'
import { admitAsker, openAssistant } from '../edge/open-assistant'
import { json } from '../edge/response'
import { planRetrieval } from '../edge/retrieval'
import type { OpenCall } from '../edge/route'
import { sourcesOf } from '../turn/sources'
import { checkBody, InvalidParameter, requireQuestion } from './question'

const MOST = 50

const unsupported = (what: string) =>
  v.optional(v.null(`${what} is not supported here. The assistant and the key decide what is searched.`))

const body = once(() =>
  v.looseObject({
    query: v.union([v.pipe(v.string(), v.minLength(1)), v.pipe(v.array(v.string()), v.length(1))]),
    max_num_results: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST)), 10),
    rewrite_query: v.nullish(v.literal(false, 'A question alone is searched as it is.')),
    filters: unsupported('A filter'),
    ranking_options: unsupported('Another ranking'),
  }),
)

export async function searchStore({ env, request, record, path }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const id = path.store ?? ''
  const assistant = await openAssistant(env, access, id, record).catch((error) => {
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
  const question = access.embedded.q ?? (typeof query === 'string' ? query : query[0]!)
  requireQuestion(question, 'query')
  record.question = question
  const retrievals = await planRetrieval(env, access, assistant, { top: most ?? 10 })
  await countSearches(env, Array(Math.max(0, retrievals.length - 1)).fill(access))
  const searches = retrievals.map(({ search }) => search)
  const retrieved = await retrieve(searches, question, {
    search: (place, params, scope) => retrieverOf(env, place).search(params, scope),
    schema: (place) => retrieverOf(env, place).schema(),
  })
  const fatal = fatalError(retrieved, searches.length === 1 ? 'fail' : 'go_on')
  if (fatal) throw fatal
  const passages = passagesOf(searched(retrieved, undefined).flat())
  const scores = new Map(passages.map(({ collection, id, score }) => [`${collection}/${id}`, score]))
  return json({
    object: 'vector_store.search_results.page',
    search_query: [question],
    data: sourcesOf(passages, assistant)
      .map(({ id, title, url, text, collection }) => ({
        file_id: id,
        filename: title,
        score: scores.get(id) ?? 0,
        attributes: { collection, ...(url !== undefined && { url }) },
        content: [{ type: 'text', text }],
      }))
      .sort((a, b) => b.score - a.score)
      .slice(0, most ?? 10),
    has_more: false,
    next_page: null,
  })
}
