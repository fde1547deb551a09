/** deep-chat in its own format (contract 3.4). */

import * as v from 'valibot'
import { ApiError, type Failure, inFull } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import type { TranscriptMessage } from '../../turn/look-back'
import { shaped } from '../http/body'
import { openParties } from '../http/chat-names'
import { deliver, type FailedRequest, failureOf, json } from '../http/deliver'
import { type App, type OpenCall, type Route, register } from '../http/router'
import { askChat, openQuestion, turnsOf } from '../shared/assistant'
import { CitationLinks, linkedAnswer, type SourceFields, sourcesOf } from '../shared/sources'
import { chatReader, streamTurn, type TurnEncoder, wholeTurn } from '../shared/stream'

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

// =============================================================================
// Reads what deep-chat sends: `{messages: [{role, text}], conversation_id}`. Pure.

const Body = once(() =>
  v.looseObject({
    messages: v.array(
      v.looseObject({ role: v.string(), text: v.optional(v.string()), files: v.optional(v.unknown()) }),
    ),
    conversation_id: v.nullish(v.pipe(v.string(), v.maxLength(512))),
  }),
)

interface DeepChatRequest {
  /** the page's name for the chat, from `additionalBodyProps` */
  chat?: string
  question: string
  transcript: TranscriptMessage[]
}

/** @throws ApiError 400 that names the place of the first fault */
function readDeepChat(body: unknown): DeepChatRequest {
  const { messages, conversation_id: chat } = shaped(Body(), body)
  const asked = messages.at(-1)
  if (asked?.role !== 'user' || !asked.text?.trim()) {
    throw new ApiError(400, 'The last of `messages` must be the message of a `user`, with a `text`.')
  }
  if (asked.files !== undefined) {
    throw new ApiError(400, 'Files cannot be read here: send their text.')
  }
  return {
    ...(chat && { chat }),
    question: asked.text,
    transcript: messages
      .slice(0, -1)
      .flatMap(({ role, text = '' }) =>
        role === 'user' || role === 'ai'
          ? [{ role: role === 'ai' ? 'assistant' : role, content: contentOf(text) } as const]
          : [],
      ),
  }
}

// =============================================================================
// Writes a turn in deep-chat's format: pieces of text, with citations as Markdown links.

const frame = (content: unknown): string => `data: ${JSON.stringify(content)}\n\n`

export class DeepChatEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  readonly #turn: Turn = emptyTurn()
  readonly #links = new CitationLinks()

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'retrieval':
        this.#links.cite(sourcesOf(this.#turn.passages, this.#fields))
        return ''
      case 'delta':
        return written(this.#links.add(event.text))
      // deep-chat ignores frames without text; a page's `responseInterceptor` can read them.
      case 'done':
        return written(this.#links.end()) + frame(extrasOf(this.#turn, this.#fields))
      default:
        return ''
    }
  }

  fail({ message }: Failure): string {
    return written(this.#links.end()) + frame({ error: message })
  }
}

const written = (text: string): string => (text === '' ? '' : `data: {"text":${JSON.stringify(text)}}\n\n`)

const extrasOf = ({ conversationId, passages, suggestions }: Turn, fields: SourceFields) => ({
  conversation_id: conversationId,
  sources: sourcesOf(passages, fields).map(({ id, title, url }) => ({ id, title, ...(url && { url }) })),
  ...(suggestions && { followups: suggestions }),
})

/** The whole answer. @param turn one that is done */
export function messageOf(turn: Turn, fields: SourceFields) {
  return { text: linkedAnswer(turn, fields), ...extrasOf(turn, fields) }
}
