/**
 * Sends what waits for webhooks, signed as Standard Webhooks say
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), until its receiver takes it.
 *
 * What somebody waits for is sent at once: a hand-over, a test. The rest is sent by the cron trigger, so that neither a turn nor its
 * object waits for a receiver.
 */
import { waitUntil } from 'cloudflare:workers'
import * as v from 'valibot'
import { hmacOf } from '../conversation/conversation-id'
import { clip } from '../conversation/outbox'
import { restoreTurn } from '../conversation/stored'
import { findConversationRow } from '../db/conversations'
import { claimDue, claimOne, type Delivery, isAnyDue, noteOutcome, queueFew, WEBHOOK } from '../db/deliveries'
import { findResource } from '../db/resources'
import { open } from '../db/sealing'
import { findTurn, latestTurns, type StoredTurn } from '../db/turns'
import { knock } from '../durable/front-door'
import { ApiError, logFailure } from '../errors'
import { mapFew } from '../lib/few'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { outgoing, settlesWithin } from '../lib/waiting'
import { requireAllowed } from '../models/egress'
import { findAssistant } from '../registry/assistants'
import type { Citation } from '../turn/events'
import { recordOf } from '../turn/fold'
import { byteLength } from '../turn/prompt'

const DAY_MS = 86_400_000
/** How long a message is sent again, in milliseconds. */
const GIVEN_UP_MS = 3 * DAY_MS
/** How long a receiver may take to reply, in milliseconds. */
const REPLY_MS = 10_000
/** Bytes of a message. A conversation that is longer goes without its first turns. */
const MOST_BYTES = 256_000
/** Turns that a message holds, and UTF-16 units of a question or an answer. */
const MOST_TURNS = 50
const LONGEST_TEXT = 10_000
/** The same of what came of an attempt. */
const LONGEST_OUTCOME = 300

/**
 * Messages of one step, receivers that are called at once, and for how long calls begin. A message takes a call and three queries of
 * D1, and an invocation has 50 of both on the Free plan.
 */
const SENT_A_STEP = 12
const RECEIVERS_AT_ONCE = 4
const STEP_MS = 15_000
/** Steps that one minute's cron trigger begins. */
const STEPS_A_MINUTE = 10

export const SECRET_PREFIX = 'whsec_'

export const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

// =============================================================================
// Where a message goes, and what is in it.

interface Target {
  url: string
  secret: Uint8Array
}

/** What a webhook's row says of where to send. */
const Address = once(() => v.object({ url: v.string() }))

/** The webhook of an assistant's hand-over, among the names of those that are registered. */
const ofAssistant = (assistant: string): string => `a/${assistant}`

/** @throws ApiError for a webhook that is gone, or whose secret cannot be opened */
async function targetOf(env: Cloudflare.Env, webhook: string): Promise<Target> {
  const [, name] = /^a\/(.*)$/s.exec(webhook) ?? []
  if (name !== undefined) {
    const url = (await findAssistant(env, name))?.handover?.webhook
    if (url === undefined) throw new Gone('The assistant has no `handover.webhook` any more.')
    return { url, secret: await secretOf(env, name) }
  }
  const row = await findResource(env.DB, WEBHOOK, webhook)
  if (!row) throw new Gone('There is no such webhook any more.')
  if (row.sealed === null) throw new ApiError(400, 'The webhook has no secret: store it with `new_secret`.')
  const encoded = (await open(row.sealed, env)).slice(SECRET_PREFIX.length)
  const secret = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0))
  return { url: readStored(Address(), row.body).url, secret }
}

/** Nothing is left to send, or nobody to send it to. */
class Gone extends Error {}

/** The secret of an assistant's hand-over is made of the deployment's own, so there is none to store. */
const secretOf = (env: Cloudflare.Env, assistant: string): Promise<Uint8Array> =>
  hmacOf(`handovers ${env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY ?? ''}`, assistant)

/** The secret that an assistant's messages are signed with, as receivers take it. It changes with ENCRYPTION_KEY. */
export const handoverSecret = async (env: Cloudflare.Env, assistant: string): Promise<string> =>
  SECRET_PREFIX + base64(await secretOf(env, assistant))

/** What an event tells. Turns are read when they are sent: those that were deleted meanwhile are told to nobody. */
async function dataOf(env: Cloudflare.Env, delivery: Delivery): Promise<object> {
  const { id, event, conversationId, turn, data } = delivery
  const stored = v.parse(v.record(v.string(), v.unknown()), JSON.parse(data))
  if (conversationId === null) return stored
  const now = Date.now()
  const about = { ...stored, conversation_id: conversationId }
  if (event === 'handover.requested') {
    // Somebody waits for people, even where what was said has expired.
    const turns = await latestTurns(env.DB, conversationId, { limit: MOST_TURNS, now })
    return { id, ...about, turns: turns.reverse().map(toldTurn) }
  }
  const row = await findConversationRow(env.DB, conversationId, now)
  const said = row && turn !== null ? await findTurn(env.DB, conversationId, turn, now) : undefined
  if (!row || !said) throw new Gone('The turn is deleted.')
  const { userId: user_id, protocol } = row
  return { ...about, user_id, protocol, ...toldTurn(said) }
}

function toldTurn(row: StoredTurn) {
  const told = restoreTurn(row)
  const { turn, question, answer, declined, warned, author, created_at } = recordOf(told, row.createdAt)
  return {
    turn,
    ...(told.assistant !== undefined && { assistant: told.assistant }),
    question: clip(question, LONGEST_TEXT),
    answer: clip(answer, LONGEST_TEXT),
    ...(declined && { declined }),
    ...(warned && { warned }),
    ...(author !== undefined && { author }),
    citations: told.passages
      .filter(({ collection, id }) => told.citations.some(cites(collection, id)))
      .map(({ collection, id: document_id, title, url }) => ({ collection, document_id, title, url })),
    created_at,
  }
}

