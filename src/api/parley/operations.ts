/**
 * Parley's own routes as data: what each takes, gives and asks of a key. The Worker serves by this table
 * (route.ts) and scripts/openapi.mjs writes it down for others, so neither can say what the other does not.
 */
import type { BaseIssue, BaseSchema, ObjectEntries, ObjectSchema } from 'valibot'
// With their endings: Node reads this file as it is when it generates the document.
import * as assistants from './assistant-schemas.ts'
import * as schemas from './schemas.ts'

export type Schema = BaseSchema<unknown, unknown, BaseIssue<unknown>>
type Parameters = ObjectSchema<ObjectEntries, undefined>

export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** in OpenAPI's syntax */
  path: string
  summary: string
  description?: string
  /** one of these is what a key has to allow */
  actions: readonly string[]
  params?: Parameters
  query?: Parameters
  headers?: Parameters
  body?: Schema
  success: { description: string; schema?: Schema; events?: boolean; alternative?: [number, string] }
  /** what else may be answered, besides 400, 401 and 429 */
  failures?: Record<number, string>
}

const operation = <const O extends Operation>(given: O): O => given

const OWN =
  'A conversation is open to the key and the user that began it, and to the admin key. To anyone else it is unknown.'
const UNKNOWN = { 404: 'There is no such conversation, or it is not open to this key and user' }

const UNKNOWN_ASSISTANT = { 404: 'There is no such assistant' }

