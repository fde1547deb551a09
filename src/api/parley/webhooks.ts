/** Registers webhooks, and shows what became of their messages. */
import { requireAdmin } from '../../auth/access'
import { type Delivery, listDeliveries } from '../../db/deliveries'
import { sendAgain, sendDue } from '../../webhooks/send'
import { deleteWebhook, listWebhooks, putWebhook, testWebhook } from '../../webhooks/webhooks'
import { guarded } from './route'

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

const DOES = 'registers webhooks and sees what they are told'

export const webhooks = guarded(({ access }) => requireAdmin(access, DOES), {
  listWebhooks: async ({ env }) => ({ webhooks: await listWebhooks(env) }),
  putWebhook: ({ env, path, body }) => putWebhook(env, path.name, body),
  deleteWebhook: ({ env, path }) => deleteWebhook(env, path.name),
  testWebhook: async ({ env, path }) => shown(await testWebhook(env, path.name)),
  listDeliveries: async ({ env, query }) => ({
    deliveries: (await listDeliveries(env.DB, query.limit, query.before)).map(shown),
  }),
  sendDeliveries: ({ env }) => sendDue(env),
  sendDelivery: async ({ env, path }) => shown(await sendAgain(env, path.id)),
})
