/**
 * Descriptions of Parley's own routes. scripts/openapi.mjs joins them with operations.ts. They are in a file of their own to
 * keep them out of the Worker's bundle. The type makes sure that no operation is missing.
 */
import type { operations, Schema } from './operations.ts'
import * as responses from './response-schemas.ts'

export interface Documentation {
  summary: string
  description?: string
  success: { description: string; schema?: Schema; events?: boolean; alternative?: [number, string] }
  /** statuses besides 400, 401 and 429 */
  failures?: Record<number, string>
}

const OWN =
  'A conversation is open to the key and the user that began it, and to the admin key. To anyone else it is unknown.'
const UNKNOWN = { 404: 'There is no such conversation, or it is not open to this key and user' }
const UNREADABLE = { 503: 'The database does not answer' }
const UNKNOWN_SOURCE = { 404: 'There is no such source' }
const UNKNOWN_SET = { 404: 'There is no such question set' }
const UNKNOWN_TOOL = { 404: 'There is no such tool' }
const UNKNOWN_WEBHOOK = { 404: 'There is no such webhook' }
const UNKNOWN_ASSISTANT = { 404: 'There is no such assistant' }

const ANSWERED = {
  description: 'The answer: whole, or as it is written',
  schema: responses.Answer,
  events: true,
}
const UNANSWERED = {
  408: 'A search or the model took too long',
  413: 'The body is too large',
  422: 'The idempotency key has named another request',
  429: 'Too many turns are waiting in this conversation, the key asks too often, or a budget is spent',
}

