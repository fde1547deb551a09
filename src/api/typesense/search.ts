/** GET /collections/:collection/documents/search, with or without a conversation. */
import { ApiError, forbidden } from '../../errors'
import type { SearchParameters, SearchResult } from '../../search/types'
import { namedUser } from '../http/admit-turn'
import { capture } from '../http/analytics'
import { lateFailure, slowAnswer } from '../http/deliver'
import { hinting, isTrue, NEEDED, override } from '../http/parameters'
import { ofRequest, planSearch } from '../http/plan'
import type { Call, Route } from '../http/route'
import { converseOnce, isConversing } from './conversations'
import { runAsked } from './nl/search'

/** Bytes of a query string. Longer searches belong in the body of a multi_search. */
const QUERY_LIMIT = 4_000

async function search(call: Call): Promise<Response> {
  const { env, request, path, query: asked, access } = call
  const name = path.collection!
  const queryStart = request.url.indexOf('?')
  if (queryStart >= 0 && request.url.length - queryStart - 1 > QUERY_LIMIT) {
    throw new ApiError(
      400,
      'Query string exceeds max allowed length of 4000. Use the /multi_search end-point for larger payloads.',
    )
  }
  // A scoped key that names a collection allows only that one.
  if (access.embedded.collection !== undefined && access.embedded.collection !== name) throw forbidden()

  const query = override(asked, access.embedded)
  if (query.q !== undefined) call.record.question = query.q
  if (isTrue(query.conversation)) return converseOnce(call, name, query)
  if (query.conversation_id) {
    throw new ApiError(400, 'Conversation ID provided but conversation is not enabled for this collection.')
  }
  // A preset can have the words.
  const planned = await planSearch(env, access, name, query.preset ? query : { q: '', ...query })
  const found = async (gone: AbortSignal, hasBegun: () => boolean): Promise<string> => {
    const reply = await runAsked(env, access, ofRequest(planned, call.record), gone, true)
    const searcher = { env, access, named: namedUser(request, asked), address: call.record.address }
    capture([{ search: planned, reply, searcher }])
    if (!('error' in reply)) return reply.text ?? JSON.stringify(reply.result)
    if (reply.code === 408 && hasBegun()) {
      return JSON.stringify({ ...nothingFound(name, planned.params), search_cutoff: true })
    }
    throw new ApiError(reply.code, reply.error, reply.retryAfter)
  }
  return slowAnswer(
    call,
    found,
    (text) => text,
    (error) => ({ ...nothingFound(name, planned.params), ...lateFailure(error, call.record) }),
  )
}

/** What a search found that failed, or was cut off before it had found anything, too late for a status of its own. */
const nothingFound = (name: string, { q = '', page = '1' }: SearchParameters): SearchResult => ({
  facet_counts: [],
  found: 0,
  hits: [],
  page: Number(page),
  request_params: { collection_name: name, first_q: q, per_page: 0, q },
  search_cutoff: false,
})

export const searchRoutes: Route[] = [
  {
    method: 'GET',
    path: '/collections/:collection/documents/search',
    action: 'documents:search',
    begins: isConversing,
    names: ({ collection }, query) =>
      isConversing(query) ? { model: query.conversation_model_id, collections: [collection!] } : undefined,
    handle: (call) => hinting(call.query, NEEDED.search, () => search(call)),
  },
]
