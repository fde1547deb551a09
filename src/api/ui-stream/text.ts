/** POST /ui/{assistant}/text: an answer as plain text, for `TextStreamChatTransport` and `useCompletion` of the AI SDK. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { parseJson, readText } from '../edge/body'
import { openParties } from '../edge/chat-parties'
import type { OpenCall } from '../edge/route'
import { askChat } from '../turn/chats'
import { requireOwn } from '../turn/foreign'
import { chatReader } from '../turn/read'
import { streamTurn, type TurnEncoder } from '../turn/stream'
import { readUiRequest } from './request'

export async function askText(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const bodyText = await readText(call.request)
  const body = parseJson(bodyText)
  requireOwn(body, 'ui-stream', parties.assistant.name)
  const { chat, question, transcript } = readUiRequest(asMessages(body))
  const { events, resume, conversationId } = await askChat(call, parties, {
    chat,
    question,
    transcript,
    protocol: 'ui-stream',
    bodyText,
  })
  return streamTurn(chatReader(events, resume), new TextEncoding(), {
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-parley-conversation-id': conversationId },
    // There is nothing that a client of plain text would not show.
    heartbeat: '',
    opensAt: 'text',
  })
}

/** `useCompletion` sends a `prompt`. */
const asMessages = (body: unknown): unknown =>
  typeof body === 'object' && body !== null && 'prompt' in body && !('messages' in body)
    ? { messages: [{ role: 'user', content: body.prompt }] }
    : body

class TextEncoding implements TurnEncoder {
  encode(event: TurnEvent): string {
    return event.type === 'delta' ? event.text : ''
  }

  /** Plain text has no place for an error but the text. */
  fail({ message }: Failure): string {
    return `\n\n${message}`
  }
}
