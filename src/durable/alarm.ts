/**
 * A Durable Object has one alarm. All its background work shares it. The alarm is only written when it has to move, because
 * each write costs a row.
 */
import { logFailure, type Trail } from '../errors'

/** An alarm further ahead is set in steps, because the platform does not take every date. */
const FARTHEST_MS = 30 * 86_400_000
const SOONEST_MS = 2

export class Alarm {
  readonly #storage: DurableObjectStorage
  readonly #trail: Trail | undefined
  /** when it fires, if known; undefined when the object has just woken */
  #at: number | undefined

  /** @param trail whose alarm it is, for the log */
  constructor(storage: DurableObjectStorage, trail?: Trail) {
    this.#storage = storage
    this.#trail = trail
  }

  /**
   * @param at milliseconds since 1970
   * @param options.orSooner keeps an alarm that fires sooner
   */
  set(at: number, { orSooner = false }: { orSooner?: boolean } = {}): void {
    // workerd drops an alarm set for the same millisecond as the one now firing, and alarms can fire 1 ms early. So never set
    // one sooner than 2 ms ahead.
    const now = Date.now()
    const near = Math.min(Math.max(Math.ceil(at), now + SOONEST_MS), now + FARTHEST_MS)
    if (this.#at !== undefined && (this.#at === near || (orSooner && this.#at <= near))) return
    this.#at = near
    this.#storage.setAlarm(near).catch((error) => {
      // Forget it, so that the next caller sets it again.
      this.#at = undefined
      logFailure('the alarm could not be set', error, this.#trail)
    })
  }

  /** Makes it fire within this many milliseconds. An alarm from before the object slept can be moved, but not past that. */
  within(milliseconds: number): void {
    this.set(Date.now() + milliseconds, { orSooner: true })
  }

  /** It has fired or was deleted: no alarm is set. */
  rang(): void {
    this.#at = undefined
  }
}
