/** Reads and writes the documents of a history collection as messages of conversations. */

import * as v from 'valibot'
import { once } from '../lib/once'
import { fromStored, promptText } from '../lib/parts'
import { removeAll } from '../search/documents/bulk'
import type { Store } from '../search/documents/store'
import { MESSAGES_A_TURN } from '../search/limits'
import type { RecentMessages, Step, StoredMessage } from '../search/types'

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
      total += encoder.encode(promptText(message.content)).byteLength
      messages.push(message)
    }
    if (rows.length < most) return { messages: messages.reverse(), complete: true }
  }
}

const encoder = new TextEncoder()

const messageOf = ({ id, role, message, parts, model, timestamp }: Row): StoredMessage => ({
  documentId: String(id),
  role: String(role ?? ''),
  content: fromStored(String(message ?? ''), parts),
  timestamp: Number(timestamp ?? 0),
  modelId: String(model ?? ''),
})

/** The timestamps at which the conversation has at least a question and an answer. */
export const wholeTurns = (store: Store, conversationId: string, timestamps: number[]): number[] =>
  store.sql
    .exec<{ timestamp: number }>(
      `SELECT body->>'$.timestamp' AS timestamp FROM documents
        WHERE body->>'$.conversation_id' = ? AND body->>'$.timestamp' IN (SELECT value FROM json_each(?))
        GROUP BY 1 HAVING count(*) > 1`,
      conversationId,
      JSON.stringify(timestamps),
    )
    .toArray()
    .map(({ timestamp }) => timestamp)

/** Whether a turn has been added before. */
export const isKnownOrigin = (sql: SqlStorage, origin: string): boolean =>
  sql.exec('SELECT 1 FROM origins WHERE origin = ?', origin).toArray().length > 0

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
