/** Who calls a route about stored responses and conversations. The rules are those of `/conversations/ID`. */
import { type Access, ASK_ACTIONS, SEARCH_ACTION } from '../../auth/access'
import { admit } from '../../auth/admit'
import type { MemoryRow } from '../../conversation/memories'
import { openRow } from '../../conversation/open-row'
import type { Asker } from '../../turn/request'
import { askerOf, namedUser } from '../http/admit-turn'
import { presentedKey } from '../http/presented-key'
import type { OpenCall } from '../http/route'
import { InvalidParameter } from './question'

export interface Caller {
  access: Access
  asker: Asker
}

/** @param does what is done to the conversation; `say` adds to it or begins it. @throws ApiError 401, 429 */
export async function callerOf(
  { env, request, query, path, record, prefetch }: OpenCall,
  does: 'get' | 'update' | 'delete' | 'stop' | 'say',
): Promise<Caller> {
  const action = `conversations:${does === 'say' ? 'create' : does}`
  record.action = action
  record.target = Object.values(path).join('/')
  const actions = does === 'say' ? ASK_ACTIONS : [action, SEARCH_ACTION]
  const access = await admit(env, presentedKey(request), actions, undefined, record, prefetch)
  const userId = namedUser(request, query)
  return { access, asker: await askerOf({ request, accesses: [access], userId }, action) }
}

/** Opens a conversation. @throws InvalidParameter 404 in the same words for one that is somebody else's */
export async function openConversationRow(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  otherwise = conversationNotFound(id),
): Promise<MemoryRow> {
  const row = await openRow(env, asker, id)
  if (typeof row === 'string') throw otherwise
  return row
}

const conversationNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(`Conversation with id '${id}' not found.`, null, undefined, 404)
