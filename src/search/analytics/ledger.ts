/**
 * Counts what analytics rules count, and keeps their log.
 *
 * Counts are kept in the object of the collection that they go into, so a transaction moves them into its documents: a
 * crash neither loses a count nor adds it twice. Captured searches wait in memory until their user pauses. A crash loses
 * those of the last seconds.
 */
import * as v from 'valibot'
import { ApiError } from '../../errors'
import type { Draft } from '../documents/document'
import type { Store } from '../documents/store'
import type { Writer } from '../documents/writer'
import type { Embedders } from '../vectors/embedders'
import type { Background } from '../work'
import type { AnalyticsRecord, AnalyticsStatus, LogRecord, QueryRecord } from './records'

/** A search counts if its user sends no other one for this long, as in Typesense. */
const PAUSE_MS = 4_000
/** Users whose last keystroke is remembered. Beyond them a search counts at once. */
const MOST_TYPING = 10_000
/** Counts go into documents this long after the first of them came. */
const FLUSH_MS = 60_000
/** Documents changed in one step. */
const FLUSHED = 200
/** How long an event stays in the log, and how many of a collection stay. */
const LOG_MS = 30 * 86_400_000
const MOST_LOGGED = 100_000
const EXPIRED = 1_000

const eventShape = v.record(v.string(), v.unknown())
const documentShape = v.record(v.string(), v.string())

type Captured = (QueryRecord | LogRecord) & { at: number }

export class Ledger {
  readonly #storage: DurableObjectStorage
  readonly #store: Store
  readonly #writer: Writer
  readonly #embedders: Embedders
  readonly #kick: () => void
  #typing = new Map<string, Captured>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** distinct queries that wait, by rule; read from storage when first needed */
  #waiting: Map<string, number> | undefined
  /** when the next flush is due, in unix milliseconds */
  #due = 0

  /** @param kick has `work` done soon */
  constructor(
    storage: DurableObjectStorage,
    { store, writer, embedders }: { store: Store; writer: Writer; embedders: Embedders },
    kick: () => void,
  ) {
    this.#storage = storage
    this.#store = store
    this.#writer = writer
    this.#embedders = embedders
    this.#kick = kick
  }

