/** Conversations to list, read, follow, stop, trace and delete, whatever protocol began them. */
import type { Access } from '../../auth/access'
import { identify } from '../../auth/pins'
import { conversationObject } from '../../conversation/conversation-object'
import {
  deleteConversation,
  deleteUserConversations,
  getConversation,
  listConversations,
  traceConversation,
} from '../../conversation/conversations'
import { requireConversationId } from '../../conversation/sealed-id'
import { ApiError, unwrap } from '../../errors'
import { forbidden, json } from '../edge/response'
import { eventReader } from '../turn-events'
import type { operations } from './operations'
import type { Served } from './route'
import { PAGE } from './schemas'
import { streamLog } from './turn-stream'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

export async function list({ env, access, query, user }: Serving<'listConversations'>): Promise<Response> {
  requireUser(access)
  const { user_id: userId, cursor, limit = PAGE } = query
  const asker = identify([access], user ?? userId)
  if (access.limits.assistant !== undefined && asker.userId === '') {
    // It lies in a page, and all visitors of the page have it.
    throw new ApiError(
      400,
      'A key that is bound to an assistant lists the conversations of a user: name the user in `x-typesense-user-id`.',
    )
  }
  return json(
    await listConversations(env, asker, {
      limit,
      ...(userId !== undefined && { userId }),
      ...(cursor !== undefined && { cursor }),
    }),
  )
}

export async function get({
  env,
  access,
  path,
  query: { before, limit },
  user,
}: Serving<'getConversation'>): Promise<Response> {
  const asker = identify([access], user)
  const page = { ...(before !== undefined && { before }), ...(limit !== undefined && { limit }) }
  return json(await getConversation(env, asker, path.id, page))
}

export async function remove({
  env,
  access,
  path: { id },
  user,
}: Serving<'deleteConversation'>): Promise<Response> {
  await deleteConversation(env, identify([access], user), id)
  return json({ id })
}

export async function follow({
  env,
  access,
  path,
  query,
  user,
  headers,
}: Serving<'followConversation'>): Promise<Response> {
  // An EventSource that connects again repeats its first address: what it has seen since is in the header.
  const position = headers['last-event-id'] ?? query.after
  const [turn, seq] = position?.split('.').map(Number) ?? []
  const after = turn === undefined || seq === undefined ? undefined : { turn, seq }
  const asker = identify([access], user)
  await requireConversationId(env, path.id)
  const events = unwrap(await conversationObject(env, path.id).events(asker, after))
  return events ? streamLog(eventReader(events)) : new Response(null, { status: 204 })
}

export async function stop({ env, access, path, user }: Serving<'stopConversation'>): Promise<Response> {
  const asker = identify([access], user)
  await requireConversationId(env, path.id)
  return json({ stopped: unwrap(await conversationObject(env, path.id).stop(asker)) })
}

export const trace = async ({ env, path, query }: Serving<'traceConversation'>): Promise<Response> =>
  json(await traceConversation(env, path.id, query.turn))

export async function removeOfUser({
  env,
  access,
  path: { id },
}: Serving<'deleteUserConversations'>): Promise<Response> {
  requireUser(access)
  return json(await deleteUserConversations(env, identify([access], id), id))
}

/**
 * Scoped keys of one parent are handed to different people. What tells their conversations apart is the user
 * that each fixes; a key that fixes none may open a conversation whose id it was given, and look for no other.
 *
 * @throws ApiError 401
 */
function requireUser({ embedded, limits, scoped }: Access): void {
  const fixed = limits.user_id ?? embedded.user_id
  if (scoped && fixed === undefined) throw forbidden()
}
