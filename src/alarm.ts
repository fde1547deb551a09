/**
 * A Durable Object's one alarm, shared by all in it that has something left to do. It is written only when it has to
 * move: each write is a row's.
 */
import { reasonOf } from './errors'

/** Farther alarms are set in steps: not every date is one that an alarm can have. */
const FARTHEST_MS = 30 * 86_400_000
const SOONEST_MS = 2

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
    // One that is set to the millisecond of the one that is ringing never rings, and that may ring a millisecond early.
    const now = Date.now()
    const near = Math.min(Math.max(Math.ceil(at), now + SOONEST_MS), now + FARTHEST_MS)
    if (this.#at !== undefined && (this.#at === near || (orSooner && this.#at <= near))) return
    this.#at = near
    this.#storage.setAlarm(near).catch((error) => {
      // Whoever asks next sets it, rather than rely on it.
      this.#at = undefined
      console.error('the alarm could not be set', reasonOf(error))
    })
  }

  /** Has it ring within so many milliseconds. One that was set before the object slept may be moved, never past that. */
  within(milliseconds: number): void {
    this.set(Date.now() + milliseconds, { orSooner: true })
  }

  /** It has rung, or was deleted: there is none now. */
  rang(): void {
    this.#at = undefined
  }
}
