/** The log of a collection's `log` rules, in its object. */
import * as v from 'valibot'
import { once } from '../lib/once'
import type { LogRecord } from './records'

/** Limits of a collection's log: the age of an event in milliseconds, the number of events, and their bytes. */
const LOG_MS = 30 * 86_400_000
const MOST_LOGGED = 100_000
export const MOST_LOG_BYTES = 64 * 1024 * 1024
/** Events deleted in one step. */
const EXPIRED = 1_000

const eventShape = once(() => v.record(v.string(), v.unknown()))

export class EventLog {
  readonly #sql: () => SqlStorage

  constructor(sql: () => SqlStorage) {
    this.#sql = sql
  }

  /** Adds an event, and deletes the oldest ones beyond the limits. */
  add({ rule, user, event }: LogRecord, now: number): void {
    const { seq, upto } = this.#sql()
      .exec<{ seq: number; upto: number }>(
        `INSERT INTO analytics_log (rule, user, at, event, upto) SELECT ?1, ?2, ?3, ?4,
          coalesce((SELECT upto FROM analytics_log ORDER BY seq DESC LIMIT 1), 0) + octet_length(?4)
          RETURNING seq, upto`,
        rule,
        user,
        now,
        JSON.stringify(event),
      )
      .one()
    const isBeyond = 'seq <= ? OR upto - octet_length(event) < ?'
    const bounds = [seq - MOST_LOGGED, upto - MOST_LOG_BYTES]
    const [oldest] = this.#sql()
      .exec(`SELECT 1 FROM (SELECT * FROM analytics_log ORDER BY seq LIMIT 1) WHERE ${isBeyond}`, ...bounds)
      .toArray()
    if (oldest === undefined) return
    this.#sql().exec(
      `DELETE FROM analytics_log WHERE seq IN (SELECT seq FROM analytics_log ORDER BY seq LIMIT ?) AND (${isBeyond})`,
      EXPIRED,
      ...bounds,
    )
  }

  /** A user's latest events, newest first. */
  events(rule: string, user: string, most: number): Record<string, unknown>[] {
    return this.#sql()
      .exec<{ event: string }>(
        'SELECT event FROM analytics_log WHERE rule = ? AND user = ? ORDER BY seq DESC LIMIT ?',
        rule,
        user,
        most,
      )
      .toArray()
      .map(({ event }) => v.parse(eventShape(), JSON.parse(event)))
  }

  /** Erases the log of a rule, or only one user's events in it. @returns how many events it had */
  forget(rule: string, user?: string): number {
    return this.#sql()
      .exec(
        'DELETE FROM analytics_log WHERE rule = ? AND user = coalesce(?, user) RETURNING seq',
        rule,
        user ?? null,
      )
      .toArray().length
  }

  /** Deletes some events that are too old. @returns milliseconds until the next one is */
  expire(now: number): number | undefined {
    const expired = this.#sql()
      .exec(
        `DELETE FROM analytics_log WHERE at <= ?
          AND seq IN (SELECT seq FROM analytics_log ORDER BY seq LIMIT ?) RETURNING seq`,
        now - LOG_MS,
        EXPIRED,
      )
      .toArray().length
    if (expired === EXPIRED) return 0
    const [oldest] = this.#sql()
      .exec<{ at: number }>('SELECT at FROM analytics_log ORDER BY seq LIMIT 1')
      .toArray()
    return oldest && Math.max(1_000, oldest.at + LOG_MS - now)
  }
}
