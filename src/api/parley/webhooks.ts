/** Registers webhooks, and shows what became of their messages. */
import { requireAdmin } from '../../auth/access'
import { type Delivery, listDeliveries } from '../../db/deliveries'
import { sendAgain, sendDue } from '../../webhooks/send'
import { deleteWebhook, listWebhooks, putWebhook, testWebhook } from '../../webhooks/webhooks'
import type { Handlers } from './route'

const DOES = 'registers webhooks and sees what they are told'

export const webhooks = {
  async listWebhooks({ env, access }) {
    requireAdmin(access, DOES)
    return { webhooks: await listWebhooks(env) }
  },

  putWebhook({ env, access, path, body }) {
    requireAdmin(access, DOES)
    return putWebhook(env, path.name, body)
  },

  deleteWebhook({ env, access, path }) {
    requireAdmin(access, DOES)
    return deleteWebhook(env, path.name)
  },

  async testWebhook({ env, access, path }) {
    requireAdmin(access, DOES)
    return shown(await testWebhook(env, path.name))
  },

  async listDeliveries({ env, access, query }) {
    requireAdmin(access, DOES)
    return { deliveries: (await listDeliveries(env.DB, query.limit, query.before)).map(shown) }
  },

  sendDeliveries({ env, access }) {
    requireAdmin(access, DOES)
    return sendDue(env)
  },

  async sendDelivery({ env, access, path }) {
    requireAdmin(access, DOES)
    return shown(await sendAgain(env, path.id))
  },
} satisfies Partial<Handlers>

const shown = ({ id, webhook, event, tries, ...row }: Delivery) => ({
  id,
  webhook,
  event,
  ...(row.conversationId !== null && { conversation_id: row.conversationId }),
  ...(row.turn !== null && { turn: row.turn }),
  state: row.deliveredAt !== null ? 'delivered' : row.nextAt !== null ? 'waiting' : 'given_up',
  tries,
  ...(row.outcome !== null && { outcome: row.outcome }),
  created_at: row.createdAt,
  ...(row.nextAt !== null && { next_at: row.nextAt }),
  ...(row.deliveredAt !== null && { delivered_at: row.deliveredAt }),
})