  get #sql(): SqlStorage {
    return this.#store.sql
  }

  /** Takes records. When it returns, all but captured searches are in storage. */
  record(records: AnalyticsRecord[], now = Date.now()): void {
    const settled: AnalyticsRecord[] = []
    for (const record of records) {
      if (record.kind === 'counter' || record.typed === undefined) settled.push(record)
      else settled.push(...this.#type({ ...record, at: now }, record.typed, now))
    }
    this.#commit(settled, now)
    this.#watch()
  }

  /** Remembers a keystroke. @returns what its user had finished before it */
  #type(captured: Captured, { by, counts }: { by: string; counts: boolean }, now: number): Captured[] {
    const key = `${captured.rule}\n${by}`
    const before = this.#typing.get(key)
    this.#typing.delete(key)
    const finished = before !== undefined && now - before.at >= PAUSE_MS ? [before] : []
    if (!counts) return finished
    if (this.#typing.size >= MOST_TYPING) return [...finished, captured]
    this.#typing.set(key, captured)
    return finished
  }

  /** Counts searches whose users have paused, as soon as they have. */
  #watch(): void {
    if (this.#typing.size === 0 || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#store.closed) return
      this.#settle(Date.now() - PAUSE_MS)
      this.#watch()
    }, PAUSE_MS)
  }

  /** @param until counts the searches that came until then, in unix milliseconds */
  #settle(until: number): void {
    const finished = [...this.#typing].filter(([, { at }]) => at <= until)
    for (const [key] of finished) this.#typing.delete(key)
    this.#commit(
      finished.map(([, captured]) => captured),
      Date.now(),
    )
  }

  #commit(records: AnalyticsRecord[], now: number): void {
    if (records.length === 0) return
    try {
      this.#storage.transactionSync(() => {
        for (const record of records) {
          if (record.kind === 'query') this.#count(record)
          else if (record.kind === 'counter') this.#add(record)
          else this.#log(record, now)
        }
      })
    } finally {
      this.#waiting = undefined
    }
    if (this.#due === 0) this.#due = now + FLUSH_MS
    this.#kick()
  }

  /** New queries beyond twice a rule's limit are dropped, as in Typesense: nobody can fill the object with them. */
  #count({ rule, id, document, limit }: QueryRecord): void {
    this.#waiting ??= new Map(
      this.#sql
        .exec<{ rule: string; count: number }>(
          'SELECT rule, count(*) AS count FROM analytics_queries GROUP BY rule',
        )
        .toArray()
        .map(({ rule: name, count }) => [name, count]),
    )
    const counted = this.#sql
      .exec('UPDATE analytics_queries SET count = count + 1 WHERE rule = ? AND id = ? RETURNING 1', rule, id)
      .toArray()
    const waiting = this.#waiting.get(rule) ?? 0
    if (counted.length > 0 || waiting >= 2 * limit) return
    this.#waiting.set(rule, waiting + 1)
    this.#sql.exec(
      'INSERT INTO analytics_queries (rule, id, body, most, count) VALUES (?, ?, ?, ?, 1)',
      rule,
      id,
      JSON.stringify(document),
      limit,
    )
  }

  /** Documents that are not there are passed over. */
  #add({ field, weight, ids }: Extract<AnalyticsRecord, { kind: 'counter' }>): void {
    const known = this.#store.find(ids)
    for (const id of ids) {
      if (!known.has(id)) continue
      this.#sql.exec(
        `INSERT INTO analytics_counters (field, id, count) VALUES (?, ?, ?)
          ON CONFLICT (field, id) DO UPDATE SET count = count + excluded.count`,
        field,
        id,
        weight,
      )
    }
  }

  #log({ rule, user, event }: LogRecord, now: number): void {
    const { seq } = this.#sql
      .exec<{ seq: number }>(
        'INSERT INTO analytics_log (rule, user, at, event) VALUES (?, ?, ?, ?) RETURNING seq',
        rule,
        user,
        now,
        JSON.stringify(event),
      )
      .one()
    this.#sql.exec('DELETE FROM analytics_log WHERE seq <= ?', seq - MOST_LOGGED)
  }

  /** A user's latest events, newest first. */
  events(rule: string, user: string, most: number): Record<string, unknown>[] {
    return this.#sql
      .exec<{ event: string }>(
        'SELECT event FROM analytics_log WHERE rule = ? AND user = ? ORDER BY seq DESC LIMIT ?',
        rule,
        user,
        most,
      )
      .toArray()
      .map(({ event }) => v.parse(eventShape, JSON.parse(event)))
  }

  /** Erases the log of a rule, or what it has of one user. @returns how many events it had */
  forget(rule: string, user?: string): number {
    for (const [key, captured] of this.#typing) {
      const theirs = user === undefined || (captured.kind === 'log' && captured.user === user)
      if (captured.rule === rule && theirs) this.#typing.delete(key)
    }
    return this.#sql
      .exec(
        'DELETE FROM analytics_log WHERE rule = ? AND user = coalesce(?, user) RETURNING seq',
        rule,
        user ?? null,
      )
      .toArray().length
  }

  status(): AnalyticsStatus {
    const typed: Record<string, number> = {}
    for (const { rule } of this.#typing.values()) typed[rule] = (typed[rule] ?? 0) + 1
    const size = (table: string): number =>
      this.#sql.exec<{ count: number }>(`SELECT count(*) AS count FROM ${table}`).one().count
    return { typed, queries: size('analytics_queries'), counters: size('analytics_counters') }
  }

  /** Puts everything into documents at once, also searches whose users may still be typing. */
  async flush(): Promise<void> {
    this.#settle(Date.now())
    await this.#embedders.ready(this.#store.plan.embedded)
    while (!this.#store.closed && this.#flushSome());
    this.#due = 0
  }

  readonly work: Background = {
    name: 'analytics',
    step: async () => {
      const now = Date.now()
      const isWaiting = this.#has('analytics_queries') || this.#has('analytics_counters')
      if (isWaiting) {
        // After a crash nobody knows when the first count came.
        if (this.#due === 0) this.#due = now + FLUSH_MS
        if (now < this.#due) return this.#due - now
        await this.#embedders.ready(this.#store.plan.embedded)
        if (this.#store.closed || this.#flushSome()) return 0
      }
      this.#due = 0
      return this.#expire(now)
    },
  }

  #has(table: string): boolean {
    return this.#sql.exec(`SELECT 1 FROM ${table} LIMIT 1`).toArray().length > 0
  }

  /** Deletes some events that are too old. @returns milliseconds until the next one is */
  #expire(now: number): number | undefined {
    const expired = this.#sql
      .exec(
        `DELETE FROM analytics_log WHERE at <= ?
          AND seq IN (SELECT seq FROM analytics_log ORDER BY seq LIMIT ?) RETURNING seq`,
        now - LOG_MS,
        EXPIRED,
      )
      .toArray().length
    if (expired === EXPIRED) return 0
    const [oldest] = this.#sql
      .exec<{ at: number }>('SELECT at FROM analytics_log ORDER BY seq LIMIT 1')
      .toArray()
    return oldest && Math.max(1_000, oldest.at + LOG_MS - now)
  }

  /** Moves some counts into documents, in one transaction. @returns whether more are left */
  #flushSome(): boolean {
    try {
      const isDone = this.#storage.transactionSync(() => {
        const queries = this.#flushQueries()
        const counters = this.#flushCounters()
        this.#store.saveCounters()
        return queries && counters
      })
      return !isDone
    } catch (error) {
      this.#store.reset()
      throw error
    } finally {
      this.#waiting = undefined
    }
  }

  /** @returns whether all are flushed */
  #flushQueries(): boolean {
    const rows = this.#sql
      .exec<{ rule: string; id: string; body: string; most: number; count: number }>(
        'SELECT rule, id, body, most, count FROM analytics_queries LIMIT ?',
        FLUSHED,
      )
      .toArray()
    if (rows.length === 0) return true
    for (const { rule, id } of rows) {
      this.#sql.exec('DELETE FROM analytics_queries WHERE rule = ? AND id = ?', rule, id)
    }
    const documents = rows.map(({ id, body, count }) => ({
      ...v.parse(documentShape, JSON.parse(body)),
      id,
      $operations: { increment: { count } },
    }))
    this.#write(documents, 'emplace')
    if (rows.length === FLUSHED) return false
    this.#trim(Math.max(...rows.map(({ most }) => most)))
    return true
  }

  /** @returns whether all are flushed */
  #flushCounters(): boolean {
    const rows = this.#sql
      .exec<{ field: string; id: string; count: number }>(
        'SELECT field, id, count FROM analytics_counters LIMIT ?',
        FLUSHED,
      )
      .toArray()
    for (const { field, id } of rows) {
      this.#sql.exec('DELETE FROM analytics_counters WHERE field = ? AND id = ?', field, id)
    }
    const changes = rows.map(({ field, id, count }) => ({
      id,
      $operations: { increment: { [field]: count } },
    }))
    this.#write(changes, 'update')
    return rows.length < FLUSHED
  }

  /** A document that is gone, or that the schema refuses, loses its count: it would be refused every time. */
  #write(documents: Draft[], action: 'emplace' | 'update'): void {
    if (documents.length === 0) return
    const results = this.#writer.write(documents.map((document) => ({ document, action })))
    const refused = results.find((result) => result instanceof ApiError && result.status !== 404)
    if (refused instanceof ApiError) {
      console.warn(`analytics: a count could not be written: ${refused.message}`)
    }
  }

  /** Keeps the most frequent queries. */
  #trim(most: number): void {
    if (this.#store.count <= most) return
    const rare = this.#sql
      .exec<{ seq: number; id: string }>(
        `SELECT seq, id FROM documents ORDER BY body->>'$.count' DESC, seq DESC LIMIT -1 OFFSET ?`,
        most,
      )
      .toArray()
    for (const { seq, id } of rare) this.#store.remove(seq, id)
  }
}
