/**
 * A mark that a conversation existed here, kept when nothing else of it is left. A request can be led to its id
 * again by what it says, even if somebody else sends it, and whoever began the conversation knows the id.
 */
import type { Alarm } from '../durable/alarm'

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
