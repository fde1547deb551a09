/**
 * The deletion of a conversation: its messages in the histories, its rows in D1, and whatever its object stores. A mark that a
 * conversation existed may stay: a request can be led to its id again by what it says, even if somebody else sends it.
 */

import { database } from '../db/client'
import {
  conversationsOfUser,
  deleteConversationRows,
  findConversationRow,
  hideConversation,
} from '../db/conversations'
import { markErased } from '../db/erasures'
import type { Alarm } from '../durable/alarm'
import { logFailure, unwrap } from '../errors'
import { settlesWithin } from '../lib/settles'
import type { Origin } from '../search/fault-log'
import { unknownConversation } from '../turn/errors'
import type { Asker } from '../turn/request'
import { conversationObject } from './conversation-object'
import type { ConversationState } from './conversation-state'
import { removeMessages } from './messages'
import { requireConversationId } from './open-row'
import { mayOpen, scopeOf, unproven } from './ownership'

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
      await deleteConversationRows(database(this.#env), this.#id)
      await this.#clear()
      return true
    } catch (error) {
      logFailure('a conversation could not be deleted yet', error, { ...origin, conversation: this.#id })
      this.#alarm.set(Date.now() + RETRY_MS)
      // Ignore a failure: while D1 is unavailable, nobody can read the conversation there either.
      await hideConversation(database(this.#env), this.#id).catch(() => {})
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
  const row = await findConversationRow(database(env), id, Date.now())
  unwrap(removed)
  if (row === undefined || !mayOpen(asker, row)) throw unknownConversation()
  await object.erase(row.historyId, origin)
}

/** Conversations deleted at once, and the time after which no more are started, in milliseconds. */
const ERASED_AT_ONCE = 5
const ERASE_BUDGET_MS = 20_000
/** An invocation may make 1,000 calls. Each conversation costs one, and each five cost one query. */
const MOST_ERASED = 500

/**
 * Deletes a user's conversations, as far as the asker may list them (ownership.ts). One call is bounded.
 * Conversations that D1 does not know yet are not counted: they are deleted when D1 learns of them
 * (db/erasures.ts).
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
  const db = database(env)
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
