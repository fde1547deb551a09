/** GET /collections/:collection/documents/search, with or without a conversation. */

import { type Access, SEARCH_ACTION } from '../../auth/access'
import {
  authenticate,
  countSearches,
  MOST_SEARCHES,
  mostSearches,
  requireAccess,
} from '../../auth/authenticate'
import { ApiError, badRequest, failed, forbidden } from '../../errors'
import { mapFew } from '../../lib/few'
import { parseExact } from '../../lib/json'
import { presets } from '../../registry/named-sets'
import { isObject } from '../../search/schema/values'
import type { SearchParameters, SearchResult } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { namedUser, type TurnCaller } from '../http/admit-turn'
import { capture } from '../http/analytics'
import { fill, hinting, isTrue, NEEDED, override, parameterValue, parseJson, readText } from '../http/body'
import { typesenseKey } from '../http/cors'
import { lateFailure, slowAnswer } from '../http/deliver'
import {
  ofRequest,
  planForQuestion,
  planSearch,
  requireFewConditions,
  SEARCHES_AT_ONCE,
  type WrittenReply,
} from '../http/plan'
import { type Call, type OpenCall, openRoute, type Route, route } from '../http/router'
import {
  type Conversing,
  checkConversation,
  converse,
  converseOnce,
  isConversing,
  requireConversation,
  showsHistory,
} from './conversations'
import { runAsked } from './nl'
import { fixedPages, unite } from './union'

/** Bytes of a query string. Longer searches belong in the body of a multi_search. */
const QUERY_LIMIT = 4_000

