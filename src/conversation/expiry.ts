/**
 * Deletes expired history. The cron trigger runs this sweep.
 *
 * Expiry is per message: a message older than its model's ttl is deleted from the history collection and from
 * D1. A deleted model keeps its row, and so its messages keep their ttl, until the last of them is gone. Rows
 * of turns and conversations store their own expiry, and their objects clean up by alarm. So a sweep wakes none
 * of them. It erases only conversations that somebody emptied through the documents API.
 *
 * A sweep is bounded. The rows hold everything it needs, so the next one finds what is left.
 */
import type { Database } from '../db/client'
import {
  conversationsOfUser,
  deleteConversationRows,
  deleteExpiredConversations,
  deleteMessages,
  deleteOldMarks,
  type EmptiedConversation,
  type ExpiryRule,
  emptiedConversations,
  expiredMessages,
  expiryRules,
  findConversationRow,
  forgetDeletedModels,
  hideConversation,
  markErased,
} from '../db/conversations'
import { deleteOldDeliveries } from '../db/deliveries'
import { deleteExpiredTurns, trimTraces } from '../db/turns'
import type { Alarm } from '../durable/objects'
import { logFailure, unwrap } from '../errors'
import { settlesWithin } from '../lib/waiting'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import { unknownConversation } from '../turn/errors'
import type { Asker } from '../turn/request'
import { conversationObject } from './conversation-object'
import type { ConversationState } from './conversation-state'
import { requireConversationId } from './conversations'
import { removeMessages } from './messages'
import { mayOpen, scopeOf, unproven } from './stored'

interface SweepLimits {
  /** no batch begins after this many milliseconds */
  budgetMs?: number
  /** rows a batch */
  batch?: number
  /** what lines of the log share: by default an id of this run */
  origin?: Origin
  /** queries and calls a sweep: an invocation may make 50 queries on the Free plan, and others make some, too */
  calls?: number
}

const RULES_A_PAGE = 100
/** Pause between two batches, in milliseconds. */
const PAUSE_MS = 5
/** Conversations erased at once. */
const ERASED_AT_ONCE = 5

/** What a part of the sweep may still use. */
interface Allowance {
  until: number
  calls: number
}

/** How many a part of the sweep deleted, and whether nothing of its kind is left. */
interface Swept {
  expired: number
  done: boolean
}

/**
 * Deletes expired rows until none are left or a limit is reached. No kind of row can starve the others: each
 * has a share of the budget, passes what it does not use to the next, and fails alone.
 * @param now unix seconds
 * @returns how many messages were deleted, and whether all expired ones are gone
 */
export async function sweepExpired(
  env: Cloudflare.Env,
  now: number,
  { budgetMs = 25_000, batch = 500, calls = 40, origin = newRun() }: SweepLimits = {},
): Promise<Swept> {
  const began = Date.now()
  const db = env.DB
  let rest = calls
  const run = async <T>(part: number, work: (allowance: Allowance) => Promise<T>): Promise<T | undefined> => {
    const given = Math.floor(rest / (PARTS + 1 - part))
    const allowance = { until: began + (budgetMs * part) / PARTS, calls: given }
    try {
      return await work(allowance)
    } catch (error) {
      logFailure(`part ${part} of the sweep is left for the next one`, error, origin)
      return undefined
    } finally {
      rest -= given - allowance.calls
    }
  }
  const rowsGone = await run(1, (allowance) => sweepRows(db, now * 1000, batch, allowance))
  const trimmed = await run(2, (allowance) => sweepTraces(db, now * 1000 - traceMilliseconds(env), allowance))
  const erased = await run(3, (allowance) => eraseEmptied(env, db, allowance, origin))
  const messages = await run(4, (allowance) => sweepMessages(env, db, now, batch, allowance, origin))
  return {
    expired: messages?.expired ?? 0,
    done: rowsGone === true && trimmed === true && erased === true && messages?.done === true,
  }
}

