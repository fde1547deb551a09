/**
 * The sweep of expired history, run by the cron trigger.
 *
 * Expiry is per message: what was said longer ago than its model's ttl goes, from the history collection and
 * from D1. A deleted model keeps its row, and its messages their ttl, until the last of them is gone. A sweep
 * is bounded; what it leaves, the next one finds, since everything it needs to know is in the rows.
 */
import { database } from '../db/client'
import { type ExpiredMessage, expiredMessages, expiryRules, forgetDeletedModels } from '../db/message-expiry'
import { deleteMessages } from '../db/messages'
import { collectionObject } from '../search/catalog'

export interface SweepLimits {
  /** milliseconds after which no further batch is begun */
  budgetMs?: number
  /** messages a batch */
  batch?: number
  /** queries and calls a sweep: an invocation may make 50 on the free plan, 1,000 on the paid one */
  calls?: number
}

const RULES_A_PAGE = 100

/**
 * Deletes expired messages, until none are left or a limit is reached.
 * @param now unix seconds
 * @returns how many messages went, and whether all that was expired is gone
 */
export async function sweepExpired(
  env: Cloudflare.Env,
  now: number,
  { budgetMs = 25_000, batch = 500, calls = 800 }: SweepLimits = {},
): Promise<{ expired: number; done: boolean }> {
  const db = database(env)
  const until = Date.now() + budgetMs
  let expired = 0
  let left = calls
  let after = ''
  while (true) {
    left -= 1
    const rules = await expiryRules(db, after, RULES_A_PAGE)
    if (rules.length === 0) break
    for (const { id, ttl } of rules) {
      let found: ExpiredMessage[]
      do {
        if (left < 4 || Date.now() > until) return { expired, done: false }
        left -= 1
        found = await expiredMessages(db, id, now - ttl, batch)
        const groups = byHistory(found)
        left -= 2 * groups.size
        let failed = false
        for (const [historyId, ids] of groups) {
          try {
            // The collection first: a row that stays behind is found again, a document would not be.
            await collectionObject(env, historyId).expireMessages(ids)
            await deleteMessages(db, historyId, ids)
            expired += ids.length
          } catch (error) {
            // One collection out of reach must not keep the others' messages alive.
            console.error(`expiry: history ${historyId} is left for the next sweep`, error)
            failed = true
          }
        }
        if (failed) break
      } while (found.length === batch)
    }
    after = rules.at(-1)!.id
  }
  await forgetDeletedModels(db)
  return { expired, done: true }
}

function byHistory(found: ExpiredMessage[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { historyId, documentId } of found) {
    const group = groups.get(historyId)
    if (group) group.push(documentId)
    else groups.set(historyId, [documentId])
  }
  return groups
}
