/** `/v1/responses/ID`: responses that were made before. Each is a turn of a conversation. */
import { conversationObject } from '../../conversation/conversation-object'
import { getTurn } from '../../conversation/conversations'
import { deleteTurnOf } from '../../conversation/items'
import type { MemoryRow } from '../../conversation/memories'
import { handleOf } from '../../conversation/sealed-id'
import { ApiError, type Failure, unwrap } from '../../errors'
import { contentOf, textOf } from '../../parts'
import { isTerminal } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import type { Asker } from '../../turn/request'
import { json } from '../edge/response'
import type { OpenCall } from '../edge/route'
import { chatReader } from '../turn/read'
import { streamTurn } from '../turn/stream'
import { callerOf, openConversationRow } from './caller'
import { errorBody } from './errors'
import { itemId, type Place, readPlace, responseId } from './ids'
import { messageItem, pageOf, shownPage } from './item-shapes'
import { InvalidParameter } from './question'
import { frameOf, ResponseEncoder, type ResponseShape, responseOf } from './response-encoder'

/** `?stream=true` sends the answer's events from the first on, and follows it while it is written. */
export async function getResponse(call: OpenCall): Promise<Response> {
  const { env, query } = call
  const { asker } = await callerOf(call, 'get')
  const { place, row, handle } = await openResponse(call, asker)
  if (query.stream !== 'true') return json(await storedResponse(env, asker, row, place, handle))
  if (query.starting_after) {
    throw new InvalidParameter(
      'Events are numbered anew in each stream. Leave `starting_after` out: the stream begins with the first event.',
      'starting_after',
    )
  }
  const resume = (after = { turn: place.turn, seq: -1 }) =>
    conversationObject(env, place.conversation).events(asker, after).then(unwrap)
  const events = await resume().catch(expired(place))
  if (!events) throw responseNotFound(place)
  return streamTurn(chatReader(events, resume), new ResponseEncoder(shapeOf(row, place, handle)), {
    headers: {},
    opensAt: 'once',
  })
}

export async function deleteResponse(call: OpenCall): Promise<Response> {
  const { asker } = await callerOf(call, 'delete')
  const { place, row } = await openResponse(call, asker)
  if (!(await deleteTurnOf(call.env, asker, row, place.turn))) throw responseNotFound(place)
  return json({ id: call.path.response, object: 'response', deleted: true })
}

/** Stops an answer that is being written. Nothing of it is stored. */
export async function cancelResponse(call: OpenCall): Promise<Response> {
  const { env } = call
  const { asker } = await callerOf(call, 'stop')
  const { place, row, handle } = await openResponse(call, asker)
  const running = await runningTurn(env, asker, place.conversation)
  if (running?.turn !== place.turn || running.status !== 'running') {
    await readTurn(env, asker, place, row)
    throw new InvalidParameter('This response has ended, so it cannot be cancelled.', null)
  }
  unwrap(await conversationObject(env, place.conversation).stop(asker))
  return json({ ...frameOf(running, shapeOf(row, place, handle), 'cancelled'), output: [] })
}

/** The question. What was said before it belongs to earlier responses. */
export async function listInputItems(call: OpenCall): Promise<Response> {
  const { env, query } = call
  const { asker } = await callerOf(call, 'get')
  const { place, row } = await openResponse(call, asker)
  const { question } = await readTurn(env, asker, place, row)
  const { conversation, turn } = place
  const id = itemId(conversation, { turn, role: 'user' })
  const item = messageItem({ role: 'user', text: textOf(question) }, id)
  const { after } = pageOf(query)
  return json(shownPage(after === id ? [] : [item], false))
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

const expired = (place: Place) => (error: unknown) => {
  throw error instanceof ApiError && error.status === 404 ? responseNotFound(place) : error
}

/** Which assistant was asked is not recorded: `model` is the conversation model that answered. */
const shapeOf = (
  row: MemoryRow,
  { turn }: Place,
  handle: string,
  created = row.updatedAt,
): ResponseShape => ({
  model: row.modelId,
  created: Math.floor(created / 1000),
  fields: {},
  previous: turn > 1 ? responseId(handle, turn - 1) : null,
  handle,
})

async function storedResponse(
  env: Cloudflare.Env,
  asker: Asker,
  row: MemoryRow,
  place: Place,
  handle: string,
) {
  const turn = await readTurn(env, asker, place, row)
  const shape = shapeOf(row, place, handle, turn.created)
  if (turn.status === 'done') return responseOf(turn, shape)
  const state = turn.error ? 'failed' : 'in_progress'
  return {
    ...frameOf(turn, shape, state),
    output: [],
    ...(turn.error && { error: failureIn(turn.error) }),
  }
}

const failureIn = (failure: Failure) => {
  const { code, type, message } = errorBody(failure).error
  return { code: code ?? type, message }
}

/** @returns the turn so far, and when it was recorded in milliseconds since 1970 @throws InvalidParameter 404 */
async function readTurn(
  env: Cloudflare.Env,
  asker: Asker,
  place: Place,
  row: MemoryRow,
): Promise<Turn & { created?: number }> {
  const recorded = await getTurn(env, place)
  if (recorded) {
    const { answer, question, citations, usage, finish_reason, created_at: created } = recorded
    const logged = await loggedTurn(env, asker, place)
    return {
      ...(logged ?? { ...emptyTurn(), conversationId: row.id, turn: place.turn }),
      status: 'done',
      question: contentOf(question),
      answer: contentOf(answer),
      citations,
      usage,
      finishReason: finish_reason,
      created,
    }
  }
  const object = conversationObject(env, place.conversation)
  const [failed] = unwrap(await object.unanswered(asker, place.turn))
  if (failed) {
    const { question, error, created_at: created } = failed
    return {
      ...emptyTurn(),
      conversationId: row.id,
      turn: place.turn,
      status: 'failed',
      question: contentOf(question),
      ...(error && { error }),
      created,
    }
  }
  const running = await runningTurn(env, asker, place.conversation)
  const turn = running?.turn === place.turn ? running : await loggedTurn(env, asker, place)
  if (!turn) throw responseNotFound(place)
  return turn
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

/** A finished turn from its log; undefined if the log has expired. */
async function loggedTurn(env: Cloudflare.Env, asker: Asker, { conversation, turn }: Place) {
  const object = conversationObject(env, conversation)
  const outcome = await object.events(asker, { turn, seq: -1 })
  if (!outcome.ok && outcome.error.status === 404) return undefined
  const events = unwrap(outcome)
  if (!events) return undefined
  const read = chatReader(events)
  const whole = emptyTurn()
  for (;;) {
    const batch = await read()
    if (!batch) return undefined
    for (const event of batch) {
      fold(whole, event)
      if (!isTerminal(event)) continue
      await read.stop()
      return event.type === 'done' ? whole : undefined
    }
  }
}
