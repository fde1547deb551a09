/** The UI message stream: the protocol of the AI SDK's chat widgets (contract 3.2). */
import { type App, register } from '../http/router'
import { ask, askText, connect, history, messages, rate, resume, stop } from './routes'

/**
 * Assistant names from the hook have no underscore. This excludes OpenSearch's addresses of an index named `agents`,
 * whose next segment begins with one.
 */
const AGENT = '/agents/:assistant{[^_/]+}/:chat'

export const mountUiStream = (app: App): void =>
  register(app, [
    { method: 'POST', path: '/ui/:assistant', open: true, begins: () => true, handle: ask },
    { method: 'POST', path: '/ui/:assistant/text', open: true, begins: () => true, handle: askText },
    { method: 'POST', path: '/ui/:assistant/feedback', open: true, handle: rate },
    { method: 'GET', path: '/ui/:assistant', open: true, handle: resume },
    { method: 'GET', path: '/ui/:assistant/:chat/stream', open: true, handle: resume },
    { method: 'GET', path: '/ui/:assistant/:chat/messages', open: true, handle: history },
    { method: 'POST', path: '/ui/:assistant/:chat/stop', open: true, handle: stop },
    { method: 'GET', path: AGENT, open: true, handle: connect },
    { method: 'GET', path: `${AGENT}/get-messages`, open: true, handle: messages },
  ])