export const operations = {
  ask: operation({
    method: 'POST',
    path: '/conversations',
    summary: 'Ask a question',
    description:
      'Begins a conversation or goes on with one. The turn belongs to the conversation and not to the request: ' +
      'a caller who leaves can join it again on `/conversations/{id}/events`. The header ' +
      '`x-parley-conversation-id` names the conversation before its first event. Of a key, `documents:search` or ' +
      '`conversations:create` is asked for every collection. An error that precedes all events is a plain answer, ' +
      'a later one is an event.',
    actions: ['documents:search', 'conversations:create'],
    headers: schemas.AskHeaders,
    body: schemas.Ask,
    success: {
      description: 'The answer: whole, or as it is written',
      schema: schemas.Answer,
      events: true,
    },
    failures: {
      404: 'There is no such model, collection or conversation',
      408: 'A search or the model took too long',
      413: 'The body is too large',
      422: 'The idempotency key has named another request',
      429: 'Too many turns are waiting in this conversation, the key asks too often, or a budget is spent',
    },
  }),
  listConversations: operation({
    method: 'GET',
    path: '/conversations',
    summary: 'List conversations, newest first',
    description:
      'Conversations begun on any protocol. The admin key sees all of them, another key those that it began for ' +
      'the user whom the request names.',
    actions: ['conversations:list', 'documents:search'],
    query: schemas.ListQuery,
    headers: schemas.UserHeader,
    success: { description: 'A page of conversations', schema: schemas.ConversationPage },
  }),
  getConversation: operation({
    method: 'GET',
    path: '/conversations/{id}',
    summary: 'Read a conversation with its latest turns',
    description: `Finished turns only: a running one is in its events. ${OWN}`,
    actions: ['conversations:get', 'documents:search'],
    params: schemas.ConversationPath,
    query: schemas.ConversationQuery,
    headers: schemas.UserHeader,
    success: { description: 'The conversation, its turns oldest first', schema: schemas.Conversation },
    failures: UNKNOWN,
  }),
  deleteConversation: operation({
    method: 'DELETE',
    path: '/conversations/{id}',
    summary: 'Delete a conversation',
    description: `Its turns, traces and history are gone, and a running turn is stopped. ${OWN}`,
    actions: ['conversations:delete', 'documents:search'],
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
    success: { description: 'It is deleted', schema: schemas.Deleted },
    failures: UNKNOWN,
  }),
  followConversation: operation({
    method: 'GET',
    path: '/conversations/{id}/events',
    summary: 'Follow a conversation, or go on where a stream broke off',
    description:
      'Replays what came after a position, later turns included, then follows the running turn to its end. Without ' +
      `a position: the latest turn from its beginning. ${OWN}`,
    actions: ['conversations:get', 'documents:search'],
    params: schemas.ConversationPath,
    query: schemas.EventsQuery,
    headers: schemas.EventsHeaders,
    success: {
      description: 'The events',
      events: true,
      alternative: [204, 'Nothing is there after the position: an EventSource then stops to ask'],
    },
    failures: UNKNOWN,
  }),
  stopConversation: operation({
    method: 'POST',
    path: '/conversations/{id}/stop',
    summary: 'Stop the running turn',
    description: `It ends in an event \`error\`, and nothing of it becomes history. ${OWN}`,
    actions: ['conversations:create', 'conversations:stop', 'documents:search'],
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
    success: { description: 'Whether a turn was running', schema: schemas.Stopped },
    failures: UNKNOWN,
  }),
  traceConversation: operation({
    method: 'GET',
    path: '/conversations/{id}/trace',
    summary: 'How the answers came about',
    description:
      'Of every turn the rewritten question, each search, the exact prompt, tokens and durations. For the admin ' +
      'key, and for keys with the action `conversations:trace`.',
    actions: ['conversations:trace'],
    params: schemas.ConversationPath,
    query: schemas.TraceQuery,
    success: { description: 'The traces, oldest first', schema: schemas.Trace },
    failures: { 404: 'There is no such conversation or turn' },
  }),
  deleteUserConversations: operation({
    method: 'DELETE',
    path: '/users/{id}/conversations',
    summary: 'Delete all conversations of a user',
    description: 'The admin key deletes those of every key, another key those that it began.',
    actions: ['conversations:delete'],
    params: schemas.UserPath,
    success: { description: 'They are deleted', schema: schemas.DeletedAll },
    failures: { 404: 'The key speaks for another user' },
  }),
  listAssistants: operation({
    method: 'GET',
    path: '/assistants',
    summary: 'List assistants',
    actions: ['assistants:list'],
    success: { description: 'All of them, by name', schema: assistants.Assistants },
  }),
  putAssistant: operation({
    method: 'PUT',
    path: '/assistants/{name}',
    summary: 'Create or replace an assistant',
    description:
      'What a chat on a page is made of: collections, a conversation model, a prompt, and what its visitors may ' +
      'change. The one named `default` answers on `/chat`. A change is seen everywhere within five seconds.',
    actions: ['assistants:upsert'],
    params: assistants.AssistantPath,
    body: assistants.AssistantBody,
    success: { description: 'The assistant as it is stored', schema: assistants.Assistant },
    failures: { 413: 'The body is too large' },
  }),
  getAssistant: operation({
    method: 'GET',
    path: '/assistants/{name}',
    summary: 'Read an assistant',
    actions: ['assistants:get'],
    params: assistants.AssistantPath,
    success: { description: 'The assistant', schema: assistants.Assistant },
    failures: UNKNOWN_ASSISTANT,
  }),
  deleteAssistant: operation({
    method: 'DELETE',
    path: '/assistants/{name}',
    summary: 'Delete an assistant',
    description: 'Its conversations stay until they expire.',
    actions: ['assistants:delete'],
    params: assistants.AssistantPath,
    success: { description: 'The assistant that it was', schema: assistants.Assistant },
    failures: UNKNOWN_ASSISTANT,
  }),
  frontOfAssistant: operation({
    method: 'GET',
    path: '/a/{assistant}',
    summary: 'What a page may know of an assistant',
    description: 'For every key that may ask it. To another key it is unknown.',
    actions: ['assistants:ask', 'documents:search', 'conversations:create'],
    params: assistants.AskedAssistantPath,
    success: { description: 'Its name and the questions that it offers', schema: assistants.AssistantFront },
    failures: { 404: 'There is no such assistant, or it is not open to this key' },
  }),
}