const cites = (collection: string, id: string) => (citation: Citation) =>
  citation.collection === collection && citation.document_id === id

async function bodyOf(env: Cloudflare.Env, delivery: Delivery): Promise<string> {
  const { event, createdAt } = delivery
  const data: { turns?: unknown[] } = await dataOf(env, delivery)
  const timestamp = new Date(createdAt).toISOString()
  for (;;) {
    const body = JSON.stringify({ type: event, timestamp, data })
    if ((data.turns?.length ?? 0) < 2 || byteLength(body) <= MOST_BYTES) return body
    data.turns?.shift()
  }
}

// =============================================================================
// Sends.

/** @throws Error if the receiver does not take it */
async function post(env: Cloudflare.Env, delivery: Delivery): Promise<string> {
  const { url, secret } = await targetOf(env, delivery.webhook)
  requireAllowed(url, env, 'The address of the webhook')
  const body = await bodyOf(env, delivery)
  const seconds = Math.floor(Date.now() / 1000)
  const headers = {
    'content-type': 'application/json',
    'webhook-id': delivery.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${base64(await hmacOf(secret, `${delivery.id}.${seconds}.${body}`))}`,
  }
  const signal = AbortSignal.timeout(REPLY_MS)
  // A redirect could lead inside the network, so it counts as a failure.
  const send = () => fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
  const reply = await outgoing(env, send, signal)
  await reply.body?.cancel()
  if (!reply.ok) throw new Error(`The webhook replied with status ${reply.status}.`)
  return `Status ${reply.status}`
}

/** Sends a message that was claimed. @returns it as it is now */
export async function send(env: Cloudflare.Env, delivery: Delivery): Promise<Delivery> {
  const changes = await post(env, delivery).then(
    // What was said is forgotten here.
    (outcome) => ({ data: '', deliveredAt: Date.now(), nextAt: null, outcome }),
    (error) => {
      const isOver = error instanceof Gone || Date.now() - delivery.createdAt > GIVEN_UP_MS
      const event = isOver ? 'a webhook was given up' : 'a webhook failed; it will be sent again'
      logFailure(`${event}: ${delivery.webhook}`, error)
      return {
        outcome: String((error as Error).message).slice(0, LONGEST_OUTCOME),
        ...(isOver && { nextAt: null }),
      }
    },
  )
  await noteOutcome(env.DB, delivery.id, changes)
  return { ...delivery, ...changes }
}

/** Sends a message again now, also one that was given up. @throws ApiError 404 */
export async function sendAgain(env: Cloudflare.Env, id: string): Promise<Delivery> {
  const delivery = await claimOne(env.DB, id, Date.now())
  if (!delivery) throw new ApiError(404, 'There is no such message, or it is delivered.')
  return send(env, delivery)
}

/**
 * Sends some of the messages that are due. After a failure the other messages to that webhook wait for a later step.
 * @returns whether there may be more
 */
export async function sendDue(env: Cloudflare.Env): Promise<{ sent: number; left: boolean }> {
  const now = Date.now()
  const due = await claimDue(env.DB, SENT_A_STEP, now)
  let sent = 0
  const byWebhook = [...Map.groupBy(due, ({ webhook }) => webhook).values()]
  await mapFew(byWebhook, RECEIVERS_AT_ONCE, async (messages) => {
    for (const message of messages) {
      if (Date.now() > now + STEP_MS || (await send(env, message)).deliveredAt === null) return
      sent += 1
    }
  })
  return { sent, left: due.length === SENT_A_STEP }
}

/** Has what is due be sent, by invocations of their own: the sweep of the same minute takes most of an invocation's queries of D1. */
export async function sendWebhooks(env: Cloudflare.Env): Promise<void> {
  if (!(await isAnyDue(env.DB, Date.now()))) return
  for (let step = 0; step < STEPS_A_MINUTE; step++) {
    const reply = await knock(env, '/webhooks/deliveries', {})
    if (!reply.ok) return logFailure('webhooks are left for the next minute', await reply.text())
    const { left } = v.parse(v.object({ left: v.boolean() }), await reply.json())
    if (!left) return
  }
}

// =============================================================================
// Hands a conversation over to people.

/** Messages of one conversation in a day. */
const MOST_A_DAY = 3
/** How long whoever asked waits for the receiver, in milliseconds. */
const PATIENCE_MS = 5_000

interface Handover {
  conversationId: string
  assistant: string
  /** how to reach whoever asks, in their own words */
  contact: string
  message: string
}

/**
 * Tells the webhook of an assistant that somebody asks for people, and the registered ones that want to know.
 * @returns whether the assistant's has it; otherwise it is sent again
 * @throws ApiError 429 for one too many
 */
export async function requestPeople(
  env: Cloudflare.Env,
  { conversationId, ...data }: Handover,
): Promise<boolean> {
  const now = Date.now()
  const queued = await queueFew(
    env.DB,
    ofAssistant(data.assistant),
    { event: 'handover.requested', conversationId, data },
    { most: MOST_A_DAY, since: now - DAY_MS },
    now,
  )
  if (typeof queued === 'number') {
    const again = Math.max(1, Math.ceil((queued + DAY_MS - now) / 1000))
    throw new ApiError(429, `A conversation is handed over ${MOST_A_DAY} times a day at most.`, again)
  }
  let delivered = false
  const sent = send(env, queued).then(({ deliveredAt }) => {
    delivered = deliveredAt !== null
  })
  waitUntil(sent)
  await settlesWithin(PATIENCE_MS, sent)
  return delivered
}
