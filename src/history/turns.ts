/** Turns of conversations as documents of a history collection, and their copy in D1. */

import * as v from 'valibot'
import type { Database } from '../db/client'
import { deleteSomeOfHistory, HISTORY_STEP, type MessageRow, syncMessages } from '../db/conversations'
import { requireOwnDatabase } from '../db/owner'
import type { Alarm } from '../durable/objects'
import { logFailure } from '../errors'
import { once } from '../lib/once'
import { fromStored, promptText } from '../lib/parts'
import { backoff, settlesWithin } from '../lib/waiting'
import { removeAll } from '../search/documents/bulk'
import type { Store } from '../search/documents/store'
import { columnOf, hasRows } from '../search/fragment'
import { MESSAGES_A_TURN } from '../search/limits'
import { hasMeta, readMeta, writeMeta } from '../search/meta'
import type { CollectionSchema, Document, RecentMessages, Step, StoredMessage } from '../search/types'

// =============================================================================
// Recognises a history collection that no model uses now: a clone, a backup, or one whose model is created later.

/** Fields of a message: Typesense's names and types. */
const TYPES: Record<string, readonly string[]> = {
  conversation_id: ['string'],
  model_id: ['string'],
  role: ['string'],
  message: ['string'],
  timestamp: ['int32', 'int64'],
}

/** Whether a schema has all fields of a message. */
export const isHistoryShaped = ({ fields }: Pick<CollectionSchema, 'fields'>): boolean =>
  Object.entries(TYPES).every(([name, types]) =>
    fields.some((field) => field.name === name && types.includes(field.type)),
  )

// =============================================================================
// Reads and writes the documents of a history collection as messages of conversations.

/** Creates the index by conversation. SQLite maintains it from the documents' own text. */
export function indexConversations(sql: SqlStorage): void {
  sql.exec(
    `CREATE INDEX IF NOT EXISTS documents_conversation
      ON documents (body->>'$.conversation_id', body->>'$.timestamp')`,
  )
}

type Row = Record<'id' | 'role' | 'message' | 'parts' | 'model' | 'timestamp', SqlStorageValue>

const MESSAGES = `SELECT id, body->>'$.role' AS role, body->>'$.message' AS message, body->>'$.parts' AS parts,
    body->>'$.model_id' AS model, body->>'$.timestamp' AS timestamp
  FROM documents WHERE body->>'$.conversation_id' = ?`

/**
 * A conversation's messages, oldest first; within a second, in the order of insertion.
 * @param without origins of turns whose question and answer do not count
 */
export function conversationMessages(
  store: Store,
  conversationId: string,
  without: string[],
): StoredMessage[] {
  const left = documentsOf(store.sql, without)
  const turns = turnsOf(store.sql, conversationId)
  return store.sql
    .exec<Row>(`${MESSAGES} ORDER BY body->>'$.timestamp', seq`, conversationId)
    .toArray()
    .map((row) => {
      const turn = turns.get(String(row.id))
      return { ...messageOf(row), ...(turn !== undefined && { turn }) }
    })
    .filter(({ documentId }) => !left.has(documentId))
}

const LATEST_MESSAGES = `${MESSAGES} ORDER BY body->>'$.timestamp' DESC, seq DESC LIMIT ? OFFSET ?`

/** Messages of the first page that is read, and of the longest. Each page is twice as long as the one before. */
const [FIRST_PAGE, LONGEST_PAGE] = [16, 64]

/** The last messages. The index is read newest first, so hardly more rows are read than needed. */
export function recentMessages(
  store: Store,
  conversationId: string,
  bytes: number,
  without: string[] = [],
): RecentMessages {
  const left = documentsOf(store.sql, without)
  const messages: StoredMessage[] = []
  let total = 0
  // A cursor that is left before its end stays open, and keeps a field from being dropped. So pages are read whole.
  for (let offset = 0, most = FIRST_PAGE; ; offset += most, most = Math.min(2 * most, LONGEST_PAGE)) {
    const rows = store.sql.exec<Row>(LATEST_MESSAGES, conversationId, most, offset).toArray()
    for (const row of rows) {
      if (left.has(String(row.id))) continue
      if (total > bytes) return { messages: messages.reverse(), complete: false }
      const message = messageOf(row)
      total += new TextEncoder().encode(promptText(message.content)).byteLength
      messages.push(message)
    }
    if (rows.length < most) return { messages: messages.reverse(), complete: true }
  }
}

const messageOf = ({ id, role, message, parts, model, timestamp }: Row): StoredMessage => ({
  documentId: String(id),
  role: String(role ?? ''),
  content: fromStored(String(message ?? ''), parts),
  timestamp: Number(timestamp ?? 0),
  modelId: String(model ?? ''),
})

/** The timestamps at which the conversation has at least a question and an answer. */
export const wholeTurns = (store: Store, conversationId: string, timestamps: number[]): number[] =>
  columnOf<number>(
    store.sql,
    `SELECT body->>'$.timestamp' AS timestamp FROM documents
        WHERE body->>'$.conversation_id' = ? AND body->>'$.timestamp' IN (SELECT value FROM json_each(?))
        GROUP BY 1 HAVING count(*) > 1`,
    conversationId,
    JSON.stringify(timestamps),
  )

/** Whether a turn has been added before. */
export const isKnownOrigin = (sql: SqlStorage, origin: string): boolean =>
  hasRows(sql, 'SELECT 1 FROM origins WHERE origin = ?', origin)

