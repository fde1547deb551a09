/** Asking, resuming and stopping on the UI message stream. */

import type { Chat } from '../../conversation/ask'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import { type ChatParties, findChat, isConversationId, isWeaklyNamed, openParties } from '../http/chat-names'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { askAssistant } from '../shared/assistant'
import { askedAgain, inChat, openQuestion, runningTurn, stopChat } from '../shared/chats'
import { overrideRights, planOverrides } from '../shared/overrides'
import { chatReader } from '../shared/read'
import { streamTurn } from '../shared/stream'
import { TEXT_DELTA_WORDING, UiStreamEncoder } from './encoder'
import { placeOfMessage } from './message-id'
import { chatName, lastKeptTurn, readUiRequest, sendsWholeChat } from './request'
import { PLAIN_WORDING, TextEncoderOfTurn } from './text'

/** assistant-ui picks its decoder by this header. */
const VERSION = { 'x-vercel-ai-ui-message-stream': 'v1' }

export const ask = (call: OpenCall): Promise<Response> => answer(call, false)

export const askText = (call: OpenCall): Promise<Response> => answer(call, true)

async function answer(call: OpenCall, isText: boolean): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'ui-stream', (given) => {
    const { chat, held } = readUiRequest(given)
    const place = chat === undefined ? placeOfHeld(held) : undefined
    return { name: chat ?? place?.conversationId, after: place?.turn }
  })
  const { chat: given, rewrites, held, untold, ...asked } = readUiRequest(body)
  const citations = citationsOf(call)
  const { access, assistant } = parties
  const isWeak = given !== undefined && sendsWholeChat(body) && (await isWeaklyNamed(parties, given))
  const chat = isWeak ? undefined : given
  const rights = overrideRights(assistant, access.owner === 'admin')
  const { changes, suggests } = planOverrides(asked.overrides, rights)
  const { conversationId, events, words, resume } = await inChat(
    parties,
    () => (chat === undefined ? heldChat(parties, held) : findChat(parties, chat, undefined, !rewrites)),
    (found) => {
      const after = found && rewrites && lastKeptTurn(rewrites, found.conversationId)
      const again = untold && chat !== undefined ? askedAgain(asked) : undefined
      const replaces = rewrites ? (after === undefined ? {} : { after }) : again
      return askAssistant({
        ...parties,
        question: asked.question,
        transcript: asked.transcript,
        changes,
        suggests,
        chat: found && replaces ? { ...found, after: undefined } : found,
        ...(found && replaces && { replaces }),
        labels: citations === 'markdown',
        words: isText ? PLAIN_WORDING : citations === 'parts' ? TEXT_DELTA_WORDING : undefined,
        protocol: 'ui-stream',
        bodyText,
      })
    },
  )
  if (isText) {
    return streamTurn(chatReader(events, resume, words), new TextEncoderOfTurn(), {
      // A proxy that compresses text would hold it back until there is enough of it.
      headers: {
        'content-type': TEXT,
        'content-encoding': 'identity',
        'x-parley-conversation-id': conversationId,
      },
      opensAt: 'text',
      heartbeat: '',
    })
  }
  return streamTurn(chatReader(events, resume, words), encoderFor(assistant, citations), {
    headers: { ...VERSION, 'x-parley-conversation-id': conversationId },
    opensAt: 'event',
  })
}

/** Streams the running answer from its beginning, because clients rebuild its message; 204 if none is running. */
export async function resume(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const encoder = encoderFor(parties.assistant, citationsOf(call))
  const name = nameIn(call)
  const running = name === undefined ? undefined : await runningTurn(parties, name)
  if (!running) return new Response(null, { status: 204 })
  return streamTurn(running, encoder, { headers: VERSION, opensAt: 'once' })
}

/** Stops the running answer for all its readers. */
export async function stop(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const name = nameIn(call)
  return json({ stopped: name !== undefined && (await stopChat(parties, name)) })
}

const nameIn = ({ path, query }: OpenCall): string | undefined => chatName(path.chat ?? query.chatId)

/**
 * The chat of a client that names none, by the last answer in its transcript. The question continues from that
 * answer.
 * @returns undefined if there is none, or if the conversation is not the asker's
 */
async function heldChat(parties: ChatParties, held: string | undefined): Promise<Chat | undefined> {
  const place = placeOfHeld(held)
  if (place === undefined) return undefined
  const { conversationId, named, seen } = await findChat(parties, place.conversationId, place.turn)
  if (named || conversationId !== place.conversationId) return undefined
  return { conversationId, named, after: place.turn, ...(seen && { seen }) }
}

/** The place of an answer. Ids of other programs name no chat here. */
function placeOfHeld(held: string | undefined) {
  const place = held === undefined ? undefined : placeOfMessage(held)
  return place && isConversationId(place.conversationId) ? place : undefined
}

const TEXT = 'text/plain; charset=utf-8'

const CITATIONS = ['parts', 'markdown'] as const
export type Citations = (typeof CITATIONS)[number]

/** The header is for clients that change the URL when they resume. @throws ApiError 400 */
export function citationsOf({ request, query }: OpenCall): Citations {
  const asked = request.headers.get('x-parley-citations') ?? query.citations ?? 'parts'
  const known = CITATIONS.find((each) => each === asked)
  if (known === undefined) throw new ApiError(400, '`citations` must be `parts` or `markdown`.')
  return known
}

const encoderFor = (assistant: Assistant, citations: Citations): UiStreamEncoder =>
  new UiStreamEncoder({ fields: assistant, citations })
