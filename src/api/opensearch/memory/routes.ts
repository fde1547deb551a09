/**
 * Routes of conversation memory: both generations over one history. Routes of the first generation come first.
 * Otherwise `conversation` would be taken for a memory's id.
 */
import type { OpenSearchRoute } from '../route'
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

export const memoryRoutes: OpenSearchRoute[] = [
  { methods: ['POST'], path: `${BASE}/conversation`, actions: CREATE, handle: createConversation },
  { methods: ['GET'], path: `${BASE}/conversation`, actions: LIST, params: PAGE, handle: listConversations },
  {
    methods: ['POST'],
    path: `${BASE}/conversation/:id`,
    actions: CREATE,
    handle: messages.createInteraction,
  },
  {
    methods: ['GET'],
    path: `${BASE}/conversation/:id`,
    actions: READ,
    params: PAGE,
    handle: messages.listInteractions,
  },
  { methods: ['DELETE'], path: `${BASE}/conversation/:id`, actions: DELETE, handle: remove(1) },
  {
    methods: ['GET', 'POST'],
    path: `${BASE}/_search`,
    actions: LIST,
    params: SEARCH,
    handle: searchMemories,
  },
  { methods: ['GET'], path: `${BASE}/message/:id`, actions: READ, handle: messages.get },
  { methods: ['PUT'], path: `${BASE}/message/:id`, actions: CREATE, handle: messages.update },
  {
    methods: ['GET'],
    path: `${BASE}/message/:id/traces`,
    actions: READ,
    params: PAGE,
    handle: messages.traces,
  },
  { methods: ['POST'], path: BASE, actions: CREATE, handle: create },
  { methods: ['GET'], path: BASE, actions: LIST, params: PAGE, handle: list },
  { methods: ['GET'], path: `${BASE}/:id`, actions: READ, handle: get },
  { methods: ['PUT'], path: `${BASE}/:id`, actions: CREATE, handle: update },
  { methods: ['DELETE'], path: `${BASE}/:id`, actions: DELETE, handle: remove(2) },
  { methods: ['POST'], path: `${BASE}/:id/messages`, actions: CREATE, handle: messages.createMessage },
  { methods: ['GET'], path: `${BASE}/:id/messages`, actions: READ, params: PAGE, handle: messages.list },
  {
    methods: ['GET', 'POST'],
    path: `${BASE}/:id/_search`,
    actions: READ,
    params: SEARCH,
    handle: messages.search,
  },
]
