/**
 * The queue of webhooks: one row for each message to each of them. A row is written in the transaction of what it tells of, and sent
 * afterwards, so that neither a crash nor a receiver that is down loses it. Where no webhook wants an event, nothing is written.
 */
import sql, { type Sql } from 'sql-template-tag'
import { all, batch, type Database, first, returning, run, select, sets } from './client'
import { deliveries, type RowOf } from './schema'
import type { WebhookEvent } from './webhook-events'

export type Delivery = RowOf<typeof deliveries>

/** The kind of resources that webhooks are. */
export const WEBHOOK = 'webhook'

/** Messages that wait at once. While there are as many, no others are stored. */
export const MOST_WAITING = 5_000
/** How long rows are kept, delivered or not, in milliseconds. */
const KEPT_MS = 7 * 86_400_000
/** After the first failure, and at most, in milliseconds. */
const FIRST_RETRY_MS = 30_000
const LONGEST_RETRY_MS = 6 * 3_600_000

/** Ids begin with their time, so that their order is that of the messages. */
const idAt = (now: number): string => now.toString(36).padStart(9, '0')
const newId = (now: number): Sql => sql`${idAt(now)} || lower(hex(randomblob(8)))`

interface Told {
  event: WebhookEvent | 'webhook.test'
  /** the message goes when its conversation is deleted */
  conversationId?: string
  turn?: number
  /** what cannot be read again when it is sent */
  data?: object
}

const INSERTED = sql`INSERT INTO deliveries
  (id, webhook, event, conversation_id, turn, data, created_at, tries, next_at)`

const valuesOf = ({ event, conversationId = null, turn = null, data = {} }: Optional<Told>, now: number) =>
  sql`${event}, ${conversationId}, ${turn}, ${JSON.stringify(data)}, ${now}`

type Optional<T> = { [Key in keyof T]: T[Key] | null }

/**
 * A statement that queues an event for the webhooks that want it. It belongs into the transaction of what it tells of.
 * @param condition whether there is anything to tell: that the statement before wrote a row
 */
export const announcing = (told: Told, condition = sql`true`, now = Date.now()): Sql =>
  sql`${INSERTED} SELECT ${newId(now)}, id, ${valuesOf(told, now)}, 0, ${now} FROM resources
    WHERE kind = ${WEBHOOK} AND ${condition}
      AND EXISTS (SELECT 1 FROM json_each(body, '$.events') WHERE value = ${told.event})
      AND (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE next_at IS NOT NULL LIMIT ${MOST_WAITING}))
        < ${MOST_WAITING}`

/** Whether the statement before, in the same transaction, wrote a row. */
export const WROTE = sql`changes() = 1`

/** Queues an event that nothing else in D1 tells of. */
export async function announce(db: Database, told: Told): Promise<void> {
  await run(db, announcing(told))
}

/** Queues a message to one webhook, which the caller sends at once. */
export async function queueOne(db: Database, webhook: string, told: Told, now: number): Promise<Delivery> {
  const values = sql`${newId(now)}, ${webhook}, ${valuesOf(told, now)}, 1, ${now + FIRST_RETRY_MS}`
  return (await first<Delivery>(db, sql`${INSERTED} VALUES (${values}) ${returning(deliveries)}`))!
}

/**
 * Queues a message to one webhook, which the caller sends at once, and the same event for the others that want it.
 * @param limit so many a conversation, since a moment in unix milliseconds
 * @returns the message; or when the oldest of those that are too many was queued
 */
