/** Requests of CopilotKit's client to its runtime, other than runs. */
import { listAssistants } from '../../registry/assistants'
import { readJson } from '../http/body'
import { admitAsker, openHere, openParties } from '../http/chat-names'
import { json } from '../http/deliver'
import type { OpenCall } from '../http/router'
import { runningTurn, stopChat, turnsOf } from '../shared/assistant'
import { streamTurn } from '../shared/stream'
import { agUiEncoder, reopened } from './encoder'
import { readRun } from './request'

/** GET /info: the assistants that the key may ask, as agents. */
export async function info(call: OpenCall): Promise<Response> {
  const { env, record } = call
  const access = await admitAsker(call)
  const open = (await listAssistants(env)).filter((assistant) => openHere(access, assistant, record))
  return json({
    version: '1.0',
    mode: 'sse',
    audioFileTranscriptionEnabled: false,
    agents: Object.fromEntries(
      open.map(({ name }) => [name, { name, description: `Answers from ${name}.`, className: 'HttpAgent' }]),
    ),
  })
}

/** Reopens a thread: sends the earlier messages, and the answer that is being written. */
export async function connect(call: OpenCall): Promise<Response> {
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

export async function stop(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  return json({ stopped: await stopChat(parties, call.path.chat ?? '') })
}