export const documentation: Record<keyof typeof operations, Documentation> = {
  ask: {
    summary: 'Ask a question',
    description:
      'Begins a conversation or goes on with one. The turn belongs to the conversation and not to the request: ' +
      'a caller who leaves can join it again on `/conversations/{id}/events`. The header ' +
      '`x-parley-conversation-id` names the conversation before its first event. Of a key, `documents:search` or ' +
      '`conversations:create` is asked for every collection. An error that precedes all events is a plain answer, ' +
      'a later one is an event.',
    success: ANSWERED,
    failures: { ...UNANSWERED, 404: 'There is no such model, collection or conversation' },
  },
  listConversations: {
    summary: 'List conversations, newest first',
    description:
      'Conversations begun on any protocol. The admin key sees all of them, another key those that it began for ' +
      'the user whom the request names.',
    success: { description: 'A page of conversations', schema: responses.ConversationPage },
  },
  listGaps: {
    summary: 'List what the documents lack',
    description:
      'Questions of the latest 2,000 turns whose answers were declined, cite nothing, came with a warning, were rated down or were asked ' +
      'again. Those that mean the same are one group. For keys with the action `conversations:list`, of what they list.',
    success: { description: 'The gaps, the most asked first', schema: responses.Gaps },
  },
  getConversation: {
    summary: 'Read a conversation with its latest turns',
    description: `Finished turns only: a running one is in its events. ${OWN}`,
    success: { description: 'The conversation, its turns oldest first', schema: responses.Conversation },
    failures: { ...UNKNOWN, ...UNREADABLE },
  },
  renameConversation: {
    summary: 'Give a conversation another title',
    description: `The title stays whatever is asked next. ${OWN}`,
    success: { description: 'The conversation, without its turns', schema: responses.ConversationSummary },
    failures: { ...UNKNOWN, ...UNREADABLE },
  },
  deleteConversation: {
    summary: 'Delete a conversation',
    description: `Its turns, traces and history are gone, and a running turn is stopped. ${OWN}`,
    success: { description: 'It is deleted', schema: responses.Deleted },
    failures: UNKNOWN,
  },
  followConversation: {
    summary: 'Follow a conversation, or go on where a stream broke off',
    description:
      'Replays what came after a position, later turns included, then follows the running turn to its end. Without ' +
      `a position: the latest turn from its beginning. ${OWN}`,
    success: {
      description: 'The events',
      events: true,
      alternative: [204, 'Nothing is there after the position: an EventSource then stops to ask'],
    },
    failures: UNKNOWN,
  },
  stopConversation: {
    summary: 'Stop the running turn',
    description: `It ends in an event \`error\`, and nothing of it becomes history. ${OWN}`,
    success: { description: 'Whether a turn was running', schema: responses.Stopped },
    failures: UNKNOWN,
  },
  replyAsPerson: {
    summary: 'Reply as a person',
    description:
      'Adds what a person says to a conversation in which people were asked for within seven days. It is a turn without a question, ' +
      'whose `author` is that person, and a widget that shows the conversation gets it. For the admin key, and for keys with the action ' +
      '`conversations:reply` that reach the conversation.',
    success: { description: 'It is stored', schema: responses.Replied },
    failures: { ...UNKNOWN, 409: 'Nobody has asked for a person', ...UNREADABLE },
  },
  traceConversation: {
    summary: 'How the answers came about',
    description:
      'Of every turn the rewritten question, each search, the exact prompt, tokens and durations. Turns that failed ' +
      'or were stopped have an `error`; they are kept as long as their events are. For the admin key, and for keys ' +
      'with the action `conversations:trace`.',
    success: { description: 'The traces, oldest first', schema: responses.Trace },
    failures: { 404: 'There is no such conversation or turn', ...UNREADABLE },
  },
  giveFeedback: {
    summary: 'Rate an answer',
    description:
      'Takes a rating, a score or a comment, in the place of what the same visitor or user said of this answer before. ' +
      `It goes with its turn. ${OWN}`,
    success: { description: 'It is stored', schema: responses.Feedback },
    failures: {
      404: 'There is no such conversation, it is not open to this key and user, or the turn has no answer',
      409: 'As many others have rated this answer as are kept',
      ...UNREADABLE,
    },
  },
  deleteFeedback: {
    summary: 'Take back the rating of an answer',
    description: `Deletes what the same visitor or user said of it. ${OWN}`,
    success: { description: 'It is deleted', schema: responses.FeedbackDeleted },
    failures: { ...UNKNOWN, ...UNREADABLE },
  },
  deleteUserConversations: {
    summary: 'Delete all conversations of a user',
    description:
      'The admin key deletes those of every key, another key those that it began. Turns that run are stopped. What ' +
      'began within the last seconds, or while D1 did not answer, may go a moment later, and is not counted. A key ' +
      'with the action `analytics/events:delete` also erases what analytics rules logged of the user.',
    success: { description: 'They are deleted', schema: responses.DeletedAll },
    failures: { 404: 'The key speaks for another user' },
  },
  listAssistants: {
    summary: 'List assistants',
    success: { description: 'All of them, by name', schema: responses.Assistants },
  },
  putAssistant: {
    summary: 'Create or replace an assistant',
    description:
      'What a chat on a page is made of: collections, a conversation model, a prompt, and what its visitors may ' +
      'change. The one named `default` answers on `/chat`. A change is seen everywhere within five seconds.',
    success: { description: 'The assistant as it is stored', schema: responses.Assistant },
    failures: { 413: 'The body is too large' },
  },
  getAssistant: {
    summary: 'Read an assistant',
    success: { description: 'The assistant', schema: responses.Assistant },
    failures: UNKNOWN_ASSISTANT,
  },
  deleteAssistant: {
    summary: 'Delete an assistant',
    description: 'Its conversations stay until they expire.',
    success: { description: 'The assistant that it was', schema: responses.Assistant },
    failures: UNKNOWN_ASSISTANT,
  },
  listTools: {
    summary: 'List tools',
    description: 'What assistants may let their models call.',
    success: { description: 'All of them', schema: responses.Tools },
  },
  putTool: {
    summary: 'Store a tool',
    description:
      'Replaces one of the same name. The tools of an MCP server are read from it now: store the tool again after they have changed. ' +
      "A header's value that is sent as it is shown, masked, stays as it is.",
    success: { description: 'The tool as it is stored', schema: responses.Tool },
  },
  getTool: {
    summary: 'Read a tool',
    success: { description: 'The tool, its headers masked', schema: responses.Tool },
    failures: UNKNOWN_TOOL,
  },
  deleteTool: {
    summary: 'Delete a tool',
    description: 'Assistants that list it go on without it.',
    success: { description: 'The tool that it was', schema: responses.Tool },
    failures: UNKNOWN_TOOL,
  },
  frontOfAssistant: {
    summary: 'What a page may know of an assistant',
    description: 'For every key that may ask it. To another key it is unknown.',
    success: {
      description: 'Its name, the questions that it offers, and how to show its sources',
      schema: responses.AssistantFront,
    },
    failures: { 404: 'There is no such assistant, or it is not open to this key' },
  },
  askAssistant: {
    summary: 'Ask an assistant a question',
    description:
      'Begins a conversation with the assistant or goes on with one, as `POST /conversations` does, with the model, ' +
      'searches and prompt of the assistant. Keys that are bound to it may ask here. The answer cites its documents ' +
      'in square brackets: by the `citation_field` of the assistant, or by their id and `.txt`.',
    success: ANSWERED,
    failures: {
      ...UNANSWERED,
      403: 'The assistant is not for pages of this origin',
      404: 'There is no such assistant or conversation, or it is not open to this key',
    },
  },
  findDocuments: {
    summary: 'Find documents while somebody types',
    description:
      'The searches of the assistant, by words alone, the last one as far as it is typed. It asks no model and begins no conversation. ' +
      'The assistant has to allow it by `search`: no budget limits what searches read.',
    success: { description: 'The documents, best first', schema: responses.FoundDocuments },
    failures: {
      403: 'The assistant is not for pages of this origin',
      404: 'There is no such assistant, or it is not open to this key',
      408: 'The search took too long',
    },
  },
  handOver: {
    summary: 'Hand a conversation over to people',
    description:
      'Sends the conversation to the `handover.webhook` of the assistant, with how to reach whoever asks and what they want. A ' +
      'message that is not taken is sent again for three days. A conversation is handed over three times a day at most.',
    success: { description: 'The message is stored', schema: responses.HandedOver },
    failures: {
      404: 'There is no such assistant or conversation, or it is not open to this key',
    },
  },
  listWebhooks: {
    summary: 'List webhooks',
    description: 'What they are told is of everybody: only the admin key has these routes.',
    success: { description: 'All of them', schema: responses.Webhooks },
  },
  putWebhook: {
    summary: 'Register a webhook, or change it',
    description:
      'It is told of what its `events` name, by messages that are signed as Standard Webhooks are. A message that is not taken is sent ' +
      'again, at growing gaps, for three days. The secret is shown once.',
    success: { description: 'The webhook as it is stored', schema: responses.Webhook },
  },
  deleteWebhook: {
    summary: 'Delete a webhook',
    description: 'Whatever it was still to be sent is deleted too.',
    success: { description: 'The webhook that it was', schema: responses.Webhook },
    failures: UNKNOWN_WEBHOOK,
  },
  testWebhook: {
    summary: 'Send a webhook a test',
    description: 'Posts a `webhook.test`, and answers with what came of it.',
    success: { description: 'The message', schema: responses.Delivery },
    failures: UNKNOWN_WEBHOOK,
  },
  listDeliveries: {
    summary: 'List messages to webhooks',
    description: 'Those of the last seven days, delivered or not, the latest first.',
    success: { description: 'A page of them', schema: responses.Deliveries },
  },
  sendDeliveries: {
    summary: 'Send what is due',
    description: 'Some of the messages that are due, as the cron trigger does every minute.',
    success: { description: 'How many were taken', schema: responses.Sent },
  },
  sendDelivery: {
    summary: 'Send a message again now',
    description: 'Also one that was given up. What a delivered message said is forgotten.',
    success: { description: 'The message, with what came of it', schema: responses.Delivery },
    failures: { 404: 'There is no such message, or it is delivered' },
  },
  listUsage: {
    summary: 'What was spent',
    description: 'Turns and tokens by day, key and conversation model, newest day first.',
    success: { description: 'The account', schema: responses.UsageList },
  },
  listQuestionSets: {
    summary: 'List question sets',
    description:
      'Questions whose answers are known. They are asked on request, on a schedule and after imports.',
    success: { description: 'All of them', schema: responses.QuestionSets },
  },
  putQuestionSet: {
    summary: 'Store a question set, or change it',
    description: 'A run that goes on keeps the questions that it began with.',
    success: { description: 'The set as it is stored', schema: responses.QuestionSet },
  },
  getQuestionSet: {
    summary: 'Read a question set',
    success: { description: 'The set, and which runs there are', schema: responses.QuestionSet },
    failures: UNKNOWN_SET,
  },
  deleteQuestionSet: {
    summary: 'Delete a question set',
    description: 'Its runs are deleted too. Their conversations stay until they expire.',
    success: { description: 'The set that it was', schema: responses.QuestionSet },
    failures: UNKNOWN_SET,
  },
  runQuestionSet: {
    summary: 'Ask the questions of a set',
    description:
      'Begins a run and answers at once. Read the run until it has `ended_at`. The questions are asked as a visitor asks, by the user ' +
      '`question-sets`, and what they cost is counted for the admin key.',
    success: { description: 'The run, with no answer yet', schema: responses.QuestionRun },
    failures: { ...UNKNOWN_SET, 409: 'A run goes on' },
  },
  getQuestionRun: {
    summary: 'Read a run of a question set',
    success: { description: 'The run, and the answers so far', schema: responses.QuestionRun },
    failures: { 404: 'There is no such set or run' },
  },
  stepQuestionRun: {
    summary: 'Go on with a run of a question set',
    description:
      'Asks up to 28 questions more, unless somebody does already, and answers at once with what is there. Whoever waits for a run calls it ' +
      'until there is an `ended_at`; without it the run goes on once a minute.',
    success: { description: 'The run, and the answers so far', schema: responses.QuestionRun },
    failures: { 404: 'There is no such set or run' },
  },
  endQuestionRun: {
    summary: 'End a run of a question set',
    description: 'Before all of its questions are asked. What was answered stays.',
    success: { description: 'The run', schema: responses.QuestionRun },
    failures: { 404: 'There is no such set or run' },
  },
  noteImport: {
    summary: 'Say that an import has ended',
    description:
      'Sets with `after_import` that ask about the collection are asked within a minute. Imports of Parley say so themselves.',
    success: { description: 'It is noted', schema: responses.Imported },
  },
  listSources: {
    summary: 'List sources',
    description:
      'Websites, buckets of R2 and Git archives that are read again by themselves, and how their last runs went.',
    success: { description: 'All of them', schema: responses.Sources },
  },
  putSource: {
    summary: 'Register a source, or change how it is read',
    description:
      'Its pages are read within a minute, and again as often as `every_minutes` says: only those that changed, as their ' +
      '`ETag`, `Last-Modified` and content tell. The host must be among ALLOWED_HOSTS, and a bucket bound in wrangler.toml. ' +
      'A change reads all pages anew.',
    success: { description: 'The source as it is stored', schema: responses.Source },
  },
  deleteSource: {
    summary: 'Remove a source',
    description: 'Its documents stay.',
    success: { description: 'The source that it was', schema: responses.Source },
    failures: UNKNOWN_SOURCE,
  },
  runSource: {
    summary: 'Read a source now',
    description:
      'Reads up to 20 pages. While the source is `reading`, ask again, or leave the rest to the next minutes.',
    success: { description: 'The source, and how its run goes', schema: responses.Source },
    failures: { ...UNKNOWN_SOURCE, 503: 'The database or the object does not answer' },
  },
  reseal: {
    summary: 'Seal stored credentials under the present encryption key',
    description: 'After a change of `ENCRYPTION_KEY`. It can be called again at any time.',
    success: { description: 'All are sealed under it', schema: responses.Resealed },
  },
  reconcileVectors: {
    summary: 'Compare the vectors of a collection with Vectorize, and send again what differs',
    description: 'An answer takes 20 seconds at most; while it is not `done`, ask again with its `after`.',
    success: { description: 'What was found', schema: responses.Reconciled },
    failures: {
      404: 'There is no such collection',
      503: 'Vectorize does not answer',
    },
  },
  countBackup: {
    summary: 'Count what a backup holds besides collections',
    description:
      'The command line backs up and restores with these routes: `parley backup`, `parley restore`.',
    success: { description: 'Rows by kind', schema: responses.BackupCounts },
  },
  readBackup: {
    summary: 'Read rows for a backup',
    description:
      'Rows of one kind, whoever they belong to, in the order of their primary key. Secrets, and the values of API keys, are ' +
      'not among them. Collections and their documents have routes of their own.',
    success: { description: 'A page of rows', schema: responses.BackupPage },
  },
  readDocuments: {
    summary: 'Read documents for a backup',
    description:
      'Pages of about 4 MB, so a collection of any size can be read, and reading can go on where it broke off. Vectors are ' +
      'among the fields.',
    success: { description: 'A page of documents', schema: responses.BackupDocuments },
    failures: { 404: 'There is no such collection' },
  },
  restoreBackup: {
    summary: 'Store rows of a backup',
    description:
      'A row that is there already stays as it is, so a request can be repeated. Store `conversations` after their history ' +
      'collections, and `turns` and `feedback` after `conversations`. A key gets its old id and a new value.',
    success: { description: 'How many were stored', schema: responses.Restored },
    failures: {
      404: 'The history collection of a conversation is missing',
      409: 'Another key has the id of a restored one',
    },
  },
}
