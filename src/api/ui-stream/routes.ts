/** Asking, resuming and stopping on the UI message stream. */

import { conversationObject } from '../../conversation/conversation-object'
import { ApiError, type Outcome, unwrap } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Asker } from '../../turn/request'
import { namedUser } from '../edge/admit-turn'
import { parseJson, readText } from '../edge/body'
import { type ChatParties, chatIds, findChat } from '../edge/chat-names'
import { admitAsker, openAssistant } from '../edge/open-assistant'
import { json } from '../edge/response'
import type { OpenCall } from '../edge/route'
import { askedAgain } from '../turn/asked-again'
import { askAssistant } from '../turn/assistant'
import { overrideRights, planOverrides } from '../turn/overrides'
import { chatReader } from '../turn/read'
import { streamTurn } from '../turn/stream'
import { UiStreamEncoder } from './encoder'
import { placeOfMessage } from './message-id'
import { chatName, lastKeptTurn, readUiRequest } from './request'
import { TextEncoderOfTurn } from './text'

/** assistant-ui picks its decoder by this header. */
const VERSION = { 'x-vercel-ai-ui-message-stream': 'v1' }

export async function ask(call: OpenCall): Promise<Response> {
  const { record } = call
  const parties = await partiesOf(call)
  const bodyText = await readText(call.request)
  const { chat, rewrites, held, untold, ...asked } = readUiRequest(parseJson(bodyText))
  const citations = citationsOf(call)
  isText(call)
  const { access, assistant } = parties
  const rights = overrideRights(assistant, access.owner === 'admin')
  const { changes, suggests } = planOverrides(asked.overrides, rights)
  const found = chat === undefined ? await heldChat(parties, held) : await findChat(parties, chat)
  const after = found && rewrites && lastKeptTurn(rewrites, found.conversationId)
  const again = untold && chat !== undefined ? askedAgain(asked) : undefined
  const replaces = rewrites ? (after === undefined ? {} : { after }) : again
  const { conversationId, events, resume } = await askAssistant({
    ...parties,
    record,
    question: asked.question,
    transcript: asked.transcript,
    changes,
    suggests,
    ...found,
    ...(found && replaces && { replaces, after: undefined }),
    labels: citations === 'markdown',
    protocol: 'ui-stream',
    bodyText,
  })
  if (isText(call)) {
    return streamTurn(chatReader(events, resume), new TextEncoderOfTurn(), {
      // A server that compresses text would hold it back until there is enough of it.
      headers: {
        'content-type': TEXT,
        'content-encoding': 'identity',
        'x-parley-conversation-id': conversationId,
      },
      opensAt: 'text',
      heartbeat: '',
    })
  }
  return streamTurn(chatReader(events, resume), encoderFor(assistant, citations), {
    headers: { ...VERSION, 'x-parley-conversation-id': conversationId },
    opensAt: 'event',
  })
}

/** Streams the running answer from its beginning, because clients rebuild its message; 204 if none is running. */
export async function resume(call: OpenCall): Promise<Response> {
  const parties = await partiesOf(call)
  const encoder = encoderFor(parties.assistant, citationsOf(call))
  const events = await atChat(call, parties, (id, asker) => conversationObject(call.env, id).running(asker))
  if (!events) return new Response(null, { status: 204 })
  return streamTurn(chatReader(events), encoder, {
    headers: VERSION,
    opensAt: 'once',
  })
}

/** Stops the running answer for all its readers. */
export async function stop(call: OpenCall): Promise<Response> {
  const parties = await partiesOf(call)
  const stopped = await atChat(call, parties, (id, asker) => conversationObject(call.env, id).stop(asker))
  return json({ stopped: stopped ?? false })
}

export async function partiesOf({ env, request, record, path, query }: OpenCall): Promise<ChatParties> {
  const access = await admitAsker(env, request, record)
  const assistant = await openAssistant(env, access, path.assistant ?? '', record)
  return { env, request, access, assistant, user: namedUser(request, query) }
}

/**
 * The chat of a client that names none, by the last answer in its transcript. The question goes on after that answer.
 * @returns undefined if there is none, or if the conversation is not the asker's
 */
async function heldChat(parties: ChatParties, held: string | undefined) {
  const place = held === undefined ? undefined : placeOfMessage(held)
  if (place === undefined) return undefined
  const { conversationId, named } = await findChat(parties, place.conversationId)
  if (named || conversationId !== place.conversationId) return undefined
  return { conversationId, named, after: place.turn }
}

/** Calls the conversation of a chat. @returns undefined if there is none, or if it returns nothing */
async function atChat<T>(
  { path, query }: OpenCall,
  parties: ChatParties,
  call: (conversationId: string, asker: Asker) => Promise<Outcome<T | null>>,
): Promise<T | undefined> {
  const name = chatName(path.chat ?? query.chatId)
  if (name === undefined) return undefined
  const { asker, ids } = await chatIds(parties, name)
  for (const id of ids) {
    const outcome = await call(id, asker)
    if (!outcome.ok && outcome.error.status === 404) continue
    const value = unwrap(outcome)
    if (value) return value
  }
  return undefined
}

const TEXT = 'text/plain; charset=utf-8'

/** Whether the answer is to come as plain text. @throws ApiError 400 */
function isText({ query }: OpenCall): boolean {
  const { protocol = 'data' } = query
  if (protocol !== 'data' && protocol !== 'text') {
    throw new ApiError(400, '`protocol` must be `data` or `text`.')
  }
  return protocol === 'text'
}

const CITATIONS = ['parts', 'markdown'] as const
type Citations = (typeof CITATIONS)[number]

/** The header is for clients that change the URL when they resume. @throws ApiError 400 */
function citationsOf({ request, query }: OpenCall): Citations {
  const asked = request.headers.get('x-parley-citations') ?? query.citations ?? 'parts'
  const known = CITATIONS.find((each) => each === asked)
  if (known === undefined) throw new ApiError(400, '`citations` must be `parts` or `markdown`.')
  return known
}

const encoderFor = (assistant: Assistant, citations: Citations): UiStreamEncoder =>
  new UiStreamEncoder({ fields: assistant, citations })
