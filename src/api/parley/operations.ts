/**
 * Parley's own routes as data: the parameters of each, and the actions that its key needs. The Worker serves this table
 * (route.ts). scripts/openapi.mjs makes the OpenAPI document from it and documentation.ts.
 */
import type { BaseIssue, BaseSchema, ObjectEntries, ObjectSchema } from 'valibot'
// Imports have file endings because Node runs this file as it is to generate the document.
import * as sets from './question-set-schemas.ts'
import * as schemas from './schemas.ts'

export type Schema = BaseSchema<unknown, unknown, BaseIssue<unknown>>
type Parameters = ObjectSchema<ObjectEntries, undefined>

interface Taken {
  params?: () => Parameters
  query?: () => Parameters
  headers?: () => Parameters
  body?: () => Schema
}

export interface Operation extends Taken {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** in OpenAPI's syntax */
  path: string
  /** a key has to allow one of these */
  actions: readonly string[]
}

const operation = <const Given extends Taken>(
  method: Operation['method'],
  path: string,
  actions: readonly string[],
  taken: Given,
) => ({ method, path, actions, ...taken })

/** Actions on conversations. Whoever may search may do so with its own. */
const own = (...verbs: string[]): string[] => [
  ...verbs.map((verb) => `conversations:${verb}`),
  'documents:search',
]

const ONE = { params: schemas.ConversationPath, headers: schemas.UserHeader }
/** The actions of which a key has to allow one to ask an assistant. */
const ASKING = ['assistants:ask', 'documents:search', 'conversations:create']

const SET = '/question_sets/{name}'

