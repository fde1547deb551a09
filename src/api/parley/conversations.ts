/** Lists, reads, follows, stops, traces and deletes conversations, whatever protocol began them. */

import { FEEDBACK_ACTION } from '../../auth/access'
import { conversationObject } from '../../conversation/conversation-object'
import {
  deleteFeedback,
  getConversation,
  giveFeedback,
  listConversations,
  renameConversation,
  requireConversationId,
  traceConversation,
} from '../../conversation/conversations'
import { deleteConversation, deleteUserConversations } from '../../conversation/expiry'
import { unwrap } from '../../errors'
import type { Asker } from '../../turn/request'
import { askerOf } from '../http/admit-turn'
import { forgetUser, speaksFor } from '../http/analytics'
import { json } from '../http/deliver'
import { originOf } from '../http/request-log'
import { eventReader } from '../shared/stream'
import { streamLog } from './encoder'
import type { operations } from './operations'
import type { Served } from './route'
import { PAGE } from './schemas'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

/** Who asks. @param action what is done to the conversation, as keys name it */
const askerFor = (
  { request, access, user }: Pick<Serving<'stopConversation'>, 'request' | 'access' | 'user'>,
  action: string,
): Promise<Asker> => askerOf({ request, accesses: [access], userId: user }, action)

export async function list(served: Serving<'listConversations'>): Promise<Response> {
  const { user_id: userId, limit = PAGE, ...narrowed } = served.query
  const asker = await askerFor(served, 'conversations:list')
  return json(await listConversations(served.env, asker, { ...narrowed, userId, limit }))
}

export async function get(served: Serving<'getConversation'>): Promise<Response> {
  const { before, limit, version } = served.query
  const asker = await askerFor(served, 'conversations:get')
  const page = {
    ...(before !== undefined && { before }),
    ...(limit !== undefined && { limit }),
    ...(version !== undefined && { version }),
  }
  return json(await getConversation(served.env, asker, served.path.id, page))
}

export async function rename(served: Serving<'renameConversation'>): Promise<Response> {
  const { env, path, body } = served
  return json(
    await renameConversation(env, await askerFor(served, 'conversations:update'), path.id, body.title),
  )
}

export async function remove(served: Serving<'deleteConversation'>): Promise<Response> {
  const { id } = served.path
  await deleteConversation(
    served.env,
    await askerFor(served, 'conversations:delete'),
    id,
    originOf(served.record),
  )
  return json({ id })
}

export async function follow(served: Serving<'followConversation'>): Promise<Response> {
  const { env, path, query, headers } = served
  // An EventSource reconnects to its first URL. The header says what it has seen since.
  const position = headers['last-event-id'] ?? query.after
  const [turn, seq] = position?.split('.').map(Number) ?? []
  const after = turn === undefined || seq === undefined ? undefined : { turn, seq }
  const asker = await askerFor(served, 'conversations:get')
  await requireConversationId(env, asker, path.id)
  const events = unwrap(await conversationObject(env, path.id).events(asker, after, { results: true }))
  return events ? streamLog(eventReader(events)) : new Response(null, { status: 204 })
}

export async function stop(served: Serving<'stopConversation'>): Promise<Response> {
  const asker = await askerFor(served, 'conversations:stop')
  await requireConversationId(served.env, asker, served.path.id)
  return json({ stopped: unwrap(await conversationObject(served.env, served.path.id).stop(asker)) })
}

export async function trace(served: Serving<'traceConversation'>): Promise<Response> {
  const asker = await askerFor(served, 'conversations:trace')
  return json(await traceConversation(served.env, asker, served.path.id, served.query.turn))
}

/** Also erases what analytics logged of the user, if the key may delete events. */
export async function removeOfUser(served: Serving<'deleteUserConversations'>): Promise<Response> {
  const { env, access, path } = served
  const asker = await askerFor(served, 'conversations:delete')
  const deleted = await deleteUserConversations(env, asker, path.id, originOf(served.record))
  if (speaksFor(access, path.id)) await forgetUser(env, access, path.id)
  return json(deleted)
}

// =============================================================================
// Stores and deletes feedback on answers.

type Given = Served<typeof operations.giveFeedback>

/** Whoever may read a conversation may rate its answers, and so may a key that may do nothing but that. */
function raterOf({ request, access, user }: Omit<Given, 'body'>): Promise<Asker> {
  const action = access.reach(FEEDBACK_ACTION) === 'own' ? 'conversations:get' : FEEDBACK_ACTION
  return askerOf({ request, accesses: [access], userId: user }, action)
}

const placeOf = ({ path: { id, turn } }: Pick<Given, 'path'>) => ({ conversationId: id, turn })

export async function rate(served: Given): Promise<Response> {
  return json(await giveFeedback(served.env, await raterOf(served), placeOf(served), served.body))
}

export async function withdraw(served: Served<typeof operations.deleteFeedback>): Promise<Response> {
  const deleted = await deleteFeedback(served.env, await raterOf(served), placeOf(served))
  return json({ deleted })
}
