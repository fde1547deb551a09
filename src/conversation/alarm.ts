/** An object's one alarm, written only when it has to move: each write is a row's. */
import { reasonOf } from '../errors'

/** Farther alarms are set in steps: not every date is one that an alarm can have. */
const FARTHEST_MS = 30 * 86_400_000

export class Alarm {
  readonly #storage: DurableObjectStorage
  /** when it rings, as far as is known; undefined when the object has just woken */
  #at: number | undefined

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
  }

  /**
   * @param at milliseconds since 1970
   * @param options.orSooner leaves an alarm be that rings before
   */
  set(at: number, { orSooner = false }: { orSooner?: boolean } = {}): void {
    const near = Math.min(at, Date.now() + FARTHEST_MS)
    if (this.#at !== undefined && (this.#at === near || (orSooner && this.#at <= near))) return
    this.#at = near
    this.#storage.setAlarm(near).catch((error) => {
      this.#at = undefined
      console.error('the alarm could not be set', reasonOf(error))
    })
  }

  /** It has rung, or was deleted: there is none now. */
  rang(): void {
    this.#at = undefined
  }
}
