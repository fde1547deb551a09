/** OpenAI's chat completions and responses (contract 3.3). */

import * as v from 'valibot'
import { type Access, SEARCH_ACTION } from '../../auth/access'
import { admit, countSearches, requireAccess } from '../../auth/authenticate'
import { ApiError, unwrap } from '../../errors'
import { once } from '../../lib/once'
import { findAssistant, getAssistant, listAssistants, type ShownAssistant } from '../../registry/assistants'
import { findCollection } from '../../registry/collections'
import { retrieverOf } from '../../registry/engines'
import type { Field } from '../../search/types'
import { Embedders } from '../../search/vectors/embedders'
import { byteLength } from '../../turn/prompt'
import { parseJson, readText } from '../http/body'
import { admitAsker, openAssistant, openHere, openTo, requireListed } from '../http/chat-names'
import { presentedKey } from '../http/cors'
import { type Answered, type App, type OpenCall, openRoute, type Route, register } from '../http/router'
import { searchDocuments } from '../shared/sources'
import { complete, completeText, respond } from './ask-model'
import * as conversations from './conversations'
import { openAiError, unknownModel } from './errors'
import { checkBody, InvalidParameter, requireQuestion } from './question'
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './stored'

/** A route with all errors in the protocol's shape. */
const route = (method: Route['method'], path: string, handle: (call: OpenCall) => Promise<Answered>): Route =>
  openRoute(method, path, handle, { refuse: (error, { record }) => openAiError(error, record) })

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const nowhere = async ({ request }: OpenCall): Promise<never> => {
  const { pathname } = new URL(request.url)
  throw new ApiError(404, `There is no ${request.method} ${pathname} here: see docs/chat-protocols.md.`)
}

export const mountOpenAi = (app: App): void =>
  register(app, [
    route('POST', '/v1/chat/completions', complete),
    route('POST', '/v1/responses', respond),
    route('GET', '/v1/responses/:response', getResponse),
    route('DELETE', '/v1/responses/:response', deleteResponse),
    route('POST', '/v1/responses/:response/cancel', cancelResponse),
    route('GET', '/v1/responses/:response/input_items', listInputItems),
    route('POST', '/v1/conversations', conversations.createConversation),
    route('GET', '/v1/conversations/:id', conversations.getConversation),
    route('POST', '/v1/conversations/:id', conversations.updateConversation),
    route('DELETE', '/v1/conversations/:id', conversations.removeConversation),
    route('GET', '/v1/conversations/:id/items', conversations.listItems),
    route('POST', '/v1/conversations/:id/items', conversations.createItems),
    route('GET', '/v1/conversations/:id/items/:item', conversations.getItem),
    route('DELETE', '/v1/conversations/:id/items/:item', conversations.removeItem),
    route('POST', '/v1/completions', completeText),
    route('POST', '/v1/embeddings', embed),
    route('POST', '/v1/vector_stores/:store/search', searchStore),
    route('GET', '/v1/models', listModels),
    route('GET', '/v1/models/:model', getModel),
    ...METHODS.map((method) => route(method, '/v1/*', nowhere)),
  ])

// =============================================================================
// Lists as models the assistants that a key may ask.

async function listModels(call: OpenCall): Promise<object> {
  const { env, record } = call
  const access = await admitAsker(call)
  const all = await listAssistants(env)
  return { object: 'list', data: all.filter((assistant) => openHere(access, assistant, record)).map(modelOf) }
}

async function getModel(call: OpenCall): Promise<object> {
  const { env, record, path } = call
  const access = await admitAsker(call)
  const name = path.model ?? ''
  const assistant = await getAssistant(env, name).catch((error) => {
    if (error instanceof ApiError && error.code === 'unknown_assistant') throw unknownModel(name)
    throw error
  })
  if (openTo(access, assistant) === undefined) throw unknownModel(name)
  requireListed(assistant, record)
  return modelOf(assistant)
}

const modelOf = ({ name, created_at }: ShownAssistant) => ({
  id: name,
  object: 'model',
  created: Math.floor(created_at / 1000),
  owned_by: 'parley',
})

// =============================================================================
// POST /v1/embeddings: vectors of texts, made by the model of a collection.

/** As many as OpenAI takes. LangChain sends 1,000 by default. */
const MOST_TEXTS = 2048
const LONGEST_TEXT = 32_000
const BYTES_A_TOKEN = 4

