/** `/v1/responses/ID`: responses that were made before. Each is a turn of a conversation. */

import { handleOf } from '../../conversation/conversation-id'
import { conversationObject } from '../../conversation/conversation-object'
import { endedTurn } from '../../conversation/conversations'
import { deleteTurnOf, type MemoryRow } from '../../conversation/messages'
import { ApiError, unwrap } from '../../errors'
import { textOf } from '../../lib/parts'
import { findAssistant } from '../../registry/assistants'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import type { Asker } from '../../turn/request'
import type { Answered, OpenCall } from '../http/router'
import { chatReader, endedReader, streamTurn } from '../shared/stream'
import { messageItem, pageOf, shownPage } from './conversations'
import { itemId, type Place, readPlace, responseId } from './ids'
import { callerOf, InvalidParameter, openConversationRow } from './question'
import { failedResponse, frameOf, type ResponseShape, responseEncoder, responseOf } from './responses'

/** `?stream=true` sends the answer's events from the first on, and follows it while it is written. */
export async function getResponse(call: OpenCall): Promise<Answered> {
  const { env, query } = call
  const { asker } = await callerOf(call, 'get')
  const { place, row, handle } = await openResponse(call, asker)
  if (query.stream !== 'true') {
    const { turn, created } = await readTurn(env, asker, place)
    const shape = await shapeOf(env, row, turn, handle, created)
    const { error } = turn
    if (turn.status === 'done') return responseOf(turn, shape)
    if (error && error.code !== 'stopped') return failedResponse(turn, shape, error)
    return { ...frameOf(turn, shape, error ? 'cancelled' : 'in_progress'), output: [] }
  }
  if (query.starting_after) {
    throw new InvalidParameter(
      'Events are numbered anew in each stream. Leave `starting_after` out: the stream begins with the first event.',
      'starting_after',
    )
  }
  const ended = await endedTurn(env, asker, place)
  const shape = await shapeOf(
    env,
    row,
    ended?.turn ?? { ...emptyTurn(), turn: place.turn },
    handle,
    ended?.created,
  )
  const encoder = responseEncoder(shape)
  const streaming = { headers: {}, opensAt: 'once' } as const
  if (ended) return streamTurn(endedReader(ended.turn), encoder, streaming)
  const resume = (after = { turn: place.turn, seq: -1 }) =>
    conversationObject(env, place.conversation).events(asker, after).then(unwrap)
  const events = await resume().catch((error) => {
    throw error instanceof ApiError && error.status === 404 ? responseNotFound(place) : error
  })
  if (!events) throw responseNotFound(place)
  return streamTurn(chatReader(events, resume), encoder, streaming)
}

export async function deleteResponse(call: OpenCall): Promise<object> {
  const { asker } = await callerOf(call, 'delete')
  const { place, row } = await openResponse(call, asker)
  if (!(await deleteTurnOf(call.env, asker, row, place.turn))) throw responseNotFound(place)
  return { id: call.path.response, object: 'response', deleted: true }
}

/** Stops an answer that is being written. Nothing of it is stored. */
export async function cancelResponse(call: OpenCall): Promise<object> {
  const { env } = call
  const { asker } = await callerOf(call, 'stop')
  const { place, row, handle } = await openResponse(call, asker)
  const running = await runningTurn(env, asker, place.conversation)
  if (running?.turn !== place.turn || running.status !== 'running') {
    await readTurn(env, asker, place)
    throw new InvalidParameter('This response has ended, so it cannot be cancelled.', null)
  }
  unwrap(await conversationObject(env, place.conversation).stop(asker))
  const { turn, created } = (await endedTurn(env, asker, place)) ?? { turn: running }
  return { ...frameOf(turn, await shapeOf(env, row, turn, handle, created), 'cancelled'), output: [] }
}

/** The question. What was said before it belongs to earlier responses. */
export async function listInputItems(call: OpenCall): Promise<object> {
  const { env, query } = call
  const { asker } = await callerOf(call, 'get')
  const { place } = await openResponse(call, asker)
  const { question } = (await readTurn(env, asker, place)).turn
  const { conversation, turn } = place
  const id = itemId(conversation, { turn, role: 'user' })
  const item = messageItem({ role: 'user', text: textOf(question) }, id)
  const { after } = pageOf(query)
  return shownPage(after === id ? [] : [item], false)
}

async function openResponse(
  { env, path }: OpenCall,
  asker: Asker,
): Promise<{ place: Place; row: MemoryRow; handle: string }> {
  const id = path.response ?? ''
  const place = readPlace(id, 'resp_')
  const unknown = new InvalidParameter(`Response with id '${id}' not found.`, null, undefined, 404)
  if (place === undefined) throw unknown
  const row = await openConversationRow(env, asker, place.conversation, unknown)
  return { place: { ...place, conversation: row.id }, row, handle: await handleOf(env, row.id) }
}

const responseNotFound = ({ conversation, turn }: Place): InvalidParameter =>
  new InvalidParameter(
    `Response with id '${responseId(conversation, turn)}' not found.`,
    null,
    undefined,
    404,
  )

/** As the response was made: by the assistant that was asked. A running turn does not tell it, so its conversation's model stands there. */
async function shapeOf(
  env: Cloudflare.Env,
  row: MemoryRow,
  { turn, assistant }: Turn,
  handle: string,
  created = row.updatedAt,
): Promise<ResponseShape> {
  return {
    model: assistant ?? row.modelId,
    created: Math.floor(created / 1000),
    fields: (assistant !== undefined && (await findAssistant(env, assistant))) || {},
    previous: turn > 1 ? responseId(handle, turn - 1) : null,
    handle,
  }
}

/** @returns the turn so far, and when it ended in milliseconds since 1970 @throws InvalidParameter 404 */
async function readTurn(
  env: Cloudflare.Env,
  asker: Asker,
  place: Place,
): Promise<{ turn: Turn; created?: number }> {
  const ended = await endedTurn(env, asker, place)
  if (ended) return ended
  const running = await runningTurn(env, asker, place.conversation)
  if (running?.turn !== place.turn) throw responseNotFound(place)
  return { turn: running }
}

/** The running turn, folded from its first events. */
async function runningTurn(env: Cloudflare.Env, asker: Asker, id: string): Promise<Turn | undefined> {
  const outcome = await conversationObject(env, id).running(asker)
  if (!outcome.ok && outcome.error.status === 404) return undefined
  const events = unwrap(outcome)
  if (!events) return undefined
  const read = chatReader(events)
  const turn = emptyTurn()
  for (const event of (await read()) ?? []) fold(turn, event)
  await read.stop()
  return turn
}
