/** OpenAI's chat completions and responses (contract 3.3). */
import { ApiError } from '../../errors'
import { type App, type OpenCall, type Route, register } from '../http/route'
import { complete } from './complete'
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
import { openAiError } from './errors'
import { getModel, listModels } from './models'
import { respond } from './respond'
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './stored'
import { completeText } from './text-completion'
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
