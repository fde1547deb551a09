/**
 * What a collection does behind its callers' backs: in its alarm, or right after the call that made the work.
 *
 * Works know nothing of each other. One that throws is asked again later, one that does not come back holds up
 * nobody: the alarm waits for it no longer than for the others and rings again.
 */

import type { Alarm } from '../../alarm'
import { backoff } from '../../backoff'
import { reasonOf } from '../../errors'
import type { Background } from '../work'

/** Steps that a work takes in a row before the object may sleep or serve other alarms. */
const STEPS = 20
/** How long one alarm lasts at most. What is still under way then goes on beside the next one. */
const ALARM_MS = 20_000
/** The alarm that stands by while a work is under way, in case the object does not live to see its end. */
const STANDBY_MS = 30_000

export class BackgroundWorks {
  #works: () => readonly Background[]
  #alarm: Alarm
  #closed: () => boolean
  #patience: number
  #running = new Map<Background, Promise<void>>()
  #failures = new Map<Background, number>()
  /** when a work may be asked again, in milliseconds */
  #restsUntil = new Map<Background, number>()

  /**
   * @param works those that there are at the moment
   * @param closed whether the collection is gone: nothing is begun any more
   * @param patience milliseconds
   */
  constructor(
    works: () => readonly Background[],
    alarm: Alarm,
    closed: () => boolean = () => false,
    patience = ALARM_MS,
  ) {
    this.#works = works
    this.#alarm = alarm
    this.#closed = closed
    this.#patience = patience
  }

  /** The alarm has rung: every work gets its steps. Sees to it that the alarm rings again when one needs it. */
  async run(): Promise<void> {
    const all = Promise.all(this.#works().map((work) => this.#start(work)))
    const given = new AbortController()
    await Promise.race([all, scheduler.wait(this.#patience, { signal: given.signal }).catch(() => {})])
    given.abort()
    if (this.#running.size > 0 && !this.#closed()) this.#alarm.within(STANDBY_MS)
  }

  /**
   * Has a work begin now, without waiting for it. One that is resting after a failure goes on resting.
   * @param anew whatever it is resting from does not count any more
   */
  kick(work: Background, anew = false): void {
    if (anew) this.#restsUntil.delete(work)
    this.#alarm.within(STANDBY_MS)
    // Who kicks may be in a transaction, and works read what was committed.
    queueMicrotask(() => void this.#start(work))
  }

  #start(work: Background): Promise<void> {
    const rest = (this.#restsUntil.get(work) ?? 0) - Date.now()
    if (rest > 0) {
      this.#alarm.within(rest)
      return Promise.resolve()
    }
    const running = this.#running.get(work)
    if (running !== undefined) return running
    const started = this.#drive(work).finally(() => this.#running.delete(work))
    this.#running.set(work, started)
    return started
  }

  async #drive(work: Background): Promise<void> {
    for (let count = 0; !this.#closed(); count++) {
      const next = await this.#step(work)
      if (next === undefined || this.#closed()) return
      if (next === 0 && count < STEPS) {
        // Calls that came in meanwhile have their turn.
        await scheduler.wait(0)
        continue
      }
      this.#restsUntil.set(work, Date.now() + next)
      this.#alarm.within(next)
      return
    }
  }

  async #step(work: Background): Promise<number | undefined> {
    try {
      const next = await work.step()
      this.#failures.delete(work)
      return next
    } catch (error) {
      console.error(`background work failed: ${work.name}`, reasonOf(error))
      const failures = this.#failures.get(work) ?? 0
      this.#failures.set(work, failures + 1)
      return backoff(failures)
    }
  }
}
