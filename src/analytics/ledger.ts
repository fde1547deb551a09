/** Analytics of one collection: records of searches and events, their counts, their log, and the documents made of them. */

import * as v from 'valibot'
import { ApiError, logFailure } from '../errors'
import { once } from '../lib/once'
import type { Draft } from '../search/documents/document'
import type { Store } from '../search/documents/store'
import type { Writer } from '../search/documents/writer'
import { hasRows } from '../search/fragment'
import type { Embedders } from '../search/vectors/embedders'
import type { Background } from '../search/work'

// =============================================================================
// The records of searches and events that the Worker sends to a collection for its analytics rules.

/** A query to count. Its document is in the collection that receives this record. */
interface QueryRecord {
  kind: 'query'
  rule: string
  /** id of its document: equal queries have the same one */
  id: string
  /** the document without its id and count: `q`, and the rule's `meta_fields` */
  document: Record<string, string>
  /** the most documents that the rule keeps */
  limit: number
  /** present: a search that was captured */
  typed?: Typed
}

/** An event about documents of the collection that receives this record. */
interface CounterRecord {
  kind: 'counter'
  rule: string
  field: string
  weight: number
  ids: string[]
}

/** An event to log, sent to the collection in which it happened. */
interface LogRecord {
  kind: 'log'
  rule: string
  /** '' for nobody */
  user: string
  event: Record<string, unknown>
  /** present: a search that was captured */
  typed?: Typed
}

export type AnalyticsRecord = QueryRecord | CounterRecord | LogRecord

/** A captured search may be one keystroke of many. It waits until its user pauses. */
export interface Typed {
  /** identifies the user. It is kept only in memory */
  by: string
  /** false: the rule does not count it, but it replaces the keystroke before it */
  counts: boolean
}

/** Counts that wait in a collection. */
export interface AnalyticsStatus {
  /** captured searches whose users may still be typing, by rule */
  typed: Record<string, number>
  /** distinct queries, and documents, whose counts are not in documents yet */
  queries: number
  counters: number
}

// =============================================================================
// Captured searches whose users may still be typing. They are kept only in memory.

/** A search counts if its user sends no other one for this long, as in Typesense. */
const PAUSE_MS = 4_000
/** Limits: users whose last keystroke is kept, and bytes of all keystrokes. Beyond them a search counts at once. */
const MOST_TYPING = 10_000
export const MOST_TYPING_BYTES = 8 * 1024 * 1024

type Captured = (QueryRecord | LogRecord) & { at: number }

interface Waiting {
  captured: Captured
  bytes: number
}

class Typing {
  #waiting = new Map<string, Waiting>()
  #bytes = 0

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /**
   * Stores a keystroke. @returns the searches that count now: one that its user had finished before, or this one if
   * there is no room
   */
  type(captured: Captured, { by, counts }: Typed): Captured[] {
    const key = `${captured.rule}\n${by}`
    const before = this.#waiting.get(key)?.captured
    this.#drop(key)
    const finished = before !== undefined && captured.at - before.at >= PAUSE_MS ? [before] : []
    if (!counts) return finished
    const bytes = sizeOf(key, captured)
    if (this.#waiting.size >= MOST_TYPING || this.#bytes + bytes > MOST_TYPING_BYTES) {
      return [...finished, captured]
    }
    this.#waiting.set(key, { captured, bytes })
    this.#bytes += bytes
    return finished
  }

