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

/** The routes of what is stored by name. @param kind as their path and the actions of keys name it */
const stored = <Path extends () => Parameters, Body extends () => Schema>(
  kind: string,
  params: Path,
  body: Body,
) => ({
  list: operation('GET', `/${kind}`, [`${kind}:list`], {}),
  put: operation('PUT', `/${kind}/{name}`, [`${kind}:upsert`], { params, body }),
  get: operation('GET', `/${kind}/{name}`, [`${kind}:get`], { params }),
  delete: operation('DELETE', `/${kind}/{name}`, [`${kind}:delete`], { params }),
})

const assistants = stored('assistants', schemas.AssistantPath, schemas.AssistantBody)
const tools = stored('tools', schemas.ToolPath, schemas.ToolBody)
const webhooks = stored('webhooks', schemas.WebhookPath, schemas.WebhookBody)
const questionSets = stored('question_sets', sets.SetPath, sets.SetBody)
const sources = stored('sources', schemas.SourcePath, schemas.SourceBody)

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
  listAssistants: assistants.list,
  putAssistant: assistants.put,
  getAssistant: assistants.get,
  deleteAssistant: assistants.delete,
  listTools: tools.list,
  putTool: tools.put,
  getTool: tools.get,
  deleteTool: tools.delete,
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
  listWebhooks: webhooks.list,
  putWebhook: webhooks.put,
  deleteWebhook: webhooks.delete,
  testWebhook: operation('POST', '/webhooks/{name}/test', ['webhooks:send'], { params: schemas.WebhookPath }),
  listDeliveries: operation('GET', '/webhooks/deliveries', ['webhooks:list'], {
    query: schemas.DeliveriesQuery,
  }),
  sendDeliveries: operation('POST', '/webhooks/deliveries', ['webhooks:send'], {}),
  sendDelivery: operation('POST', '/webhooks/deliveries/{id}', ['webhooks:send'], {
    params: schemas.DeliveryPath,
  }),
  listUsage: operation('GET', '/usage', ['usage:list'], { query: schemas.UsageQuery }),
  listQuestionSets: questionSets.list,
  putQuestionSet: questionSets.put,
  getQuestionSet: questionSets.get,
  deleteQuestionSet: questionSets.delete,
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
  listSources: sources.list,
  putSource: sources.put,
  deleteSource: sources.delete,
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
