/** Examples of Parley's own routes, by the operation's name in openapi.json. A route without one here is shown with its path. */

/** @type {Record<string, { send?: string, body?: unknown, stream?: boolean }>} */
export const ownExamples = {
  ask: {
    body: { question: 'How does Parley store history?', model: 'docs', collections: ['docs'] },
    stream: true,
  },
  listConversations: { send: '/conversations?limit=10' },
  renameConversation: { body: { title: 'About history' } },
  followConversation: { stream: true },
  traceConversation: { send: '/conversations/CONVERSATION/trace' },
  deleteUserConversations: { send: '/users/ada/conversations' },
  putAssistant: {
    send: '/assistants/help',
    body: { model: 'docs', collections: ['docs'], questions: ['How do I start Parley?'] },
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
}
