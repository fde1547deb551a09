/**
 * The deletion of a conversation: its messages in the histories, its rows in D1, and whatever its object stores. A mark that a
 * conversation existed may stay: a request can be led to its id again by what it says, even if somebody else sends it.
 */

import { database } from '../db/client'
import { deleteConversationRows, hideConversation } from '../db/conversations'
import type { Alarm } from '../durable/alarm'
import { logFailure } from '../errors'
import { settlesWithin } from '../lib/settles'
import type { Origin } from '../search/fault-log'
import type { ConversationState } from './conversation-state'
import { removeMessages } from './kept-messages'

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
