/** AG-UI, and the routes of CopilotKit's runtime on it (contract 3.6). */
import { type App, register } from '../http/route'
import { connect, info, stop } from './copilotkit'
import { run } from './run'

export const mountAgUi = (app: App): void =>
  register(app, [
    { method: 'POST', path: '/agui/:assistant', open: true, begins: () => true, handle: run },
    { method: 'GET', path: '/copilotkit/info', open: true, handle: info },
    { method: 'POST', path: '/copilotkit/agent/:assistant/run', open: true, begins: () => true, handle: run },
    { method: 'POST', path: '/copilotkit/agent/:assistant/connect', open: true, handle: connect },
    { method: 'POST', path: '/copilotkit/agent/:assistant/stop/:chat', open: true, handle: stop },
  ])