const body = once(() => {
  const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_TEXT))
  return v.looseObject({
    model: v.pipe(v.string(), v.minLength(1)),
    input: v.union(
      [Text, v.pipe(v.array(Text), v.minLength(1), v.maxLength(MOST_TEXTS))],
      `Send a text, or up to ${MOST_TEXTS} of them, of 1 to ${LONGEST_TEXT} characters each. Token ids are not read: LangChain sends texts with \`check_embedding_ctx_length=False\`.`,
    ),
    encoding_format: v.nullish(v.picklist(['float', 'base64'])),
    dimensions: v.nullish(v.number()),
  })
})

/** A provider charges for each text, so keys made for pages embed none. */
async function embed({ env, request, record }: OpenCall): Promise<object> {
  record.action = SEARCH_ACTION
  const access = await admit(env, presentedKey(request), SEARCH_ACTION, undefined, record)
  if (access.forPages) {
    throw new InvalidParameter(
      'A key made for pages cannot embed texts. Use a key without limits, from a server.',
      null,
      'embeddings_not_allowed',
      403,
    )
  }
  const {
    model: name,
    input,
    encoding_format: format,
    dimensions,
  } = checkBody(body(), parseJson(await readText(request)))
  const texts = typeof input === 'string' ? [input] : input
  const field = await fieldOf(env, access, name, record)
  if (dimensions != null && dimensions !== field.num_dim) {
    throw new InvalidParameter(
      `The vectors of \`${name}\` have ${field.num_dim} dimensions, and no other number.`,
      'dimensions',
    )
  }
  await countSearches(env, Array(texts.length - 1).fill(access))
  const model = new Embedders(env).model(field)
  await model.ready?.()
  const vectors: Float32Array[] = []
  for (let at = 0; at < texts.length; at += model.batchSize) {
    vectors.push(...(await model.embed(texts.slice(at, at + model.batchSize), 'document')))
  }
  const tokens = texts.reduce((sum, text) => sum + Math.ceil(byteLength(text) / BYTES_A_TOKEN), 0)
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? inBase64(vector) : [...vector],
    })),
    model: name,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

/** 32-bit numbers, the lowest byte first, as OpenAI's clients read them. */
function inBase64(vector: Float32Array): string {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  for (const [at, value] of vector.entries()) bytes.setFloat32(4 * at, value, true)
  return btoa(String.fromCharCode(...new Uint8Array(bytes.buffer)))
}

/** The first embedding field of a collection, or of an assistant's collections. @throws InvalidParameter 404 */
async function fieldOf(
  env: Cloudflare.Env,
  access: Access,
  name: string,
  record: OpenCall['record'],
): Promise<Field> {
  const assistant = await findAssistant(env, name)
  const open = assistant && openTo(access, assistant)
  if (open) requireListed(open, record)
  const unknown = new InvalidParameter(
    `\`${name}\` names no assistant and no collection with an embedding field that this key may search.`,
    'model',
    'model_not_found',
    404,
  )
  const collections = open?.searches?.map(({ collection }) => collection) ?? [name]
  for (const collection of collections) {
    try {
      if (!open) requireAccess(access, undefined, SEARCH_ACTION, collection, record)
      const place = await findCollection(env, collection)
      const { fields } = unwrap(await retrieverOf(env, place).schema())
      const field = fields.find(({ embed: made }) => made !== undefined)
      if (field) return field
    } catch (error) {
      if (!(error instanceof ApiError) || ![401, 404].includes(error.status)) throw error
    }
  }
  throw unknown
}

// =============================================================================
// POST /v1/vector_stores/ASSISTANT/search: the documents that an assistant finds for a question, without an answer.

const MOST = 50
const MOST_BY_DEFAULT = 10

const unsupported = (what: string) =>
  v.optional(v.null(`${what} is not supported here. The assistant and the key decide what is searched.`))

const searchBody = once(() =>
  v.looseObject({
    query: v.union([v.pipe(v.string(), v.minLength(1)), v.pipe(v.array(v.string()), v.length(1))]),
    max_num_results: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST))),
    rewrite_query: v.nullish(v.literal(false, 'A question alone is searched as it is.')),
    filters: unsupported('A filter'),
    ranking_options: unsupported('Another ranking'),
  }),
)

async function searchStore(call: OpenCall): Promise<object> {
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
  const { query, max_num_results: most } = checkBody(searchBody(), parseJson(await readText(request)))
  const asked = typeof query === 'string' ? query : query[0]!
  requireQuestion(asked, 'query')
  const top = most ?? MOST_BY_DEFAULT
  const { query: searched, found } = await searchDocuments({ env, access, assistant, record }, asked, top)
  return {
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
  }
}
