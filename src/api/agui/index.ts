/** AG-UI, and the routes of CopilotKit's runtime on it (contract 3.6). */

import { type App, type OpenCall, register } from '../http/router'
import { askChat, openQuestion } from '../shared/assistant'
import { chatReader, streamTurn } from '../shared/stream'
import { connect, info, stop } from './copilotkit'
import { agUiEncoder } from './encoder'
import { readQuestion, readRun } from './request'

export const mountAgUi = (app: App): void =>
  register(app, [
    { method: 'POST', path: '/agui/:assistant', open: true, begins: () => true, handle: run },
    { method: 'GET', path: '/copilotkit/info', open: true, handle: info },
    { method: 'POST', path: '/copilotkit/agent/:assistant/run', open: true, begins: () => true, handle: run },
    { method: 'POST', path: '/copilotkit/agent/:assistant/connect', open: true, handle: connect },
    { method: 'POST', path: '/copilotkit/agent/:assistant/stop/:chat', open: true, handle: stop },
  ])

export async function run(call: OpenCall): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'agui', (given) => ({
    name: readRun(given).thread,
  }))
  const { question, transcript, ...asked } = readQuestion(body)
  const { events, resume, conversationId } = await askChat(parties, {
    chat: asked.thread,
    question,
    transcript,
    protocol: 'agui',
    bodyText,
  })
  return streamTurn(chatReader(events, resume), agUiEncoder(asked, parties.assistant), {
    headers: { 'x-parley-conversation-id': conversationId },
    opensAt: 'event',
  })
}
