/**
 * Webhooks: addresses that are told when a turn has ended, feedback was given, an import has ended, and the like. A webhook is a row
 * of D1's `resources`, and what it is sent waits in D1 too (db/deliveries.ts).
 */
import * as v from 'valibot'
import {
  type Delivery,
  deleteDeliveriesTo,
  MOST_WAITING,
  queueOne,
  WEBHOOK,
  waitingByWebhook,
} from '../db/deliveries'
import { deleteResource, findResource, listResources, putResource, type ResourceRow } from '../db/resources'
import { seal } from '../db/sealing'
import { EVENTS, type WebhookEvent } from '../db/webhook-events'
import { ApiError, badRequest } from '../errors'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { requireAllowed } from '../models/egress'
import { base64, SECRET_PREFIX, send } from './send'
import { tellWeekly } from './weekly'

/** Webhooks of a deployment: each event is a row for each of them. */
const MOST_WEBHOOKS = 20
const SECRET_BYTES = 32

const Stored = once(() => v.object({ url: v.string(), events: v.array(v.picklist(EVENTS)) }))

interface Webhook {
  name: string
  url: string
  events: WebhookEvent[]
  /** messages that are still to be sent */
  waiting: number
  /** whether so many wait that no others are stored */
  full: boolean
  created_at: number
  updated_at: number
}

async function shownAll(env: Cloudflare.Env, rows: ResourceRow[]): Promise<Webhook[]> {
  const waiting = new Map((await waitingByWebhook(env.DB)).map((each) => [each.webhook, each.waiting]))
  const full = [...waiting.values()].reduce((sum, each) => sum + each, 0) >= MOST_WAITING
  return rows.map(({ id, body, createdAt, updatedAt }) => ({
    name: id,
    ...readStored(Stored(), body),
    waiting: waiting.get(id) ?? 0,
    full,
    created_at: createdAt,
    updated_at: updatedAt,
  }))
}

export const listWebhooks = async (env: Cloudflare.Env): Promise<Webhook[]> =>
  shownAll(env, await listResources(env.DB, WEBHOOK))

/** @throws ApiError 404 */
async function requireWebhook(env: Cloudflare.Env, name: string): Promise<ResourceRow> {
  const row = await findResource(env.DB, WEBHOOK, name)
  if (!row) throw new ApiError(404, `There is no webhook \`${name}\`.`)
  return row
}

interface WebhookSettings {
  url: string
  events: WebhookEvent[]
  /** true: it gets another secret */
  new_secret: boolean
}

/**
 * Stores a webhook, or changes the one of its name.
 * @returns the webhook, with its secret if that is new: it is not shown again
 * @throws ApiError 400 for an address that may not be called, and without an ENCRYPTION_KEY
 */
export async function putWebhook(
  env: Cloudflare.Env,
  name: string,
  { url, events, new_secret: isNew }: WebhookSettings,
): Promise<Webhook & { secret?: string }> {
  requireAllowed(url, env, '`url`')
  const rows = await listResources(env.DB, WEBHOOK)
  const before = rows.find(({ id }) => id === name)
  if (!before && rows.length >= MOST_WEBHOOKS)
    throw badRequest(`There are ${MOST_WEBHOOKS} webhooks already. Delete one first.`)
  const kept = isNew ? null : (before?.sealed ?? null)
  const secret =
    kept === null ? SECRET_PREFIX + base64(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))) : undefined
  const sealed = secret === undefined ? kept : await seal(secret, env)
  const body = JSON.stringify({ url, events: [...new Set(events)] })
  await putResource(env.DB, { kind: WEBHOOK, id: name, body, sealed })
  if (events.includes('gaps.weekly')) await tellWeekly(env)
  const [shown] = await shownAll(env, [await requireWebhook(env, name)])
  return { ...shown!, ...(secret !== undefined && { secret }) }
}

/** Deletes a webhook, and whatever it was still to be sent. @throws ApiError 404 */
export async function deleteWebhook(env: Cloudflare.Env, name: string): Promise<Webhook> {
  const [shown] = await shownAll(env, [await requireWebhook(env, name)])
  await deleteResource(env.DB, WEBHOOK, name)
  await deleteDeliveriesTo(env.DB, name)
  return shown!
}

/** Sends a webhook a message that tells of nothing. @returns the message, with what came of it @throws ApiError 404 */
export async function testWebhook(env: Cloudflare.Env, name: string): Promise<Delivery> {
  await requireWebhook(env, name)
  const now = Date.now()
  const data = { message: 'This is a test.' }
  return send(env, await queueOne(env.DB, name, { event: 'webhook.test', data }, now))
}
