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
import { type Database, database } from '../db/client'
import {
  deleteConversationRows,
  deleteExpiredConversations,
  type EmptiedConversation,
  emptiedConversations,
} from '../db/conversations'
import { deleteOldMarks } from '../db/erasures'
import { type ExpiryRule, expiredMessages, expiryRules, forgetDeletedModels } from '../db/message-expiry'
import { deleteMessages } from '../db/messages'
import { trimTraces } from '../db/traces'
import { deleteExpiredTurns } from '../db/turns'
import { logFailure } from '../errors'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import { conversationObject } from './conversation-object'

export interface SweepLimits {
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
  const db = database(env)
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
 * Deletes expired turns, conversations and erasure marks. @param now milliseconds @returns whether none are
 * left
 */
async function sweepRows(db: Database, now: number, batch: number, allowance: Allowance): Promise<boolean> {
  for (const remove of [deleteExpiredTurns, deleteExpiredConversations, deleteOldMarks]) {
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
