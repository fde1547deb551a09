/** The UI message stream: the protocol of the AI SDK's chat widgets (contract 3.2). */
import { type App, register } from '../edge/route'
import { rate } from './feedback'
import { history } from './history'
import { ask, resume, stop } from './routes'

export const mountUiStream = (app: App): void =>
  register(app, [
    { method: 'POST', path: '/ui/:assistant', open: true, begins: () => true, handle: ask },
    { method: 'POST', path: '/ui/:assistant/feedback', open: true, handle: rate },
    { method: 'GET', path: '/ui/:assistant', open: true, handle: resume },
    { method: 'GET', path: '/ui/:assistant/:chat/stream', open: true, handle: resume },
    { method: 'GET', path: '/ui/:assistant/:chat/messages', open: true, handle: history },
    { method: 'POST', path: '/ui/:assistant/:chat/stop', open: true, handle: stop },
  ])
