/** An object's one alarm, shared by everything in it that has something left to do. */
import { reasonOf } from '../errors'

export class Wakeup {
  #storage: DurableObjectStorage
  #at: number | undefined

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
  }

  /**
   * Makes sure that the alarm rings in time, without writing when it will anyway. An alarm that was set before
   * the object slept may be moved later by this, but never past `milliseconds`.
   */
  within(milliseconds: number): void {
    const at = Date.now() + milliseconds
    if (this.#at !== undefined && this.#at <= at) return
    this.#at = at
    this.#storage.setAlarm(at).catch((error) => {
      // Whoever asks next sets it, rather than rely on it.
      this.#at = undefined
      console.error('the alarm could not be set', reasonOf(error))
    })
  }

  /** The alarm has rung: there is none now. */
  rang(): void {
    this.#at = undefined
  }
}
