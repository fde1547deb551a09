/** AG-UI, and the routes of CopilotKit's runtime on it (contract 3.6). */

import { listAssistants } from '../../registry/assistants'
import { readJson } from '../http/body'
import { admitAsker, openHere, openParties } from '../http/chat-names'
import { type App, ASKS, type OpenCall, openRoute, register } from '../http/router'
import { askChat, openQuestion, resumptionInChat, runningTurn, stopChat, turnsOf } from '../shared/assistant'
import { streamAnswer, streamTurn } from '../shared/stream'
import { agUiEncoder, reopened } from './encoder'
import { readQuestion, readRun } from './request'

export const mountAgUi = (app: App): void =>
  register(app, [
    openRoute('POST', '/agui/:assistant', run, ASKS),
    openRoute('GET', '/copilotkit/info', info),
    openRoute('POST', '/copilotkit/agent/:assistant/run', run, ASKS),
    openRoute('POST', '/copilotkit/agent/:assistant/connect', connect),
    openRoute('POST', '/copilotkit/agent/:assistant/stop/:chat', async (call) => ({
      stopped: await stopChat(await openParties(call), call.path.chat ?? ''),
    })),
  ])

async function run(call: OpenCall): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'agui', (given) => ({
    name: readRun(given).thread,
  }))
  const { question, transcript, tools, decided, ...asked } = readQuestion(body)
  const { assistant, access } = parties
  const mayBring = access.owner === 'admin' || assistant.overrides.includes('tools')
  if (tools.length > 0 && !mayBring) asked.ignored.push('tools')
  const resumed = decided && (await resumptionInChat(parties, asked.thread, decided))
  const answering = await askChat(parties, {
    chat: asked.thread,
    question,
    transcript,
    ...(mayBring && { tools }),
    ...resumed,
    protocol: 'agui',
    bodyText,
  })
  return streamAnswer(answering, agUiEncoder(asked, parties.assistant), { opensAt: 'event' })
}

// =============================================================================
// Requests of CopilotKit's client to its runtime, other than runs.

/** GET /info: the assistants that the key may ask, as agents. */
async function info(call: OpenCall): Promise<object> {
  const { env, record } = call
  const access = await admitAsker(call)
  const open = (await listAssistants(env)).filter((assistant) => openHere(access, assistant, record))
  return {
    version: '1.0',
    mode: 'sse',
    audioFileTranscriptionEnabled: false,
    agents: Object.fromEntries(
      open.map(({ name }) => [name, { name, description: `Answers from ${name}.`, className: 'HttpAgent' }]),
    ),
  }
}

/** Reopens a thread: sends the earlier messages, and the answer that is being written. */
async function connect(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const { messages: _, ...asked } = readRun(await readJson(call.request))
  const running = await runningTurn(parties, asked.thread)
  const { turns } = await turnsOf(parties, asked.thread)
  const { assistant } = parties
  if (running)
    return streamTurn(running, agUiEncoder(asked, assistant, turns), { headers: {}, opensAt: 'once' })
  const stream = reopened(asked, assistant, turns)
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}
