/**
 * What the reference says of a route that is not Parley's own. The examples of a wire are in the order in which they can
 * be run; a test runs them, and compares the routes with those that are served.
 *
 * @typedef {object} WireRoute
 * @property {string} method the methods that are answered alike, such as `GET, POST`; the example uses the first
 * @property {string} path in Hono's syntax
 * @property {string} what it does, as a sentence
 * @property {string} send path and query of the example
 * @property {string} [query] of the example, where its path is the usual one
 * @property {unknown} [body] of the example: text, or a value to send as JSON
 * @property {true | 401 | 404 | 501} [refused] the example is answered with an error: 400, or this status
 * @property {'stream'} [gives] what the reply is, where it is not JSON
 *
 * @typedef {object} WireGroup
 * @property {string} title
 * @property {string} [about] Markdown
 * @property {WireRoute[]} routes
 *
 * @typedef {Omit<WireGroup, 'routes'> & { routes: ReturnType<typeof route>[] }} Routes a group as it is written
 *
 * @typedef {object} Wire
 * @property {string} name of the page, below /docs/
 * @property {string} title
 * @property {string} about Markdown
 * @property {'X-TYPESENSE-API-KEY' | 'Authorization'} header that the key is sent in
 * @property {WireGroup[]} groups
 */

/**
 * @param {string} method
 * @param {string} path
 * @param {string} what
 * @param {Partial<WireRoute>} [example] with `send` only where the names of the wire do not make it of the path
 */
export const route = (method, path, what, example = {}) => ({ method, path, what, ...example })

/**
 * @param {Omit<Wire, 'groups'> & { groups: Routes[], names: Record<string, string> }} given `names`: what stands for the parameters of paths in examples, by the parameter or the end
 *   of a path with it; the first that fits counts
 * @returns {Wire}
 */
export function wire({ names, groups, ...rest }) {
  const named = (/** @type {string} */ path) =>
    Object.entries(names)
      .reduce((all, [parameter, name]) => all.replace(parameter, name), path)
      .replace(/\{[^}]*\}/g, '')
  const whole = (/** @type {ReturnType<typeof route>} */ one) => ({
    ...one,
    send: one.send ?? named(one.path) + (one.query ? `?${one.query}` : ''),
  })
  return { ...rest, groups: groups.map((group) => ({ ...group, routes: group.routes.map(whole) })) }
}

/** @type {Record<string, { send?: string, body?: unknown, stream?: boolean }>} */
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