/** An id of background work that no request caused, as lines of the log have it for a request's. */
const newRun = (): Origin => ({ requestId: `sweep-${crypto.randomUUID()}` })

/** Expired rows, traces, conversations to erase, messages. */
const PARTS = 4

const HOUR_MS = 3_600_000
const DEFAULT_TRACE_HOURS = 24
/** Turns whose traces are looked at in one step, and the calls that it takes. */
const TRACES_AT_ONCE = 200
const TRACE_CALLS = 4

/** How long traces are kept. `TRACE_HOURS` 0: as long as their turns. */
function traceMilliseconds({ TRACE_HOURS }: Cloudflare.Env): number {
  const hours = Number(TRACE_HOURS ?? DEFAULT_TRACE_HOURS)
  if (hours === 0) return Number.POSITIVE_INFINITY
  return (hours > 0 ? hours : DEFAULT_TRACE_HOURS) * HOUR_MS
}

/** Removes traces of turns from before a moment. @returns whether none are left */
async function sweepTraces(db: Database, before: number, allowance: Allowance): Promise<boolean> {
  if (!Number.isFinite(before)) return true
  do {
    if (!(await take(allowance, TRACE_CALLS))) return false
  } while (await trimTraces(db, before, TRACES_AT_ONCE))
  return true
}

/**
 * Deletes expired turns, conversations, erasure marks and messages to webhooks. @param now milliseconds @returns whether none are
 * left
 */
async function sweepRows(db: Database, now: number, batch: number, allowance: Allowance): Promise<boolean> {
  for (const remove of [
    deleteExpiredTurns,
    deleteExpiredConversations,
    deleteOldMarks,
    deleteOldDeliveries,
  ]) {
    // D1 counts the rows that triggers delete as well.
    for (let removed = batch; removed >= batch; ) {
      if (!(await take(allowance, 1))) return false
      removed = await remove(db, now, batch)
    }
  }
  return true
}

/** Erases conversations whose messages were deleted. @returns whether none are left */
async function eraseEmptied(
  env: Cloudflare.Env,
  db: Database,
  allowance: Allowance,
  origin: Origin,
): Promise<boolean> {
  let all = true
  for (let after = ''; ; ) {
    if (!(await take(allowance, 1 + ERASED_AT_ONCE))) return false
    const found = await emptiedConversations(db, after, ERASED_AT_ONCE)
    const erased = await Promise.all(found.map((conversation) => eraseOne(env, db, conversation, origin)))
    all &&= erased.every(Boolean)
    if (found.length < ERASED_AT_ONCE) return all
    after = found.at(-1)!.id
  }
}

async function eraseOne(
  env: Cloudflare.Env,
  db: Database,
  { id, historyId, refilled }: EmptiedConversation,
  origin: Origin,
): Promise<boolean> {
  try {
    if (!refilled) return await conversationObject(env, id).erase(historyId, origin)
    // Somebody put messages back. Keep those and delete only the old records.
    await deleteConversationRows(db, id)
    return true
  } catch (error) {
    logFailure('a conversation is left for the next sweep', error, { ...origin, conversation: id })
    return false
  }
}

async function sweepMessages(
  env: Cloudflare.Env,
  db: Database,
  now: number,
  batch: number,
  allowance: Allowance,
  origin: Origin,
): Promise<Swept> {
  const stuck = new Set<string>()
  let expired = 0
  // One batch a model in each pass, so that no model's messages wait for all of another's.
  for (let progress = true; progress; ) {
    progress = false
    for (let after = ''; ; ) {
      if (!(await take(allowance, 1))) return { expired, done: false }
      const rules = await expiryRules(db, now, after, RULES_A_PAGE)
      // Each minute another model comes first, so that none waits for ever where a sweep reaches only a few.
      const first = Math.floor(now / 60) % Math.max(1, rules.length)
      for (const rule of [...rules.slice(first), ...rules.slice(0, first)]) {
        if (stuck.has(rule.id)) continue
        // A batch costs one query, and two calls for each history in it.
        if (!(await take(allowance, 3))) return { expired, done: false }
        const swept = await sweepModel(env, db, now, rule, batch, allowance, origin)
        expired += swept.expired
        if (swept.expired > 0) progress = true
        if (!swept.done) stuck.add(rule.id)
      }
      if (rules.length < RULES_A_PAGE) break
      after = rules.at(-1)!.id
    }
  }
  await forgetDeletedModels(db, now)
  return { expired, done: stuck.size === 0 }
}

