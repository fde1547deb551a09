/** Lists, reads, follows, stops, traces and deletes conversations, whatever protocol began them. */

import { FEEDBACK_ACTION } from '../../auth/access'
import { conversationObject } from '../../conversation/conversation-object'
import {
  deleteFeedback,
  getConversation,
  giveFeedback,
  listConversations,
  listGaps,
  renameConversation,
  replyAsPerson,
  requireConversationId,
  traceConversation,
} from '../../conversation/conversations'
import { deleteConversation, deleteUserConversations } from '../../conversation/expiry'
import { unwrap } from '../../errors'
import type { Asker } from '../../turn/request'
import { askerWith } from '../http/admit-turn'
import { forgetUser, speaksFor } from '../http/analytics'
import { originOf } from '../http/request-log'
import { eventReader } from '../shared/stream'
import { streamLog } from './encoder'
import type { Handlers, Serving } from './route'
import { PAGE } from './schemas'

export const conversations = {
  async listConversations(served) {
    const { user_id: userId, limit = PAGE, ...narrowed } = served.query
    const asker = await askerWith(served, 'conversations:list')
    return listConversations(served.env, asker, { ...narrowed, userId, limit })
  },

  async listGaps(served) {
    return listGaps(served.env, await askerWith(served, 'conversations:list'))
  },

  async getConversation(served) {
    const { before, limit, version } = served.query
    const asker = await askerWith(served, 'conversations:get')
    const page = {
      ...(before !== undefined && { before }),
      ...(limit !== undefined && { limit }),
      ...(version !== undefined && { version }),
    }
    return getConversation(served.env, asker, served.path.id, page)
  },

  async renameConversation(served) {
    const asker = await askerWith(served, 'conversations:update')
    return renameConversation(served.env, asker, served.path.id, served.body.title)
  },

  async deleteConversation(served) {
    const { env, path, record } = served
    await deleteConversation(env, await askerWith(served, 'conversations:delete'), path.id, originOf(record))
    return { id: path.id }
  },

  async followConversation(served) {
    const { env, path, query, headers } = served
    // An EventSource reconnects to its first URL. The header says what it has seen since.
    const position = headers['last-event-id'] ?? query.after
    const [turn, seq] = position?.split('.').map(Number) ?? []
    const after = turn === undefined || seq === undefined ? undefined : { turn, seq }
    const asker = await askerWith(served, 'conversations:get')
    await requireConversationId(env, asker, path.id)
    const events = unwrap(await conversationObject(env, path.id).events(asker, after, { results: true }))
    return events ? streamLog(eventReader(events)) : new Response(null, { status: 204 })
  },

  async stopConversation(served) {
    const { env, path } = served
    const asker = await askerWith(served, 'conversations:stop')
    await requireConversationId(env, asker, path.id)
    return { stopped: unwrap(await conversationObject(env, path.id).stop(asker)) }
  },

  async replyAsPerson(served) {
    const asker = await askerWith(served, 'conversations:reply')
    const { author, message } = served.body
    const said = { author: author.trim(), message: message.trim() }
    return { turn: await replyAsPerson(served.env, asker, served.path.id, said) }
  },

  async traceConversation(served) {
    const asker = await askerWith(served, 'conversations:trace')
    return traceConversation(served.env, asker, served.path.id, served.query.turn)
  },

  async giveFeedback(served) {
    return giveFeedback(served.env, await raterOf(served), placeOf(served), served.body)
  },

  async deleteFeedback(served) {
    return { deleted: await deleteFeedback(served.env, await raterOf(served), placeOf(served)) }
  },

  /** Also erases what analytics logged of the user, if the key may delete events. */
  async deleteUserConversations(served) {
    const { env, access, path, record } = served
    const asker = await askerWith(served, 'conversations:delete')
    const deleted = await deleteUserConversations(env, asker, path.id, originOf(record))
    if (speaksFor(access, path.id)) await forgetUser(env, access, path.id)
    return deleted
  },
} satisfies Partial<Handlers>

/** Whoever may read a conversation may rate its answers, and so may a key that may do nothing but that. */
const raterOf = (served: Serving<'deleteFeedback'> | Serving<'giveFeedback'>): Promise<Asker> =>
  askerWith(served, served.access.reach(FEEDBACK_ACTION) === 'own' ? 'conversations:get' : FEEDBACK_ACTION)

const placeOf = ({ path: { id, turn } }: Pick<Serving<'deleteFeedback'>, 'path'>) => ({
  conversationId: id,
  turn,
})
