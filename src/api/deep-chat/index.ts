/** deep-chat in its own format (contract 3.4). */

import { inFull } from '../../errors'
import { textOf } from '../../lib/parts'
import { openParties } from '../http/chat-names'
import { deliver } from '../http/deliver'
import { type FailedRequest, failureOf, json } from '../http/response'
import { type App, type OpenCall, type Route, register } from '../http/route'
import { askChat, openQuestion, turnsOf } from '../shared/chats'
import { chatReader } from '../shared/read'
import { streamTurn, wholeTurn } from '../shared/stream'
import { DeepChatEncoder, messageOf } from './encoder'
import { readDeepChat } from './request'

async function ask(call: OpenCall): Promise<Response> {
  const { request } = call
  const { parties, bodyText, body } = await openQuestion(call, 'deep-chat', (given) => ({
    name: readDeepChat(given).chat,
  }))
  const asked = readDeepChat(body)
  const { events, resume, conversationId, delivery } = await askChat(parties, {
    ...asked,
    labels: true,
    protocol: 'deep-chat',
    bodyText,
  })
  const headers = { 'x-parley-conversation-id': conversationId }
  const read = chatReader(events, resume)
  // With `stream: true` deep-chat accepts server-sent events; otherwise it accepts anything.
  if (request.headers.get('accept')?.includes('text/event-stream')) {
    return streamTurn(read, new DeepChatEncoder(parties.assistant), { headers, opensAt: 'text' })
  }
  const turn = await wholeTurn(read)
  return deliver(messageOf(turn, parties.assistant), headers, delivery(turn.turn))
}

/** The earlier messages, for the page's `loadHistory`. */
async function history(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const { turns } = await turnsOf(parties, call.path.chat ?? '')
  return json(
    turns
      .filter(({ answer }) => answer.length > 0)
      .flatMap((turn) => [
        { role: 'user', text: textOf(turn.question) },
        { role: 'ai', ...messageOf(turn, parties.assistant) },
      ]),
  )
}

/** deep-chat shows the text in `error`. */
function refusal(error: unknown, request: FailedRequest): Response {
  const failure = failureOf(error, request)
  const response = json({ error: inFull(failure) }, failure.status)
  if (failure.retryAfter !== undefined) response.headers.set('retry-after', String(failure.retryAfter))
  return response
}

const route = (
  method: Route['method'],
  path: string,
  handle: (call: OpenCall) => Promise<Response>,
): Route => ({
  method,
  path,
  open: true,
  begins: () => method === 'POST',
  handle: (call) => handle(call).catch((error) => refusal(error, call.record)),
})

export const mountDeepChat = (app: App): void =>
  register(app, [
    route('POST', '/deep-chat/:assistant', ask),
    route('GET', '/deep-chat/:assistant/:chat', history),
  ])