export async function queueFew(
  db: Database,
  webhook: string,
  told: Told & { conversationId: string },
  { most, since }: { most: number; since: number },
  now: number,
): Promise<Delivery | number> {
  const others = sql`FROM deliveries WHERE conversation_id = ${told.conversationId}
    AND event = ${told.event} AND webhook = ${webhook} AND created_at > ${since}`
  const values = sql`${newId(now)}, ${webhook}, ${valuesOf(told, now)}, 1, ${now + FIRST_RETRY_MS}`
  const [queued, , oldest] = await batch(db, [
    sql`${INSERTED} SELECT ${values} WHERE (SELECT count(*) ${others}) < ${most} ${returning(deliveries)}`,
    announcing(told, WROTE, now),
    sql`SELECT min(created_at) AS at ${others}`,
  ])
  const [row] = queued!.results as Delivery[]
  return row ?? (oldest!.results as { at: number }[])[0]!.at
}

/** When people were asked for in a conversation last, in unix milliseconds; undefined: not within the time that rows are kept. */
export async function handedOverAt(db: Database, conversationId: string): Promise<number | undefined> {
  const asked = sql`conversation_id = ${conversationId} AND event = 'handover.requested'`
  const row = await first<{ at: number | null }>(
    db,
    sql`SELECT max(created_at) AS at FROM deliveries WHERE ${asked}`,
  )
  return row?.at ?? undefined
}

/** Whether a message is to be sent by now. */
export const isAnyDue = async (db: Database, now: number): Promise<boolean> =>
  (await first(db, sql`SELECT 1 FROM deliveries WHERE next_at <= ${now} LIMIT 1`)) !== undefined

/**
 * Takes the messages that are due, the longest waiting first. The next attempt of each is set before it is sent: whoever dies in
 * between loses nothing, and nobody else takes it meanwhile.
 */
export const claimDue = (db: Database, limit: number, now: number): Promise<Delivery[]> =>
  all(
    db,
    sql`UPDATE deliveries SET tries = tries + 1,
        next_at = ${now} + min(${LONGEST_RETRY_MS}, ${FIRST_RETRY_MS} * (1 << min(tries, 12)))
      WHERE id IN (SELECT id FROM deliveries WHERE next_at <= ${now} ORDER BY next_at LIMIT ${limit})
      ${returning(deliveries)}`,
  )

/** Takes one message that was not delivered, whether or not it is due. @returns undefined if there is none */
export const claimOne = (db: Database, id: string, now: number): Promise<Delivery | undefined> =>
  first(
    db,
    sql`UPDATE deliveries SET tries = tries + 1, next_at = ${now + FIRST_RETRY_MS}
      WHERE id = ${id} AND delivered_at IS NULL ${returning(deliveries)}`,
  )

/** Notes what came of an attempt. */
export const noteOutcome = (
  db: Database,
  id: string,
  changes: Partial<Pick<Delivery, 'data' | 'deliveredAt' | 'nextAt' | 'outcome'>>,
): Promise<number> => run(db, sql`UPDATE deliveries SET ${sets<typeof deliveries>(changes)} WHERE id = ${id}`)

/** The latest first. @param before an id: only earlier ones */
export const listDeliveries = (db: Database, limit: number, before = '~'): Promise<Delivery[]> =>
  all(db, sql`${select(deliveries)} WHERE id < ${before} ORDER BY id DESC LIMIT ${limit}`)

/** How many messages wait, by webhook. */
export const waitingByWebhook = (db: Database): Promise<{ webhook: string; waiting: number }[]> =>
  all(db, sql`SELECT webhook, count(*) AS waiting FROM deliveries WHERE next_at IS NOT NULL GROUP BY webhook`)

/** Forgets what was to be sent to a webhook. */
export const deleteDeliveriesTo = (db: Database, webhook: string): Promise<number> =>
  run(db, sql`DELETE FROM deliveries WHERE webhook = ${webhook}`)

/** Deletes some old messages, delivered or given up. @returns how many */
export const deleteOldDeliveries = (db: Database, now: number, limit: number): Promise<number> =>
  run(
    db,
    sql`DELETE FROM deliveries WHERE id IN
      (SELECT id FROM deliveries WHERE id < ${idAt(now - KEPT_MS)} ORDER BY id LIMIT ${limit})`,
  )
