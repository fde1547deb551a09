/** Asking, resuming and stopping on the UI message stream. */

import * as v from 'valibot'
import type { Chat } from '../../conversation/ask'
import { giveFeedback } from '../../conversation/conversations'
import { currentTurn } from '../../db/turns'
import { objectCalls, objectStubs } from '../../durable/objects'
import { badRequest } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import { unknownTurn } from '../../turn/errors'
import { callsOf, emptyTurn, eventsOf, fold, foldTurn, type Turn } from '../../turn/fold'
import { askerWith, namedUser } from '../http/admit-turn'
import { parseJson, readText, shaped } from '../http/body'
import {
  admitAsker,
  type ChatParties,
  findChat,
  isConversationId,
  isWeaklyNamed,
  openAssistant,
  openParties,
} from '../http/chat-names'
import type { OpenCall } from '../http/router'
import {
  askAssistant,
  askedAgain,
  inChat,
  openQuestion,
  resumptionOf,
  runningTurn,
  stopChat,
  turnsOf,
} from '../shared/assistant'
import { overrideRights, planOverrides } from '../shared/overrides'
import { linkedAnswer, sourcesOf } from '../shared/sources'
import { streamAnswer, streamTurn } from '../shared/stream'
import {
  calledPart,
  metadataOf,
  PLAIN_WORDING,
  sourcePart,
  suggestionsPart,
  TEXT_DELTA_WORDING,
  textEncoder,
  type UiStreamShape,
  uiStreamEncoder,
} from './encoder'
import { OPENED, sealSocket } from './opened-socket'
import { chatName, lastKeptTurn, messageId, placeOfMessage, readUiRequest, sendsWholeChat } from './request'

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
  const { chat: given, rewrites, held, untold, goesOn, ...asked } = readUiRequest(body)
  const citations = citationsOf(call)
  const { access, assistant } = parties
  const isWeak = given !== undefined && sendsWholeChat(body) && (await isWeaklyNamed(parties, given))
  const chat = isWeak ? undefined : given
  const rights = overrideRights(assistant, access.owner === 'admin')
  const { changes, suggests } = planOverrides(asked.overrides, rights)
  const resumed = goesOn && (await resumption(parties, goesOn))
  const answering = await inChat(
    parties,
    () => {
      if (resumed) return findChat(parties, resumed.conversationId)
      return chat === undefined ? heldChat(parties, held) : findChat(parties, chat, undefined, !rewrites)
    },
    async (found) => {
      const kept = found && rewrites && lastKeptTurn(rewrites, found.conversationId)
      // An answer that waited for its visitor has the id of the turn whose place it took.
      const isAnswer = kept && assistant.tools && !placeOfMessage(rewrites.messageId ?? '')
      const after = isAnswer ? await currentTurn(parties.env.DB, found.conversationId, kept) : kept
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
        asks: true,
        ...resumed?.asked,
        labels: citations === 'markdown',
        words: isText ? PLAIN_WORDING : citations === 'parts' ? TEXT_DELTA_WORDING : undefined,
        protocol: 'ui-stream',
        bodyText,
      })
    },
  )
  if (isText) {
    return streamAnswer(answering, textEncoder, {
      // A proxy that compresses text would hold it back until there is enough of it.
      headers: { 'content-type': TEXT, 'content-encoding': 'identity' },
      opensAt: 'text',
      heartbeat: '',
    })
  }
  const encoder = uiStreamEncoder({ fields: assistant, citations, message: goesOn?.id })
  return streamAnswer(answering, encoder, { headers: VERSION, opensAt: 'event' })
}

/** What the message names whose calls the client has decided about. @throws ApiError 400, 404 */
async function resumption(
  parties: ChatParties,
  { id = '', decided }: NonNullable<ReturnType<typeof readUiRequest>['goesOn']>,
) {
  const place = placeOfHeld(id)
  if (!place) throw badRequest('The last of `messages` has not the id that its answer was given.')
  const { conversationId } = place
  const turn = await currentTurn(parties.env.DB, conversationId, place.turn)
  const asker = await askerWith(parties, 'conversations:create')
  return { conversationId, asked: await resumptionOf(parties.env, asker, conversationId, turn, decided) }
}

/** Streams the running answer from its beginning, because clients rebuild its message; 204 if none is running. */
export async function resume(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const encoder = uiStreamEncoder({ fields: parties.assistant, citations: citationsOf(call) })
  const name = nameIn(call)
  const running = name === undefined ? undefined : await runningTurn(parties, name)
  if (!running) return new Response(null, { status: 204 })
  return streamTurn(running, encoder, { headers: VERSION, opensAt: 'once' })
}

