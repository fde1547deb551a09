/** OpenAI's chat completions and responses (contract 3.3). */
import { ApiError } from '../../errors'
import { getAssistant, listAssistants, type ShownAssistant } from '../../registry/assistants'
import { json } from '../http/deliver'
import { admitAsker, openHere, openTo, requireListed } from '../http/open-assistant'
import { type App, type OpenCall, type Route, register } from '../http/router'
import { complete, completeText, respond } from './ask-model'
import {
  createConversation,
  createItems,
  getConversation,
  getItem,
  listItems,
  removeConversation,
  removeItem,
  updateConversation,
} from './conversations'
import { embed } from './embeddings'
import { openAiError, unknownModel } from './errors'
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './stored'
import { searchStore } from './vector-stores'

/** A route with all errors in the protocol's shape. */
const route = (
  method: Route['method'],
  path: string,
  handle: (call: OpenCall) => Promise<Response> | Response,
): Route => ({
  method,
  path,
  open: true,
  handle: async (call) => {
    try {
      return await handle(call)
    } catch (error) {
      return openAiError(error, call.record)
    }
  },
})

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const nowhere = ({ request }: OpenCall): never => {
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
    route('POST', '/v1/conversations', createConversation),
    route('GET', '/v1/conversations/:id', getConversation),
    route('POST', '/v1/conversations/:id', updateConversation),
    route('DELETE', '/v1/conversations/:id', removeConversation),
    route('GET', '/v1/conversations/:id/items', listItems),
    route('POST', '/v1/conversations/:id/items', createItems),
    route('GET', '/v1/conversations/:id/items/:item', getItem),
    route('DELETE', '/v1/conversations/:id/items/:item', removeItem),
    route('POST', '/v1/completions', completeText),
    route('POST', '/v1/embeddings', embed),
    route('POST', '/v1/vector_stores/:store/search', searchStore),
    route('GET', '/v1/models', listModels),
    route('GET', '/v1/models/:model', getModel),
    ...METHODS.map((method) => route(method, '/v1/*', nowhere)),
  ])

// =============================================================================
// Lists as models the assistants that a key may ask.

async function listModels(call: OpenCall): Promise<Response> {
  const { env, record } = call
  const access = await admitAsker(call)
  const all = await listAssistants(env)
  return json({
    object: 'list',
    data: all.filter((assistant) => openHere(access, assistant, record)).map(modelOf),
  })
}

async function getModel(call: OpenCall): Promise<Response> {
  const { env, record, path } = call
  const access = await admitAsker(call)
  const name = path.model ?? ''
  const assistant = await getAssistant(env, name).catch((error) => {
    if (error instanceof ApiError && error.code === 'unknown_assistant') throw unknownModel(name)
    throw error
  })
  if (openTo(access, assistant) === undefined) throw unknownModel(name)
  requireListed(assistant, record)
  return json(modelOf(assistant))
}

const modelOf = ({ name, created_at }: ShownAssistant) => ({
  id: name,
  object: 'model',
  created: Math.floor(created_at / 1000),
  owned_by: 'parley',
})
