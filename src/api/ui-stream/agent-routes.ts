/**
 * The chat of Cloudflare's agents: `useAgent` and `useAgentChat` of the package `agents`. The hooks build the address,
 * `/agents/ASSISTANT/CHAT`: a WebSocket, and `/get-messages` below it.
 */
import { ApiError } from '../../errors'
import { textOf } from '../../lib/parts'
import { emptyTurn, fold } from '../../turn/fold'
import { openParties } from '../http/chat-names'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { runningTurn } from '../shared/chats'
import { AgentSocket } from './agent-socket'
import { messagesOfChat } from './history'
import { messageId } from './message-id'
import { chatName } from './request'

/** Checks the key before the socket opens, so that a refused caller gets an HTTP status. */
export async function connect(call: OpenCall): Promise<Response> {
  const { assistant } = await openParties(call)
  if (call.request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    throw new ApiError(400, 'This address takes WebSockets: connect to it with `useAgent`.')
  }
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  new AgentSocket(call, server, messages).open(assistant.name)
  return new Response(null, { status: 101, webSocket: client })
}

/** The hook resumes only an answer, so the list includes the question that is being answered. */
export async function messages(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const name = chatName(call.path.chat)
  if (name === undefined) return json([])
  const said = await messagesOfChat(parties, name)
  const read = await runningTurn(parties, name)
  if (!read) return json(said)
  const turn = emptyTurn()
  try {
    for (const event of (await read()) ?? []) fold(turn, event)
  } finally {
    await read.stop()
  }
  const place = { conversation_id: turn.conversationId, turn: turn.turn }
  const parts = [{ type: 'text', text: textOf(turn.question) }]
  return json([...said, { id: `${messageId(place)}.q`, role: 'user', metadata: place, parts }])
}
