/** The UI message stream: the protocol of the AI SDK's chat widgets (contract 3.2). */
import { type App, ASKS, openRoute, register } from '../http/router'
import { ask, askText, connect, history, messages, rate, resume, stop } from './routes'

/**
 * Assistant names from the hook have no underscore. This excludes OpenSearch's addresses of an index named `agents`,
 * whose next segment begins with one.
 */
const AGENT = '/agents/:assistant{[^_/]+}/:chat'

export const mountUiStream = (app: App): void =>
  register(app, [
    openRoute('POST', '/ui/:assistant', ask, ASKS),
    openRoute('POST', '/ui/:assistant/text', askText, ASKS),
    openRoute('POST', '/ui/:assistant/feedback', rate),
    openRoute('GET', '/ui/:assistant', resume),
    openRoute('GET', '/ui/:assistant/:chat/stream', resume),
    openRoute('GET', '/ui/:assistant/:chat/messages', history),
    openRoute('POST', '/ui/:assistant/:chat/stop', stop),
    openRoute('GET', AGENT, connect),
    openRoute('GET', `${AGENT}/get-messages`, messages),
  ])