/** Deletes one batch of a model's messages. `done` is false if some cannot be deleted now. */
async function sweepModel(
  env: Cloudflare.Env,
  db: Database,
  now: number,
  { id, ttl }: ExpiryRule,
  batch: number,
  allowance: Allowance,
  origin: Origin,
): Promise<Swept> {
  const groups = Map.groupBy(await expiredMessages(db, id, now - ttl, batch), ({ historyId }) => historyId)
  allowance.calls -= 2 * Math.max(0, groups.size - 1)
  let expired = 0
  let done = true
  for (const [historyId, messages] of groups) {
    const ids = messages.map(({ documentId }) => documentId)
    try {
      // Delete from the collection first: the next sweep finds a leftover row, but not a leftover document.
      await historyStore(env, historyId).expireMessages(ids, origin)
      await deleteMessages(db, historyId, ids)
      expired += ids.length
    } catch (error) {
      // One unavailable collection must not keep the messages of others alive.
      logFailure(`expiry: history ${historyId} is left for the next sweep`, error, {
        ...origin,
        collection: historyId,
      })
      done = false
    }
  }
  return { expired, done }
}

/**
 * Pauses for other work, then takes calls off an allowance. @returns false if the calls or the time are used up
 */
async function take(allowance: Allowance, calls: number): Promise<boolean> {
  // Calls inside one process are always ready, so workerd would not look at a socket until the sweep is over.
  // Every conversation would wait. A timer makes workerd look.
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  if (allowance.calls < calls || Date.now() >= allowance.until) return false
  allowance.calls -= calls
  return true
}

// =============================================================================
// The deletion of a conversation: its messages in the histories, its rows in D1, and whatever its object stores. A mark that a
// conversation existed may stay: a request can be led to its id again by what it says, even if somebody else sends it.

/** How long a deletion waits for running writes, and when it is retried, in milliseconds. */
const PATIENCE_MS = 5_000
const RETRY_MS = 10_000

export class Erasure {
  readonly #env: Cloudflare.Env
  readonly #id: string
  readonly #alarm: Alarm
  readonly #clear: () => Promise<void>
  #running: Promise<boolean> | undefined

  /** @param clear deletes what the object stores */
  constructor(env: Cloudflare.Env, id: string, alarm: Alarm, clear: () => Promise<void>) {
    this.#env = env
    this.#id = id
    this.#alarm = alarm
    this.#clear = clear
  }

  /** The deletion that runs now. */
  get running(): Promise<boolean> | undefined {
    return this.#running
  }

  /** Deletes, or waits for the deletion that runs. @returns whether everything is gone. If not, the alarm tries again */
  run(state: ConversationState, origin?: Origin): Promise<boolean> {
    this.#running ??= this.#erase(state, origin).finally(() => (this.#running = undefined))
    return this.#running
  }

