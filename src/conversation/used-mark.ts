/**
 * That a conversation has been here, where nothing else of it is left. A request can be led to its id again by what it
 * says, though somebody else sends it, and whoever began the conversation knows the id.
 */
import type { Alarm } from '../alarm'

const KEY = 'used_until'

export class UsedMark {
  readonly #storage: DurableObjectStorage
  readonly #alarm: Alarm

  /** @param alarm rings when the mark is not needed any more */
  constructor(storage: DurableObjectStorage, alarm: Alarm) {
    this.#storage = storage
    this.#alarm = alarm
  }

  get isSet(): boolean {
    return this.#storage.kv.get(KEY) !== undefined
  }

  /**
   * Deletes all that the object holds, and leaves a mark where one is needed still.
   * @param until when nobody is led here any more, in milliseconds since 1970; undefined: as an earlier mark says
   */
  async clear(until = this.#storage.kv.get<number>(KEY) ?? 0): Promise<void> {
    await this.#storage.deleteAll()
    this.#alarm.rang()
    if (until <= Date.now()) return
    this.#storage.kv.put(KEY, until)
    this.#alarm.set(until)
  }
}
