/**
 * What the reference says of a route that is not Parley's own, as the files beside this one have it. The examples of a wire are in the
 * order in which they can be run; a test runs them, and compares the routes with those that are served.
 *
 * @typedef {object} WireRoute
 * @property {string} method the methods that are answered alike, such as `GET, POST`; the example uses the first
 * @property {string} path in Hono's syntax
 * @property {string} what it does, as a sentence
 * @property {string} send path and query of the example
 * @property {unknown} [body] of the example: text, or a value to send as JSON
 * @property {true | 401 | 404 | 501} [refused] the example is answered with an error: 400, or this status
 * @property {'stream'} [gives] what the reply is, where it is not JSON
 *
 * @typedef {object} WireGroup
 * @property {string} title
 * @property {string} [about] Markdown
 * @property {WireRoute[]} routes
 *
 * @typedef {object} Wire
 * @property {string} name of the page, below /docs/
 * @property {string} title
 * @property {string} about Markdown
 * @property {'X-TYPESENSE-API-KEY' | 'Authorization'} header that the key is sent in
 * @property {WireGroup[]} groups
 */
import { parse } from 'yaml'

/**
 * Reads a wire. An entry begins with its route and what that does: `GET /health: Says whether Parley is up.`
 * @param {string} yaml with `names`: what stands for the parameters of paths in examples, by the parameter or the end of a path with
 *   it; the first that fits counts. An example has `send` only where these do not make it of the path
 * @returns {Wire}
 */
export function wireOf(yaml) {
  const { names, groups, ...rest } = parse(yaml)
  const named = (/** @type {string} */ path) =>
    Object.entries(names)
      .reduce((all, [parameter, name]) => all.replace(parameter, name), path)
      .replace(/\{[^}]*\}/g, '')
  const routeOf = (/** @type {Record<string, any>} */ entry) => {
    const [[route = '', what] = [], ...example] = Object.entries(entry)
    const [, method, path = ''] = /^(.+?) (\/.*)$/.exec(route) ?? []
    const { query, ...given } = Object.fromEntries(example)
    return { method, path, what, send: named(path) + (query ? `?${query}` : ''), ...given }
  }
  return {
    ...rest,
    groups: groups.map((/** @type {{ routes: Record<string, any>[] }} */ group) => ({
      ...group,
      routes: group.routes.map(routeOf),
    })),
  }
}

/**
 * Examples of Parley's own routes, by operation, where they are not the usual ones.
 * @type {Record<string, { send?: string, body?: unknown, stream?: boolean }>}
 */
export const ownExamples = {
  ask: {
    body: { question: 'How does Parley store history?', model: 'docs', collections: ['docs'] },
    stream: true,
  },
  listConversations: { send: '/conversations?limit=10' },
  renameConversation: { body: { title: 'About history' } },
  followConversation: { stream: true },
  giveFeedback: {
    send: '/conversations/CONVERSATION/turns/1/feedback',
    body: { rating: 'down', reasons: ['incomplete'], comment: 'Which file?' },
  },
  deleteFeedback: { send: '/conversations/CONVERSATION/turns/1/feedback' },
  traceConversation: { send: '/conversations/CONVERSATION/trace' },
  deleteUserConversations: { send: '/users/ada/conversations' },
  putAssistant: {
    send: '/assistants/help',
    body: { model: 'docs', collections: ['docs'], questions: ['How do I start Parley?'], search: true },
  },
  getAssistant: { send: '/assistants/default' },
  deleteAssistant: { send: '/assistants/help' },
  putSource: { send: '/sources/site', body: { url: 'https://docs.example.com/', collection: 'site' } },
  deleteSource: { send: '/sources/site' },
  runSource: { send: '/sources/site/run' },
  frontOfAssistant: { send: '/a/default' },
  askAssistant: {
    send: '/a/default/conversations',
    body: { question: 'How do I start Parley?' },
    stream: true,
  },
  findDocuments: { send: '/a/help/search?q=how+to+sta' },
  handOver: {
    send: '/a/help/conversations/CONVERSATION/handover',
    body: { contact: 'ann@example.com', message: 'Please call me.' },
  },
  replyAsPerson: {
    send: '/conversations/CONVERSATION/replies',
    body: { author: 'Mary', message: 'We deliver on Monday.' },
  },
  putWebhook: {
    send: '/webhooks/crm',
    body: { url: 'https://crm.example.com/parley', events: ['turn.finished', 'feedback'] },
  },
  deleteWebhook: { send: '/webhooks/crm' },
  testWebhook: { send: '/webhooks/crm/test' },
  sendDelivery: { send: '/webhooks/deliveries/MESSAGE' },
  putQuestionSet: {
    send: '/question_sets/basics',
    body: {
      questions: [{ question: 'Which port does Parley listen on?', answer: '8108' }],
      asks: { assistant: 'default' },
      every_hours: 24,
    },
  },
  getQuestionSet: { send: '/question_sets/basics' },
  deleteQuestionSet: { send: '/question_sets/basics' },
  runQuestionSet: { send: '/question_sets/basics/runs', body: {} },
  getQuestionRun: { send: '/question_sets/basics/runs/RUN' },
  stepQuestionRun: { send: '/question_sets/basics/runs/RUN/step' },
  endQuestionRun: { send: '/question_sets/basics/runs/RUN/end' },
  noteImport: { send: '/question_sets', body: { collection: 'docs' } },
}
