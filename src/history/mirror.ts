/**
 * Copies a history collection to D1.
 *
 * Each change of a document adds its id to the outbox, in the same transaction. A flush sends the present state of
 * those documents, and clears the entries that have not changed since. It can be repeated at any time, and D1 ends up
 * with the present documents. Only one flush runs at a time, so an older state never arrives after a newer one.
 */

import * as v from 'valibot'
import { type Database, database } from '../db/client'
import { deleteSomeOfHistory, HISTORY_STEP, type MessageRow, syncMessages } from '../db/messages'
import { requireOwnDatabase } from '../db/owner'
import type { Alarm } from '../durable/alarm'
import { logFailure } from '../errors'
import { backoff } from '../lib/backoff'
import type { Store } from '../search/documents/store'
import { hasMeta, readMeta, writeMeta } from '../search/meta'
import type { Document } from '../search/types'

/** Limits of one D1 call: documents, and characters of JSON. */
const FLUSH_DOCUMENTS = 200
const FLUSH_CHARACTERS = 600_000

/** How long a reply waits for D1. After that the alarm takes over. */
const PATIENCE_MS = 2_000

/** The alarm set during a flush, in case the object dies before its end. */
const STANDBY_MS = 30_000

export class HistoryMirror {
  #sql: SqlStorage
  #store: Store
  #env: Cloudflare.Env
  #db: Database
  #historyId: string
  #alarm: Alarm
  #version: number
  #flushing: Promise<boolean> | undefined
  #failures = 0
  #stalled = false

  constructor(store: Store, env: Cloudflare.Env, historyId: string, alarm: Alarm) {
    this.#sql = store.sql
    this.#store = store
    this.#env = env
    this.#db = database(env)
    this.#historyId = historyId
    this.#alarm = alarm
    const { version } = this.#sql
      .exec<{ version: number }>('SELECT coalesce(max(version), 0) AS version FROM outbox')
      .one()
    this.#version = version
  }

  /**
   * Records a change, inside its transaction.
   * @param replaced another document replaced this one. Its conversation then updates the turn's record
   */
  record(documentId: string, replaced = false): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO outbox (document_id, version, replaced) VALUES (?, ?, ?)',
      documentId,
      ++this.#version,
      Number(replaced),
    )
  }

  /** Records that every document is about to be removed. */
  recordAll(): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO outbox (document_id, version) SELECT id, ? FROM documents',
      ++this.#version,
    )
  }

  /** Queues the documents that exist already, a few at a time. */
  backfill(): void {
    writeMeta(this.#sql, 'backfill', 0)
  }

  get pending(): boolean {
    return (
      this.#sql.exec('SELECT 1 FROM outbox LIMIT 1').toArray().length > 0 || hasMeta(this.#sql, 'backfill')
    )
  }

  /** Waits until D1 has everything, at most as long as a reply may wait. */
  async settle(): Promise<void> {
    if (!this.pending) return
    this.#alarm.within(STANDBY_MS)
    // Do not wait while D1 is known to be unavailable.
    if (this.#failures > 0 || this.#stalled) return
    const flushed = this.flush()
    const answered = await Promise.race([
      flushed.then(() => true),
      scheduler.wait(PATIENCE_MS).then(() => false),
    ])
    if (!answered) {
      this.#stalled = true
      flushed.finally(() => {
        this.#stalled = false
      })
    }
  }

  /** Sends what D1 lacks. @returns whether D1 has everything now; if not, the alarm is set */
  flush(): Promise<boolean> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  /** The background's step. A failed flush sets the alarm itself. */
  async step(): Promise<undefined> {
    await this.flush()
  }

  async #flushAll(): Promise<boolean> {
    try {
      await requireOwnDatabase(this.#env)
      while (!this.#store.closed && this.#fillFromBackfill()) await this.#flushSome()
      this.#failures = 0
      return true
    } catch (error) {
      logFailure('history could not be written to D1', error, { collection: this.#store.schema.name })
      this.#alarm.within(backoff(this.#failures++))
      return false
    }
  }

  /** Fills an empty outbox with documents that are older than it. @returns false when all is sent */
  #fillFromBackfill(): boolean {
    if (this.#sql.exec('SELECT 1 FROM outbox LIMIT 1').toArray().length > 0) return true
    const after = readMeta(this.#sql, 'backfill', v.number())
    if (after === undefined) return false
    const rows = this.#sql
      .exec<{ seq: number; id: string }>(
        `SELECT seq, id FROM documents WHERE seq >= ? ORDER BY seq LIMIT ${FLUSH_DOCUMENTS}`,
        after,
      )
      .toArray()
    for (const { id } of rows) this.record(id)
    const last = rows.at(-1)
    writeMeta(this.#sql, 'backfill', last === undefined ? undefined : last.seq + 1)
    return rows.length > 0
  }

  async #flushSome(): Promise<void> {
    const entries = this.#sql
      .exec<{ document_id: string; version: number; replaced: number }>(
        `SELECT document_id, version, replaced FROM outbox ORDER BY version LIMIT ${FLUSH_DOCUMENTS}`,
      )
      .toArray()
    const seqs = this.#store.find(entries.map(({ document_id }) => document_id))
    const rows: Omit<MessageRow, 'historyId'>[] = []
    const removed: string[] = []
    const replacedIds: string[] = []
    const sent: [string, number][] = []
    let characters = 0
    for (const { document_id, version, replaced } of entries) {
      const seq = seqs.get(document_id)
      const document = seq === undefined ? undefined : this.#store.read([seq], true, true).get(seq)
      if (document === undefined) {
        ;(replaced ? replacedIds : removed).push(document_id)
      } else {
        const row = messageOf(document)
        characters += row.message.length
        if (rows.length > 0 && characters > FLUSH_CHARACTERS) break
        rows.push(row)
      }
      sent.push([document_id, version])
    }
    await syncMessages(this.#db, this.#historyId, { rows, removed, replaced: replacedIds })
    if (this.#store.closed) return
    this.#sql.exec(
      `DELETE FROM outbox WHERE (document_id, version) IN
        (SELECT value->>0, value->>1 FROM json_each(?))`,
      JSON.stringify(sent),
    )
  }

  /** Removes the history from D1, for a deleted collection. @returns false when some of it is left for later */
  async removeAll(): Promise<boolean> {
    const late = scheduler.wait(PATIENCE_MS).then(() => 'late' as const)
    try {
      for (const until = Date.now() + PATIENCE_MS; Date.now() < until; ) {
        const removed = await Promise.race([deleteSomeOfHistory(this.#db, this.#historyId), late])
        if (removed === 'late') return false
        if (removed < HISTORY_STEP) return true
      }
    } catch (error) {
      logFailure('history could not be removed from D1', error, { collection: this.#store.schema.name })
    }
    return false
  }
}

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : String(value)

/**
 * A document as a row of history. D1 binds no parameter above 2 MB, and JSON can double a text, so D1's copy of a
 * longer message is cut. The document itself stays whole.
 */
const messageOf = (document: Document): Omit<MessageRow, 'historyId'> => ({
  documentId: document.id,
  conversationId: text(document.conversation_id),
  modelId: text(document.model_id),
  role: text(document.role),
  message: text(document.message).slice(0, FLUSH_CHARACTERS),
  timestamp: Number.isInteger(document.timestamp) ? (document.timestamp as number) : 0,
})
