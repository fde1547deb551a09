/**
 * Runs a collection's background work, in its alarm or right after the call that caused it.
 *
 * Works are independent. A work that throws is retried later. A work that hangs does not hold up the others: the
 * alarm stops waiting for it, and fires again.
 */

import type { Alarm } from '../../durable/alarm'
import { logFailure } from '../../errors'
import { backoff } from '../../lib/backoff'
import type { Background } from '../work'

/** Steps of one work in a row, before the object may sleep or serve other alarms. */
const STEPS = 20
/** How long one alarm waits for works. Works that still run then continue beside the next alarm. */
const ALARM_MS = 20_000
/** The alarm set while a work runs, in case the object dies before its end. */
const STANDBY_MS = 30_000

export class BackgroundWorks {
  #works: () => readonly Background[]
  #alarm: Alarm
  #closed: () => boolean
  #patience: number
  #collection: () => string
  #running = new Map<Background, Promise<void>>()
  #failures = new Map<Background, number>()
  /** when each work may run again, in unix milliseconds */
  #restsUntil = new Map<Background, number>()

  /**
   * @param works the present works
   * @param closed whether the collection is gone: then nothing is started
   * @param given.patience milliseconds @param given.collection its name, for the log
   */
  constructor(
    works: () => readonly Background[],
    alarm: Alarm,
    closed: () => boolean,
    { patience = ALARM_MS, collection }: { patience?: number; collection: () => string },
  ) {
    this.#works = works
    this.#alarm = alarm
    this.#closed = closed
    this.#patience = patience
    this.#collection = collection
  }

  /** Runs every work when the alarm fires. Sets the alarm again if a work needs it. */
  async run(): Promise<void> {
    const all = Promise.all(this.#works().map((work) => this.#start(work)))
    const given = new AbortController()
    await Promise.race([all, scheduler.wait(this.#patience, { signal: given.signal }).catch(() => {})])
    given.abort()
    if (this.#running.size > 0 && !this.#closed()) this.#alarm.within(STANDBY_MS)
  }

  /**
   * Starts a work without waiting for it. A work that is waiting after a failure keeps waiting.
   * @param anew start it even then
   */
  kick(work: Background, anew = false): void {
    if (anew) this.#restsUntil.delete(work)
    this.#alarm.within(STANDBY_MS)
    // The caller may be in a transaction, and works read what is committed.
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
        // Gives waiting calls a turn.
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
      logFailure(`background work failed: ${work.name}`, error, { collection: this.#collection() })
      const failures = this.#failures.get(work) ?? 0
      this.#failures.set(work, failures + 1)
      return backoff(failures)
    }
  }
}