/** Stops the running answer for all its readers. */
export async function stop(call: OpenCall): Promise<object> {
  const parties = await openParties(call)
  const name = nameIn(call)
  return { stopped: name !== undefined && (await stopChat(parties, name)) }
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
type Citations = (typeof CITATIONS)[number]

/** The header is for clients that change the URL when they resume. @throws ApiError 400 */
function citationsOf({ request, query }: OpenCall): Citations {
  const asked = request.headers.get('x-parley-citations') ?? query.citations ?? 'parts'
  const known = CITATIONS.find((each) => each === asked)
  if (known === undefined) throw badRequest('`citations` must be `parts` or `markdown`.')
  return known
}

// =============================================================================
// The chat of Cloudflare's agents: `useAgent` and `useAgentChat` of the package `agents`. The hooks build the address,
// `/agents/ASSISTANT/CHAT`: a WebSocket, and `/get-messages` below it.

/** Checks the key before the socket opens, so that a refused caller gets an HTTP status. */
export async function connect(call: OpenCall): Promise<Response> {
  const { assistant } = await openParties(call)
  const { env, request } = call
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    throw badRequest('This address takes WebSockets: connect to it with `useAgent`.')
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
export async function messages(call: OpenCall): Promise<object[]> {
  const parties = await openParties(call)
  const name = chatName(call.path.chat)
  if (name === undefined) return []
  const said = await messagesOfChat(parties, name)
  const read = await runningTurn(parties, name)
  if (!read) return said
  const turn = emptyTurn()
  try {
    for (const event of (await read()) ?? []) fold(turn, event)
  } finally {
    await read.stop()
  }
  const place = { conversation_id: turn.conversationId, turn: turn.turn }
  const parts = [{ type: 'text', text: textOf(turn.question) }]
  return [...said, { id: `${messageId(place)}.q`, role: 'user', metadata: place, parts }]
}

// =============================================================================
// GET /ui/ASSISTANT/CHAT/messages: the chat so far, as the client's own messages.

/**
 * Answers with a list for `messages` of `useChat`, oldest first: the last 100 answered turns. An unknown chat has none. The
 * running answer is not there; resuming sends it.
 */
export async function history(call: OpenCall): Promise<object[]> {
  const parties = await openParties(call)
  const name = chatName(call.path.chat)
  return name === undefined ? [] : messagesOfChat(parties, name, citationsOf(call))
}

/** @returns none for an unknown chat */
async function messagesOfChat(parties: ChatParties, name: string, citations: Citations = 'parts') {
  const { turns } = await turnsOf(parties, name)
  return turns.flatMap((turn) => [
    ...questionOf(turn),
    ...(turn.answer.length === 0 ? [] : [answerOf(turn, { fields: parties.assistant, citations })]),
  ])
}

function questionOf({ conversationId: conversation_id, turn, question }: Turn) {
  const place = { conversation_id, turn }
  const text = textOf(question)
  if (text === '') return []
  return [{ id: `${messageId(place)}.q`, role: 'user', metadata: place, parts: [{ type: 'text', text }] }]
}

/** The message that a client makes of a turn's stream (AI SDK, "UI message stream"). */
function answerOf(given: Turn, { fields, citations }: UiStreamShape) {
  const turn = foldTurn(eventsOf(given))
  const { suggestions, conversationId: conversation_id, turn: number } = turn
  const text = citations === 'markdown' ? linkedAnswer(turn, fields) : textOf(turn.answer)
  const parts = [
    { type: 'step-start' },
    ...sourcesOf(turn.passages, fields).map(sourcePart),
    ...callsOf(turn.answer).map(calledPart),
    ...(text === '' ? [] : [{ type: 'text', text, state: 'done' }]),
    ...(suggestions ? [suggestionsPart(suggestions)] : []),
  ]
  const id = messageId({ conversation_id, turn: number })
  return { id, role: 'assistant', metadata: metadataOf(turn), parts }
}

// =============================================================================
// Feedback on a message, in the form that Algolia's chat widgets send.

/** `agentId` is the assistant's name in Algolia's world. Here the path has it. */
const Body = once(() =>
  v.strictObject({
    messageId: v.string(),
    agentId: v.optional(v.string()),
    vote: v.picklist([0, 1], 'Expected 0 (down) or 1 (up).'),
    notes: v.nullish(v.pipe(v.string(), v.maxLength(2_000))),
    tags: v.nullish(v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(100))), v.maxLength(10))),
  }),
)

/** @throws ApiError 400, 404 */
export async function rate(call: OpenCall): Promise<object> {
  const { env, request, path, query } = call
  const access = await admitAsker(call)
  await openAssistant(call, access, path.assistant ?? '')
  const { messageId, vote, notes, tags } = shaped(Body(), parseJson(await readText(request)))
  const place = placeOfMessage(messageId)
  if (!place) throw unknownTurn()
  const asker = await askerWith({ request, access, user: namedUser(request, query) })
  return giveFeedback(env, asker, place, {
    rating: vote === 1 ? 'up' : 'down',
    ...(notes != null && { comment: notes }),
    ...(tags != null && { reasons: tags }),
  })
}