  /** Removes and returns the searches that arrived until then, in unix milliseconds. */
  settle(until: number): Captured[] {
    const settled = [...this.#waiting].filter(([, { captured }]) => captured.at <= until)
    for (const [key] of settled) this.#drop(key)
    return settled.map(([, { captured }]) => captured)
  }

  /** Drops a rule's waiting searches, or those of one user that its log would get. */
  forget(rule: string, user?: string): void {
    for (const [key, { captured }] of this.#waiting) {
      const theirs = user === undefined || (captured.kind === 'log' && captured.user === user)
      if (captured.rule === rule && theirs) this.#drop(key)
    }
  }

  /** How many wait, by rule. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { captured } of this.#waiting.values())
      counts[captured.rule] = (counts[captured.rule] ?? 0) + 1
    return counts
  }

  #drop(key: string): void {
    this.#bytes -= this.#waiting.get(key)?.bytes ?? 0
    this.#waiting.delete(key)
  }
}

/** Memory takes up to two bytes for a character. */
const sizeOf = (key: string, captured: Captured): number => 2 * (key.length + JSON.stringify(captured).length)

// =============================================================================
// Counts queries and events for analytics rules, and keeps their logs.
//
// Counts are stored in the object of their destination collection. So one transaction moves them into its documents,
// and a crash neither loses a count nor adds it twice. Captured searches wait in memory until their user pauses. A
// crash loses those of the last seconds.

/** Counts are moved into documents this long after the first of them arrived. */
const FLUSH_MS = 60_000
/** Documents changed in one step, and documents deleted. */
const [FLUSHED, TRIMMED] = [200, 200]

/** Limits of a collection's log: the age of an event in milliseconds, the number of events, and their bytes. */
const LOG_MS = 30 * 86_400_000
const MOST_LOGGED = 100_000
export const MOST_LOG_BYTES = 64 * 1024 * 1024
/** Events deleted in one step. */
const EXPIRED = 1_000

const eventShape = once(() => v.record(v.string(), v.unknown()))

const documentShape = once(() => v.record(v.string(), v.string()))

export class Ledger {
  readonly #storage: DurableObjectStorage
  readonly #store: Store
  readonly #writer: Writer
  readonly #embedders: Embedders
  readonly #kick: () => void
  readonly #typing = new Typing()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** distinct queries that wait, by rule; read from storage when first needed */
  #waiting: Map<string, number> | undefined
  /**
   * limits of rules that may have too many documents, until they are trimmed. After a crash, the rule's next count
   * does it
   */
  readonly #untrimmed = new Map<string, number>()
  /** when the next flush is due, in unix milliseconds */
  #due = 0

  /** @param kick starts `work` soon */
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
      else settled.push(...this.#typing.type({ ...record, at: now }, record.typed))
    }
    this.#commit(settled, now)
    this.#watch()
  }

  /** Counts searches whose users have paused, as soon as they have. */
  #watch(): void {
    if (this.#typing.isEmpty || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#store.closed) return
      this.#settle(Date.now() - PAUSE_MS)
      this.#watch()
    }, PAUSE_MS)
  }

  /** @param until counts the searches that came until then, in unix milliseconds */
  #settle(until: number): void {
    this.#commit(this.#typing.settle(until), Date.now())
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

  /**
   * As in Typesense, new queries beyond twice a rule's limit are dropped, so that nobody can fill the object with
   * them.
   */
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

  /**
   * Documents that do not exist are skipped. An event counts once for a document, even if it names it several times.
   */
  #add({ field, weight, ids }: Extract<AnalyticsRecord, { kind: 'counter' }>): void {
    const known = this.#store.find(ids)
    for (const id of new Set(ids)) {
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

  /** Erases the log of a rule, or only one user's events in it. @returns how many events it had */
  forget(rule: string, user?: string): number {
    this.#typing.forget(rule, user)
    return this.#sql
      .exec(
        'DELETE FROM analytics_log WHERE rule = ? AND user = coalesce(?, user) RETURNING seq',
        rule,
        user ?? null,
      )
      .toArray().length
  }

  status(): AnalyticsStatus {
    const size = (table: string): number =>
      this.#sql.exec<{ count: number }>(`SELECT count(*) AS count FROM ${table}`).one().count
    return {
      typed: this.#typing.counts(),
      queries: size('analytics_queries'),
      counters: size('analytics_counters'),
    }
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
      const isWaiting =
        this.#has('analytics_queries') || this.#has('analytics_counters') || this.#untrimmed.size > 0
      if (isWaiting) {
        // After a restart, the time of the first count is unknown.
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
    return hasRows(this.#sql, `SELECT 1 FROM ${table} LIMIT 1`)
  }

  /** Moves some counts into documents, in one transaction. @returns whether more are left */
  #flushSome(): boolean {
    try {
      return !this.#store.transact(this.#storage, () => {
        const queries = this.#flushQueries()
        const counters = this.#flushCounters()
        const isTrimmed = queries && this.#trim()
        this.#store.finish()
        return isTrimmed && counters
      })
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
      ...v.parse(documentShape(), JSON.parse(body)),
      id,
      $operations: { increment: { count } },
    }))
    const known = this.#store.find(rows.map(({ id }) => id))
    const own = this.#made(known.values())
    this.#write(documents, 'emplace')
    const written = this.#store.find(rows.map(({ id }) => id))
    for (const { rule, id, most } of rows) {
      const before = known.get(id)
      const seq = written.get(id)
      if (seq !== undefined && (before === undefined || own.has(before))) {
        this.#sql.exec('INSERT OR IGNORE INTO analytics_documents (seq, rule) VALUES (?, ?)', seq, rule)
      }
      this.#untrimmed.set(rule, Math.max(most, this.#untrimmed.get(rule) ?? 0))
    }
    return false
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

  /** If a document is gone or the schema refuses it, its count is dropped: it would be refused every time. */
  #write(documents: Draft[], action: 'emplace' | 'update'): void {
    if (documents.length === 0) return
    const results = this.#writer.write(documents.map((document) => ({ document, action })))
    const refused = results.find((result) => result instanceof ApiError && result.status !== 404)
    if (refused instanceof ApiError) {
      logFailure('analytics: a count could not be written', refused, { collection: this.#store.schema.name })
    }
  }

  /**
   * Deletes some documents of a rule that has too many: the rarest that it has made from queries. Typesense deletes any documents
   * of the destination; here documents that were loaded, or that another rule keeps, stay.
   * @returns whether no rule has too many
   */
  #trim(): boolean {
    const [next] = this.#untrimmed
    if (next === undefined) return true
    const [rule, most] = next
    // Documents that somebody deleted sort last.
    const rare = this.#sql
      .exec<{ seq: number; id: string | null }>(
        `SELECT kept.seq, id FROM analytics_documents AS kept LEFT JOIN documents ON documents.seq = kept.seq
          WHERE rule = ? ORDER BY body->>'$.count' DESC, kept.seq DESC LIMIT ? OFFSET ?`,
        rule,
        TRIMMED,
        most,
      )
      .toArray()
    for (const { seq, id } of rare) {
      this.#sql.exec('DELETE FROM analytics_documents WHERE seq = ? AND rule = ?', seq, rule)
      if (id !== null && this.#made([seq]).size === 0) this.#store.remove(seq, id)
    }
    if (rare.length < TRIMMED) this.#untrimmed.delete(rule)
    return this.#untrimmed.size === 0
  }

  /** Selects the documents that rules have made. */
  #made(seqs: Iterable<number>): Set<number> {
    const rows = this.#sql.exec<{ seq: number }>(
      'SELECT DISTINCT seq FROM analytics_documents WHERE seq IN (SELECT value FROM json_each(?))',
      JSON.stringify([...seqs]),
    )
    return new Set(rows.toArray().map(({ seq }) => seq))
  }

  // ===========================================================================
  // The log of the collection's `log` rules.

  /** Adds an event, and deletes the oldest ones beyond the limits. */
  #log({ rule, user, event }: LogRecord, now: number): void {
    const { seq, upto } = this.#sql
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
    const [oldest] = this.#sql
      .exec(`SELECT 1 FROM (SELECT * FROM analytics_log ORDER BY seq LIMIT 1) WHERE ${isBeyond}`, ...bounds)
      .toArray()
    if (oldest === undefined) return
    this.#sql.exec(
      `DELETE FROM analytics_log WHERE seq IN (SELECT seq FROM analytics_log ORDER BY seq LIMIT ?) AND (${isBeyond})`,
      EXPIRED,
      ...bounds,
    )
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
      .map(({ event }) => v.parse(eventShape(), JSON.parse(event)))
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
}
