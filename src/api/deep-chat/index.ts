/** deep-chat in its own format (contract 3.4). */

import * as v from 'valibot'
import { badRequest, inFull } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, textOf } from '../../lib/parts'
import type { Turn } from '../../turn/fold'
import type { TranscriptMessage } from '../../turn/look-back'
import { shaped } from '../http/body'
import { openParties } from '../http/chat-names'
import { failureOf, json, toRetry } from '../http/deliver'
import { type App, ASKS, type OpenCall, openRoute, register } from '../http/router'
import { askChat, openQuestion, turnsOf } from '../shared/assistant'
import { CitationLinks, linkedAnswer, type SourceFields, sourcesOf } from '../shared/sources'
import { frame, streamAnswer, type TurnEncoder, turnEncoder, wholeAnswer } from '../shared/stream'

async function ask(call: OpenCall): Promise<Response> {
  const { request } = call
  const { parties, bodyText, body } = await openQuestion(call, 'deep-chat', (given) => ({
    name: readDeepChat(given).chat,
  }))
  const asked = readDeepChat(body)
  const answering = await askChat(parties, {
    ...asked,
    labels: true,
    protocol: 'deep-chat',
    bodyText,
  })
  // With `stream: true` deep-chat accepts server-sent events; otherwise it accepts anything.
  if (request.headers.get('accept')?.includes('text/event-stream')) {
    return streamAnswer(answering, deepChatEncoder(parties.assistant), { opensAt: 'text' })
  }
  return wholeAnswer(answering, (turn) => messageOf(turn, parties.assistant))
}

/** The earlier messages, for the page's `loadHistory`. */
async function history(call: OpenCall): Promise<object[]> {
  const parties = await openParties(call)
  const { turns } = await turnsOf(parties, call.path.chat ?? '')
  return turns
    .filter(({ answer }) => answer.length > 0)
    .flatMap((turn) => [
      { role: 'user', text: textOf(turn.question) },
      { role: 'ai', ...messageOf(turn, parties.assistant) },
    ])
}

/** deep-chat shows the text in `error`. */
function refuse(error: unknown, { record }: OpenCall): Response {
  const failure = failureOf(error, record)
  return toRetry(json({ error: inFull(failure) }, failure.status), failure)
}

export const mountDeepChat = (app: App): void =>
  register(app, [
    openRoute('POST', '/deep-chat/:assistant', ask, { ...ASKS, refuse }),
    openRoute('GET', '/deep-chat/:assistant/:chat', history, { refuse }),
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

/** @throws ApiError 400 that names the place of the first fault */
function readDeepChat(body: unknown) {
  const { messages, conversation_id: chat } = shaped(Body(), body)
  const asked = messages.at(-1)
  if (asked?.role !== 'user' || !asked.text?.trim()) {
    throw badRequest('The last of `messages` must be the message of a `user`, with a `text`.')
  }
  if (asked.files !== undefined) {
    throw badRequest('Files cannot be read here: send their text.')
  }
  return {
    /** the page's name for the chat, from `additionalBodyProps` */
    ...(chat && { chat }),
    question: asked.text,
    transcript: messages
      .slice(0, -1)
      .flatMap(({ role, text = '' }): TranscriptMessage[] =>
        role === 'user' || role === 'ai'
          ? [{ role: role === 'ai' ? 'assistant' : role, content: contentOf(text) }]
          : [],
      ),
  }
}

// =============================================================================
// Writes a turn in deep-chat's format: pieces of text, with citations as Markdown links.

export const deepChatEncoder = (fields: SourceFields): TurnEncoder =>
  turnEncoder((turn) => {
    const links = new CitationLinks()
    return {
      retrieval: () => void links.cite(sourcesOf(turn.passages, fields)),
      delta: ({ text }) => written(links.add(text)),
      // deep-chat ignores frames without text; a page's `responseInterceptor` can read them.
      done: () => written(links.end()) + frame(extrasOf(turn, fields)),
      fail: ({ message }) => written(links.end()) + frame({ error: message }),
    }
  })

const written = (text: string): string => (text === '' ? '' : frame({ text }))

const extrasOf = ({ conversationId, passages, suggestions }: Turn, fields: SourceFields) => ({
  conversation_id: conversationId,
  sources: sourcesOf(passages, fields).map(({ id, title, url }) => ({ id, title, ...(url && { url }) })),
  ...(suggestions && { followups: suggestions }),
})

/** The whole answer. @param turn one that is done */
export function messageOf(turn: Turn, fields: SourceFields) {
  return { text: linkedAnswer(turn, fields), ...extrasOf(turn, fields) }
}
