/**
 * Routes of conversation memory: both generations over one history. Routes of the first generation come first.
 * Otherwise `conversation` would be taken for a memory's id.
 */
import { routesOf } from '../route'
import {
  create,
  createConversation,
  get,
  list,
  listConversations,
  remove,
  search as searchMemories,
  update,
} from './memories'
import * as messages from './messages'

const BASE = '/_plugins/_ml/memory'
const PAGE = ['max_results', 'next_token']
const SEARCH = ['from', 'size', 'sort', '_source', '_source_includes', '_source_excludes']
const CREATE = ['conversations:create']
const READ = ['conversations:get']
const LIST = ['conversations:list']
const DELETE = ['conversations:delete']

export const memoryRoutes = routesOf([
  ['POST', `${BASE}/conversation`, CREATE, createConversation],
  ['GET', `${BASE}/conversation`, LIST, listConversations, PAGE],
  ['POST', `${BASE}/conversation/:id`, CREATE, messages.createInteraction],
  ['GET', `${BASE}/conversation/:id`, READ, messages.listInteractions, PAGE],
  ['DELETE', `${BASE}/conversation/:id`, DELETE, remove(1)],
  ['GET POST', `${BASE}/_search`, LIST, searchMemories, SEARCH],
  ['GET', `${BASE}/message/:id`, READ, messages.get],
  ['PUT', `${BASE}/message/:id`, CREATE, messages.update],
  ['GET', `${BASE}/message/:id/traces`, READ, messages.traces, PAGE],
  ['POST', BASE, CREATE, create],
  ['GET', BASE, LIST, list, PAGE],
  ['GET', `${BASE}/:id`, READ, get],
  ['PUT', `${BASE}/:id`, CREATE, update],
  ['DELETE', `${BASE}/:id`, DELETE, remove(2)],
  ['POST', `${BASE}/:id/messages`, CREATE, messages.createMessage],
  ['GET', `${BASE}/:id/messages`, READ, messages.list, PAGE],
  ['GET POST', `${BASE}/:id/_search`, READ, messages.search, SEARCH],
])