export const operations = {
  ask: operation('POST', '/conversations', ['documents:search', 'conversations:create'], {
    headers: schemas.AskHeaders,
    body: schemas.Ask,
  }),
  listConversations: operation('GET', '/conversations', own('list'), {
    query: schemas.ListQuery,
    headers: schemas.UserHeader,
  }),
  listGaps: operation('GET', '/gaps', ['conversations:list'], { headers: schemas.UserHeader }),
  getConversation: operation('GET', '/conversations/{id}', own('get'), {
    params: schemas.ConversationPath,
    query: schemas.ConversationQuery,
    headers: schemas.UserHeader,
  }),
  renameConversation: operation('PATCH', '/conversations/{id}', own('update'), {
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
    body: schemas.Rename,
  }),
  deleteConversation: operation('DELETE', '/conversations/{id}', own('delete'), ONE),
  followConversation: operation('GET', '/conversations/{id}/events', own('get'), {
    params: schemas.ConversationPath,
    query: schemas.EventsQuery,
    headers: schemas.EventsHeaders,
  }),
  stopConversation: operation('POST', '/conversations/{id}/stop', own('create', 'stop'), ONE),
  replyAsPerson: operation('POST', '/conversations/{id}/replies', ['conversations:reply'], {
    params: schemas.ConversationPath,
    headers: schemas.UserHeader,
    body: schemas.Reply,
  }),
  traceConversation: operation('GET', '/conversations/{id}/trace', ['conversations:trace'], {
    params: schemas.ConversationPath,
    query: schemas.TraceQuery,
    headers: schemas.UserHeader,
  }),
  giveFeedback: operation('PUT', '/conversations/{id}/turns/{turn}/feedback', own('feedback', 'get'), {
    params: schemas.TurnPath,
    headers: schemas.UserHeader,
    body: schemas.Feedback,
  }),
  deleteFeedback: operation('DELETE', '/conversations/{id}/turns/{turn}/feedback', own('feedback', 'get'), {
    params: schemas.TurnPath,
    headers: schemas.UserHeader,
  }),
  deleteUserConversations: operation('DELETE', '/users/{id}/conversations', own('delete'), {
    params: schemas.UserPath,
    headers: schemas.UserHeader,
  }),
  listAssistants: operation('GET', '/assistants', ['assistants:list'], {}),
  putAssistant: operation('PUT', '/assistants/{name}', ['assistants:upsert'], {
    params: schemas.AssistantPath,
    body: schemas.AssistantBody,
  }),
  getAssistant: operation('GET', '/assistants/{name}', ['assistants:get'], {
    params: schemas.AssistantPath,
  }),
  deleteAssistant: operation('DELETE', '/assistants/{name}', ['assistants:delete'], {
    params: schemas.AssistantPath,
  }),
  listTools: operation('GET', '/tools', ['tools:list'], {}),
  putTool: operation('PUT', '/tools/{name}', ['tools:upsert'], {
    params: schemas.ToolPath,
    body: schemas.ToolBody,
  }),
  getTool: operation('GET', '/tools/{name}', ['tools:get'], { params: schemas.ToolPath }),
  deleteTool: operation('DELETE', '/tools/{name}', ['tools:delete'], { params: schemas.ToolPath }),
  frontOfAssistant: operation('GET', '/a/{assistant}', ASKING, { params: schemas.AskedAssistantPath }),
  askAssistant: operation('POST', '/a/{assistant}/conversations', ASKING, {
    params: schemas.AskedAssistantPath,
    headers: schemas.AskHeaders,
    body: schemas.AskAssistant,
  }),
  findDocuments: operation('GET', '/a/{assistant}/search', ASKING, {
    params: schemas.AskedAssistantPath,
    query: schemas.FindQuery,
  }),
  handOver: operation('POST', '/a/{assistant}/conversations/{id}/handover', ASKING, {
    params: schemas.HandoverPath,
    body: schemas.HandoverBody,
  }),
  listWebhooks: operation('GET', '/webhooks', ['webhooks:list'], {}),
  putWebhook: operation('PUT', '/webhooks/{name}', ['webhooks:upsert'], {
    params: schemas.WebhookPath,
    body: schemas.WebhookBody,
  }),
  deleteWebhook: operation('DELETE', '/webhooks/{name}', ['webhooks:delete'], {
    params: schemas.WebhookPath,
  }),
  testWebhook: operation('POST', '/webhooks/{name}/test', ['webhooks:send'], { params: schemas.WebhookPath }),
  listDeliveries: operation('GET', '/webhooks/deliveries', ['webhooks:list'], {
    query: schemas.DeliveriesQuery,
  }),
  sendDeliveries: operation('POST', '/webhooks/deliveries', ['webhooks:send'], {}),
  sendDelivery: operation('POST', '/webhooks/deliveries/{id}', ['webhooks:send'], {
    params: schemas.DeliveryPath,
  }),
  listUsage: operation('GET', '/usage', ['usage:list'], { query: schemas.UsageQuery }),
  listQuestionSets: operation('GET', '/question_sets', ['question_sets:list'], {}),
  putQuestionSet: operation('PUT', SET, ['question_sets:upsert'], {
    params: sets.SetPath,
    body: sets.SetBody,
  }),
  getQuestionSet: operation('GET', SET, ['question_sets:get'], { params: sets.SetPath }),
  deleteQuestionSet: operation('DELETE', SET, ['question_sets:delete'], { params: sets.SetPath }),
  runQuestionSet: operation('POST', `${SET}/runs`, ['question_sets:run'], {
    params: sets.SetPath,
    body: sets.RunBody,
  }),
  getQuestionRun: operation('GET', `${SET}/runs/{id}`, ['question_sets:get'], { params: sets.RunPath }),
  stepQuestionRun: operation('POST', `${SET}/runs/{id}/step`, ['question_sets:run'], {
    params: sets.RunPath,
  }),
  endQuestionRun: operation('POST', `${SET}/runs/{id}/end`, ['question_sets:run'], {
    params: sets.RunPath,
  }),
  noteImport: operation('POST', '/question_sets', ['question_sets:run'], { body: sets.ImportedBody }),
  listSources: operation('GET', '/sources', ['sources:list'], {}),
  putSource: operation('PUT', '/sources/{name}', ['sources:upsert'], {
    params: schemas.SourcePath,
    body: schemas.SourceBody,
  }),
  deleteSource: operation('DELETE', '/sources/{name}', ['sources:delete'], { params: schemas.SourcePath }),
  runSource: operation('POST', '/sources/{name}/run', ['sources:run'], { params: schemas.SourcePath }),
  reseal: operation('POST', '/operations/reseal', ['operations:reseal'], {}),
  reconcileVectors: operation('POST', '/operations/vectorize/reconcile', ['operations:reconcile'], {
    query: schemas.ReconcileQuery,
  }),
  countBackup: operation('GET', '/operations/backup', ['operations:backup'], {}),
  readBackup: operation('GET', '/operations/backup/{kind}', ['operations:backup'], {
    params: schemas.BackupPath,
    query: schemas.BackupQuery,
  }),
  readDocuments: operation('GET', '/operations/backup/documents/{collection}', ['operations:backup'], {
    params: schemas.BackupDocumentsPath,
    query: schemas.BackupDocumentsQuery,
  }),
  restoreBackup: operation('POST', '/operations/restore/{kind}', ['operations:restore'], {
    params: schemas.BackupPath,
    body: schemas.Restore,
  }),
}