async function search(call: Call): Promise<Response> {
  const { env, request, path, query: asked, access } = call
  const name = path.collection!
  const queryStart = request.url.indexOf('?')
  if (queryStart >= 0 && request.url.length - queryStart - 1 > QUERY_LIMIT) {
    throw badRequest(
      'Query string exceeds max allowed length of 4000. Use the /multi_search end-point for larger payloads.',
    )
  }
  // A scoped key that names a collection allows only that one.
  if (access.embedded.collection !== undefined && access.embedded.collection !== name) throw forbidden()

  const query = override(asked, access.embedded)
  if (query.q !== undefined) call.record.question = query.q
  if (isTrue(query.conversation)) return converseOnce(call, name, query)
  if (query.conversation_id) {
    throw badRequest('Conversation ID provided but conversation is not enabled for this collection.')
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
  route(
    'GET',
    '/collections/:collection/documents/search',
    'documents:search',
    (call) => hinting(call.query, NEEDED.search, () => search(call)),
    {
      begins: isConversing,
      names: ({ collection }, query) =>
        isConversing(query) ? { model: query.conversation_model_id, collections: [collection!] } : undefined,
    },
  ),
]

// =============================================================================
// POST /multi_search: several searches at once, with one answer from all of them, or their union.

/** Each distinct key of a request costs a look-up. */
const MOST_KEYS = 50

/** Parameters of a conversation that a scoped key can fix for the whole request. */
const PINNABLE = ['q', 'conversation', 'conversation_id', 'conversation_model_id', 'conversation_stream']

type Body = { searches: unknown[]; union?: unknown; remove_duplicates?: unknown }

async function multiSearch(call: OpenCall): Promise<Response> {
  const { env, request, query, record, prefetch } = call
  const text = await readText(request)
  const body = query.preset ? await presetBody(call, parse(text)) : parse(text)
  const given = isObject(body) && Array.isArray(body.searches) ? body.searches : []
  // However many there are, no key allows more.
  const accesses = await authorize(call, given.slice(0, MOST_SEARCHES + 1))

  if (body instanceof ApiError) throw body
  if (!isObject(body) || !Array.isArray(body.searches)) throw badRequest('Missing `searches` array.')
  const { searches, union, remove_duplicates: removeDuplicates } = body as Body
  if (searches.length > searchLimit(accesses, query)) {
    throw badRequest('Number of multi searches exceeds `limit_multi_searches` parameter.')
  }
  // Typesense replies with a 500 here, which its clients retry.
  if (searches.length === 0) throw badRequest('The `searches` array is empty.')

  const isUnion = union === true
  const pinned = pinnedParameters(accesses)
  if (query.q !== undefined) record.question = query.q
  const collections = accesses.map((access, index) => collectionOf(query, searches[index], access) ?? '')
  const caller = { env, request, record, prefetch, accesses, body: text, userId: namedUser(request, query) }
  const conversing = await checkConversation(caller, override(query, pinned), isUnion, collections)
  const own = await ownParameters(caller, searches, conversing)
  const planned = await Promise.all(own.map((lower, index) => plan(env, query, lower, accesses[index]!)))
  requireFewConditions(planned)

  if (conversing) {
    return converse(caller, conversing, 'multi', planned, showsHistory(planned.at(-1)!.params))
  }
  const searched = planned.map((search) => ofRequest(search, record))
  if (isUnion) {
    return slowAnswer(call, (gone) =>
      unite(env, searched, override(query, fixedPages(accesses)), removeDuplicates !== false, gone),
    )
  }
  const search = async (gone: AbortSignal, hasBegun: () => boolean): Promise<WrittenReply[]> => {
    const replies = await mapFew(searched, SEARCHES_AT_ONCE, (search, index) =>
      runAsked(env, accesses[index]!, search, gone, true),
    )
    const { address } = record
    const searchers = accesses.map((access) => ({ env, access, named: caller.userId, address }))
    capture(replies.map((reply, index) => ({ search: planned[index]!, reply, searcher: searchers[index]! })))
    const timeout = replies.find((reply) => 'error' in reply && reply.code === 408)
    // Once the answer has begun, it is among the results.
    if (timeout && 'error' in timeout && !hasBegun()) throw new ApiError(408, timeout.error)
    return replies
  }
  return slowAnswer(call, search, (replies) => `{"results":[${replies.map(textOf).join(',')}]}`)
}

/** A result, or why there is none, as JSON. */
function textOf(reply: WrittenReply): string {
  if (!('error' in reply)) return reply.text ?? JSON.stringify(reply.result)
  const { code, error, detail } = reply
  return JSON.stringify({ code, error, ...(detail !== undefined && { detail }) })
}

/**
 * The body that a preset of the query string stands for: its `searches`. A preset without them is for each search.
 * @throws ApiError 401 before the preset is looked up, 404
 */
async function presetBody({ env, request, query, record }: OpenCall, body: unknown): Promise<unknown> {
  const key = typesenseKey(request, query)
  if (!(await authenticate(env, key, record.address))) throw forbidden()
  const preset = await presets.get(env, query.preset!)
  if (!('searches' in preset)) return body
  delete query.preset
  return preset
}

/**
 * Checks who may run each search: with its own key, or else with the request's.
 *
 * @throws ApiError 401 when one search is not allowed, 429
 */
async function authorize({ env, request, query, record }: OpenCall, searches: unknown[]): Promise<Access[]> {
  const own = typesenseKey(request, query)
  const keys = searches.map((search) => {
    const key = isObject(search) ? search['x-typesense-api-key'] : undefined
    return typeof key === 'string' ? key : own
  })
  if (keys.length === 0) keys.push(own)
  const distinct = new Set(keys)
  if (distinct.size > MOST_KEYS) throw forbidden()
  const known = new Map<string | undefined, Access | undefined>()
  await Promise.all(
    [...distinct].map(async (key) => known.set(key, await authenticate(env, key, record.address))),
  )

  const accesses = keys.map((key, index) => {
    const access = known.get(key)
    const named = collectionOf(query, searches[index], access)
    return requireAccess(access, key, SEARCH_ACTION, named, record)
  })
  // Searches over the limit are refused, but the allowed number is counted.
  await countSearches(env, accesses.slice(0, searchLimit(accesses, query) || 1))
  return accesses
}

/** The collection that a search names: the key's first, then the query string's, then its own. */
const collectionOf = (
  { collection }: SearchParameters,
  search: unknown,
  access: Access | undefined,
): string | undefined =>
  access?.embedded.collection ??
  collection ??
  (isObject(search) ? parameterValue(search.collection) : undefined)

/** The smallest limit of all keys, because the request is made with all of them. */
const searchLimit = (accesses: Access[], { limit_multi_searches: asked }: SearchParameters): number =>
  Math.min(...accesses.map((access) => mostSearches(access, asked)))

/**
 * Conversation parameters that scoped keys fix. Typesense reads them before it applies the keys, so there a key cannot fix
 * a model. Here it can.
 *
 * @throws ApiError 401 if two keys fix different values
 */
function pinnedParameters(accesses: Access[]): SearchParameters {
  const pinned: SearchParameters = {}
  for (const { embedded } of accesses) {
    for (const name of PINNABLE) {
      const value = embedded[name]
      if (value === undefined) continue
      if (pinned[name] !== undefined && pinned[name] !== value) throw forbidden()
      pinned[name] = value
    }
  }
  return pinned
}

/**
 * The search to run. The query string overrides its own parameters, and a scoped key overrides both. An error in them is
 * the error of this search alone.
 */
async function plan(
  env: Cloudflare.Env,
  query: SearchParameters,
  own: SearchParameters,
  access: Access,
): Promise<PlannedSearch> {
  const collection = access.embedded.collection ?? query.collection ?? own.collection ?? ''
  try {
    const planned = isConversing(query) ? planForQuestion : planSearch
    return await planned(env, access, collection, override(fill(query, own), access.embedded))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { collection, params: { ...own, ...query, ...access.embedded }, error: failed(error) }
  }
}

/**
 * The parameters of each search in the body.
 *
 * @throws ApiError 400 for an error in the body, or for an unknown conversation, which is reported first
 */
async function ownParameters(
  caller: TurnCaller,
  searches: unknown[],
  conversing: Conversing | undefined,
): Promise<SearchParameters[]> {
  try {
    return searches.map((search) => readSearch(search, conversing !== undefined))
  } catch (fault) {
    if (conversing) await requireConversation(caller, conversing)
    throw fault
  }
}

function readSearch(search: unknown, inConversation: boolean): SearchParameters {
  if (!isObject(search)) throw badRequest('The value of `searches` must be an array of objects.')
  const refused = (name: string): ApiError =>
    badRequest(
      `\`${name}\` cannot be used in POST body. Please set \`${name}\` as a query parameter in the request, instead of inside the POST body`,
    )
  if (inConversation && 'q' in search) {
    throw badRequest(
      '`q` parameter cannot be used in POST body if `conversation` is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body',
    )
  }
  for (const name of ['conversation_model_id', 'conversation_id']) {
    if (inConversation && name in search) throw refused(name)
  }
  if ('conversation' in search) throw refused('conversation')

  const parameters: SearchParameters = {}
  for (const [name, given] of Object.entries(search)) {
    const value = parameterValue(given)
    if (value === undefined) throw badRequest('One or more search parameters are malformed.')
    parameters[name] = value
  }
  return parameters
}

/** The body, or the error to throw once the keys were checked. */
function parse(text: string): unknown {
  try {
    return parseJson(text, parseExact)
  } catch (error) {
    return error
  }
}

export const multiSearchRoutes: Route[] = [
  // Open, because each search can have its own key: `authorize` checks all of them.
  openRoute('POST', '/multi_search', multiSearch, { begins: isConversing }),
]
