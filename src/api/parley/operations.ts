/**
 * Parley's own routes as data: the parameters of each, and the actions that its key needs. The Worker serves this table
 * (route.ts). scripts/openapi.mjs makes the OpenAPI document from it and documentation.ts.
 */
import type { BaseIssue, BaseSchema, ObjectEntries, ObjectSchema } from 'valibot'
// Imports have file endings because Node runs this file as it is to generate the document.
import * as assistants from './assistant-schemas.ts'
import * as backup from './backup-schemas.ts'
import * as sets from './question-set-schemas.ts'
import * as schemas from './schemas.ts'
import * as sources from './source-schemas.ts'

export type Schema = BaseSchema<unknown, unknown, BaseIssue<unknown>>
type Parameters = ObjectSchema<ObjectEntries, undefined>

export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** in OpenAPI's syntax */
  path: string
  /** a key has to allow one of these */
  actions: readonly string[]
  params?: () => Parameters
  query?: () => Parameters
  headers?: () => Parameters
  body?: () => Schema
}

const operation = <const O extends Operation>(given: O): O => given

export const operations = {
  ask: operation({
    method: 'POST',
    path: '/conversations',
    actions: ['documents:search', 'conversations:create'],
    headers: schemas.AskHeaders,
    body: schemas.Ask,
  }),
  listConversations: operation({
    method: 'GET',
    path: '/conversations',
    actions: ['conversations:list', 'documents:search'],
    query: schemas.ListQuery,
    headers: schemas.UserHeader,
  }),
  getConversation: operation({
    method: 'GET',
    path: '/conversations/{id}',
    actions: ['conversations:get', 'documents:search'],
    params: schemas.ConversationPath,
    query: schemas.ConversationQuery,
    headers: schemas.UserHeader,
  }),
  renameConversation: operation({
    method: 'PATCH',
    path: '/conversations/{id}',
    actions: ['conversations:update', 'documents:search'],
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
    body: schemas.Rename,
  }),
  deleteConversation: operation({
    method: 'DELETE',
    path: '/conversations/{id}',
    actions: ['conversations:delete', 'documents:search'],
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
  }),
  followConversation: operation({
    method: 'GET',
    path: '/conversations/{id}/events',
    actions: ['conversations:get', 'documents:search'],
    params: schemas.ConversationPath,
    query: schemas.EventsQuery,
    headers: schemas.EventsHeaders,
  }),
  stopConversation: operation({
    method: 'POST',
    path: '/conversations/{id}/stop',
    actions: ['conversations:create', 'conversations:stop', 'documents:search'],
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
  }),
  traceConversation: operation({
    method: 'GET',
    path: '/conversations/{id}/trace',
    actions: ['conversations:trace'],
    params: schemas.ConversationPath,
    query: schemas.TraceQuery,
    headers: schemas.UserHeader,
  }),
  giveFeedback: operation({
    method: 'PUT',
    path: '/conversations/{id}/turns/{turn}/feedback',
    actions: ['conversations:feedback', 'conversations:get', 'documents:search'],
    params: schemas.TurnPath,
    headers: schemas.UserHeader,
    body: schemas.Feedback,
  }),
  deleteFeedback: operation({
    method: 'DELETE',
    path: '/conversations/{id}/turns/{turn}/feedback',
    actions: ['conversations:feedback', 'conversations:get', 'documents:search'],
    params: schemas.TurnPath,
    headers: schemas.UserHeader,
  }),
  deleteUserConversations: operation({
    method: 'DELETE',
    path: '/users/{id}/conversations',
    actions: ['conversations:delete', 'documents:search'],
    params: schemas.UserPath,
    headers: schemas.UserHeader,
  }),
  listAssistants: operation({
    method: 'GET',
    path: '/assistants',
    actions: ['assistants:list'],
  }),
  putAssistant: operation({
    method: 'PUT',
    path: '/assistants/{name}',
    actions: ['assistants:upsert'],
    params: assistants.AssistantPath,
    body: assistants.AssistantBody,
  }),
  getAssistant: operation({
    method: 'GET',
    path: '/assistants/{name}',
    actions: ['assistants:get'],
    params: assistants.AssistantPath,
  }),
  deleteAssistant: operation({
    method: 'DELETE',
    path: '/assistants/{name}',
    actions: ['assistants:delete'],
    params: assistants.AssistantPath,
  }),
  frontOfAssistant: operation({
    method: 'GET',
    path: '/a/{assistant}',
    actions: ['assistants:ask', 'documents:search', 'conversations:create'],
    params: assistants.AskedAssistantPath,
  }),
  askAssistant: operation({
    method: 'POST',
    path: '/a/{assistant}/conversations',
    actions: ['assistants:ask', 'documents:search', 'conversations:create'],
    params: assistants.AskedAssistantPath,
    headers: schemas.AskHeaders,
    body: schemas.AskAssistant,
  }),
  findDocuments: operation({
    method: 'GET',
    path: '/a/{assistant}/search',
    actions: ['assistants:ask', 'documents:search', 'conversations:create'],
    params: assistants.AskedAssistantPath,
    query: assistants.FindQuery,
  }),
  handOver: operation({
    method: 'POST',
    path: '/a/{assistant}/conversations/{id}/handover',
    actions: ['assistants:ask', 'documents:search', 'conversations:create'],
    params: assistants.HandoverPath,
    body: assistants.HandoverBody,
  }),
  listUsage: operation({
    method: 'GET',
    path: '/usage',
    actions: ['usage:list'],
    query: schemas.UsageQuery,
  }),
  listQuestionSets: operation({
    method: 'GET',
    path: '/question_sets',
    actions: ['question_sets:list'],
  }),
  putQuestionSet: operation({
    method: 'PUT',
    path: '/question_sets/{name}',
    actions: ['question_sets:upsert'],
    params: sets.SetPath,
    body: sets.SetBody,
  }),
  getQuestionSet: operation({
    method: 'GET',
    path: '/question_sets/{name}',
    actions: ['question_sets:get'],
    params: sets.SetPath,
  }),
  deleteQuestionSet: operation({
    method: 'DELETE',
    path: '/question_sets/{name}',
    actions: ['question_sets:delete'],
    params: sets.SetPath,
  }),
  runQuestionSet: operation({
    method: 'POST',
    path: '/question_sets/{name}/runs',
    actions: ['question_sets:run'],
    params: sets.SetPath,
    body: sets.RunBody,
  }),
  getQuestionRun: operation({
    method: 'GET',
    path: '/question_sets/{name}/runs/{id}',
    actions: ['question_sets:get'],
    params: sets.RunPath,
  }),
  stepQuestionRun: operation({
    method: 'POST',
    path: '/question_sets/{name}/runs/{id}/step',
    actions: ['question_sets:run'],
    params: sets.RunPath,
  }),
  endQuestionRun: operation({
    method: 'POST',
    path: '/question_sets/{name}/runs/{id}/end',
    actions: ['question_sets:run'],
    params: sets.RunPath,
  }),
  noteImport: operation({
    method: 'POST',
    path: '/question_sets',
    actions: ['question_sets:run'],
    body: sets.ImportedBody,
  }),
  listSources: operation({
    method: 'GET',
    path: '/sources',
    actions: ['sources:list'],
  }),
  putSource: operation({
    method: 'PUT',
    path: '/sources/{name}',
    actions: ['sources:upsert'],
    params: sources.SourcePath,
    body: sources.SourceBody,
  }),
  deleteSource: operation({
    method: 'DELETE',
    path: '/sources/{name}',
    actions: ['sources:delete'],
    params: sources.SourcePath,
  }),
  runSource: operation({
    method: 'POST',
    path: '/sources/{name}/run',
    actions: ['sources:run'],
    params: sources.SourcePath,
  }),
  reseal: operation({
    method: 'POST',
    path: '/operations/reseal',
    actions: ['operations:reseal'],
  }),
  reconcileVectors: operation({
    method: 'POST',
    path: '/operations/vectorize/reconcile',
    actions: ['operations:reconcile'],
    query: schemas.ReconcileQuery,
  }),
  countBackup: operation({
    method: 'GET',
    path: '/operations/backup',
    actions: ['operations:backup'],
  }),
  readBackup: operation({
    method: 'GET',
    path: '/operations/backup/{kind}',
    actions: ['operations:backup'],
    params: backup.BackupPath,
    query: backup.BackupQuery,
  }),
  readDocuments: operation({
    method: 'GET',
    path: '/operations/backup/documents/{collection}',
    actions: ['operations:backup'],
    params: backup.BackupDocumentsPath,
    query: backup.BackupDocumentsQuery,
  }),
  restoreBackup: operation({
    method: 'POST',
    path: '/operations/restore/{kind}',
    actions: ['operations:restore'],
    params: backup.BackupPath,
    body: backup.Restore,
  }),
}