  async #erase(state: ConversationState, origin: Origin | undefined): Promise<boolean> {
    // If this object dies before the end, the alarm continues.
    this.#alarm.set(Date.now() + RETRY_MS)
    try {
      const written = Promise.all([state.outbox.settled(), state.records.settled()])
      if (!(await settlesWithin(PATIENCE_MS, written))) throw new Error('a write is still under way')
      await state.records.deliverCosts()
      await removeMessages(this.#env, state, this.#id, origin)
      await deleteConversationRows(this.#env.DB, this.#id)
      await this.#clear()
      return true
    } catch (error) {
      logFailure('a conversation could not be deleted yet', error, { ...origin, conversation: this.#id })
      this.#alarm.set(Date.now() + RETRY_MS)
      // Ignore a failure: while D1 is unavailable, nobody can read the conversation there either.
      await hideConversation(this.#env.DB, this.#id).catch(() => {})
      return false
    }
  }
}

const KEY = 'used_until'

export class UsedMark {
  readonly #storage: DurableObjectStorage
  readonly #alarm: Alarm

  /** @param alarm fires when the mark is no longer needed */
  constructor(storage: DurableObjectStorage, alarm: Alarm) {
    this.#storage = storage
    this.#alarm = alarm
  }

  get isSet(): boolean {
    return this.#storage.kv.get(KEY) !== undefined
  }

  /**
   * Deletes everything the object stores, and leaves a mark if one is still needed.
   * @param until when requests stop being led here, in milliseconds since 1970; undefined: as an earlier mark
   *   says
   */
  async clear(until = this.#storage.kv.get<number>(KEY) ?? 0): Promise<void> {
    await this.#storage.deleteAll()
    this.#alarm.rang()
    if (until <= Date.now()) return
    this.#storage.kv.put(KEY, until)
    this.#alarm.set(until)
  }
}

/**
 * Deletes a conversation everywhere. Readers lose it at once. If D1 or its history is unavailable, its object's
 * alarm deletes the rest.
 * @throws ApiError 404
 */
export async function deleteConversation(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  origin?: Origin,
): Promise<void> {
  await requireConversationId(env, asker, id)
  const object = conversationObject(env, id)
  const removed = await object.remove(asker, origin)
  if (removed.ok && removed.value) return
  // Always query. Otherwise a refusal would be faster than an unknown id, and the time would reveal which ids exist.
  const row = await findConversationRow(env.DB, id, Date.now())
  unwrap(removed)
  if (row === undefined || !mayOpen(asker, row)) throw unknownConversation()
  await object.erase(row.historyId, origin)
}
const ERASE_BUDGET_MS = 20_000
/** An invocation may make 1,000 calls. Each conversation costs one, and each five cost one query. */
const MOST_ERASED = 500

/**
 * Deletes a user's conversations, as far as the asker may list them (stored.ts). One call is bounded.
 * Conversations that D1 does not know yet are not counted: they are deleted when D1 learns of them
 * (db/conversations.ts).
 * @returns how many were deleted, and whether none is left; if some are, call again
 * @throws ApiError 401 if there is no proof of who asks, 404 for a user that the asker does not speak for
 */
export async function deleteUserConversations(
  env: Cloudflare.Env,
  asker: Asker,
  userId: string,
  origin?: Origin,
): Promise<{ deleted: number; done: boolean }> {
  const scope = scopeOf(asker, userId)
  if (scope === 'unproven') throw unproven('deletes', 'delete')
  if (!scope) throw unknownConversation()
  const whose = { ...scope, userId }
  const db = env.DB
  const now = Date.now()
  // Set the mark first: D1 checks it for conversations that it learns of later.
  await markErased(db, whose, now)
  const until = now + ERASE_BUDGET_MS
  let deleted = 0
  while (deleted < MOST_ERASED && Date.now() < until) {
    const some = await conversationsOfUser(db, whose, ERASED_AT_ONCE)
    const gone = await Promise.all(
      some.map(({ id, historyId }) => conversationObject(env, id).erase(historyId, origin)),
    )
    deleted += gone.filter(Boolean).length
    if (some.length < ERASED_AT_ONCE) return { deleted, done: gone.every(Boolean) }
    // Stop if every deletion was left to an alarm: the next query would find the same conversations again.
    if (!gone.some(Boolean)) break
  }
  return { deleted, done: false }
}