/** Records that a turn has been added, with the ids of its documents. */
export function noteOrigin(sql: SqlStorage, origin: string, documentIds: string[]): void {
  sql.exec('INSERT INTO origins (origin, documents) VALUES (?, ?)', origin, JSON.stringify(documentIds))
}

const ids = once(() => v.array(v.string()))

/** The ids of the questions and answers of turns. */
function documentsOf(sql: SqlStorage, origins: string[]): Set<string> {
  if (origins.length === 0) return new Set()
  const rows = sql.exec<{ documents: string }>(
    'SELECT documents FROM origins WHERE origin IN (SELECT value FROM json_each(?))',
    JSON.stringify(origins),
  )
  const lists = rows.toArray().map(({ documents }) => v.parse(ids(), JSON.parse(documents)))
  return new Set(lists.flatMap((list) => list.slice(-MESSAGES_A_TURN)))
}

/** The numbers of a conversation's turns, by the ids of their questions and answers. An origin ends in the number. */
const turnsOf = (sql: SqlStorage, conversationId: string): Map<string, number> =>
  new Map(
    sql
      .exec<{ id: string; origin: string }>(
        `SELECT said.value AS id, origin FROM origins, json_each(documents) said
          WHERE origin >= ? AND origin < ? AND said.key >= json_array_length(documents) - ${MESSAGES_A_TURN}`,
        ...originsOf(conversationId),
      )
      .toArray()
      .map(({ id, origin }) => [id, Number(origin.slice(origin.lastIndexOf('/') + 1))]),
  )

/**
 * Removes the questions and answers of turns, within the caller's transaction.
 * @param onRemoved called in place of the store's `onChange`
 */
export function removeReplaced(store: Store, origins: string[], onRemoved: (id: string) => void): void {
  const { onChange } = store
  store.onChange = onRemoved
  try {
    for (const [id, seq] of store.find([...documentsOf(store.sql, origins)])) store.remove(seq, id)
  } finally {
    store.onChange = onChange
  }
}

/** Documents that one step removes. */
const REMOVED_AT_ONCE = 200

/** Removes documents of a conversation, and with the last of them the record of its turns. */
export function removeConversation(
  storage: DurableObjectStorage,
  store: Store,
  conversationId: string,
): Step {
  const found = store.sql
    .exec<{ seq: number; id: string }>(
      `SELECT seq, id FROM documents WHERE body->>'$.conversation_id' = ? LIMIT ${REMOVED_AT_ONCE}`,
      conversationId,
    )
    .toArray()
  removeAll(
    storage,
    store,
    found.map(({ seq, id }) => [seq, id]),
  )
  const done = found.length < REMOVED_AT_ONCE
  if (done) forgetOrigins(store.sql, conversationId)
  return { count: found.length, done }
}

/** Removes documents that D1 has removed already, so nothing goes to the outbox. */
export function expireMessages(storage: DurableObjectStorage, store: Store, documentIds: string[]): void {
  const { onChange } = store
  store.onChange = undefined
  try {
    const found = store.find(documentIds)
    const conversations = conversationsOf(store.sql, [...found.values()])
    removeAll(
      storage,
      store,
      [...found].map(([id, seq]) => [seq, id]),
    )
    for (const id of conversations) {
      if (recentMessages(store, id, 0).messages.length === 0) forgetOrigins(store.sql, id)
    }
  } finally {
    store.onChange = onChange
  }
}

const conversationsOf = (sql: SqlStorage, seqs: number[]): string[] =>
  sql
    .exec<{ id: string | null }>(
      `SELECT DISTINCT body->>'$.conversation_id' AS id FROM documents
        WHERE seq IN (SELECT value FROM json_each(?))`,
      JSON.stringify(seqs),
    )
    .toArray()
    .map(({ id }) => String(id))

/** Between which a conversation's origins are. They begin with its id and `/`; `0` is the character after `/`. */
const originsOf = (conversationId: string) => [`${conversationId}/`, `${conversationId}0`] as const

function forgetOrigins(sql: SqlStorage, conversationId: string): void {
  sql.exec('DELETE FROM origins WHERE origin >= ? AND origin < ?', ...originsOf(conversationId))
}

// =============================================================================
// Copies a history collection to D1.
//
// Each change of a document adds its id to the outbox, in the same transaction. A flush sends the present state of
// those documents, and clears the entries that have not changed since. It can be repeated at any time, and D1 ends up
// with the present documents. Only one flush runs at a time, so an older state never arrives after a newer one.

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
    this.#db = env.DB
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
    return hasRows(this.#sql, 'SELECT 1 FROM outbox LIMIT 1') || hasMeta(this.#sql, 'backfill')
  }

  /** Waits until D1 has everything, at most as long as a reply may wait. */
  async settle(): Promise<void> {
    if (!this.pending) return
    this.#alarm.within(STANDBY_MS)
    // Do not wait while D1 is known to be unavailable.
    if (this.#failures > 0 || this.#stalled) return
    const flushed = this.flush()
    if (!(await settlesWithin(PATIENCE_MS, flushed))) {
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
    if (hasRows(this.#sql, 'SELECT 1 FROM outbox LIMIT 1')) return true
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
        const row = mirroredRow(document)
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
const mirroredRow = (document: Document): Omit<MessageRow, 'historyId'> => ({
  documentId: document.id,
  conversationId: text(document.conversation_id),
  modelId: text(document.model_id),
  role: text(document.role),
  message: text(document.message).slice(0, FLUSH_CHARACTERS),
  timestamp: Number.isInteger(document.timestamp) ? (document.timestamp as number) : 0,
})
