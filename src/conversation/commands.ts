/**
 * Changes to a conversation that are not turns: its creation before anything is said, its title, and messages from
 * elsewhere. Such a message gets a turn's number and record, but calls no model.
 */

import { database } from '../db/client'
import { deleteTurn } from '../db/turns'
import { dayOf } from '../db/usage'
import { ApiError, unwrap } from '../errors'
import { contentOf } from '../lib/parts'
import { settlesWithin } from '../lib/settles'
import { unknownConversation } from '../turn/errors'
import type { LogEvent, LogEventBody, MessageDetails } from '../turn/events'
import { foldTurn, traceOf } from '../turn/fold'
import type { Asker, Begun } from '../turn/request'
import type { ConversationState } from './conversation-state'
import { ownerOf } from './ownership'
import { documentsOf, turnRow } from './stored'

interface Whose {
  conversationId: string
  asker: Asker
  protocol: string
  /** id of the Collection object of its history collection, and the model id that its messages carry */
  historyId: string
  modelId: string
  /** seconds */
  ttl: number
  /** JSON, stored with the conversation's row */
  details?: string
  /** what D1 knows of the conversation, whose row outlives what its object holds; absent: it begins now */
  begun?: Begun
}

export type Command = Whose &
  (
    | { what: 'open'; title: string }
    | { what: 'title'; title: string }
    | ({ what: 'message' } & SaidMessage)
    | { what: 'answer'; turn: number; answer: string }
    /** the turn is being deleted */
    | { what: 'forget'; turn: number }
    /** it comes from a backup; D1 has its turns up to this one. `begun` says whose it is */
    | { what: 'restored'; turn: number; expiresAt: number }
  )

export interface SaidMessage {
  /** '' if nothing was said */
  input: string
  response: string
  more: MessageDetails
}

/** Whether it only changes stored data, and does nothing if the object stores none. */
export const isChange = ({ what }: Command): boolean =>
  what === 'title' || what === 'answer' || what === 'forget'

const RETRY_SECONDS = 5

/**
 * @returns the number of the message's turn; 0 for anything else
 * @throws ApiError 404 for a conversation that is deleted or another asker's; 409 for another answer
 *   to a turn that is running, or its deletion; 503 while D1 is unavailable and a
 *   conversation is opened; the history's own error if it refuses the message
 */
export async function tell(state: ConversationState, env: Cloudflare.Env, command: Command): Promise<number> {
  if (state.closed || !state.mayContinue(command.asker)) throw unknownConversation()
  const now = Date.now()
  if (command.what === 'message') return say(state, env, command, now)
  if (command.what === 'restored') {
    // The object's own data is newer than any backup.
    if (state.owner !== undefined) return 0
    state.introduce({ ...command, title: '' }, now)
    if (command.turn > 0) state.log.continueAfter(command.turn, now, command.expiresAt)
    return 0
  }
  if (command.what === 'title') {
    state.introduce(command, now)
    state.title = command.title
    return 0
  }
  if (command.what === 'forget') {
    if (state.log.standing(command.turn) === 'running')
      throw new ApiError(409, 'The answer is still being written. Try again when it has ended.', 1)
    state.log.forget(command.turn)
    return 0
  }
  if (command.what === 'answer') {
    if (state.log.standing(command.turn) === 'running')
      throw new ApiError(409, 'The answer is still being written. Try again when it has ended.')
    state.log.replaceAnswer(command.turn, command.answer)
    return 0
  }
  state.introduce(command, now)
  state.records.putBeginning(state.entry(command, now))
  await state.records.settle()
  if (!state.records.empty)
    throw new ApiError(503, 'The conversation cannot be stored now. Try again.', RETRY_SECONDS)
  return 0
}

/** How long a message waits for D1, in milliseconds. After that its object's alarm delivers it. */
const PATIENCE_MS = 1_500

async function say(
  state: ConversationState,
  env: Cloudflare.Env,
  command: Whose & SaidMessage,
  now: number,
): Promise<number> {
  const { conversationId, historyId, modelId, input, response, more, asker } = command
  state.introduce({ ...command, title: input }, now)
  const conversation = state.entry(command, now)
  const turn = state.log.begin(input, now, conversation.expiresAt)
  const bodies: LogEventBody[] = [
    { type: 'question', question: contentOf(input) },
    ...(response === '' ? [] : [{ type: 'delta' as const, text: response }]),
    { type: 'message', details: more },
    { type: 'done', finish_reason: 'stop', answer: contentOf(response) },
  ]
  const events = bodies.map(
    (body, seq): LogEvent => ({ ...body, conversation_id: conversationId, turn, seq }),
  )
  state.log.append(turn, events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  state.log.finish(turn, 'done', now, conversation.expiresAt, false)
  const whole = foldTurn(events)
  const timestamp = Math.floor(now / 1000)
  const documents = documentsOf(whole, conversation, timestamp).filter(({ message }) => message.length > 0)
  if (documents.length > 0) state.outbox.put(turn, historyId, documents, [])
  // Half of a turn can be deleted only if it has a question and an answer.
  if (documents.length > 1) state.log.markSaid(turn, timestamp, 'stop')
  state.records.put(turn, {
    conversation,
    turn: turnRow(whole, traceOf(whole), now, conversation, modelId),
    usage: { day: dayOf(now), owner: ownerOf(asker).owner, modelId, inputTokens: 0, outputTokens: 0 },
    // This message cost nothing.
    copied: true,
  })
  const recorded = state.records.deliver().then(() => state.records.deliverRest())
  const [outcome] = await Promise.all([state.outbox.settle(turn), settlesWithin(PATIENCE_MS, recorded)])
  if (!outcome.ok && !state.closed) {
    state.log.forget(turn)
    state.records.drop(turn)
    await deleteTurn(database(env), conversationId, turn)
    unwrap(outcome)
  }
  return turn
}
