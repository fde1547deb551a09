/**
 * The chat of Cloudflare's agents: `useAgent` and `useAgentChat` of the package `agents`. The hooks build the address,
 * `/agents/ASSISTANT/CHAT`: a WebSocket, and `/get-messages` below it.
 */
import { objectCalls } from '../../durable/object-calls'
import { objectStubs } from '../../durable/object-stubs'
import { ApiError } from '../../errors'
import { textOf } from '../../lib/parts'
import { emptyTurn, fold } from '../../turn/fold'
import { openParties } from '../http/chat-names'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { runningTurn } from '../shared/chats'
import { messagesOfChat } from './history'
import { messageId } from './message-id'
import { OPENED, sealSocket } from './opened-socket'
import { chatName } from './request'

/** Checks the key before the socket opens, so that a refused caller gets an HTTP status. */
export async function connect(call: OpenCall): Promise<Response> {
  const { assistant } = await openParties(call)
  const { env, request } = call
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    throw new ApiError(400, 'This address takes WebSockets: connect to it with `useAgent`.')
  }
  const sealed = await sealSocket(call, assistant.name)
  // An object for each socket: nobody else waits for its messages, and none is held up by another's.
  const stubs = objectStubs<Pick<Fetcher, 'fetch'>>(env.AGENT_SOCKET, env, crypto.randomUUID())
  const { webSocket } = await objectCalls(stubs, { fetch: 'once' }).fetch('https://agent-socket', {
    headers: { upgrade: 'websocket', [OPENED]: sealed },
  })
  return new Response(null, { status: 101, webSocket })
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
